"""Fixtures of the command line tests: an index that was made once, and put back for each test that changes it."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness import IndexUnderTest


class Pristine:
    """Documents and an index over them, kept aside after the first run. Paths stay, so the index stays true."""

    def __init__(self, folder: Path, index: IndexUnderTest) -> None:
        self.folder = folder
        self.index = index
        self._aside = folder.with_name(folder.name + ".aside")

    def keep(self) -> None:
        """Remember the state of the whole folder."""
        shutil.copytree(self.folder, self._aside, symlinks=True)

    def restore(self) -> IndexUnderTest:
        """Bring the whole folder back to what was kept."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._aside, self.folder, symlinks=True)
        return self.index


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Path], None]], Pristine]:
    """Makes ``docs`` by the function given, ingests it, and keeps the outcome aside."""

    def make(write: Callable[[Path], None]) -> Pristine:
        folder = tmp_path_factory.mktemp("pristine")
        docs = folder / "docs"
        docs.mkdir()
        write(docs)
        index = IndexUnderTest(folder)
        ended = index.run(docs)
        assert ended.exit_code == 0, ended.stdout + ended.stderr
        made = Pristine(folder, index)
        made.keep()
        return made

    return make


class Mortal(IndexUnderTest):
    """An index whose commands may not read what permissions forbid, also where the tests run as root."""

    def command(self, *words: str) -> list[str]:
        line = super().command(*words)
        if os.geteuid() != 0:
            return line
        rights = "-dac_override,-dac_read_search"
        return ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", *line]


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Mortal]:
    """An index for which permissions count; whatever was forbidden is allowed again at the end."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("runs as root, and setpriv is not there to give rights up")
    yield Mortal(tmp_path)
    for folder, _, files in os.walk(tmp_path):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            if not path.is_symlink():
                path.chmod(0o700)

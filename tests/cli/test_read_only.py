"""An index that cannot be written: on a read-only mount, as a team ships it, or while the disk is full.

Readers read it through a private view. What would write says so, and the index stays as it is, byte for byte.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.harness import PATIENCE_S, SAMPLE, Ended, IndexUnderTest

pytestmark = pytest.mark.slow

QUESTION = "how many days of leave can be carried over"


class Shipped(IndexUnderTest):
    """An index on which commands run where its folder is mounted read-only, in a mount namespace of their own."""

    def call(self, *words: str, **extra: str) -> Ended:
        """Run one command to its end."""
        script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
        done = subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(self.home), *self.command(*words)],
            env=self.environment(**extra),
            capture_output=True,
            encoding="utf-8",
            cwd=self.folder,
            timeout=PATIENCE_S,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """The index of a corpus, made where it could be written."""
    folder = tmp_path_factory.mktemp("shipped")
    made = IndexUnderTest(folder)
    assert made.run(SAMPLE).exit_code == 0
    shipped = Shipped(folder)
    tried = subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True, encoding="utf-8")
    if tried.returncode != 0:
        pytest.skip(f"needs mount namespaces: {tried.stderr.strip()}")
    return shipped


def files(home: Path) -> dict[str, tuple[int, int]]:
    """Every file of an index, with its size and time."""
    return {
        str(path.relative_to(home)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def test_a_read_only_index_answers_as_a_writable_one(shipped: Shipped, tmp_path: Path) -> None:
    """Same passages; not a file of it touched, and none left in the temporary folder."""
    before = files(shipped.home)
    found = shipped.call("search", QUESTION, "--json", TMPDIR=str(tmp_path))
    assert found.exit_code == 0, found.stderr
    assert found.json["passages"][0]["citation"]["path"]
    assert list(tmp_path.glob("grounded-*")) == []
    assert files(shipped.home) == before
    plain = IndexUnderTest(shipped.folder).search(QUESTION)
    assert [item["chunk_id"] for item in found.json["passages"]] == [item["chunk_id"] for item in plain["passages"]]


@pytest.mark.parametrize("words", [("status",), ("verify", "--full"), ("export",), ("runs",)], ids=" ".join)
def test_what_only_looks_works_on_a_read_only_index(shipped: Shipped, words: tuple[str, ...]) -> None:
    """The same as on a writable one."""
    json_too = () if words == ("export",) else ("--json",)
    found = shipped.call(*words, *json_too)
    assert found.exit_code == 0, found.stderr
    plain = IndexUnderTest(shipped.folder).call(*words, *json_too)
    assert found.stdout.splitlines()[0][:40] == plain.stdout.splitlines()[0][:40]


def test_a_run_on_a_read_only_index_says_so(shipped: Shipped) -> None:
    """One error that names the folder, and nothing changed."""
    before = files(shipped.home)
    ended = shipped.call("run", str(SAMPLE), "--json")
    assert ended.exit_code == 1
    error = json.loads(ended.stderr.splitlines()[-1])
    assert str(shipped.home) in error["message"]
    assert "read-only" in error["message"].lower()
    assert files(shipped.home) == before


def test_a_catalog_with_work_in_its_log_is_not_read_without_it(shipped: Shipped) -> None:
    """Half of a killed run's state would be a state that never was."""
    log = shipped.home / "index" / "catalog.db-wal"
    log.write_bytes(b"\0" * 32)
    try:
        ended = shipped.call("export")
        assert ended.exit_code == 1
        assert "a run is at work or was killed" in ended.stderr
    finally:
        log.unlink()

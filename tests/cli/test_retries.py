"""A file that cannot be ingested is tried again only when something changed that could mend it.

What a run would try is asked of ``--dry-run``, which prints the plan that the run carries out; what it did try is told
by a failpoint that kills a run at the first, or second, document that it parses.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from tests.cli.prose import note
from tests.harness import REPOSITORY, Ended, IndexUnderTest

CASES = REPOSITORY / "tests" / "files" / "parsing" / "cases"
PASSWORD = "otter-4711-harbour"
# A library of the name of a real one, whose reading of any file ends the process.
CRASHES = "import os\n\n\ndef convert_to_html(*args, **kwargs):\n    os.abort()\n"
READS = (
    "import types\n\n\ndef convert_to_html(*args, **kwargs):\n"
    "    return types.SimpleNamespace(value='<p>The mended library reads of a heron.</p>')\n"
)
METADATA = "Metadata-Version: 2.1\nName: mammoth\nVersion: {version}\n"


def library(folder: Path, source: str, version: str) -> Path:
    """Make a library ``mammoth``, to stand before the installed one."""
    package = folder / "mammoth"
    shutil.rmtree(folder, ignore_errors=True)
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source, encoding="utf-8")
    info = folder / f"mammoth-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA.format(version=version), encoding="utf-8")
    return folder


class Broken:
    """A folder of one good file among many broken ones, and an index over it."""

    def __init__(self, folder: Path) -> None:
        self.docs = folder / "docs"
        self.docs.mkdir()
        self.index = IndexUnderTest(folder)
        self.libraries = library(folder / "libraries", CRASHES, "1")
        (self.docs / "note.md").write_text(note(1), encoding="utf-8")
        self._locked("locked.pdf", "The locked page tells of a badger.")
        self._locked("locked.txt", "The misnamed page tells of an otter.")
        shutil.copy(CASES / "pdf-no-text-layer" / "scan.pdf", self.docs / "scan.pdf")
        shutil.copy(CASES / "pdf-damaged" / "truncated.pdf", self.docs / "torn.pdf")
        shutil.copy(CASES / "docx-tracked-changes" / "contract.docx", self.docs / "letter.docx")
        (self.docs / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
        (self.docs / "long.md").write_text("A sentence among many others of its kind. " * 60, encoding="utf-8")

    def run(self, *options: str, **extra: str) -> Ended:
        """Run as a user does whose installed library crashes, with a limit that one text is over."""
        return self.index.run(self.docs, options=options, **self._environment(extra))

    def tried(self, *options: str, **extra: str) -> list[str]:
        """Return the sources that a run would parse."""
        plan = self.run("--dry-run", *options, **extra).json
        return sorted(work["source"] for work in plan["work"])

    def _environment(self, extra: dict[str, str]) -> dict[str, str]:
        return {
            "GROUNDED_MAX_DOCUMENT_CHARS": "2000",
            "PYTHONPATH": f"{self.libraries}:{REPOSITORY}",
            "PYTHONDONTWRITEBYTECODE": "1",
            **extra,
        }

    def _locked(self, name: str, sentence: str) -> None:
        lock = StandardEncryption(PASSWORD, ownerPassword="another", canPrint=1, strength=128)
        canvas = Canvas(str(self.docs / name), pagesize=(420, 300), invariant=1, encrypt=lock)
        canvas.drawString(40, 200, sentence)
        canvas.save()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Broken, Ended]:
    """The folder, ingested once without a password; nothing changes it."""
    made = Broken(tmp_path_factory.mktemp("retries"))
    return made, made.run()


@pytest.fixture
def broken(first: tuple[Broken, Ended], tmp_path: Path) -> Iterator[Broken]:
    """The same, put back afterwards."""
    made = first[0]
    aside = tmp_path / "aside"
    shutil.copytree(made.index.folder, aside, symlinks=True)
    yield made
    shutil.rmtree(made.index.folder)
    shutil.copytree(aside, made.index.folder, symlinks=True)


def test_every_failure_has_the_status_of_its_cause(first: tuple[Broken, Ended]) -> None:
    """What follows is about these; the good file is in the index."""
    ended = first[1]
    assert ended.exit_code == 3
    assert {failure["source"]: failure["status"] for failure in ended.json["failures"]} == {
        "locked.pdf": "needs_password",
        "locked.txt": "needs_password",
        "scan.pdf": "needs_ocr",
        "torn.pdf": "damaged",
        "letter.docx": "quarantined",
        "photo.png": "unsupported",
        "long.md": "too_large",
    }
    assert ended.json["chunks"]["total"] == 1


@pytest.mark.invariant("I5")
def test_a_second_run_parses_none_of_them(broken: Broken) -> None:
    """It would be killed at the first document that it parses; it reports the same failures and writes nothing."""
    before = broken.index.generations()
    again = broken.run(GROUNDED_FAILPOINT="parse:1")
    assert again.exit_code == 3, again.stderr
    assert (again.json["published"], again.json["sources"]["changed"]) == (False, 0)
    assert len(again.json["failures"]) == 7
    assert broken.index.generations() == before


@pytest.mark.parametrize(
    ("change", "tried"),
    [
        ({}, []),
        ({"GROUNDED_PDF_PASSWORDS": "wrong\nwrong too"}, ["locked.pdf", "locked.txt"]),
        ({"GROUNDED_MAX_DOCUMENT_CHARS": "2001"}, ["long.md"]),
        ({"GROUNDED_MAX_FILE_BYTES": "200000000"}, ["long.md"]),
        ({"GROUNDED_PDF_ENGINE": "pypdf"}, ["letter.docx", "locked.pdf", "locked.txt", "scan.pdf", "torn.pdf"]),
        ({"GROUNDED_GUARD_SOURCES": "7", "GROUNDED_WORKERS": "1"}, []),
    ],
)
def test_a_run_tries_what_the_change_could_mend(
    first: tuple[Broken, Ended], change: dict[str, str], tried: list[str]
) -> None:
    """Passwords concern what is locked, also under a wrong name; limits what is too large; engines all PDFs.

    Of a quarantined file nobody knows how it was read, so any of the readers of binary kinds counts for it.
    """
    assert first[0].tried(**change) == tried


def test_a_wrong_password_is_tried_once(broken: Broken) -> None:
    """On the locked files alone; then that list is known to be of no use."""
    ended = broken.run(GROUNDED_PDF_PASSWORDS="wrong", GROUNDED_FAILPOINT="parse:3")
    assert ended.exit_code == 3, "a third document was parsed"
    assert (ended.json["sources"]["changed"], len(ended.json["failures"])) == (2, 7)
    assert broken.tried(GROUNDED_PDF_PASSWORDS="wrong") == []


def test_the_right_password_opens_and_is_written_nowhere(broken: Broken) -> None:
    """The text is found; the password is in no file of the index, nor in anything that the run said."""
    ended = broken.run("--verbose", GROUNDED_PDF_PASSWORDS=f"wrong\n{PASSWORD}", GROUNDED_FAILPOINT="parse:3")
    assert ended.exit_code == 3, "a third document was parsed"
    assert ended.json["chunks"]["total"] == 3
    assert {failure["source"] for failure in ended.json["failures"]}.isdisjoint({"locked.pdf", "locked.txt"})
    assert "tells of an otter" in broken.index.export()
    assert PASSWORD not in ended.stdout + ended.stderr
    for path in broken.index.home.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes(), path


def test_a_raised_limit_lets_the_one_file_in(broken: Broken) -> None:
    """Nothing else is parsed."""
    ended = broken.run(GROUNDED_MAX_DOCUMENT_CHARS="20000", GROUNDED_FAILPOINT="parse:2")
    assert ended.exit_code == 3, "a second document was parsed"
    assert "long.md" not in {failure["source"] for failure in ended.json["failures"]}
    assert ended.json["chunks"]["total"] > 1


def test_a_quarantined_file_is_tried_on_request_and_nothing_else_is(broken: Broken) -> None:
    """Its reader kills the worker twice more, and the reason is told again."""
    assert broken.tried("--retry-quarantined") == ["letter.docx"]
    ended = broken.run("--retry-quarantined", GROUNDED_FAILPOINT="parse:2")
    assert ended.exit_code == 3, "a second document was parsed"
    (failure,) = [failure for failure in ended.json["failures"] if failure["source"] == "letter.docx"]
    assert (failure["status"], failure["reason"]) == ("quarantined", "its reader was ended by SIGABRT, twice")


def test_a_new_version_of_a_library_tries_what_the_old_one_could_not(broken: Broken) -> None:
    """The file whose reader crashed is read as soon as one is installed that does not; no other file is parsed."""
    library(broken.libraries, READS, "2")
    ended = broken.run(GROUNDED_FAILPOINT="parse:2")
    assert ended.exit_code == 3, "a second document was parsed"
    assert "letter.docx" not in {failure["source"] for failure in ended.json["failures"]}
    assert "reads of a heron" in broken.index.export()


@pytest.mark.invariant("I5")
def test_what_is_tried_and_when_makes_no_difference_in_the_end(broken: Broken) -> None:
    """After wrong passwords, limits and requests the index is the one that a first run with the last settings makes."""
    settings = {"GROUNDED_PDF_PASSWORDS": PASSWORD, "GROUNDED_MAX_DOCUMENT_CHARS": "20000"}
    broken.run(GROUNDED_PDF_PASSWORDS="wrong")
    broken.run("--retry-quarantined", GROUNDED_PDF_ENGINE="pypdf")
    assert broken.run(**settings).exit_code == 3
    fresh = IndexUnderTest(broken.index.folder, name="fresh")
    broken.index, tried = fresh, broken.index
    assert broken.run(**settings).exit_code == 3
    broken.index = tried
    assert tried.export() == fresh.export()

"""Damaged PDFs that neither engine opens, with and without the extra ``repair``."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from ingest.parsing import registry
from ingest.parsing.document import Document
from ingest.parsing.failure import ParseFailure
from ingest.parsing.limits import Limits, PdfEngine, ReaderOptions
from ingest.parsing.reading import read_document
from ingest.parsing.registry import failure_fingerprint, parse_fingerprint

FILES = Path(__file__).resolve().parents[1] / "files" / "parsing"
MANUAL = (FILES / "manual.pdf").read_bytes()
# Without its table of objects and the trailer that names the first of them: both engines refuse it.
TORN = MANUAL[: MANUAL.rindex(b"xref\n", 0, MANUAL.rindex(b"startxref"))]


@pytest.fixture
def without_pikepdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra were not installed."""
    registry.optional_version.cache_clear()

    def find(name: str) -> str:
        if name == "pikepdf":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(registry, "version", find)


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Ask for versions anew in every test, and leave no answer of these behind for others in this process."""
    registry.optional_version.cache_clear()
    yield
    registry.optional_version.cache_clear()


def test_a_case_without_any_table_is_read_to_its_sentence() -> None:
    """A file that others gave up: no table, no trailer, and the end of its last object torn off."""
    pytest.importorskip("pikepdf", reason="needs the extra `repair`")
    found = read_document((FILES / "cases" / "pdf-damaged" / "no-xref-no-trailer.pdf").read_bytes(), "pdf")
    assert isinstance(found, Document)
    assert found.text == "Loop test: bolt size M8."


@pytest.mark.usefixtures("without_pikepdf")
def test_without_the_extra_the_file_is_damaged_with_both_reasons() -> None:
    """Each engine's own."""
    found = read_document(TORN, "pdf")
    assert isinstance(found, ParseFailure)
    assert found.status == "damaged"
    assert found.reason.startswith("pypdfium2: ")
    assert "; pypdf: " in found.reason


@pytest.mark.parametrize("engine", ["auto", "pypdf", "pypdfium2"])
def test_with_the_extra_all_pages_are_read_and_the_document_says_so(engine: PdfEngine) -> None:
    """Pages, labels and headings are those of the whole file; its title went with the trailer."""
    pytest.importorskip("pikepdf", reason="needs the extra `repair`")
    found, whole = (
        read_document(content, "pdf", options=ReaderOptions(pdf_engine=engine)) for content in (TORN, MANUAL)
    )
    assert isinstance(found, Document)
    assert isinstance(whole, Document)
    assert (found.text, found.parts) == (whole.text, whole.parts)
    assert [block.heading for block in found.blocks] == [block.heading for block in whole.blocks]
    assert found.warnings[0].startswith("repaired: ")
    assert whole.warnings == ()


@pytest.mark.parametrize("name", ["truncated", "header-only"])
def test_a_file_of_which_nothing_can_be_restored_stays_damaged(name: str) -> None:
    """Pages whose text is lost are no blank pages: the first reason stands, and the file is not called empty."""
    pytest.importorskip("pikepdf", reason="needs the extra `repair`")
    found = read_document((FILES / "cases" / "pdf-damaged" / f"{name}.pdf").read_bytes(), "pdf")
    assert isinstance(found, ParseFailure)
    assert found.status == "damaged"
    assert found.reason.startswith("pypdfium2: ")


def test_a_file_that_an_engine_did_not_survive_is_not_repaired() -> None:
    """The second way is the last one: what kills one library may kill the next, and the job has one try left."""
    found = read_document(TORN, "pdf", use_fallback=True)
    assert isinstance(found, ParseFailure)
    assert found.status == "damaged"


def test_a_locked_damaged_file_is_opened_with_its_password() -> None:
    """What is restored is restored without the lock, in memory."""
    pikepdf = pytest.importorskip("pikepdf", reason="needs the extra `repair`")
    from ingest.parsing.pdf_repair import rewrite

    content = (FILES / "cases" / "pdf-encrypted" / "locked.pdf").read_bytes()
    assert rewrite(content) is None
    written = rewrite(content, ("badger", "otter"))
    assert written is not None
    assert isinstance(read_document(written, "pdf"), Document)
    assert pikepdf.__version__ in parse_fingerprint("pdf")


@pytest.mark.usefixtures("without_pikepdf")
def test_installing_the_extra_reads_pdfs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all documents, PDFs: damaged ones may be mended now, and the others have the same text as before."""
    kinds = ("pdf", "docx", "text")
    before = [(parse_fingerprint(kind), failure_fingerprint(kind, "damaged", Limits())) for kind in kinds]
    registry.optional_version.cache_clear()
    monkeypatch.setattr(registry, "version", lambda name: "10" if name == "pikepdf" else version(name))
    after = [(parse_fingerprint(kind), failure_fingerprint(kind, "damaged", Limits())) for kind in kinds]
    assert before[0][0].replace("repair=no", "repair=10") == after[0][0]
    assert before[0][1] != after[0][1]
    assert before[1:] == after[1:]

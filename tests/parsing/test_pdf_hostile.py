"""PDFs made to break readers, through the worker pool: each ends in a status, and costs no other file its own.

``hostile_pdfs`` writes them. Limits are small, so that what has no end soon meets one.
"""

from typing import get_args

import pytest

from ingest.parsing.document import Document
from ingest.parsing.limits import Limits, PdfEngine, ReaderOptions
from ingest.parsing.pool import Job, ParseResult, WorkerPool
from ingest.parsing.reading import read_document
from search.identity import document_id
from tests.parsing.hostile_pdfs import HOSTILE, SENTENCE, one_page

LIMITS = Limits(cpu_s=5, cpu_s_per_mib=0, address_space_bytes=1 << 30)
# What no engine finds a page or a word in; every other file gives up its sentence.
UNREADABLE = {
    "damaged": {
        "a catalog that is a number", "a deep page tree", "a lock that is itself", "an object stream of a billion",
        "an object that is itself", "deep arrays on the way", "headers and no end", "kids in a circle",
        "kids that are numbers", "kids that double", "NULs and no end", "object streams in a circle",
        "objects and no end", "pages that are a text", "tables and no end",
    },
    "empty": {"deep dictionaries"},
    "needs_ocr": {"a huge character map"},
    "needs_password": {"a lock of a million rounds"},
}  # fmt: skip
NO_WORDS = "a font that describes itself"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ParseResult]:
    """All files by one worker after the other, with a good one among them."""
    folder = tmp_path_factory.mktemp("hostile")
    jobs = []
    for number, (name, content) in enumerate([*HOSTILE.items(), ("good", one_page())]):
        (folder / f"{number}.pdf").write_bytes(content)
        jobs.append(Job(document_id(content), folder, (f"{number}.pdf".encode(),), len(content), "pdf", f"{name}.pdf"))
    with WorkerPool(2, LIMITS) as pool:
        return {job.name.removesuffix(".pdf"): result for job, result in pool.results(jobs)}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pdf_ends_in_a_status_or_gives_up_its_sentence(name: str, results: dict[str, ParseResult]) -> None:
    """No hang, no worker that takes others along, no text or page number that grows without bound."""
    found = results[name]
    if not isinstance(found, Document):
        assert name in UNREADABLE.get(getattr(found, "status", ""), ()), found
        return
    assert not any(name in names for names in UNREADABLE.values()), found
    assert SENTENCE in found.text or name == NO_WORDS
    assert len(found.text) < 1_000_000
    assert len(found.parts) <= 10_000
    assert all(len(part.label or "") <= 40 for part in found.parts)


@pytest.mark.slow
def test_a_good_file_among_them_is_read(results: dict[str, ParseResult]) -> None:
    """Whatever happened to the worker before."""
    found = results["good"]
    assert isinstance(found, Document)
    assert (found.text, found.warnings) == (SENTENCE, ())


@pytest.mark.parametrize("engine", get_args(PdfEngine))
def test_a_count_that_lies_makes_no_pages(engine: PdfEngine) -> None:
    """The pages of the document are those that an engine finds; too many to believe are a limit, not a document."""
    options = ReaderOptions(pdf_engine=engine)
    million = read_document(HOSTILE["a count of a million"], "pdf", options=options)
    if engine == "pypdfium2":
        assert getattr(million, "status", None) == "too_large"
    else:
        assert isinstance(million, Document)
        assert (million.text, len(million.parts), million.gaps) == (SENTENCE, 1, ())


def test_pages_that_only_a_claim_knows_are_named_and_few_missing_ones_are_gaps() -> None:
    """A tree that promises fifty thousand pages has one; one that promises three may have lost two."""
    found = read_document(HOSTILE["a count of fifty thousand"], "pdf")
    assert isinstance(found, Document)
    assert (len(found.parts), found.gaps) == (1, ())
    assert found.warnings == ("page_count: the file claims 50000 pages and has 1",)
    few = read_document(one_page({2: b"<< /Type /Pages /Kids [3 0 R] /Count 3 >>"}), "pdf")
    assert isinstance(few, Document)
    assert [gap.part for gap in few.gaps] == [2, 3]


def test_a_label_that_no_page_has_room_for_is_none() -> None:
    """Labels stand in citations, so that a long one would be a message to whoever reads them."""
    short = one_page({9: b"<< /Nums [0 << /P (A-) /S /D /St 7 >>] >>"}, catalog=b"/PageLabels 9 0 R")
    for engine in get_args(PdfEngine):
        options = ReaderOptions(pdf_engine=engine)
        for content, label in ((short, "A-7"), (HOSTILE["a long label"], None)):
            found = read_document(content, "pdf", options=options)
            assert isinstance(found, Document)
            assert found.parts[0].label == label

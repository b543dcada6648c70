"""Documents of thousands of pages: every citation names its page, and memory does not grow with their number."""

import os
import re
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from reportlab.pdfgen.canvas import Canvas

from ingest.chunking.chunker import chunk
from ingest.chunking.sizes import Sizes
from ingest.parsing.document import Document
from ingest.parsing.limits import Limits
from ingest.parsing.pool import Job, WorkerPool
from search.identity import document_id

PAGES, FEW_PAGES = 5_000, 500
FRONT, ANNEX = 6, 100
LINES = 12
# Half of what a worker may have.
LIMITS = Limits(address_space_bytes=1 << 30)
VOLUME = 50


def label(page: int, pages: int) -> str:
    """Return what is printed on a page: roman numbers, arabic ones, then those of an annex."""
    if page <= FRONT:
        return ["i", "ii", "iii", "iv", "v", "vi"][page - 1]
    return str(page - FRONT) if page <= pages - ANNEX else f"X-{page - (pages - ANNEX)}"


def ledger(path: Path, pages: int) -> Path:
    """Write a ledger with a mark on every page, labels of three kinds, and a volume every fifty pages."""
    canvas = Canvas(str(path), pagesize=(420, 300), invariant=1)
    canvas.addPageLabel(0, style="ROMAN_LOWER", start=1)
    canvas.addPageLabel(FRONT, style="ARABIC", start=1)
    canvas.addPageLabel(pages - ANNEX, style="ARABIC", start=1, prefix="X-")
    for page in range(1, pages + 1):
        canvas.setFont("Helvetica", 9)
        if page % VOLUME == 1:
            canvas.bookmarkPage(f"volume {page}")
            canvas.addOutlineEntry(f"Volume {page // VOLUME + 1}", f"volume {page}")
            canvas.drawString(40, 280, f"Volume {page // VOLUME + 1}")
        for line in range(LINES):
            entry = f"Entry {page * 100 + line} was posted to account {(page * 7 + line) % 991} of the harbour."
            canvas.drawString(40, 260 - 14 * line, entry)
        canvas.drawString(40, 60, f"The control mark is CM{page:05}.")
        canvas.showPage()
    canvas.save()
    return path


class Read(NamedTuple):
    """A document, and the most memory that the worker which read it ever held."""

    document: Document
    peak_kib: int


def read(path: Path) -> Read:
    """Read a file through the pool, in a worker of its own."""
    content = path.read_bytes()
    job = Job(document_id(content), path.parent, (os.fsencode(path.name),), len(content), "pdf", path.name)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    before = set(children.read_text(encoding="ascii").split())
    with WorkerPool(1, LIMITS) as pool:
        ((_, found),) = pool.results([job])
        (worker,) = set(children.read_text(encoding="ascii").split()) - before
        status = Path(f"/proc/{worker}/status").read_text(encoding="ascii")
    assert isinstance(found, Document), found
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    return Read(found, int(peak[1]))


class WordTokenizer:
    """A token is a run of letters and digits, or any other character that is not blank."""

    def token_ends(self, text: str) -> NDArray[np.int32]:
        return np.array([match.end() for match in re.finditer(r"\w+|[^\w\s]", text)], dtype=np.int32)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """Five thousand pages."""
    return read(ledger(tmp_path_factory.mktemp("pages") / "many.pdf", PAGES))


def page_at(document: Document, offset: int) -> int:
    """Return the number of the page on which a character stands."""
    return document.parts[bisect_right([part.start for part in document.parts], offset) - 1].number


@pytest.mark.slow
def test_every_page_has_its_place_and_its_label(many: Read) -> None:
    """Its mark stands on it and nowhere else; labels are those that are printed, none where it is the number itself."""
    document = many.document
    assert [part.number for part in document.parts] == list(range(1, PAGES + 1))
    assert [part.label for part in document.parts] == [label(page, PAGES) for page in range(1, PAGES + 1)]
    marks = [(int(mark[1]), page_at(document, mark.start())) for mark in re.finditer(r"CM(\d{5})", document.text)]
    assert marks == [(page, page) for page in range(1, PAGES + 1)]
    assert document.gaps == document.warnings == ()
    headings = [block.heading for block in document.blocks if block.kind == "heading"]
    assert headings == [f"Volume {number}" for number in range(1, PAGES // VOLUME + 1)]


@pytest.mark.slow
def test_every_citation_names_the_page_of_its_words(many: Read) -> None:
    """Through the chunker, for each of the marks: the page where a chunk begins, and the pages that begin inside it."""
    found: dict[int, int] = {}
    for passage, place in chunk(many.document, WordTokenizer(), Sizes.for_limit(256)):
        assert place.part_kind == "page"
        assert place.part_first is not None
        assert place.part_label == label(place.part_first, PAGES)
        starts = [(0, place.part_first), *place.part_starts]
        assert starts[-1][1] == place.part_last
        for mark in re.finditer(r"CM(\d{5})", passage.text):
            page = max(number for offset, number in starts if offset <= mark.start())
            assert page == int(mark[1])
            assert place.headings[-1:] == (f"Volume {(page - 1) // VOLUME + 1}",)
            found[page] = found.get(page, 0) + 1
    assert found == dict.fromkeys(range(1, PAGES + 1), 1)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_pages(many: Read, tmp_path: Path) -> None:
    """Ten times the pages take less than two and a half times the memory: only their text is kept."""
    few = read(ledger(tmp_path / "few.pdf", FEW_PAGES))
    assert len(few.document.parts) == FEW_PAGES
    assert many.peak_kib < 2.5 * few.peak_kib

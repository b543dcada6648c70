"""The text that is chosen for a page and that of the other engine are the same words."""

from pathlib import Path
from statistics import mean

import pytest

from ingest.parsing.document import Document
from ingest.parsing.limits import PdfEngine, ReaderOptions
from ingest.parsing.reading import read_document
from tests.benchmarks.pdf import agreements
from tests.parsing.layouts import LAYOUTS, write

# Issue 5: mean over pages on which both engines find words.
LEAST = 0.98


def parsed(path: Path, engine: PdfEngine) -> Document:
    """Return the document by one engine."""
    found = read_document(path.read_bytes(), "pdf", options=ReaderOptions(pdf_engine=engine))
    assert isinstance(found, Document)
    return found


@pytest.mark.slow
def test_both_engines_find_the_same_words(tmp_path: Path) -> None:
    """In each layout, and over all their pages; a page that only one engine can read would not count."""
    every: list[float] = []
    for layout in LAYOUTS:
        path = write(layout, tmp_path / f"{layout}.pdf")
        chosen, other = parsed(path, "auto"), parsed(path, "pypdf")
        assert chosen.reader.endswith("by pypdfium2")
        assert other.reader.endswith("by pypdf")
        found = agreements(chosen, other)
        assert len(found) == len(chosen.parts)
        assert mean(found) >= LEAST, layout
        every += found
    assert len(every) > 100
    assert mean(every) >= LEAST

"""Labels, turned pages, running titles and bookmarks, in both engines, on pages drawn for the purpose."""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from reportlab.pdfgen.canvas import Canvas

from ingest.parsing.document import Document
from ingest.parsing.limits import PdfEngine, ReaderOptions
from ingest.parsing.reading import read_document
from tests.parsing.hostile_pdfs import one_page, page

ENGINES = get_args(PdfEngine)
LINES = [f"The ledger names berth {number} and its keeper." for number in range(1, 9)]


def parsed(content: bytes, engine: PdfEngine) -> Document:
    """Return the document."""
    found = read_document(content, "pdf", options=ReaderOptions(pdf_engine=engine))
    assert isinstance(found, Document), found
    return found


def drawn(path: Path, pages: int, draw: Callable[[Canvas, int], None]) -> bytes:
    """Return a file of so many pages; ``draw`` draws each of them, from 1."""
    canvas = Canvas(str(path), pagesize=(420, 300), invariant=1)
    for number in range(1, pages + 1):
        draw(canvas, number)
        canvas.showPage()
    canvas.save()
    return path.read_bytes()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("tree", "labels"),
    [
        (b"0 << /S /r >> 2 << /S /D >>", ["i", "ii", "1", "2", "3", "4"]),
        (
            b"0 << /P (Cover) >> 1 << /S /R /St 4 >> 3 << /S /D /P (A-) /St 9 >>",
            ["Cover", "IV", "V", "A-9", "A-10", "A-11"],
        ),
        (b"0 << /S /a /St 25 >> 3 << /S /A >>", ["y", "z", "aa", "A", "B", "C"]),
        (b"0 << /S /D >>", [None] * 6),
        (b"0 << /S /D /St 101 >>", ["101", "102", "103", "104", "105", "106"]),
        (b"0 << /S /D >> 4 << /S /D >>", [None, None, None, None, "1", "2"]),
        (b"0 << >> 1 << /P (  ) >> 3 << /S /D >>", [None, None, None, "1", "2", "3"]),
    ],
)
def test_a_page_has_the_label_that_is_printed_on_it(tree: bytes, labels: list[str | None], engine: PdfEngine) -> None:
    """Roman, letters, prefixes, numbers that begin anew or late; none where it is the number of the page, or blank."""
    kids = b"3 0 R 11 0 R 12 0 R 13 0 R 14 0 R 15 0 R"
    content = one_page(
        {2: b"<< /Type /Pages /Kids [%s] /Count 6 >>" % kids, **{number: page() for number in range(11, 16)}},
        catalog=b"/PageLabels << /Nums [%s] >>" % tree,
    )
    document = parsed(content, engine)
    assert [part.label for part in document.parts] == labels
    assert [part.number for part in document.parts] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shown", [0, 90, 180, 270])
@pytest.mark.parametrize("drawn_at", [0, 90, 180, 270])
def test_turned_text_on_turned_pages_keeps_the_order_of_its_lines(
    drawn_at: int, shown: int, engine: PdfEngine, tmp_path: Path
) -> None:
    """A table across the page, a page put upside down into the scanner, and both: lines as they are written."""

    def draw(canvas: Canvas, number: int) -> None:
        canvas.setPageSize((420, 420))
        canvas.setPageRotation(shown)
        canvas.translate(210, 210)
        canvas.rotate(drawn_at)
        for row, line in enumerate(LINES):
            canvas.drawString(-170, 60 - 14 * row, line)

    document = parsed(drawn(tmp_path / "turned.pdf", 1, draw), engine)
    assert document.text.split("\n") == LINES


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_drawn_across_an_upright_page_keeps_its_lines_and_those_around_it(
    engine: PdfEngine, tmp_path: Path
) -> None:
    """Clockwise lines between upright ones; each side in its own order."""

    def draw(canvas: Canvas, number: int) -> None:
        canvas.drawString(40, 280, "Table 7 of the ledger.")
        canvas.drawString(40, 20, "Its source is the office.")
        canvas.translate(300, 270)
        canvas.rotate(-90)
        for row, line in enumerate(LINES):
            canvas.drawString(0, -14 * row, line)

    lines = parsed(drawn(tmp_path / "across.pdf", 1, draw), engine).text.split("\n")
    assert [line for line in lines if line.startswith("The ledger")] == LINES
    assert {"Table 7 of the ledger.", "Its source is the office."} < set(lines)


def test_words_broken_in_columns_that_are_drawn_row_by_row_are_made_whole(tmp_path: Path) -> None:
    """Each half belongs to its own column; across the gutter there is no word to join."""
    left = ["The tide table hangs in the", "small hut beside the crane and", "is changed by the infor-",
            "mation desk of the lock who", "also counts the empty berths"]  # fmt: skip
    right = ["Nobody may leave a boat at", "the stone wall for more than", "two nights since the obser-",
             "vation post turns there early", "morning when fog is thick"]  # fmt: skip

    def draw(canvas: Canvas, number: int) -> None:
        canvas.setFont("Helvetica", 9)
        for row, (one, other) in enumerate(zip(left, right, strict=True)):
            canvas.drawString(40, 200 - 14 * row, one)
            canvas.drawString(220, 200 - 14 * row, other)

    text = parsed(drawn(tmp_path / "columns.pdf", 1, draw), "auto").text
    assert "is changed by the information\ndesk of the lock who\nalso counts the empty berths\nNobody may" in text
    assert "two nights since the observation\npost turns there early" in text


@pytest.mark.parametrize("engine", ENGINES)
def test_titles_of_even_and_odd_pages_run_too(engine: PdfEngine, tmp_path: Path) -> None:
    """The author on the left, the chapter on the right, page numbers outside: none of it stands between sentences."""

    def draw(canvas: Canvas, number: int) -> None:
        canvas.drawString(40, 280, f"{number} Harbour Handbook" if number % 2 == 0 else f"Harbour Handbook {number}")
        canvas.drawString(40, 200, f"Sentence {number * 37} of the book is only here and")
        canvas.drawString(40, 186, f"goes on to the end of page number {number}.")

    document = parsed(drawn(tmp_path / "running.pdf", 20, draw), engine)
    assert document.text.count("Harbour Handbook") in (0, 20)
    assert document.text.count("of the book is only here") == 20


@pytest.mark.parametrize("engine", ENGINES)
def test_bookmarks_are_headings_where_their_words_stand(engine: PdfEngine, tmp_path: Path) -> None:
    """Levels are kept; a bookmark to a page without its words is none, and no other line becomes a heading."""
    titles = [(0, "Mooring"), (1, "Lines and fenders"), (2, "Spring lines"), (1, "At night"), (0, "Fuel")]

    def draw(canvas: Canvas, number: int) -> None:
        level, title = titles[number - 1]
        canvas.bookmarkPage(title)
        canvas.addOutlineEntry(title, title, level)
        canvas.drawString(40, 250, "MOST OF THIS IS LOUD AND NO HEADING" if title == "At night" else title)
        canvas.drawString(40, 200, f"What there is to say of it takes {number} lines.")

    document = parsed(drawn(tmp_path / "outline.pdf", 5, draw), engine)
    found = [(block.level, block.heading) for block in document.blocks if block.kind == "heading"]
    assert found == [(1, "Mooring"), (2, "Lines and fenders"), (3, "Spring lines"), (1, "Fuel")]
    assert [document.text[block.start : block.end] for block in document.blocks if block.kind == "heading"] == [
        "Mooring", "Lines and fenders", "Spring lines", "Fuel",
    ]  # fmt: skip

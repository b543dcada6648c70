"""Sets the PDF manuals of the sample corpus: `python -m data.make_sample` writes them, `--check` compares them.

Owns the look of the pages; leaves the words to sample_manuals.toml, and the other files of the corpus to their authors.
The same words give the same bytes under one reportlab version: no clock, no random id (`invariant`), no compression
(another zlib would give other bytes). Source: the reportlab user guide, the chapters on the canvas and on outlines.
"""

import argparse
import io
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from reportlab.lib.pagesizes import A5  # type: ignore[import-untyped]  # reportlab ships no types
from reportlab.lib.utils import simpleSplit  # type: ignore[import-untyped]
from reportlab.pdfbase.pdfmetrics import stringWidth  # type: ignore[import-untyped]
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]

__all__ = ["MANUALS", "SAMPLE", "Manual", "PageRefused", "read_manuals", "typeset"]

SAMPLE = Path(__file__).with_name("sample")
MANUALS = Path(__file__).with_name("sample_manuals.toml")

# All lengths in points, as PDF counts them.
WIDTH, HEIGHT = A5
MARGIN = 40
HEADER_Y, TOP_Y, BOTTOM_Y, FOOTER_Y, LABEL_Y = HEIGHT - 34, HEIGHT - 66, 58, 38, 26
BODY, BOLD = "Helvetica", "Helvetica-Bold"
BODY_SIZE, LINE, PARAGRAPH_GAP, COLUMN_GAP = 9, 12, 6, 12
DASH = "–"  # not a bullet: pypdf has no Unicode value for the one of WinAnsi
HEADING_SIZES = {1: 15, 2: 10.5}


class PageRefused(ValueError):
    """The words of a page do not fit on it, or its font lacks one of their characters; nothing was written."""


@dataclass(frozen=True, slots=True)
class Manual:
    """One PDF: where it goes under the sample folder, what stands around its pages, and the words of each page.

    The first `front_pages` pages are labelled i, ii, iii ..., the others 1, 2, 3 ...
    """

    file: str
    title: str
    subject: str
    header: str
    footer: str
    front_pages: int
    pages: tuple[str, ...]

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        """Return the manual that one `[[manual]]` table describes; raises ValueError or KeyError for any other."""
        match table:
            case {
                "file": str(file),
                "title": str(title),
                "subject": str(subject),
                "header": str(header),
                "footer": str(footer),
                "front_pages": int(front_pages),
                "page": list(pages),
            }:
                bodies = tuple(page["body"] for page in pages)
                return cls(file, title, subject, header, footer, front_pages, bodies)
            case _:
                raise ValueError(f"{MANUALS}: a manual has an unknown shape: {sorted(table)}")


def read_manuals(path: Path = MANUALS) -> tuple[Manual, ...]:
    """Return the manuals in the order of the file. Does not write."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["manual"]
    return tuple(Manual.from_table(table) for table in tables)


def typeset(manual: Manual) -> bytes:
    """Return the bytes of the PDF. Raises PageRefused: see there. Does not write."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A5, invariant=1, pageCompression=0)
    canvas.setTitle(manual.title)
    canvas.setSubject(manual.subject)
    canvas.setAuthor("Veldra Lake Ferry Company")
    canvas.setCreator("data/make_sample.py")
    if manual.front_pages:
        canvas.addPageLabel(0, style="ROMAN_LOWER", start=1)
        canvas.addPageLabel(manual.front_pages, style="ARABIC", start=1)
    for number, body in enumerate(manual.pages, start=1):
        _Page(canvas, manual, number).draw(body)
        canvas.showPage()
    canvas.showOutline()
    canvas.save()
    return buffer.getvalue()


class _Page:
    """Draws one page from top to bottom, in reading order, so that extractors give the text back in that order."""

    def __init__(self, canvas: Canvas, manual: Manual, number: int) -> None:
        self.canvas = canvas
        self.manual = manual
        self.number = number
        self.y = TOP_Y

    def draw(self, body: str) -> None:
        self._line(MARGIN, HEADER_Y, self.manual.header, size=7)
        for paragraph in body.strip().split("\n\n"):
            self._paragraph(paragraph)
            self.y -= PARAGRAPH_GAP
        self._line(MARGIN, FOOTER_Y, self.manual.footer, size=7)
        self._line(MARGIN, LABEL_Y, f"Page {self._label()}", size=7)

    def _label(self) -> str:
        front = self.manual.front_pages
        return ("i", "ii", "iii", "iv")[self.number - 1] if self.number <= front else str(self.number - front)

    def _paragraph(self, text: str) -> None:
        lines = text.split("\n")
        if text.startswith("#"):
            marks, _, title = text.partition(" ")
            self._heading(len(marks), title)
        elif text.startswith("|"):
            self._table([[cell.strip() for cell in row.strip("|").split("|")] for row in lines])
        elif text.startswith("- "):
            for item in text.removeprefix("- ").split("\n- "):
                self._wrapped(item.replace("\n", " "), indent=12, mark=DASH)
        else:
            self._wrapped(" ".join(lines))

    def _heading(self, level: int, title: str) -> None:
        size = HEADING_SIZES[level]
        self.y -= 6 if level > 1 else 0
        key = f"page-{self.number}-{title}"
        self.canvas.bookmarkHorizontal(key, 0, self.y + size)
        self.canvas.addOutlineEntry(title, key, level=level - 1)
        self._line(MARGIN, self.y, title, font=BOLD, size=size)
        self._advance(size + 5)

    def _wrapped(self, text: str, indent: int = 0, mark: str = "") -> None:
        if mark:
            self._line(MARGIN, self.y, mark)
        for line in simpleSplit(text, BODY, BODY_SIZE, WIDTH - 2 * MARGIN - indent):
            self._line(MARGIN + indent, self.y, line)
            self._advance(LINE)

    def _table(self, rows: Sequence[Sequence[str]]) -> None:
        # Every column is wider than its widest cell: pdfium joins the words of cells that nearly touch.
        widths = [
            max(stringWidth(cell, BODY, BODY_SIZE) for cell in column) + COLUMN_GAP
            for column in zip(*rows, strict=True)
        ]
        if sum(widths) > WIDTH - 2 * MARGIN + COLUMN_GAP:
            raise self._refusal("has a table that is too wide; shorten its cells")
        for row in rows:
            left = float(MARGIN)
            for cell, width in zip(row, widths, strict=True):
                self._line(left, self.y, cell)
                left += width
            self._advance(LINE)

    def _line(self, x: float, y: float, text: str, font: str = BODY, size: float = BODY_SIZE) -> None:
        try:
            text.encode("cp1252")  # what the standard fonts draw; anything else would come out as a black box
        except UnicodeEncodeError as error:
            raise self._refusal(f"holds what its font cannot draw, in {text!r}; write it otherwise") from error
        self.canvas.setFont(font, size)
        self.canvas.drawString(x, y, text)

    def _advance(self, height: float) -> None:
        self.y -= height
        if self.y < BOTTOM_Y:
            raise self._refusal("is too long; shorten its words")

    def _refusal(self, what: str) -> PageRefused:
        return PageRefused(f"{MANUALS.name}: {self.manual.file}: page {self.number} {what}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the manuals, or with `--check` compare them with the files; 0 when they are equal, 1 when one differs."""
    parser = argparse.ArgumentParser(
        prog="python -m data.make_sample", description="Set the PDF manuals of the corpus."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; say which files differ")
    check = parser.parse_args(arguments).check
    made = {manual.file: typeset(manual) for manual in read_manuals()}  # all of them, before the first is written
    differing = 0
    for file, pdf in made.items():
        path = SAMPLE / file
        if check:
            same = path.is_file() and path.read_bytes() == pdf
            differing += not same
            print(f"{file}: {'same' if same else 'differs'}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pdf)
            print(f"{file}: {len(pdf)} bytes")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

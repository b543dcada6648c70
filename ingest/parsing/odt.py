"""OpenDocument texts: paragraphs, headings by their outline level, lists, tables and notes, in document order.

Left out are deleted text, comments, how a word is pronounced, tables of contents and indexes, which repeat the
headings. Nothing is fetched, and no part may declare entities. Source: ODF 1.3 part 3.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .assembly import Assembly
from .document import BlockKind, Document
from .normalise import collapse
from .odf import CONTENT, open_odf
from .properties import title_in
from .registry import ReaderInput
from .rows import barred
from .xml_events import XmlEvent, xml_events

__all__ = ["read"]

LEFT_OUT = frozenset(
    {
        "tracked-changes", "annotation", "table-of-content", "alphabetical-index", "illustration-index", "table-index",
        "ruby-text",
    }
)  # fmt: skip
META = "meta.xml"
# White space in the markup counts as one space; ``s``, ``tab`` and ``line-break`` say what is meant (ODF 1.3, 6.1.2).
BLANKS = re.compile(r"[ \t\r\n]+")
# Lists as deep as this are indented no further: the text would grow with the square of their depth.
MAX_INDENT = 8
# More spaces in a row than ``normalise`` would keep.
MAX_SPACES = 64


def read(task: ReaderInput) -> Document:
    """Return the document. Title: that of the properties, else the first heading if its level is 1."""
    package = open_odf(task.content)
    assembly = Assembly(task)
    writer = _Writer(assembly)
    for event in _visible(xml_events(package.read(CONTENT), CONTENT, may_have_doctype=True)):
        writer.take(event)
    return assembly.document(title=title_in(package, META, may_have_doctype=True) or assembly.first_heading)


def _visible(events: Iterator[XmlEvent]) -> Iterator[XmlEvent]:
    """Yield the events of the body, outside of what is left out."""
    hidden = 0
    is_body = False
    for event in events:
        if event.kind != "text" and event.value == "body":
            is_body = event.kind == "open"
        elif event.kind == "open" and (hidden or event.value in LEFT_OUT):
            hidden += 1
        elif event.kind == "close" and hidden:
            hidden -= 1
        elif is_body and not hidden:
            yield event


@dataclass(slots=True)
class _Paragraph:
    level: int = 0
    # How many notes it stands in: white space between the parts of a note is not that of the paragraph around it.
    notes: int = 0
    pieces: list[str] = field(default_factory=list)


class _Writer:
    """Takes events; holds the open paragraphs (a text box or note stands inside of one) and where they are."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._open: list[_Paragraph] = []
        self._lists = 0
        self._is_item_begun = False
        self._tables = 0
        self._cells: list[str] = []
        self._cell: list[str] = []
        self._is_header = False
        self._note = 0
        self._notes: list[str] = []

    def take(self, event: XmlEvent) -> None:
        """Take the next event."""
        if event.kind == "text":
            if self._open and self._open[-1].notes == self._note:
                self._open[-1].pieces.append(BLANKS.sub(" ", event.value))
        elif event.kind == "open":
            self._begin(event)
        else:
            self._end(event.value)

    def _begin(self, event: XmlEvent) -> None:
        match event.value:
            case "p" | "h":
                level = event.attributes.get("outline-level", "1") if event.value == "h" else "0"
                self._open.append(_Paragraph(int(level) if level.isdecimal() and len(level) < 3 else 1, self._note))
            case "s" if self._open:
                count = event.attributes.get("c", "1")
                self._open[-1].pieces.append(
                    " " * (min(int(count), MAX_SPACES) if count.isdecimal() and len(count) < 9 else 1)
                )
            case "tab" if self._open:
                self._open[-1].pieces.append("\t")
            case "line-break" if self._open:
                self._open[-1].pieces.append("\n")
            case "note":
                self._note += 1
            case "note-citation":
                # The number of a note; what it holds goes nowhere.
                self._open.append(_Paragraph(notes=self._note))
            case "list":
                if not self._lists:
                    self._assembly.apart()
                self._lists += 1
            case "list-item":
                self._is_item_begun = False
            case "table":
                if not self._tables:
                    self._assembly.apart()
                self._tables += 1
            case "table-header-rows" if self._tables == 1:
                self._is_header = True
            case _:
                return

    def _end(self, name: str) -> None:
        match name:
            case "p" | "h" if self._open:
                self._paragraph(self._open.pop())
            case "note-citation" if self._open:
                self._open.pop()
            case "note":
                self._note -= 1
            case "list":
                self._lists -= 1
            case "table":
                self._tables -= 1
            case "table-header-rows":
                self._is_header = False
            case "table-cell" if self._tables == 1:
                self._cells.append(collapse(" ".join(self._cell)))
                self._cell = []
            case "covered-table-cell" if self._tables == 1:
                # What stands in it nobody sees; it is blank, so that columns line up.
                self._cells.append("")
                self._cell = []
            case "table-row" if self._tables == 1:
                if any(self._cells):
                    self._assembly.add("table_row", barred(self._cells), is_header=self._is_header)
                self._cells = []
                self._flush_notes()
            case _:
                return

    def _paragraph(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.pieces).strip()
        if self._note:
            self._notes.append(text)
        elif self._tables:
            self._cell.append(text)
        elif self._lists and not paragraph.level:
            marker = "  " * min(self._lists - 1, MAX_INDENT) + ("" if self._is_item_begun else "- ")
            if self._assembly.add("list_item", marker + text if text else "", self._lists):
                self._is_item_begun = True
        else:
            kind: BlockKind = "heading" if paragraph.level else "paragraph"
            self._assembly.add(kind, text, min(paragraph.level, 6))
        if not self._open and not self._tables:
            self._flush_notes()

    def _flush_notes(self) -> None:
        """Notes follow the outermost paragraph or the row that refers to them."""
        for note in self._notes:
            self._assembly.add("footnote", note)
        self._notes = []

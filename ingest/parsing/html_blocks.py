"""From the events of a page to its text and blocks.

Blank runs collapse, ``br`` is a line break, ``pre`` stands as it is. List items have their marker and are indented by
depth; a row of a table is ``| a | b |``, with tables in a cell flattened into it, and one of header cells names the
columns. A table that only lays out the page is the paragraphs it holds (``html_tables``).
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .document import Block, BlockKind
from .headings import usable_heading
from .html_events import Event
from .html_tables import HEADINGS, SECTIONS, Cells, layout_tables
from .normalise import normalise
from .rows import barred

__all__ = ["Rendered", "render"]

BREAKS = frozenset(
    {
        "address", "article", "aside", "body", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
        "fieldset", "figure", "form", "header", "hgroup", "hr", "html", "legend", "main", "menu", "ol", "p", "section",
        "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
    }
)  # fmt: skip
CONTAINERS: dict[str, BlockKind] = {
    "blockquote": "quote", "li": "list_item", "dl": "list_item", "caption": "caption", "figcaption": "caption",
}  # fmt: skip
FOOTNOTE_ID = re.compile(r"(?:fn|footnote|endnote)[-:_]?\d")
BLANKS = re.compile(r"[ \t\n\r\f]+")
BLANKS_ONLY = re.compile(r"[ \t\r\f]+")
AROUND_BREAK = re.compile(r" *\n *")
MANY_BREAKS = re.compile(r"\n{2,}")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text and blocks, and the number of deceptive characters that were removed."""

    text: str
    blocks: tuple[Block, ...]
    deceptive: int


def render(page: Sequence[Event]) -> Rendered:
    """Return the text of a page, normalised, with its blocks."""
    renderer = _Renderer(layout_tables(page))
    for index, event in enumerate(page):
        renderer.take(index, event)
    return renderer.finish()


@dataclass(slots=True)
class _List:
    is_ordered: bool
    number: int = 1
    marker: str = ""


class _Renderer:
    """Takes events one by one; holds the text so far and what is open."""

    def __init__(self, layout_tables: Collection[int]) -> None:
        self._layout_tables = layout_tables
        self._pieces: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._deceptive = 0
        self._inline: list[str] = []
        # Kinds of the open containers, innermost last; footnotes are list items with a mark.
        self._containers: list[BlockKind] = []
        self._depths: Counter[BlockKind] = Counter()
        self._lists: list[_List] = []
        self._heading = 0
        self._pre = 0
        # Depth of data tables; the cells of the row at hand; whether rows of this table came before.
        self._tables = 0
        self._cells = Cells()
        self._is_header_row = True
        self._is_next_row = False
        # The text of a definition's term waits for what defines it.
        self._has_term = False

    def take(self, index: int, event: Event) -> None:
        """Take the next event."""
        if event.kind == "text":
            self._inline.append(event.value if self._pre and not self._tables else BLANKS.sub(" ", event.value))
        elif event.value == "br":
            if event.kind == "open":
                self._inline.append("\n")
        elif self._tables:
            self._in_table(event)
        elif event.value == "table" and event.kind == "open" and index not in self._layout_tables:
            self._flush()
            self._tables, self._cells, self._is_next_row = 1, Cells(), False
        elif event.kind == "open":
            self._open(event)
        else:
            self._close(event.value)

    def finish(self) -> Rendered:
        """Return what was rendered."""
        self._flush()
        return Rendered("".join(self._pieces), tuple(self._blocks), self._deceptive)

    def _open(self, event: Event) -> None:
        name = event.value
        if name in HEADINGS:
            self._flush()
            self._heading = HEADINGS[name]
        elif name == "pre":
            self._flush()
            self._pre += 1
        elif self._pre:
            # Highlighters wrap each line of code in an element of its own.
            if name in BREAKS and self._inline and not self._inline[-1].endswith("\n"):
                self._inline.append("\n")
        elif name in CONTAINERS:
            self._flush()
            is_note = name == "li" and FOOTNOTE_ID.match(event.attributes.get("id", "")) is not None
            self._containers.append("footnote" if is_note else CONTAINERS[name])
            self._depths[self._containers[-1]] += 1
            if name == "li" and self._lists:
                self._lists[-1].marker = self._marker(self._lists[-1])
        elif name in ("ul", "ol"):
            self._flush()
            start = event.attributes.get("start", "")
            number = int(start) if start.isdecimal() and len(start) < 9 else 1
            self._lists.append(_List(name == "ol", number))
        elif name == "dt":
            # Lists of terms alone are how some programs write tables of contents.
            self._flush()
        elif name == "dd" and self._has_term:
            self._inline.append("\n")
        elif name in BREAKS and not self._has_term:
            self._flush()

    def _close(self, name: str) -> None:
        if name == "dt":
            self._has_term = bool(self._inline)
        elif name in HEADINGS:
            self._flush()
            self._heading = 0
        elif name == "pre":
            self._flush()
            self._pre = max(0, self._pre - 1)
        elif name in CONTAINERS and not self._pre:
            self._flush()
            self._depths[self._containers.pop()] -= 1
            if name == "li" and self._lists:
                self._lists[-1].marker = ""
        elif name in ("ul", "ol") and not self._pre:
            self._flush()
            self._lists.pop()
        elif name in BREAKS:
            self._flush()

    def _marker(self, items: _List) -> str:
        marker = f"{items.number}. " if items.is_ordered else "- "
        items.number += 1
        return marker

    def _flush(self) -> None:
        """Make a block of the text since the last one."""
        self._has_term = False
        if not self._inline:
            return
        text = "".join(self._inline)
        self._inline = []
        kind: BlockKind = self._containers[-1] if self._containers else "paragraph"
        level = self._depths[kind]
        if self._pre:
            self._emit("code", text.strip("\n"))
            return
        text = AROUND_BREAK.sub("\n", BLANKS_ONLY.sub(" ", text)).strip(" \n")
        if self._heading:
            heading = usable_heading(text)
            if heading and kind != "quote":
                self._emit("heading", heading, self._heading)
            else:
                self._emit(kind, text, level)
        elif kind == "list_item":
            self._item(text, level)
        else:
            for paragraph in MANY_BREAKS.split(text):
                self._emit(kind, paragraph, level)

    def _item(self, text: str, level: int) -> None:
        if not text:
            return
        indent = "  " * min(len(self._lists) - 1, 8)
        marker = ""
        if self._lists:
            marker, self._lists[-1].marker = self._lists[-1].marker, ""
        self._emit("list_item", indent + marker + MANY_BREAKS.sub("\n", text), level)

    def _in_table(self, event: Event) -> None:
        """Collect the cells of a data table, and flatten whatever else is in it."""
        name, is_open = event.value, event.kind == "open"
        if name == "table":
            self._tables += 1 if is_open else -1
            self._inline.append(" ")
            if not self._tables:
                self._end_row()
        elif self._tables > 1:
            if name in BREAKS or name in CONTAINERS:
                self._inline.append(" ")
        elif name == "caption":
            text = self._cell()
            if not is_open:
                self._emit("caption", text)
        elif name == "tr":
            self._end_row()
        elif name in ("td", "th"):
            text = self._cell()
            if is_open:
                self._cells.begin(event.attributes)
            else:
                self._cells.add(text)
                self._is_header_row &= name == "th"
        elif name in BREAKS or name in CONTAINERS:
            if name in SECTIONS:
                self._cells.uncover()
            self._inline.append(" ")

    def _cell(self) -> str:
        text = BLANKS.sub(" ", "".join(self._inline)).strip(" ")
        self._inline = []
        return text

    def _end_row(self) -> None:
        # Text between the cells is moved out by browsers; where it was not, it is a cell of its own.
        stray = self._cell()
        row = [*self._cells.end_row(), *([stray] if stray else [])]
        is_header = self._is_header_row and not stray
        self._is_header_row = True
        if any(row):
            self._emit("table_row", barred(row), is_header=is_header)
            self._is_next_row = True

    def _emit(self, kind: BlockKind, text: str, level: int = 0, *, is_header: bool = False) -> None:
        text, deceptive = normalise(text)
        self._deceptive += deceptive
        if not text.strip():
            return
        if self._blocks:
            before = self._blocks[-1].kind
            close = kind == before and (kind == "list_item" or (kind == "table_row" and self._is_next_row))
            self._append("\n" if close else "\n\n")
        start = self._length
        self._append(text)
        # A row of header cells names the columns of the rows below it (``chunking.tables``).
        heading = usable_heading(text) if kind == "heading" or is_header else None
        self._blocks.append(Block(kind, start, self._length, level, heading))

    def _append(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)

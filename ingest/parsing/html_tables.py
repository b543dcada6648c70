"""Tables of a page: which of them hold data, and the cells of a row, in the columns in which they stand.

A table lays out the page if it has one cell a row, or headings or code inside, or says so by its role. A cell that
reaches over others is read once; the places that it covers are blank, so that all rows have the same columns. Source:
the HTML Living Standard, 4.9.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from .html_events import Event

__all__ = ["HEADINGS", "SECTIONS", "Cells", "layout_tables"]

HEADINGS = {f"h{level}": level for level in range(1, 7)}
# No cell reaches out of its section.
SECTIONS = frozenset({"thead", "tbody", "tfoot"})
# Blank places that one cell makes in a row, and the column up to which those above make some: a page of a few KiB could
# make gigabytes of them.
MAX_COLUMNS = 50
# The standard allows no more.
MAX_ROWS = 65_534


@dataclass(slots=True)
class _Table:
    start: int
    widest: int = 0
    cells: int = 0
    is_layout: bool = False
    # A heading or code stands in it, or in a table in it.
    holds_block: bool = False


def layout_tables(page: Sequence[Event]) -> Collection[int]:
    """Return the indices of the ``table`` events that lay out the page instead of holding data."""
    layout: set[int] = set()
    tables: list[_Table] = []
    for index, event in enumerate(page):
        if event.kind == "text":
            continue
        if event.value == "table":
            if event.kind == "open":
                tables.append(_Table(index, is_layout=event.attributes.get("role") in ("presentation", "none")))
            elif tables:
                table = tables.pop()
                if table.is_layout or table.holds_block or max(table.widest, table.cells) <= 1:
                    layout.add(table.start)
                if tables:
                    tables[-1].holds_block |= table.holds_block
        elif tables and event.kind == "open":
            table = tables[-1]
            if event.value == "tr":
                table.widest, table.cells = max(table.widest, table.cells), 0
            elif event.value in ("td", "th"):
                table.cells += 1
            elif event.value == "pre" or event.value in HEADINGS:
                table.holds_block = True
    return layout


class Cells:
    """The cells of a row; remembers which places of the rows below it they cover."""

    def __init__(self) -> None:
        self._row: list[str] = []
        self._columns, self._rows = 1, 1
        # How many more rows a cell above covers, by column.
        self._covered: dict[int, int] = {}

    def begin(self, attributes: Mapping[str, str]) -> None:
        """Begin a cell; its text follows."""
        self._columns = _span(attributes.get("colspan", ""), MAX_COLUMNS)
        self._rows = _span(attributes.get("rowspan", ""), MAX_ROWS)

    def add(self, text: str) -> None:
        """Add the cell at the next place that no other covers."""
        self._pass_covered()
        first = len(self._row)
        self._row += [text, *[""] * (self._columns - 1)]
        if self._rows > 1:
            self._covered |= dict.fromkeys(range(first, min(first + self._columns, MAX_COLUMNS)), self._rows - 1)

    def end_row(self) -> list[str]:
        """Return the cells since the last row; none where there were none, and then no place was passed."""
        if self._row:
            self._pass_covered()
        row, self._row = self._row, []
        return row

    def uncover(self) -> None:
        """Begin another section of the table."""
        self._covered = {}

    def _pass_covered(self) -> None:
        while rows := self._covered.get(len(self._row), 0):
            self._covered[len(self._row)] = rows - 1
            self._row.append("")


def _span(value: str, most: int) -> int:
    """Return how many columns or rows a cell takes."""
    return min(max(int(value), 1), most) if value.isdecimal() and len(value) < 6 else 1

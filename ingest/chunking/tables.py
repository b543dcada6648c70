"""What a reader's blocks tell about tables: header rows, and the cell range of several rows."""

import re
from collections.abc import Iterable

from ingest.parsing.document import Block

__all__ = ["cell_range", "header_text", "is_header_row"]

# The line of a Markdown table that makes a header of the row above: ``|---|:--:|``, outer bars optional.
DELIMITER = re.compile(r"\n[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\n")
CELLS = re.compile(r"([A-Z]+)(\d+)")


def is_header_row(text: str, row: Block, following: Block) -> bool:
    """Whether ``row`` names the columns of ``following``.

    A reader says so by giving a table row a ``heading``; in Markdown the line of dashes between the two says it.
    """
    if row.kind != "table_row" or following.kind != "table_row":
        return False
    if row.heading is not None:
        return following.heading is None
    return DELIMITER.search(text, row.start, following.start) is not None


def header_text(text: str, row: Block) -> str:
    """Return a header row as a heading: its first line, bars and white space collapsed."""
    line = row.heading if row.heading is not None else text[row.start : row.end].partition("\n")[0]
    return " ".join(line.strip().strip("|").split())


def cell_range(rows: Iterable[Block]) -> str | None:
    """Return the smallest range that holds the cells of all rows, such as ``A5:D9``; None where no row has cells."""
    found = [match.groups() for row in rows for match in CELLS.finditer(row.cells or "")]
    if not found:
        return None
    columns = sorted({column for column, _ in found}, key=lambda column: (len(column), column))
    numbers = [int(number) for _, number in found]
    return f"{columns[0]}{min(numbers)}:{columns[-1]}{max(numbers)}"

"""Rows of tables as text: each cell beside the name of its column, so that a row means something by itself."""

from collections.abc import Sequence

from .lines import LETTER_OR_DIGIT
from .normalise import collapse

__all__ = ["barred", "column_letters", "column_names", "row_text", "used_width"]

# Longer "names" are sentences: the first row holds data.
MAX_NAME_CHARS = 100


def barred(cells: Sequence[str]) -> str:
    """Return a row as ``| a | b |``: cells in the columns in which they stand, blank ones too."""
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def column_letters(index: int) -> str:
    """Return the letters of a column, counted from 0, as spreadsheets write them: ``A`` ... ``Z``, ``AA`` ..."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def used_width(cells: Sequence[str]) -> int:
    """Return the number of cells that are not blank."""
    return sum(1 for cell in cells if cell.strip())


def column_names(cells: Sequence[str]) -> list[str] | None:
    """Return the first row of a table as names of columns; None if it does not look like names.

    Names are distinct and hold a letter; one may be missing, as over the row numbers that programs put first,
    and any at the end, where lines merely have more delimiters.
    """
    names = [collapse(cell) for cell in cells]
    given = [name for name in names if name]
    last = max((index for index, name in enumerate(names) if name), default=0)
    missing = last + 1 - len(given)
    is_named = len(set(given)) == len(given) and all(
        len(name) <= MAX_NAME_CHARS and any(map(str.isalpha, name)) for name in given
    )
    return names if given and is_named and missing <= min(1, len(given) - 1) else None


def row_text(names: Sequence[str] | None, cells: Sequence[str], first_column: int = 0) -> str:
    """Return ``name: value | name: value`` without empty cells; a column without a name has its letters.

    Nothing where no cell has a letter or digit: a row of dashes says no more than an empty one. Values are verbatim,
    line breaks in them included. ``first_column`` is where the cells begin in their sheet.
    """
    pieces: list[str] = []
    if not any(LETTER_OR_DIGIT.search(cell) for cell in cells):
        return ""
    for index, cell in enumerate(cells):
        if cell.strip():
            name = names[index] if names and index < len(names) else ""
            pieces.append(f"{name or column_letters(first_column + index)}: {cell.strip()}")
    return " | ".join(pieces)

"""A sheet as the readers of workbooks see it: its name, and the rows with something in them. Knows no format."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from .rows import column_letters

__all__ = ["Row", "Sheet", "clock_text", "number_text"]

# Excel shows 15 digits of a number and computes with no more.
DIGITS = ".15g"
# Numbers of up to so many digits are written out: it holds those of accounts, cards and parcels.
MAX_ZEROS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """A row with something in it: its number and the column of its first cell, both as the sheet counts them.

    ``repeats``: how many rows, this one and those after it, are equal and stand for one.
    """

    number: int
    first_column: int
    cells: Sequence[str]
    repeats: int = 1

    @property
    def used(self) -> tuple[int, int]:
        """The indices in ``cells`` of the first and the last one that is not blank."""
        used = [index for index, cell in enumerate(self.cells) if cell.strip()]
        return used[0], used[-1]

    @property
    def range(self) -> str:
        """The range of the cells that are used, such as ``B5:D5``."""
        first, last = (column_letters(self.first_column + index) for index in self.used)
        return f"{first}{self.number}:{last}{self.number + self.repeats - 1}"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet; ``rows`` are in order and may be taken once."""

    name: str
    is_hidden: bool
    rows: Iterator[Row]


def number_text(value: float) -> str:
    """Return a number as text: whole ones without a fraction, in no more digits than programs compute with.

    An exponent stands only where the number would be longer than a person reads: account numbers have none.
    """
    text = format(value, DIGITS)
    _, _, exponent = text.partition("e")
    return f"{Decimal(text):f}" if exponent and abs(int(exponent)) <= MAX_ZEROS else text


def clock_text(seconds: float) -> str:
    """Return a duration as ``26:30:00``: hours without end, since sheets add them up."""
    total = round(abs(seconds))
    return f"{'-' if seconds < 0 else ''}{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02}"

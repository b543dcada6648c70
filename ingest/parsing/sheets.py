"""Spreadsheets: each sheet a heading and a part, each row ``name: value | name: value`` with its cell range.

calamine reads them all; openpyxl, 12 times slower, those workbooks in which one far cell would make calamine allocate
the whole rectangle. Formulas count with the value that was saved, hidden sheets are read and labelled, macros are never
opened. Sources: ECMA-376 part 1, [MS-XLS], [MS-XLSB], ODF 1.3, through the two libraries.
"""

import datetime
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import openpyxl  # type: ignore[import-untyped]  # has no annotations
from python_calamine import CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

from .assembly import Assembly
from .document import Document
from .failure import Refused
from .registry import ReaderInput
from .rows import column_letters, column_names, row_text, used_width
from .zipguard import open_package

__all__ = ["read"]

ZIPPED = frozenset({"xlsx", "xlsm", "xlsb", "ods"})
OPENPYXL_READS = frozenset({"xlsx", "xlsm"})
# A rectangle of this many cells takes calamine about 0.6 GiB of the worker's 2.
MAX_RECTANGLE = 20_000_000
SHEET_PART = re.compile(r"xl/worksheets/[^/]+\.xml")
REFERENCE_COLUMN = re.compile(rb"""\br=["']([A-Z]{1,3})[0-9]""")
REFERENCE_ROW = re.compile(rb"""\br=["'][A-Z]{0,3}([0-9]{1,7})["']""")
NUMBER = re.compile(r"[-+]?[0-9][0-9.,eE+-]*")
# Excel shows 15 digits of a number and computes with no more.
DIGITS = ".15g"


@dataclass(frozen=True, slots=True)
class _Row:
    """A row with something in it: its number and the column of its first cell, both as the sheet counts them."""

    number: int
    first_column: int
    cells: Sequence[str]

    @property
    def range(self) -> str:
        used = [index for index, cell in enumerate(self.cells) if cell.strip()]
        first, last = (column_letters(self.first_column + index) for index in (used[0], used[-1]))
        return f"{first}{self.number}:{last}{self.number}"


@dataclass(frozen=True, slots=True)
class _Sheet:
    name: str
    is_hidden: bool
    rows: Iterator[_Row]


def read(task: ReaderInput) -> Document:
    """Return the document; it has no title, since no cell is sure to be one."""
    is_sparse = False
    if task.kind in ZIPPED:
        package = open_package(task.content, may_have_doctype=task.kind == "ods")
        if task.kind in OPENPYXL_READS:
            is_sparse = any(
                _rectangle(package.read(name)) > MAX_RECTANGLE for name in package.names if SHEET_PART.fullmatch(name)
            )
    use_openpyxl = task.kind in OPENPYXL_READS and (is_sparse or task.use_fallback)
    assembly = Assembly(task)
    hidden = []
    for sheet in _by_openpyxl(task.content) if use_openpyxl else _by_calamine(task.content):
        assembly.part("sheet", sheet.name)
        if sheet.is_hidden:
            hidden.append(sheet.name)
        _add_sheet(assembly, sheet)
    if hidden:
        assembly.warn([f"hidden_sheets: {', '.join(hidden)}"])
    return assembly.document()


def _rectangle(part: bytes) -> int:
    """Return largest row times largest column that a cell of a sheet refers to; ``dimension`` proves nothing."""
    columns = {_column_number(letters) for letters in set(REFERENCE_COLUMN.findall(part))}
    rows = {int(digits) for digits in set(REFERENCE_ROW.findall(part))}
    return max(columns, default=0) * max(rows, default=0)


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number


def _add_sheet(assembly: Assembly, sheet: _Sheet) -> None:
    """Add a sheet; nothing of it if it is empty.

    Rows of a single cell above the table are paragraphs, as are those of a sheet that has no others. The first other
    row names the columns, if it looks like names; so does one after empty rows, if numbers stand below it: another
    table begins there.
    """
    names: list[str] | None = None
    names_from = 0
    waiting: _Row | None = None
    is_begun = False
    before = 0
    for row in sheet.rows:
        if not before:
            assembly.add("heading", f"{sheet.name} (hidden)" if sheet.is_hidden else sheet.name, 1)
        is_after_gap = row.number > before + 1
        before = row.number
        if waiting is not None:
            if is_begun and not any(NUMBER.fullmatch(cell) for cell in row.cells):
                _add_row(assembly, waiting, names, names_from)
            else:
                names, names_from, is_begun = column_names(_trimmed(waiting)), _first_used(waiting), True
            waiting = None
        elif not is_begun and used_width(row.cells) == 1:
            assembly.add("paragraph", "".join(row.cells).strip(), cells=row.range)
            continue
        elif (not is_begun or is_after_gap) and column_names(_trimmed(row)) is not None:
            waiting = row
            continue
        is_begun = True
        _add_row(assembly, row, names, names_from)
    if waiting is not None:
        assembly.add("table_row", " | ".join(cell for cell in waiting.cells if cell.strip()), cells=waiting.range)


def _add_row(assembly: Assembly, row: _Row, names: Sequence[str] | None, names_from: int) -> None:
    aligned = [""] * max(names_from - row.first_column, 0) + list(names or [])
    aligned = aligned[max(row.first_column - names_from, 0) :]
    assembly.add("table_row", row_text(aligned, row.cells, row.first_column), cells=row.range)


def _first_used(row: _Row) -> int:
    return row.first_column + next(index for index, cell in enumerate(row.cells) if cell.strip())


def _trimmed(row: _Row) -> Sequence[str]:
    """Return the cells of a row from the first used to the last used one."""
    used = [index for index, cell in enumerate(row.cells) if cell.strip()]
    return row.cells[used[0] : used[-1] + 1]


def _by_calamine(content: bytes) -> Iterator[_Sheet]:
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
    except PasswordError as error:
        raise Refused("needs_password", "an encrypted workbook; save it without a password") from error
    for index, known in enumerate(workbook.sheets_metadata):
        if known.typ is not SheetTypeEnum.WorkSheet:
            continue
        sheet = workbook.get_sheet_by_index(index)
        first_row, first_column = sheet.start or (0, 0)
        values = sheet.to_python(skip_empty_area=True)
        rows = _rows(values, first_row + 1, first_column)
        yield _Sheet(known.name, known.visible is not SheetVisibleEnum.Visible, rows)


def _by_openpyxl(content: bytes) -> Iterator[_Sheet]:
    workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
    for sheet in workbook.worksheets:
        # The declared dimension may be wrong, or the bomb itself.
        sheet.reset_dimensions()
        yield _Sheet(sheet.title, sheet.sheet_state != "visible", _rows(sheet.iter_rows(values_only=True), 1, 0))


def _rows(rows: Sequence[Sequence[object]] | Iterator[Sequence[object]], first: int, column: int) -> Iterator[_Row]:
    for number, values in enumerate(rows, first):
        cells = [_text(value) if value is not None and value != "" else "" for value in values]
        if used_width(cells):
            yield _Row(number, column, cells)


def _text(value: object) -> str:
    """Return a value as text: ISO dates, whole numbers without a fraction."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return format(value, DIGITS)
        case datetime.datetime():
            is_date = value.time() == datetime.time()
            return value.date().isoformat() if is_date else value.isoformat(sep=" ", timespec="seconds")
        case datetime.date():
            return value.isoformat()
        case datetime.time():
            return value.isoformat(timespec="seconds")
        case _:
            return str(value)

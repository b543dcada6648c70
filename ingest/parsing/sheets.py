"""Spreadsheets: each sheet a heading and a part, each row ``name: value | name: value`` with its cell range.

calamine reads those of Excel; openpyxl, 12 times slower, workbooks that calamine refuses, or in which one far cell
would make it allocate the whole rectangle; ``ods`` those of OpenDocument. Formulas count with the value that was saved,
hidden sheets are read and labelled, macros are never opened. Sources: ECMA-376 part 1, [MS-XLS], [MS-XLSB], through
the two libraries.
"""

import datetime
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import openpyxl  # type: ignore[import-untyped]  # has no annotations
from openpyxl.cell.cell import ERROR_CODES  # type: ignore[import-untyped]
from openpyxl.utils.exceptions import InvalidFileException  # type: ignore[import-untyped]
from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

from .assembly import Assembly
from .document import Document
from .failure import Refused
from .odf import open_odf
from .ods import ods_sheets
from .office import main_part
from .oleguard import check_chains
from .registry import ReaderInput
from .rows import column_names, row_text, used_width
from .sheet import Row, Sheet, clock_text, number_text
from .zipguard import Package, open_package

__all__ = ["read"]

ZIPPED = frozenset({"xlsx", "xlsm", "xlsb"})
OPENPYXL_READS = frozenset({"xlsx", "xlsm"})
# A rectangle of this many cells takes calamine about 0.6 GiB of the worker's 2.
MAX_RECTANGLE = 20_000_000
# The parts that the libraries look at: not pictures, charts, fonts and macros.
WORKBOOK_PART = re.compile(r"\[Content_Types\]\.xml|_rels/.*|xl/[^/]+\.(?:xml|bin)|xl/(?:_rels|worksheets)/.*")
SHEET_PART = re.compile(r"xl/worksheets/[^/]+\.xml")
SHEET = re.compile(rb"<(?:\w+:)?sheet\s")
BINARY_SHEET_PART = re.compile(r"xl/worksheets/[^/]+\.bin")
# BrtRowHdr; BrtCellBlank to BrtFmlaError. A size is at most four bytes of seven bits.
ROW_RECORD, CELL_RECORDS, LAST_SIZE_SHIFT = 0, frozenset(range(1, 12)), 21
REFERENCE_COLUMN = re.compile(rb"""\br=["']([A-Z]{1,3})[0-9]""")
REFERENCE_ROW = re.compile(rb"""\br=["'][A-Z]{0,3}([0-9]{1,7})["']""")
# What openpyxl raises for workbooks that it cannot read; ParseError, of its XML, is a SyntaxError.
OPENPYXL_BROKEN = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OSError,
    SyntaxError,
    InvalidFileException,
)
ERRORS = frozenset(ERROR_CODES)
NUMBER = re.compile(r"[-+]?[0-9][0-9.,eE+-]*")


def read(task: ReaderInput) -> Document:
    """Return the document; it has no title, since no cell is sure to be one."""
    if task.kind == "ods":
        return _document(task, ods_sheets(open_odf(task.content)))
    if task.kind not in ZIPPED:
        check_chains(task.content)
        return _document(task, _by_calamine(task.content))
    package = open_package(task.content)
    content = package.readable(is_needed=lambda name: WORKBOOK_PART.fullmatch(name) is not None)
    if task.kind == "xlsb":
        _refuse_sparse(package)
    has_choice = task.kind in OPENPYXL_READS
    is_sparse = has_choice and any(
        _rectangle(package.read(name)) > MAX_RECTANGLE for name in package.names if SHEET_PART.fullmatch(name)
    )
    if has_choice and (is_sparse or task.use_fallback):
        return _document(task, _by_openpyxl(content))
    try:
        return _document(task, _by_calamine(content))
    except Refused as refusal:
        has_second = has_choice and refusal.failure.status == "damaged"
        document = _second_reading(task, content, package) if has_second else None
        if document is None:
            raise
        return document


def _second_reading(task: ReaderInput, content: bytes, package: Package) -> Document | None:
    """Return what openpyxl finds in a workbook that calamine refused; None unless it finds every sheet and a value."""
    path = main_part(package, "xl/workbook.xml")
    try:
        document = _document(task, _by_openpyxl(content))
        is_whole = len(document.parts) >= len(SHEET.findall(package.read(path)))
    except (*OPENPYXL_BROKEN, Refused):
        return None
    return document if is_whole and document.blocks else None


def _document(task: ReaderInput, sheets: Iterator[Sheet]) -> Document:
    assembly = Assembly(task)
    hidden = []
    for sheet in sheets:
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


def _refuse_sparse(package: Package) -> None:
    """Raise ``Refused`` for a binary workbook of which calamine would allocate too large a rectangle."""
    for name in package.names:
        if BINARY_SHEET_PART.fullmatch(name):
            rows, columns = _binary_corner(package.read(name))
            if rows * columns > MAX_RECTANGLE:
                raise Refused("too_large", f"cells as far as row {rows} and column {columns}; save it as .xlsx")


def _binary_corner(part: bytes) -> tuple[int, int]:
    """Return the last row and column of a sheet, counted from 1, by its records ([MS-XLSB] 2.1.4, 2.5.9)."""
    row = rows = columns = position = 0
    while position + 2 < len(part):
        kind = part[position]
        position += 1
        if kind & 0x80:
            kind = (kind & 0x7F) | part[position] << 7
            position += 1
        size = shift = 0
        while position < len(part):
            byte = part[position]
            position += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift > LAST_SIZE_SHIFT:
                break
        if kind == ROW_RECORD:
            row = int.from_bytes(part[position : position + 4], "little") + 1
        elif kind in CELL_RECORDS:
            rows = max(rows, row)
            columns = max(columns, int.from_bytes(part[position : position + 4], "little") + 1)
        position += size
    return rows, columns


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number


def _add_sheet(assembly: Assembly, sheet: Sheet) -> None:
    """Add a sheet; nothing of it if it is empty.

    Rows of a single cell above the table are paragraphs, as are those of a sheet that has no others. The first other
    row names the columns, if it looks like names; so does one after empty rows, if numbers stand below it: another
    table begins there, and a single text above it is no name but a paragraph too.
    """
    names: list[str] | None = None
    names_from = 0
    waiting: Row | None = None
    is_begun = is_after_title = False
    before = 0
    for row in sheet.rows:
        if not before:
            assembly.add("heading", f"{sheet.name} (hidden)" if sheet.is_hidden else sheet.name, 1)
        is_after_gap = is_after_title or row.number > before + 1
        is_after_title = False
        before = row.number + row.repeats - 1
        if waiting is not None:
            if is_begun and not _holds_number(row):
                _add_row(assembly, waiting, names, names_from)
            else:
                names, names_from, is_begun = column_names(_trimmed(waiting)), _first_used(waiting), True
            waiting = None
        elif used_width(row.cells) == 1 and (not is_begun or (is_after_gap and not _holds_number(row))):
            assembly.add("paragraph", "".join(row.cells).strip(), cells=row.range)
            is_after_title = True
            continue
        elif (not is_begun or is_after_gap) and row.repeats == 1 and column_names(_trimmed(row)) is not None:
            waiting = row
            continue
        is_begun = True
        _add_row(assembly, row, names, names_from)
    if waiting is not None:
        assembly.add("table_row", " | ".join(cell for cell in waiting.cells if cell.strip()), cells=waiting.range)


def _holds_number(row: Row) -> bool:
    return any(NUMBER.fullmatch(cell.strip()) for cell in row.cells)


def _add_row(assembly: Assembly, row: Row, names: Sequence[str] | None, names_from: int) -> None:
    aligned = [""] * max(names_from - row.first_column, 0) + list(names or [])
    aligned = aligned[max(row.first_column - names_from, 0) :]
    assembly.add("table_row", row_text(aligned, row.cells, row.first_column), cells=row.range)


def _first_used(row: Row) -> int:
    return row.first_column + row.used[0]


def _trimmed(row: Row) -> Sequence[str]:
    """Return the cells of a row from the first used to the last used one."""
    first, last = row.used
    return row.cells[first : last + 1]


def _by_calamine(content: bytes) -> Iterator[Sheet]:
    with _refusing():
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
    for index, known in enumerate(workbook.sheets_metadata):
        if known.typ is not SheetTypeEnum.WorkSheet:
            continue
        with _refusing():
            sheet = workbook.get_sheet_by_index(index)
            first_row, first_column = sheet.start or (0, 0)
            values = sheet.to_python(skip_empty_area=True)
        rows = _rows(values, first_row + 1, first_column)
        yield Sheet(known.name, known.visible is not SheetVisibleEnum.Visible, rows)


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn what calamine raises into a refusal; a panic of it is no ``Exception`` and has no name to import."""
    try:
        yield
    except PasswordError as error:
        raise Refused("needs_password", "an encrypted workbook; save it without a password") from error
    except CalamineError as error:
        raise Refused("damaged", f"a workbook that its library cannot read: {error}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise Refused("damaged", f"a workbook at which its library gave up: {error}") from error


def _by_openpyxl(content: bytes) -> Iterator[Sheet]:
    workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
    for sheet in workbook.worksheets:
        # The declared dimension may be wrong, or the bomb itself.
        sheet.reset_dimensions()
        # A formula that failed has no value, as calamine has it.
        rows = ([None if value in ERRORS else value for value in row] for row in sheet.iter_rows(values_only=True))
        yield Sheet(sheet.title, sheet.sheet_state != "visible", _rows(rows, 1, 0))


def _rows(rows: Sequence[Sequence[object]] | Iterator[Sequence[object]], first: int, column: int) -> Iterator[Row]:
    for number, values in enumerate(rows, first):
        cells = [_text(value) if value is not None and value != "" else "" for value in values]
        if used_width(cells):
            yield Row(number, column, cells)


def _text(value: object) -> str:
    """Return a value as text: ISO dates, whole numbers without a fraction."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return number_text(value)
        case datetime.datetime():
            is_date = value.time() == datetime.time()
            return value.date().isoformat() if is_date else value.isoformat(sep=" ", timespec="seconds")
        case datetime.date():
            return value.isoformat()
        case datetime.timedelta():
            return clock_text(value.total_seconds())
        case datetime.time():
            return value.isoformat(timespec="seconds")
        case _:
            return str(value)

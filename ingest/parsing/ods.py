"""OpenDocument spreadsheets as sheets of rows: values of cells, without remarks, drawings and formats.

A reader of our own: calamine refuses 35 of 634 real files (test suites of LibreOffice, odfpy and others) with a wrong
reason, and allocates what a file of 2 KiB says: a row of 16,384 cells that repeats a million times. Here a repeated row
costs nothing where it is empty, and stands for all of its kind where it is not. Source: ODF 1.3 part 3, 9 and 19.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping

from .failure import Refused
from .odf import CONTENT
from .rows import used_width
from .sheet import Row, Sheet, clock_text, number_text
from .xml_events import XmlEvent, xml_events
from .zipguard import Package

__all__ = ["ods_sheets"]

CELLS = frozenset({"table-cell", "covered-table-cell"})
# Holds cells too: those of the changes that were recorded.
LEFT_OUT = "tracked-changes"
# What LibreOffice calls the copies that it keeps of sheets in other files; nobody ever sees them.
EXTERNAL = re.compile(r"'[a-z]+:.*'#")
BLANKS = re.compile(r"[ \t\r\n]+")
MAX_SPACES = 64
# Rows that are equal are read one by one up to this number, as are cells; more are a pattern, not data.
MAX_REPEATS = 100
# What programs have as the last column; the format knows no limit.
MAX_COLUMNS = 16_384
# What is shown of a formula that failed, in several languages: #DIV/0!, #N/D, Err:502, Err :504.
ERROR = re.compile(r"#[A-Z/0-9]{2,10}[!?]?|[A-Z][a-z]{2,8} ?:\d{3}")
DURATION = re.compile(r"(-?)PT(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:[.,]\d{1,12})?)S)?")
DIGITS = re.compile(r"[0-9]{1,9}")
NUMBERS = frozenset({"float", "percentage", "currency"})


def ods_sheets(package: Package) -> Iterator[Sheet]:
    """Yield the sheets of a spreadsheet; the rows of one are to be taken before the next. Raises ``Refused``."""
    events = _body(xml_events(package.read(CONTENT), CONTENT, may_have_doctype=True))
    hidden: set[str] = set()
    style = ""
    for event in events:
        if event.kind != "open":
            continue
        if event.value == "style":
            style = event.attributes.get("name", "")
        elif event.value == "table-properties" and event.attributes.get("display") == "false":
            hidden.add(style)
        elif event.value == "table":
            name, is_hidden = event.attributes.get("name", ""), event.attributes.get("style-name") in hidden
            rows = _rows(events)
            if EXTERNAL.match(name):
                deque(rows, maxlen=0)
            else:
                yield Sheet(name, is_hidden, rows)


def _body(events: Iterator[XmlEvent]) -> Iterator[XmlEvent]:
    """Yield the events outside of recorded changes."""
    is_left_out = False
    for event in events:
        if event.value == LEFT_OUT and event.kind != "text":
            is_left_out = event.kind == "open"
        elif not is_left_out:
            yield event


def _rows(events: Iterator[XmlEvent]) -> Iterator[Row]:
    """Yield the rows until the end of the table; what a table in a cell holds is its text."""
    number, repeats, inner = 1, 1, 0
    cells: list[str] = []
    column = 0
    for event in events:
        if event.kind == "text":
            continue
        if event.value == "table":
            inner += 1 if event.kind == "open" else -1
            if inner < 0:
                return
        elif event.value == "table-row" and not inner:
            if event.kind == "open":
                repeats = _count(event.attributes, "number-rows-repeated")
                cells, column = [], 0
            else:
                yield from _repeated(number, repeats, cells)
                number += repeats
        elif event.value in CELLS and event.kind == "open":
            times = _count(event.attributes, "number-columns-repeated")
            value = _value(event, events)
            if value.strip():
                if column >= MAX_COLUMNS:
                    raise Refused("damaged", f"a cell in column {column + 1}, beyond {MAX_COLUMNS}")
                cells += [""] * (column - len(cells)) + [value] * min(times, MAX_REPEATS)
            column += times


def _repeated(number: int, repeats: int, cells: list[str]) -> Iterator[Row]:
    if not used_width(cells):
        return
    if repeats > MAX_REPEATS:
        yield Row(number, 0, cells, repeats)
    else:
        for offset in range(repeats):
            yield Row(number + offset, 0, cells)


def _value(cell: XmlEvent, events: Iterator[XmlEvent]) -> str:
    """Read a cell to its end and return its value; a formula that failed has none, nor has a cell behind another."""
    text = _text(events)
    kind = cell.attributes.get("value-type", "")
    if cell.value != "table-cell" or ("formula" in cell.attributes and ERROR.fullmatch(text)):
        return ""
    value = cell.attributes.get("value", "")
    if kind in NUMBERS and value:
        try:
            return number_text(float(value))
        except ValueError:
            return text or value
    if kind == "date":
        date, _, time = cell.attributes.get("date-value", "").partition("T")
        time = time.partition(".")[0]
        return (date if time in ("", "00:00:00") else f"{date} {time}") or text
    if kind == "time":
        return _clock(cell.attributes.get("time-value", "")) or text
    if kind == "boolean":
        return cell.attributes.get("boolean-value", "") or text
    return text or cell.attributes.get("string-value", "")


def _text(events: Iterator[XmlEvent]) -> str:
    """Return the paragraphs that stand directly in the element that was just opened, read to its end."""
    paragraphs: list[str] = []
    pieces: list[str] = []
    depth = 1
    is_paragraph = False
    for event in events:
        if event.kind == "text":
            if is_paragraph:
                pieces.append(BLANKS.sub(" ", event.value))
        elif event.kind == "open":
            depth += 1
            if depth == 2:
                is_paragraph = event.value == "p"
            elif is_paragraph:
                pieces.append(_white_space(event))
        else:
            depth -= 1
            if depth == 1 and is_paragraph:
                paragraphs.append("".join(pieces).strip())
                pieces, is_paragraph = [], False
            elif not depth:
                break
    return "\n".join(paragraphs).strip("\n")


def _white_space(event: XmlEvent) -> str:
    match event.value:
        case "s":
            return " " * min(_count(event.attributes, "c"), MAX_SPACES)
        case "tab":
            return "\t"
        case "line-break":
            return "\n"
        case _:
            return ""


def _clock(duration: str) -> str:
    """Return a duration such as ``PT09H30M00S`` as ``09:30:00``; nothing for what is none."""
    found = DURATION.fullmatch(duration)
    if found is None:
        return ""
    sign, *numbers = found.groups(default="0")
    hours, minutes, seconds = numbers
    total = int(hours) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))
    return clock_text(-total if sign else total)


def _count(attributes: Mapping[str, str], name: str) -> int:
    """Return how many of something an element stands for, at least 1."""
    value = attributes.get(name, "")
    return max(int(value), 1) if DIGITS.fullmatch(value) else 1

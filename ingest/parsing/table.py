"""CSV and TSV: a record is a row ``name: value | name: value``, with the lines of the file that it comes from.

The delimiter is the one by which rows are equally wide; a ``sep=`` line of spreadsheet programs says it. Ragged rows
are kept as they are. Sources: RFC 4180 and what programs really write; the parsing itself is ``csv``.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator

from .assembly import Assembly
from .decode import decode
from .document import Document
from .failure import Refused
from .registry import ReaderInput
from .rows import column_names, row_text, used_width

__all__ = ["read"]

# ``csv`` stops at 128 KiB by default, and long cells are real: articles, mails, base64.
MAX_FIELD_CHARS = 16 << 20
DELIMITERS = ",;\t|"
# For a table of one column: the unit separator, which no file has.
NO_DELIMITER = "\x1f"
SAMPLE_CHARS, SAMPLE_ROWS = 1 << 16, 200
SEPARATOR_LINE = re.compile(r'"?sep=([^"\n])"?[ \t]*(?:\n|\Z)', re.IGNORECASE)
LINE_BREAK = re.compile(r"\r\n?")


def read(task: ReaderInput) -> Document:
    """Return the document. A first row of distinct texts names the columns, else their letters do."""
    decoded = decode(task.content, fallback_encoding=task.options.fallback_encoding)
    text = LINE_BREAK.sub("\n", decoded.text)
    preamble = SEPARATOR_LINE.match(text)
    start = preamble.end() if preamble else 0
    delimiter = preamble[1] if preamble else _delimiter(text)
    # A quote or a blank cannot be one; then the line was a text that only looks like a preamble.
    if delimiter in " \r":
        start, delimiter = 0, _delimiter(text)
    assembly = Assembly(task)
    names: list[str] | None = None
    waiting: tuple[list[str], tuple[int, int]] | None = None
    is_first = True
    for cells, lines in _records(text[start:], delimiter, 1 if start else 0):
        if is_first:
            names, is_first = column_names(cells), False
            if names is not None:
                waiting = cells, lines
                continue
        waiting = None
        assembly.add("table_row", row_text(names, cells), lines=lines)
    if waiting is not None:
        # Nothing but names: they are all that the table says.
        cells, lines = waiting
        assembly.add("table_row", " | ".join(cell for cell in cells if cell.strip()), lines=lines)
    assembly.warn(decoded.warnings)
    return assembly.document(meta=decoded.meta())


def _records(text: str, delimiter: str, lines_before: int) -> Iterator[tuple[list[str], tuple[int, int]]]:
    """Yield the records that are not blank, each with its first and last line, counted from 1."""
    csv.field_size_limit(MAX_FIELD_CHARS)
    records = csv.reader(
        (line + "\n" for line in text.removesuffix("\n").split("\n")), delimiter=delimiter, skipinitialspace=True
    )
    before = 0
    try:
        for cells in records:
            lines = before + 1 + lines_before, max(records.line_num, before + 1) + lines_before
            before = records.line_num
            if used_width(cells):
                yield cells, lines
    except csv.Error as error:
        raise Refused("damaged", f"line {before + 1 + lines_before}: {error}") from error


def _delimiter(text: str) -> str:
    """Return the delimiter that most rows agree on; the wider of two, and none for a single column."""
    sample = text[:SAMPLE_CHARS]
    if len(text) > SAMPLE_CHARS and "\n" in sample:
        sample = sample[: sample.rindex("\n")]
    best, chosen = (0.0, 0), NO_DELIMITER
    for delimiter in DELIMITERS:
        widths: Counter[int] = Counter()
        first = 0
        try:
            for cells, _ in _records(sample, delimiter, 0):
                first = first or len(cells)
                widths[len(cells)] += 1
                if widths.total() == SAMPLE_ROWS:
                    break
        except Refused:
            continue
        several = [(count / widths.total(), width) for width, count in widths.items() if width > 1]
        # Sentences in a single column hold commas, here and there, below a name that has none.
        is_plausible = first > 1 or (several and max(several)[0] > 0.5)
        if is_plausible and several and max(several) > best:
            best, chosen = max(several), delimiter
    return chosen

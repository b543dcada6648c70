"""JSON Lines: each line a record, one block of ``path: value`` lines with the line of the file that it comes from.

Blank lines mean nothing. A line that is no JSON is left out, counted and named; the rest is kept. Source:
jsonlines.org, and what loggers really write.
"""

import json
import re

from .assembly import Assembly
from .decode import decode
from .document import Document
from .failure import Refused
from .json_values import Pairs, lines_of, parse
from .registry import ReaderInput

__all__ = ["is_likely", "read"]

MAX_LINE_CHARS = 16 << 20
# Numbers of bad lines that a warning names; it says how many more there are.
NAMED_LINES = 20
LINE_BREAK = re.compile(r"\r\n?")


def read(task: ReaderInput) -> Document:
    """Return the document. Raises ``Refused``: no line is a record, or one is too long."""
    decoded = decode(task.content, fallback_encoding=task.options.fallback_encoding)
    assembly = Assembly(task)
    bad: list[int] = []
    records = 0
    for number, line in enumerate(LINE_BREAK.sub("\n", decoded.text).split("\n"), 1):
        if not line.strip():
            continue
        if len(line) > MAX_LINE_CHARS:
            raise Refused("too_large", f"line {number} has {len(line)} characters, over {MAX_LINE_CHARS}")
        try:
            value = parse(line)
        except (json.JSONDecodeError, Refused):
            bad.append(number)
            continue
        records += 1
        assembly.apart()
        assembly.add("list_item", "\n".join(lines_of(value)), lines=(number, number))
    if bad and not records:
        raise Refused("damaged", f"none of {len(bad)} lines is JSON")
    if bad:
        more = f" and {len(bad) - NAMED_LINES} more" if len(bad) > NAMED_LINES else ""
        named = ", ".join(map(str, bad[:NAMED_LINES]))
        assembly.warn([f"unread_lines: {len(bad)} lines are no JSON and are left out: {named}{more}"])
    assembly.warn(decoded.warnings)
    return assembly.document(meta=decoded.meta())


def is_likely(text: str) -> bool:
    """True where the first two lines that are not blank are objects by themselves: JSON Lines under another name."""
    lines = (line for line in text.lstrip().split("\n", 10) if line.strip())
    try:
        first, second = parse(next(lines)), parse(next(lines))
    except (StopIteration, json.JSONDecodeError, Refused):
        return False
    return isinstance(first, Pairs) and isinstance(second, Pairs)

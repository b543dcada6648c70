"""JSON: every value beside its path, ``a.b[2]: value``, under the outer keys as headings.

Numbers stand as they are written. The plain values of an object or array are one block, before those of what is nested
in it; two levels of keys are headings. What is named .json and is none is read as JSON Lines where it is that, else as
the text that it is, with a warning: settings with comments, a file cut short. Source: RFC 8259.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from . import jsonl
from .assembly import Assembly
from .decode import decode
from .document import Document
from .json_values import children, parse, path_text
from .registry import ReaderInput
from .text import lined_document, paragraph_blocks

__all__ = ["read"]

# A context holds two headings (parsing.md 5).
HEADING_LEVELS = 2


def read(task: ReaderInput) -> Document:
    """Return the document; it has no title, since no key is sure to be one."""
    decoded = decode(task.content, fallback_encoding=task.options.fallback_encoding)
    try:
        value = parse(decoded.text)
    except json.JSONDecodeError as error:
        if jsonl.is_likely(decoded.text):
            return jsonl.read(task)
        where = f"line {error.lineno} column {error.colno}"
        return lined_document(task, paragraph_blocks, warnings=(f"not_json: {where}: {error.msg}; read as plain text",))
    assembly = Assembly(task)
    for item in _items(value):
        assembly.add("heading" if item.level else "paragraph", item.text, item.level)
    assembly.warn(decoded.warnings)
    return assembly.document(meta=decoded.meta())


class _Item(NamedTuple):
    """A heading of ``level``, or a block of lines (level 0)."""

    text: str
    level: int


class _Waiting(NamedTuple):
    """A value that is still to be written: where it stands, and how many headings are above it."""

    path: str
    value: object
    key: str | None
    level: int


def _items(root: object) -> Iterator[_Item]:
    """Yield headings and blocks, without recursion."""
    if not isinstance(root, list):
        yield _Item(path_text("", root), 0)
        return
    stack = [_Waiting("", root, None, 0)]
    while stack:
        path, value, key, level = stack.pop()
        inside = list(children(path, value))
        if key and inside and level < HEADING_LEVELS:
            level += 1
            yield _Item(key, level)
        lines = [path_text(where, child) for where, child, _ in inside if not isinstance(child, list)]
        if lines:
            yield _Item("\n".join(lines), 0)
        stack.extend(
            _Waiting(where, child, name, level) for where, child, name in reversed(inside) if isinstance(child, list)
        )

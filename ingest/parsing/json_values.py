"""JSON values and their rendering as lines ``path: value``; shared by JSON, JSON Lines and notebooks.

Objects keep repeated keys, numbers keep their digits, and nothing nested deeper than a bound is given to the parser,
which recurses.
"""

import json
import re
from collections.abc import Iterator

from .failure import Refused

__all__ = ["MAX_DEPTH", "Pairs", "children", "lines_of", "parse", "path_text"]

# Far beyond what people nest, far below what the parser's recursion takes.
MAX_DEPTH = 200
# Four times the longest text of a document: a key of a MiB before each of a thousand values is no document.
MAX_PATHS_CHARS = 256 << 20
BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\Z)|([\[{])|([\]}])', re.DOTALL)
SIMPLE_KEY = re.compile(r"[\w$@-]+")


class Pairs(list[tuple[str, object]]):
    """An object, as the pairs that stand in the file."""


def parse(text: str) -> object:
    """Return the value: ``Pairs``, lists, strings, booleans, None; numbers are strings.

    Raises ``json.JSONDecodeError``, and ``Refused`` (``damaged``) where it is nested too deep.
    """
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise Refused("damaged", f"nested deeper than {MAX_DEPTH}")
    value: object = json.loads(text, object_pairs_hook=Pairs, parse_int=str, parse_float=str, parse_constant=str)
    return value


def children(path: str, value: object) -> Iterator[tuple[str, object, str | None]]:
    """Yield (path, value, key) of what an object or array holds; items of an array have no key.

    Raises ``Refused`` (``too_large``) where their paths alone would fill the memory of a worker.
    """
    if isinstance(value, list) and len(path) * len(value) > MAX_PATHS_CHARS:
        raise Refused("too_large", f"{len(value)} values under keys of {len(path)} characters")
    if isinstance(value, Pairs):
        for key, child in value:
            if SIMPLE_KEY.fullmatch(key):
                yield f"{path}.{key}" if path else key, child, key
            else:
                yield f"{path}[{json.dumps(key, ensure_ascii=False)}]", child, key
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield f"{path}[{index}]", child, None


def path_text(path: str, value: object) -> str:
    """Return ``path: value`` of a plain value; the value alone where the path is empty."""
    match value:
        case str():
            text = value
        case None:
            text = "null"
        case _:
            text = "true" if value else "false"
    return f"{path}: {text}" if path else text


def lines_of(value: object) -> Iterator[str]:
    """Yield a line for every plain value in ``value``, in order, without recursion."""
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting.extend((where, child) for where, child, _ in reversed(list(children(path, value))))
        else:
            yield path_text(path, value)


def _depth(text: str) -> int:
    """Return how deep brackets are nested, strings aside; linear, and true for text that is no JSON as well."""
    deepest = depth = 0
    for match in BRACKET.finditer(text):
        if match[1]:
            depth += 1
            deepest = max(deepest, depth)
        elif match[2]:
            depth -= 1
    return deepest

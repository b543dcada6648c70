"""Front matter of Markdown files: data about the page, between ``---`` lines (YAML) or ``+++`` lines (TOML).

A document that merely begins with a rule is not front matter: every line has to look like data. The YAML is not parsed,
only its top-level ``title`` is taken.
"""

import re
import tomllib
from dataclasses import dataclass

from .normalise import collapse

__all__ = ["FrontMatter", "find_front_matter"]

# More would be a document between two rules.
MAX_CHARS = 1 << 16
MAX_TITLE_CHARS = 500
YAML = re.compile(r"---[ \t]*\n(?P<data>.*?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
TOML = re.compile(r"\+\+\+[ \t]*\n(?P<data>.*?)^\+\+\+[ \t]*$", re.DOTALL | re.MULTILINE)
# A key; an item or the continuation of a value; a comment; nothing.
DATA_LINE = re.compile(r"[\"']?[\w.@/-][\w .@/-]*[\"']?[ \t]*:(?:[ \t]|$)|[ \t]+\S|-[ \t]|[\]}#]|[ \t]*$")
KEY_LINE = re.compile(r"^[\"']?[\w.@/-][\w .@/-]*[\"']?[ \t]*:", re.MULTILINE)
TITLE = re.compile(r"^title[ \t]*:[ \t]*(?P<value>.*)$", re.IGNORECASE | re.MULTILINE)
BLOCK_SCALAR = re.compile(r"[|>][+-]?[0-9]?\Z")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Front matter in ``text[:end]``, closing line included, and its title if it has one."""

    end: int
    title: str | None


def find_front_matter(text: str) -> FrontMatter | None:
    """Return the front matter at the very beginning of ``text``, or None."""
    head = text[:MAX_CHARS]
    if match := YAML.match(head):
        data = match["data"]
        if KEY_LINE.search(data) and all(DATA_LINE.match(line) for line in data.split("\n")):
            return FrontMatter(match.end(), _clean(_yaml_title(data)))
    if match := TOML.match(head):
        try:
            title = tomllib.loads(match["data"]).get("title")
        except (ValueError, RecursionError):
            # Not only TOMLDecodeError: a number of more digits than ``int`` takes raises its parent.
            return None
        return FrontMatter(match.end(), _clean(title if isinstance(title, str) else ""))
    return None


def _yaml_title(data: str) -> str:
    match = TITLE.search(data)
    if match is None:
        return ""
    value = match["value"].strip()
    if BLOCK_SCALAR.match(value) or not value:
        value = ""
    lines = [value]
    # A value goes on over the indented lines that follow it.
    for line in data[match.end() + 1 :].split("\n"):
        if not line[:1].isspace() or not line.strip():
            break
        lines.append(line.strip())
    value = " ".join(lines).strip()
    quote = value[:1]
    if quote in ("'", '"') and (end := _closing_quote(value, quote)) > 0:
        inside = value[1:end]
        return inside.replace("''", "'") if quote == "'" else inside.replace('\\"', '"').replace("\\\\", "\\")
    return re.split(r"\s#", value, maxsplit=1)[0]


def _closing_quote(value: str, quote: str) -> int:
    """Return the index of the quote that ends a quoted value, or -1."""
    index = 1
    while index < len(value):
        if value[index] == "\\" and quote == '"':
            index += 2
        elif value[index] != quote:
            index += 1
        elif quote == "'" and value[index + 1 : index + 2] == "'":
            index += 2
        else:
            return index
    return -1


def _clean(title: str) -> str | None:
    """Return a usable title; nested data and over-long text are none."""
    title = collapse(title)
    return title if title and len(title) <= MAX_TITLE_CHARS and title[0] not in "[{|>&*" else None

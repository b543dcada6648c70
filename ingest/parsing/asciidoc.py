"""AsciiDoc: titles, listings, comments and lists, found line by line; the text as it is written.

Nothing is included, no attribute or macro is expanded. Source: the AsciiDoc language documentation of the Eclipse
working group.
"""

import re
from collections.abc import Iterator

from .document import Block, BlockKind, Document
from .headings import usable_heading
from .lines import LETTER_OR_DIGIT, LineSpans
from .registry import ReaderInput
from .text import lined_document

__all__ = ["read"]

TITLE = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?[ \t]*\Z")
# Listings, literals, passthroughs; a comment block is left out. The same line ends what it began.
VERBATIM = re.compile(r"(?:-{4,}|\.{4,}|\+{4,}|`{3,}[\w-]*)[ \t]*\Z")
COMMENT = re.compile(r"/{4,}[ \t]*\Z")
ITEM = re.compile(r"[ \t]*(?:\*{1,5}|-|\.{1,5}|[0-9]{1,4}\.)[ \t]+\S")
ROW = re.compile(r"[ \t]*\|(?!=)")
TABLE = re.compile(r"\|={3,}[ \t]*\Z")


def read(task: ReaderInput) -> Document:
    """Return the document. Title: the first heading, if it is the title of the document (``=``)."""
    return lined_document(task, _blocks, is_titled=True)


def _blocks(text: str) -> Iterator[Block]:
    lines, spans = text.split("\n"), LineSpans(text)

    def block(kind: BlockKind, first: int, last: int) -> Iterator[Block]:
        start, end = spans.span(first, last)
        if LETTER_OR_DIGIT.search(text, start, end):
            yield Block(kind, start, start + len(text[start:end].rstrip()))

    at = 0
    while at < len(lines):
        line = lines[at]
        first = at
        at += 1
        title = TITLE.match(line)
        heading = usable_heading(title[2]) if title else None
        if title and heading:
            start, end = spans.span(first, at)
            yield Block("heading", start, end, len(title[1]), heading)
        elif COMMENT.match(line):
            at = _closing(lines, at, line)
        elif VERBATIM.match(line):
            at = _closing(lines, at, line)
            yield from block("code", first, at)
        elif line.strip() and not TABLE.match(line):
            while at < len(lines) and lines[at].strip() and not _begins(lines[at]):
                at += 1
            kind: BlockKind = "list_item" if ITEM.match(line) else "table_row" if ROW.match(line) else "paragraph"
            yield from block(kind, first, at)


def _begins(line: str) -> bool:
    """True for a line that begins something even without a blank line before it."""
    return any(pattern.match(line) for pattern in (ITEM, ROW, TABLE, VERBATIM, COMMENT, TITLE))


def _closing(lines: list[str], first: int, opening: str) -> int:
    """Return the line after the one that closes a block; the end of the text where nothing does."""
    fence = opening.rstrip()
    mark = "```" if fence.startswith("```") else fence
    return next((index + 1 for index in range(first, len(lines)) if lines[index].rstrip() == mark), len(lines))

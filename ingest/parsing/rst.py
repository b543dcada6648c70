"""reStructuredText: titles, literal blocks, directives and lists, found line by line; the text as it is written.

Nothing is included or run. A scanner of our own: docutils reads 0.2 MB/s and stops at what it does not know (measured),
while passages need no more than where things begin. Comments are left out. Source: the docutils reStructuredText
specification.
"""

import re
import string
from collections.abc import Iterator

from .document import Block, BlockKind, Document
from .headings import usable_heading
from .lines import LETTER_OR_DIGIT, LineSpans
from .registry import ReaderInput
from .text import lined_document

__all__ = ["read"]

# What a title is underlined with: one of these, repeated.
ADORNMENTS = frozenset(string.punctuation)
ITEM = re.compile(r"[ \t]*(?:[-*+•]|(?:\(?[0-9]{1,4}|\(?[a-zA-Z]|#)[.)])[ \t]+\S")
# ``.. name::`` is a directive, ``.. [1]`` a note, ``.. _name:`` a target, ``.. |x|`` a substitution; else a comment.
EXPLICIT = re.compile(r"[ \t]*\.\.(?:[ \t]|\Z)")
DIRECTIVE = re.compile(r"[ \t]*\.\.[ \t]+(?:\|[^|]+\|[ \t]+)?([\w:+.-]+?)[ \t]*::(?:[ \t]|\Z)")
NOTE = re.compile(r"[ \t]*\.\.[ \t]+\[[^\]]+\]")
NOT_COMMENT = re.compile(r"[ \t]*\.\.[ \t]+(?:_|\||\[|__)")
CODE_DIRECTIVES = frozenset({"code", "code-block", "sourcecode", "literalinclude", "parsed-literal", "doctest", "math"})
# docutils accepts an underline that is too short from here on.
MIN_ADORNMENT = 4


def read(task: ReaderInput) -> Document:
    """Return the document. Title: the first title, if no other style of title stands above it."""
    return lined_document(task, _blocks, is_titled=True)


def _blocks(text: str) -> Iterator[Block]:
    scanner = _Scanner(text)
    while not scanner.is_done:
        yield from scanner.next_blocks()


class _Scanner:
    """Goes through the lines; holds the styles of titles met so far, whose order gives their levels."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.split("\n")
        self._spans = LineSpans(text)
        self._styles: list[tuple[str, bool]] = []
        self._at = 0
        self._is_literal_next = False

    @property
    def is_done(self) -> bool:
        """True at the end of the text."""
        return self._at >= len(self._lines)

    def next_blocks(self) -> Iterator[Block]:
        """Yield the blocks of what begins at the next line: none for a blank one."""
        line = self._lines[self._at]
        if not line.strip():
            self._at += 1
            return
        if self._is_literal_next:
            self._is_literal_next = False
            if line[0].isspace():
                yield from self._block("code", self._indented(self._at))
                return
        title = self._title()
        if title is not None:
            yield title
        elif EXPLICIT.match(line):
            yield from self._explicit(line)
        else:
            yield from self._paragraph()

    def _title(self) -> Block | None:
        """Return the title that begins here, if one does, and step behind it."""
        line, at = self._lines[self._at].rstrip(), self._at
        following = [line.rstrip() for line in self._lines[at + 1 : at + 3]]
        style: tuple[str, bool] | None = None
        if _is_adornment(line) and len(following) == 2 and following[1] == line and following[0].strip():
            style, text, last = (line[0], True), following[0], at + 3
        elif (
            following
            and _is_adornment(following[0])
            and not line[0].isspace()
            and not _is_adornment(line)
            and len(following[0]) >= min(len(line), MIN_ADORNMENT)
        ):
            style, text, last = (following[0][0], False), line, at + 2
        if style is None:
            return None
        heading = usable_heading(text)
        if heading is None:
            return None
        if style not in self._styles:
            self._styles.append(style)
        self._at = last
        start, end = self._spans.span(at, last)
        return Block("heading", start, end, min(self._styles.index(style) + 1, 6), heading)

    def _explicit(self, line: str) -> Iterator[Block]:
        directive = DIRECTIVE.match(line)
        last = self._indented(self._at + 1, deeper_than=_indent(line))
        if directive is None and not NOT_COMMENT.match(line):
            self._at = last
        elif directive is not None and directive[1] in CODE_DIRECTIVES:
            yield from self._block("code", last)
        elif NOTE.match(line):
            yield from self._block("footnote", last)
        else:
            # The name of the directive and its first lines; what follows a blank line is read on its own.
            yield from self._paragraph()

    def _paragraph(self) -> Iterator[Block]:
        """Yield a paragraph, or the items of a list: lines up to a blank one."""
        first = self._at
        kind: BlockKind = "list_item" if ITEM.match(self._lines[first]) else "paragraph"
        while not self.is_done and self._lines[self._at].strip():
            if self._at > first and kind == "list_item" and ITEM.match(self._lines[self._at]):
                yield from self._span(kind, first, self._at)
                first = self._at
            self._at += 1
        last = self._lines[self._at - 1].rstrip()
        self._is_literal_next = last.endswith("::") and not DIRECTIVE.match(last)
        yield from self._span(kind, first, self._at)

    def _indented(self, first: int, *, deeper_than: int = 0) -> int:
        """Return the line after the last that is indented more; blank lines between such lines belong to them."""
        last = first
        for index in range(first, len(self._lines)):
            line = self._lines[index]
            if line.strip():
                if _indent(line) <= deeper_than:
                    break
                last = index + 1
        return last

    def _block(self, kind: BlockKind, last: int) -> Iterator[Block]:
        first, self._at = self._at, last
        yield from self._span(kind, first, last)

    def _span(self, kind: BlockKind, first: int, last: int) -> Iterator[Block]:
        start, end = self._spans.span(first, last)
        if LETTER_OR_DIGIT.search(self._text, start, end):
            yield Block(kind, start, start + len(self._text[start:end].rstrip()))


def _is_adornment(line: str) -> bool:
    """Whether one mark fills a line, which has no blanks at its end. An expression would need 90 bytes a character."""
    return len(line) > 1 and line[0] in ADORNMENTS and line.count(line[0]) == len(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())

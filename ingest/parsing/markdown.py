"""Markdown and MDX: blocks by ``token.map`` of markdown-it-py (CommonMark 0.31 and pipe tables), text as it is written.

The text has the lines of the file, one for one, and every block is whole lines of it. Inline markup is not parsed: a
passage is quoted as its author wrote it. Left out are front matter (kept as a block of its own) and blocks that are
nothing but an HTML comment, which no reader of the page sees.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .decode import decode
from .document import Block, BlockKind, Document
from .front_matter import FrontMatter, find_front_matter
from .headings import usable_heading
from .lines import LETTER_OR_DIGIT, LineSpans, paragraphs
from .normalise import deceptive_warnings, normalise
from .registry import ReaderInput

__all__ = ["markdown_blocks", "read"]

COMMENT = re.compile(r"\s*(?:<!--(?:(?!-->).)*-->\s*)+\Z", re.DOTALL)
FOOTNOTE = re.compile(r" {0,3}\[\^[^\]\n]{1,100}\]:")
# Markup inside a heading: images and links keep their text, code and emphasis lose their marks; underscores stay, since
# in headings they are mostly part of a name. A trailing {#id} names the heading for links.
LINK = re.compile(r"!?\[([^\[\]]{0,500})\](?:\([^()\s]{0,2000}(?: \"[^\"]{0,500}\")?\)|\[[^\[\]]{0,200}\])")
EMPHASIS = re.compile(r"(\*{1,3}|`{1,3}|~~|__)(?=\S)(.{1,500}?)(?<=\S)\1")
HEADING_ID = re.compile(r"\s*\{#[\w.:-]{1,200}\}\s*\Z")


def read(task: ReaderInput) -> Document:
    """Return the document. Title: ``title`` of the front matter, else the first heading if its level is 1."""
    decoded = decode(task.content, fallback_encoding=task.options.fallback_encoding)
    text, deceptive = normalise(decoded.text)
    front = find_front_matter(text)
    blocks = list(markdown_blocks(text, front))
    headings = [block for block in blocks if block.kind == "heading"]
    title = front.title if front else None
    if title is None and headings and headings[0].level == 1:
        title = headings[0].heading
    return Document(
        kind=task.kind,
        reader=task.reader,
        text=text,
        blocks=tuple(blocks),
        title=title,
        lines=True,
        meta=decoded.meta(),
        warnings=decoded.warnings + deceptive_warnings(deceptive),
    )


@cache
def _parser() -> MarkdownIt:
    """Return the parser, made once: a notebook may have a hundred thousand cells. It keeps nothing of what it read."""
    parser = MarkdownIt("commonmark").enable("table")
    # Link definitions leave no token; as paragraphs they stay part of what is read.
    parser.block.ruler.disable("reference")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def markdown_blocks(text: str, front: FrontMatter | None = None) -> Iterator[Block]:
    """Yield all blocks of a normalised text in order.

    What the parser gave no token for, since it is nested too deep, is a paragraph.
    """
    body = 0
    if front:
        yield Block("front_matter", 0, front.end)
        body = min(front.end + 1, len(text))
    spans = LineSpans(text[body:])
    end = body
    for kind, first, last, level, heading in _leaves(_parser().parse(text[body:])):
        start, stop = (body + offset for offset in spans.span(first, last))
        stop = start + len(text[start:stop].rstrip())
        if start < end or start == stop:
            continue
        yield from _leftover(text, end, start)
        end = stop
        if kind == "paragraph" and COMMENT.match(text[start:stop]):
            continue
        if kind == "paragraph" and FOOTNOTE.match(text, start):
            kind = "footnote"
        yield Block(kind, start, stop, level, heading)
    yield from _leftover(text, end, len(text))


def _leftover(text: str, start: int, end: int) -> Iterator[Block]:
    for span in paragraphs(text, start, end):
        if LETTER_OR_DIGIT.search(text, *span):
            yield Block("paragraph", *span)


def _leaves(tokens: Sequence[Token]) -> Iterator[tuple[BlockKind, int, int, int, str | None]]:
    """Yield (kind, first line, line after the last, level, heading) of the blocks that hold text, in order."""
    containers: list[BlockKind] = []
    for index, token in enumerate(tokens):
        if token.type in ("list_item_open", "blockquote_open"):
            containers.append("list_item" if token.type == "list_item_open" else "quote")
        elif token.type in ("list_item_close", "blockquote_close"):
            containers.pop()
        if token.map is None:
            continue
        first, last = token.map
        inside: BlockKind = containers[-1] if containers else "paragraph"
        depth = containers.count(inside)
        match token.type:
            case "heading_open":
                heading = usable_heading(_heading_text(tokens[index + 1].content))
                # A heading in a list or a quote heads nothing but its item.
                if containers or heading is None:
                    yield inside, first, last, depth, None
                else:
                    yield "heading", first, last, int(token.tag[1]), heading
            case "fence" | "code_block":
                yield "code", first, last, 0, None
            case "tr_open":
                # The header row takes the line of dashes below it along, so that a slice is a table again.
                is_header = tokens[index - 1].type == "thead_open"
                yield "table_row", first, last + is_header, 0, None
            case "paragraph_open" | "html_block":
                yield inside, first, last, depth, None


def _heading_text(content: str) -> str:
    """Return the text of a heading without its markup."""
    text = HEADING_ID.sub("", content)
    text = LINK.sub(r"\1", text)
    return EMPHASIS.sub(r"\2", EMPHASIS.sub(r"\2", text))

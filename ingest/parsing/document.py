"""What every reader returns: one final text, the blocks that structure it, and what is missing.

Offsets are code points of ``Document.text``, 0-based and half-open, and never change once a reader has returned. Blocks
stand in order, do not overlap, and cover every letter that is to be read. Pure data: nothing here reads, guesses or
writes. The same bytes, kind and reader versions give an equal document: that is what makes a citation checkable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Block", "BlockKind", "Document", "Gap", "GapReason", "Part", "PartKind"]

BlockKind = Literal[
    "heading", "paragraph", "list_item", "table_row", "code", "quote", "caption", "footnote",
    "slide_note", "email_header", "front_matter",
]  # fmt: skip
PartKind = Literal["page", "slide", "sheet"]
GapReason = Literal["no_text", "garbled", "unread"]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document: ``text[start:end]``.

    ``level`` is the level of a heading (1..6), else the nesting depth of a list item or quote. ``heading`` is a
    heading's text without markers and with white space collapsed; a heading of more than 200 characters is a paragraph.
    ``cells`` is the cell range of a table row in a sheet, such as ``A5:D5``.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    heading: str | None = None
    cells: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A page, slide or sheet that begins at ``start``. ``number`` counts from 1; ``label`` is what is printed on it."""

    kind: PartKind
    number: int
    label: str | None
    start: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A part (by number from 1) whose text the document lacks, and why."""

    part: int
    reason: GapReason


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed byte content.

    ``kind`` is the format (``markdown``, ``text``, ``html``, ``pdf`` ...), ``reader`` names reader and library
    versions. ``title`` comes from the content, never from a file name: a rename changes no chunk. ``lines`` is true
    where the text has the lines of the file one for one, so that line numbers mean what an editor shows. ``meta`` holds
    JSON values.
    """

    kind: str
    reader: str
    text: str
    blocks: tuple[Block, ...]
    parts: tuple[Part, ...] = ()
    title: str | None = None
    lines: bool = False
    meta: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()

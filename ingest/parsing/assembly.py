"""Putting the text of a document together, for formats whose text is rendered and not that of the file.

Owns the order of things: a block is normalised, then appended, then its offsets are taken. Knows no format.
"""

from collections.abc import Iterable, Sequence

from .document import Block, BlockKind, Document, Gap, Part, PartKind
from .failure import Refused
from .headings import usable_heading
from .normalise import collapse, deceptive_warnings, normalise
from .registry import ReaderInput

__all__ = ["Assembly"]

# Blocks of these kinds stand line by line; a blank line parts all others.
LINE_KINDS = frozenset({"table_row", "list_item"})


class Assembly:
    """The document so far. Blocks and parts are added in reading order, ``document`` ends it."""

    def __init__(self, task: ReaderInput) -> None:
        self._task = task
        self._pieces: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._parts: list[Part] = []
        self._lines: list[tuple[int, int]] = []
        self._warnings: list[str] = []
        self._deceptive = 0
        self._is_apart = True

    @property
    def has_text(self) -> bool:
        """True once a block was added."""
        return bool(self._blocks)

    @property
    def first_heading(self) -> str | None:
        """The first heading, if it is of level 1: what stands for a title where the format names none."""
        first = next((block for block in self._blocks if block.kind == "heading"), None)
        return first.heading if first is not None and first.level == 1 else None

    def add(
        self,
        kind: BlockKind,
        text: str,
        level: int = 0,
        *,
        cells: str | None = None,
        lines: tuple[int, int] | None = None,
        is_header: bool = False,
    ) -> bool:
        """Add a block; False, and nothing added, where ``text`` is blank.

        A heading that cannot be one is a paragraph. ``cells`` is the range of a table row, ``lines`` the first and last
        line of the file that it comes from; a reader gives them for all blocks or for none. ``is_header``: a table row
        that names the columns of those below it. Raises ``Refused`` once the document is longer than the limit.
        """
        text, deceptive = normalise(text)
        self._deceptive += deceptive
        text = text.rstrip().strip("\n")
        heading = usable_heading(text) if kind == "heading" else None
        if kind == "heading":
            kind, text = ("heading", heading) if heading else ("paragraph", text)
        if not text.strip():
            return False
        if is_header:
            heading = usable_heading(text)
        start = self._append(text, kind)
        self._blocks.append(Block(kind, start, self._length, level, heading, cells))
        if lines is not None:
            self._lines.append(lines)
        return True

    def embed(self, text: str, blocks: Sequence[Block], *, level: int = 0, deceptive: int = 0) -> None:
        """Add a text that is normalised and has its blocks; ``level`` is added to those of its headings.

        ``deceptive`` is what normalising it removed.
        """
        self._deceptive += deceptive
        if not blocks:
            return
        self._is_apart = True
        start = self._append(text, blocks[0].kind)
        for block in blocks:
            depth = min(block.level + level, 6) if block.kind == "heading" else block.level
            self._blocks.append(
                Block(block.kind, start + block.start, start + block.end, depth, block.heading, block.cells)
            )
        self._is_apart = True

    def part(self, kind: PartKind, label: str | None) -> None:
        """Begin the next page, slide or sheet; its blocks follow."""
        clean = collapse(normalise(label)[0]) if label else None
        self._is_apart = True
        # The blank line before its first block belongs to the part, so that nothing lies between two parts.
        self._parts.append(Part(kind, len(self._parts) + 1, clean or None, self._length))

    def apart(self) -> None:
        """Let a blank line stand before the next block: another table or list begins."""
        self._is_apart = True

    def warn(self, warnings: Iterable[str]) -> None:
        """Add warnings, each ``name: detail``."""
        self._warnings += warnings

    def document(
        self, *, title: str | None = None, meta: dict[str, object] | None = None, gaps: Sequence[Gap] = ()
    ) -> Document:
        """Return the document."""
        meta = dict(meta or {})
        if self._lines:
            meta["lines"] = [list(span) for span in self._lines]
        return Document(
            kind=self._task.kind,
            reader=self._task.reader,
            text="".join(self._pieces),
            blocks=tuple(self._blocks),
            parts=tuple(self._parts),
            title=title,
            meta=meta,
            warnings=(*self._warnings, *deceptive_warnings(self._deceptive)),
            gaps=tuple(gaps),
        )

    def _append(self, text: str, kind: BlockKind) -> int:
        """Append ``text`` with what parts it from the text before; return where it starts."""
        if self._pieces:
            is_close = not self._is_apart and kind in LINE_KINDS and self._blocks[-1].kind == kind
            gap = "\n" if is_close else "\n\n"
            self._pieces.append(gap)
            self._length += len(gap)
        self._is_apart = False
        start = self._length
        self._pieces.append(text)
        self._length += len(text)
        if self._length > self._task.limits.text_chars:
            raise Refused("too_large", f"over {self._task.limits.text_chars} characters of text")
        return start

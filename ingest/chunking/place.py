"""Where a passage stands in its document: lines, pages, slides, sheets, cells and headings.

Nothing here enters an id. Numbers come from the parts of this document alone; a page number in the text is text.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import cast

from ingest.parsing.document import Block, Document
from search.records import Location

from .context import Outline
from .regions import Region
from .tables import cell_range

__all__ = ["Places"]


class Places:
    """Makes the locations of one document."""

    def __init__(self, document: Document, regions: Sequence[Region], outline: Outline) -> None:
        """Index the lines, parts and blocks of ``document``."""
        self._outline = outline
        self._parts = document.parts
        self._part_starts = [part.start for part in document.parts]
        self._blocks = [block for region in regions for block in region.blocks]
        self._block_starts = [block.start for block in self._blocks]
        self._line_starts: list[int] = []
        if document.lines:
            # Line breaks are ``\n`` alone, as an editor counts; ``splitlines()`` splits at form feeds as well.
            self._line_starts = [0, *accumulate(len(line) + 1 for line in document.text.split("\n")[:-1])]
        # A rendered text (CSV, JSON Lines) has no lines of the file; its reader says which lines a block comes from.
        pairs = cast("list[list[int]]", document.meta.get("lines", ()))
        self._file_lines = {block.start: pair for block, pair in zip(document.blocks, pairs, strict=False)}

    def location(self, start: int, end: int) -> Location:
        """Return the location of ``text[start:end]``, which begins and ends with a visible character."""
        first_line = bisect_right(self._line_starts, start)
        last_line = bisect_left(self._line_starts, end)
        first_part = bisect_right(self._part_starts, start) - 1
        last_part = bisect_left(self._part_starts, end) - 1
        inside = self._parts[first_part + 1 : last_part + 1]
        first = self._parts[first_part] if first_part >= 0 else None
        last = self._parts[last_part] if last_part >= 0 else None
        opens = first or last
        first_block = max(bisect_right(self._block_starts, start) - 1, 0)
        blocks = self._blocks[first_block : bisect_left(self._block_starts, end)]
        lines = [first_line, last_line] if self._line_starts else self._lines_of(blocks)
        return Location(
            char_start=start,
            char_end=end,
            line_start=min(lines, default=None),
            line_end=max(lines, default=None),
            part_kind=opens.kind if opens else None,
            part_first=opens.number if opens else None,
            part_last=last.number if last else None,
            part_label=opens.label if opens else None,
            # Of parts that begin at one place, all but the last are empty.
            part_starts=tuple({part.start - start: part.number for part in inside}.items()),
            cells=cell_range(blocks),
            headings=self._outline.path(start),
        )

    def _lines_of(self, blocks: Sequence[Block]) -> list[int]:
        """Return the lines of the file that these blocks come from, first and last of each, as their reader told."""
        return [line for block in blocks for line in self._file_lines.get(block.start, ())]

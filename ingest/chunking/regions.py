"""Regions: the stretches of a document that are chunked apart, because something unreadable or foreign lies between.

Between two regions stands a *wall*: a run of over 256 blank characters, the start of a sheet, front matter, or more
text than a passage may carry that no block covers. No passage crosses one.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ingest.parsing.document import Block, Document

__all__ = ["Region", "regions"]

# As many blanks part what is not one thought: padding that hides text, columns drawn by spaces, torn files.
BLANK_WALL = re.compile(r"(?<!\s)\s{257,}")
# Letters and digits between two blocks that a passage may carry along though no block covers them: list markers, HTML
# comments. More is a wall: what a reader left out must not come back as a passage. Measured on 16 files of API manuals
# with a comment under most headings: at 32, 33 % of the headings are cut off from their text; at 1024, 1 %.
UNREAD_CHARACTERS = 1024


@dataclass(frozen=True, slots=True)
class Region:
    """``text[start:end]``, with the blocks that lie in it; both ends are those of blocks."""

    blocks: tuple[Block, ...]

    @property
    def start(self) -> int:
        """Where its first block begins."""
        return self.blocks[0].start

    @property
    def end(self) -> int:
        """Where its last block ends."""
        return self.blocks[-1].end


def regions(document: Document) -> Iterator[Region]:
    """Yield the regions of a document, in order; front matter and blank blocks are in none."""
    text = document.text
    walls = [(match.start(), match.end()) for match in BLANK_WALL.finditer(text)]
    walls += [(part.start, part.start) for part in document.parts if part.kind == "sheet"]
    walls += [(block.start, block.end) for block in document.blocks if block.kind == "front_matter"]
    walls.sort()
    held: list[Block] = []
    for block in _pieces(document, walls):
        if held and _apart(text, held[-1].end, block.start, walls):
            yield Region(tuple(held))
            held = []
        held.append(block)
    if held:
        yield Region(tuple(held))


def _pieces(document: Document, walls: list[tuple[int, int]]) -> Iterator[Block]:
    """Yield the blocks that are read, cut at walls and stripped of white space at both ends."""
    next_wall = 0
    for block in document.blocks:
        if block.kind == "front_matter":
            continue
        while next_wall < len(walls) and walls[next_wall][1] <= block.start:
            next_wall += 1
        start = block.start
        while next_wall < len(walls) and walls[next_wall][0] < block.end:
            wall_start, wall_end = walls[next_wall]
            yield from _stripped(document.text, block, start, max(start, wall_start))
            start = max(start, wall_end)
            next_wall += 1
        yield from _stripped(document.text, block, start, max(start, block.end))


def _stripped(text: str, block: Block, start: int, end: int) -> Iterator[Block]:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        start += len(piece) - len(piece.lstrip())
        end = start + len(stripped)
        yield block if (block.start, block.end) == (start, end) else replace(block, start=start, end=end)


def _apart(text: str, end: int, start: int, walls: list[tuple[int, int]]) -> bool:
    """Whether a wall stands between two blocks, or more text than a passage may carry along unread."""
    following = bisect_left(walls, (end, end))
    if following < len(walls) and walls[following][1] <= start:
        return True
    return sum(map(str.isalnum, text[end:start])) > UNREAD_CHARACTERS

"""Cut candidates: every place where a passage may end, with a level that says how good a place it is.

They come from the blocks of the document and from the sentences in them. None stands between a heading and what
follows it, nor between the header row of a table and its first row. Only where an *atom*, the stretch between two
neighbouring candidates, is longer than a passage, lines and words join in.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from ingest.parsing.document import Block, Part

from .regions import Region
from .scale import TokenScale
from .sentences import ends_sentence, sentence_starts
from .sizes import Sizes
from .tables import is_header_row
from .words import breakable, word_starts

__all__ = ["BLOCK", "ITEM", "LINE", "SENTENCE", "WORD", "Candidates"]

# Levels, from the worst place to the best; headings are above all, see ``heading_level``.
WORD, LINE, SENTENCE, ITEM, BLOCK = 0, 1, 2, 3, 4
# Headings have levels 1 to 6.
LOWEST_HEADING = 6
# A slide begins what a heading of this level would.
SLIDE_HEADING = 2
# No line or word this near behind a heading is a candidate: a heading keeps more than a scrap of its text.
HEADING_GUARD_TOKENS = 32

CODE_LINE = re.compile(r"^[^\S\n]*(?=\S)", re.MULTILINE)
VISIBLE = re.compile(r"\S")
FENCES = ("```", "~~~")


def heading_level(level: int) -> int:
    """Return the level of a cut before a heading of ``level`` 1 (the best) to 6."""
    return BLOCK + 1 + LOWEST_HEADING - min(max(level, 1), LOWEST_HEADING)


class Candidates:
    """The candidates of one region: ``offsets``, ascending, and ``levels`` by offset; its ends are not among them."""

    def __init__(self, text: str, region: Region, parts: Sequence[Part], scale: TokenScale, sizes: Sizes) -> None:
        """Find the candidates of ``region``; ``parts`` are all parts of the document."""
        self._text = text
        self._region = region
        self._scale = scale
        self._longest = sizes.max
        self._starts = [block.start for block in region.blocks]
        headings = [block for block in region.blocks if block.kind == "heading"]
        guard = min(HEADING_GUARD_TOKENS, sizes.max // 4)
        self._headings = [heading.start for heading in headings]
        self._guards = [scale.offset_after(heading.end, guard) for heading in headings]
        self._glued: dict[int, Block] = {}
        self.levels: dict[int, int] = {}
        self._add_blocks()
        self._add_parts(parts)
        self._add_atoms()
        self.offsets = sorted(self.levels)

    def between(self, start: int, end: int) -> dict[int, int]:
        """Return the levels of the candidates inside ``text[start:end]`` by offset, ascending."""
        inside = self.offsets[bisect_right(self.offsets, start) : bisect_left(self.offsets, end)]
        return {offset: self.levels[offset] for offset in inside}

    def fine(self, start: int, end: int) -> dict[int, int]:
        """Return lines and words inside ``text[start:end]`` by offset, none close behind a heading.

        With them come the places that only an over-long atom may use: sentences of table rows, headings in a row.
        """
        found: dict[int, int] = {}
        first = max(bisect_right(self._starts, start) - 1, 0)
        for block in self._region.blocks[first:]:
            if block.start >= end:
                break
            glued = self._glued.get(block.start)
            if glued is not None and glued.kind == "heading" and block.start > start:
                found[block.start] = heading_level(block.level)
            if block.kind == "table_row":
                span = max(block.start, start), min(block.end, end)
                found.update(dict.fromkeys(sentence_starts(self._text, *span), SENTENCE))
        for offset, begins_line in word_starts(self._text, start, end, self._is_long):
            if not self._is_guarded(offset):
                found.setdefault(offset, LINE if begins_line else WORD)
        return found

    def characters(self, start: int, end: int) -> dict[int, int]:
        """Return every place inside ``text[start:end]`` that keeps visible characters whole; nearly the last resort."""
        return {offset: WORD for offset in range(start + 1, end) if breakable(self._text, offset)}

    def _add_blocks(self) -> None:
        previous: Block | None = None
        for block in self._region.blocks:
            if previous is not None:
                if self._belongs_to(previous, block):
                    self._glued[block.start] = block
                else:
                    self.levels[block.start] = _block_level(block)
            if block.kind == "code":
                self.levels.update(_code_lines(self._text, block))
            elif block.kind not in ("heading", "table_row"):
                starts = sentence_starts(self._text, block.start, block.end)
                self.levels.update(dict.fromkeys(starts, SENTENCE))
            previous = block

    def _belongs_to(self, previous: Block, block: Block) -> bool:
        """Whether nothing may part ``block`` from the one before: a heading, or the header row of its table."""
        if previous.kind == "heading":
            return True
        return block.kind == "table_row" and is_header_row(self._text, previous, block)

    def _add_parts(self, parts: Sequence[Part]) -> None:
        """Add the starts of slides, and those of pages that follow the end of a sentence."""
        region = self._region
        first = bisect_right(parts, region.start, key=_part_start)
        for part in parts[first : bisect_left(parts, region.end, key=_part_start)]:
            visible = VISIBLE.search(self._text, part.start, region.end)
            if visible is None:
                continue
            offset = visible.start()
            if offset in self._glued:
                continue
            if part.kind == "slide":
                self.levels[offset] = max(self.levels.get(offset, WORD), heading_level(SLIDE_HEADING))
            elif self._may_turn_page(offset) and ends_sentence(self._text, region.start, part.start):
                self.levels[offset] = max(self.levels.get(offset, WORD), BLOCK)

    def _may_turn_page(self, offset: int) -> bool:
        block = self._region.blocks[bisect_right(self._starts, offset) - 1]
        return offset in self.levels or block.kind not in ("heading", "table_row")

    def _add_atoms(self) -> None:
        """Give lines and words to every atom that is longer than a passage."""
        bounds = [self._region.start, *sorted(self.levels), self._region.end]
        positions = self._scale.all_at(bounds).tolist()
        for index in range(len(bounds) - 1):
            if positions[index + 1] - positions[index] > self._longest:
                for offset, level in self.fine(bounds[index], bounds[index + 1]).items():
                    self.levels.setdefault(offset, level)

    def _is_guarded(self, offset: int) -> bool:
        index = bisect_right(self._headings, offset) - 1
        return index >= 0 and offset < self._guards[index]

    def _is_long(self, start: int, end: int) -> bool:
        """Whether a word takes half of a passage. Few tokenizers need more than four tokens for a character."""
        return (end - start) * 8 > self._longest and self._scale.size(start, end) * 2 > self._longest


def _part_start(part: Part) -> int:
    return part.start


def _block_level(block: Block) -> int:
    if block.kind == "heading":
        return heading_level(block.level)
    return ITEM if block.kind in ("list_item", "table_row") else BLOCK


def _code_lines(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """Yield (offset, level) of the lines of code; a fence stays with the line that it encloses."""
    previous_end = block.start
    fenced = text.startswith(FENCES, block.start)
    for number, match in enumerate(CODE_LINE.finditer(text, block.start, block.end)):
        offset = match.end()
        after_blank = text.count("\n", previous_end, offset) > 1
        line_end = text.find("\n", offset, block.end)
        previous_end = line_end if line_end >= 0 else block.end
        if number == 0 or (fenced and (number == 1 or text.startswith(FENCES, offset))):
            continue
        yield offset, ITEM if after_blank else SENTENCE

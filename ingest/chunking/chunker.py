"""From a document to its passages: regions, candidates, anchors, gaps, and the last check against the model's limit.

Pure: no clock, no chance, no position, no file name enters; the same document, tokenizer and sizes give the same
chunks. ``CHUNKER_VERSION`` is part of the recipe and changes with every change of the output; a golden test holds the
two together.
"""

from collections.abc import Iterator
from itertools import pairwise

from ingest.parsing.document import Document
from search.embedding import passage_text
from search.identity import chunk_id
from search.records import Chunk, Location

from .anchors import anchors, priority
from .candidates import WORD, Candidates
from .context import Outline
from .gaps import split
from .place import Places
from .regions import Region, regions
from .scale import Tokenizer, TokenScale
from .sizes import Sizes

__all__ = ["chunk"]

# A passage whose parts, counted apart, come this near to the limit is counted again as a whole. Cut at white space,
# counts of parts and of the whole differ by the line breaks of the context and a merge or two.
CHECK_MARGIN = 12


def chunk(document: Document, tokenizer: Tokenizer, sizes: Sizes) -> list[tuple[Chunk, Location]]:
    """Return the passages of ``document`` in document order, each with its location; none without a letter or digit.

    A passage is ``text[char_start:char_end]``, verbatim; passages do not overlap. Special tokens, context and text fit
    the limit of the model. A passage that occurs twice is returned twice, with one id. ``n_tokens`` counts context and
    text, without special tokens.
    """
    return list(_Chunker(document, tokenizer, sizes).passages())


class _Chunker:
    """Chunks one document."""

    def __init__(self, document: Document, tokenizer: Tokenizer, sizes: Sizes) -> None:
        self._document = document
        self._text = document.text
        self._tokenizer = tokenizer
        self._sizes = sizes
        self._regions = list(regions(document))
        self._outline = Outline(document, self._regions, tokenizer)
        self._places = Places(document, self._regions, self._outline)

    def passages(self) -> Iterator[tuple[Chunk, Location]]:
        for region in self._regions:
            yield from self._region(region)

    def _region(self, region: Region) -> Iterator[tuple[Chunk, Location]]:
        sizes = self._sizes
        starts = [block.start for block in region.blocks]
        scale = TokenScale(self._text, zip(starts, [*starts[1:], region.end], strict=True), self._tokenizer)
        candidates = Candidates(self._text, region, self._document.parts, scale, sizes)
        offsets = candidates.offsets
        positions = scale.all_at(offsets).tolist()
        priorities = [
            priority(self._text, region.start, region.end, offset, candidates.levels[offset]) for offset in offsets
        ]
        chosen = anchors(positions, priorities, sizes.window, scale.at(region.end))
        bounds = [region.start, *(offsets[index] for index in chosen), region.end]
        for start, end in pairwise(bounds):
            yield from self._stretch(start, end, sizes.max, candidates, scale)

    def _stretch(
        self, start: int, end: int, longest: int, candidates: Candidates, scale: TokenScale
    ) -> Iterator[tuple[Chunk, Location]]:
        """Yield the passages of ``text[start:end]``, none of more than ``longest`` tokens."""
        bounds = self._bounds(start, end, longest, candidates, scale)
        for piece_start, piece_end in pairwise(bounds):
            piece = self._text[piece_start:piece_end]
            text = piece.strip()
            if not any(map(str.isalnum, text)):
                continue
            visible = piece_start + len(piece) - len(piece.lstrip())
            size = scale.size(piece_start, piece_end)
            context, n_tokens, excess = self._fit(visible, text, size)
            if excess > 0 and size > 1 and piece_end - piece_start > 1:
                # Counted whole, the passage is longer than its parts: the limit of the model wins over the sizes.
                yield from self._stretch(piece_start, piece_end, max(size - excess, 1), candidates, scale)
                continue
            location = self._places.location(visible, visible + len(text))
            yield Chunk(chunk_id(context, text), context, text, n_tokens), location

    def _bounds(self, start: int, end: int, longest: int, candidates: Candidates, scale: TokenScale) -> list[int]:
        """Return the ends and the cuts of a stretch: cut where it costs least, finer places joining in at need."""
        if scale.size(start, end) <= longest:
            return [start, end]
        sizes = self._sizes
        target = min(sizes.target, longest)
        floor = min(sizes.floor, longest // 3)
        for levels, least in self._attempts(start, end, longest, floor, candidates, scale):
            offsets = [start, *sorted(levels), end]
            cuts = split(scale.all_at(offsets), [levels.get(offset, 0) for offset in offsets], longest, target, least)
            if cuts is not None:
                return [start, *(offsets[cut] for cut in cuts), end]
        # A single code point has more tokens than a passage may take; halves come to an end as well.
        return [start, (start + end) // 2, end] if end - start > 1 else [start, end]

    def _attempts(
        self, start: int, end: int, longest: int, floor: int, candidates: Candidates, scale: TokenScale
    ) -> Iterator[tuple[dict[int, int], int]]:
        """Yield cuts by offset with the least size of a piece: the stretch's own cuts first, any token last."""
        own = candidates.between(start, end)
        yield own, floor
        fine = candidates.fine(start, end) | own
        yield fine, floor
        yield fine, 0
        yield candidates.characters(start, end) | fine, 0
        yield dict.fromkeys(scale.every(max(longest // 2, 1), start, end), WORD), 0

    def _fit(self, offset: int, text: str, size: int) -> tuple[str, int, int]:
        """Return the longest context that fits beside ``text``, the tokens of both, and by how many they exceed."""
        room = self._sizes.limit - self._sizes.special
        line_tokens = self._sizes.context_line
        context, context_size = self._outline.context(offset, line_tokens)
        if self._whole_words(offset, offset + len(text)) and context_size + size + CHECK_MARGIN <= room:
            return context, context_size + size, 0
        while True:
            n_tokens = len(self._tokenizer.token_ends(passage_text(context, text)))
            if n_tokens <= room or not context:
                return context, n_tokens, n_tokens - room
            line_tokens //= 2
            context, _ = self._outline.context(offset, line_tokens)

    def _whole_words(self, start: int, end: int) -> bool:
        """Whether both ends of a passage stand at white space: a word cut in two has other tokens than its halves."""
        text = self._text
        return (start == 0 or text[start - 1].isspace()) and (end == len(text) or text[end].isspace())

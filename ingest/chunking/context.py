"""The context of a passage: what stands above it and gives it its subject, embedded before its text.

It is part of the chunk's id, since it shapes the vector: a renamed heading renews its section. No file name, page or
date ever enters it, so that a moved or renamed file changes no id.
"""

from bisect import bisect_right
from collections.abc import Sequence

from ingest.parsing.document import Block, Document

from .regions import Region
from .scale import Tokenizer, clip
from .tables import header_text, is_header_row

__all__ = ["Outline"]

# Headings in a context, and in the heading path of a location.
CONTEXT_HEADINGS, PATH_HEADINGS = 2, 6


class Outline:
    """The headings of a document, and for every offset those that stand above it."""

    def __init__(self, document: Document, regions: Sequence[Region], tokenizer: Tokenizer) -> None:
        """Read the headings and tables of ``regions``; ``tokenizer`` measures the lines of contexts."""
        self._tokenizer = tokenizer
        self._clipped: dict[tuple[str, int], tuple[str, int]] = {}
        self._title = " ".join((document.title or "").split())
        # Per heading: where it starts, its name, the names above it with its own as the last, and whether it directly
        # follows another one: such headings are a *run*.
        self._starts: list[int] = []
        self._names: list[str] = []
        self._paths: list[tuple[str, ...]] = []
        self._follows: list[bool] = []
        # Per block: where it starts, and the header row that holds for it.
        self._blocks: list[int] = []
        self._headers: list[str | None] = []
        above: list[tuple[int, str]] = []
        for region in regions:
            self._read_headings(document.text, region, above)
            self._read_tables(document.text, region)
        # Per heading: the end of its run. By the end of a run and a name: where in it a heading of that name stands
        # last. A run may be all of a hostile document, so that nothing may go through it once a passage.
        self._run_ends = _run_ends(self._follows)
        self._last = {key: index for index, key in enumerate(zip(self._run_ends, self._names, strict=True))}

    def path(self, offset: int) -> tuple[str, ...]:
        """Return the heading path of a passage that begins at ``offset``, outermost first, at most six.

        Headings that the passage begins with belong to it: they name the section that it opens.
        """
        _, stop = self._begun(offset)
        return self._paths[stop - 1][-PATH_HEADINGS:] if stop else ()

    def context(self, offset: int, line_tokens: int) -> tuple[str, int]:
        """Return the context of a passage that begins at ``offset``, and its tokens.

        By lines: title, then the last two headings above, the header row of a table counting as one; each clipped to
        ``line_tokens``. What the passage itself begins with is left out, and a heading that repeats the title.
        """
        first, stop = self._begun(offset)
        # Of several headings that the passage begins with, the first tells what stands above.
        above = self._paths[min(first, stop - 1)] if stop else ()
        block = bisect_right(self._blocks, offset) - 1
        header = self._headers[block] if block >= 0 else None
        names = [*above, header] if header else above
        headings = [name for name in names if name != self._title and not self._is_own(name, first, stop)]
        headings = headings[-CONTEXT_HEADINGS:]
        title = [] if self._is_own(self._title, first, stop) else [self._title]
        lines = [self._clip(line, line_tokens) for line in [*title, *headings] if line]
        return "\n".join(line for line, _ in lines if line), sum(tokens for _, tokens in lines)

    def _begun(self, offset: int) -> tuple[int, int]:
        """Return the range of headings that a passage at ``offset`` begins with; empty, the last one above ends it."""
        stop = bisect_right(self._starts, offset)
        if not stop or self._starts[stop - 1] != offset:
            return stop, stop
        return stop - 1, self._run_ends[stop - 1]

    def _is_own(self, name: str, first: int, stop: int) -> bool:
        """Whether ``name`` is among the headings ``first`` to ``stop - 1``, where ``stop`` ends their run."""
        return first < stop and self._last.get((stop, name), -1) >= first

    def _read_headings(self, text: str, region: Region, above: list[tuple[int, str]]) -> None:
        previous: Block | None = None
        for block in region.blocks:
            if block.kind == "heading":
                while above and above[-1][0] >= block.level:
                    above.pop()
                above.append((block.level, block.heading or " ".join(text[block.start : block.end].split())))
                self._starts.append(block.start)
                self._names.append(above[-1][1])
                self._paths.append(tuple(name for _, name in above))
                self._follows.append(previous is not None and previous.kind == "heading")
            previous = block

    def _read_tables(self, text: str, region: Region) -> None:
        previous: Block | None = None
        header: str | None = None
        for block in region.blocks:
            if block.kind != "table_row" or previous is None or previous.kind != "table_row":
                header = None
            elif is_header_row(text, previous, block):
                header = header_text(text, previous)
            self._blocks.append(block.start)
            self._headers.append(header)
            previous = block

    def _clip(self, line: str, tokens: int) -> tuple[str, int]:
        known = self._clipped.get((line, tokens))
        if known is None:
            known = self._clipped[line, tokens] = clip(line, tokens, self._tokenizer)
        return known


def _run_ends(follows: Sequence[bool]) -> list[int]:
    """Return, for every heading, the index behind the last of its run."""
    ends = [0] * len(follows)
    end = len(follows)
    for index in range(len(follows) - 1, -1, -1):
        ends[index] = end
        if not follows[index]:
            end = index
    return ends

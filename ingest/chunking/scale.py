"""How a text is measured, in tokens of the embedding model's own tokenizer. Knows none: the embedder passes its own."""

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["TokenScale", "Tokenizer", "clip"]

# A WordPiece tokenizer turns a word of over 100 characters into one unknown token. No token of a vocabulary is longer
# than some 18 characters, so a longer one hides text: it counts as half its characters.
LONGEST_TOKEN = 20


# A line of a context is cut far behind what can be shown of it: a header row may have a million columns.
LONGEST_LINE_TOKEN = 256
# Tokenizers take some 900 bytes a token while they work, and a file of 20 MiB may be a single paragraph. Far above any
# paragraph that somebody wrote.
WINDOW_CHARS = 1 << 19


class Tokenizer(Protocol):
    """Counts as the embedding model counts. MUST be repeatable: one text, one result under one recipe."""

    def token_ends(self, text: str) -> NDArray[np.int32]:
        """Return the end offset of every token of ``text``, in code points, never descending; shape (tokens,).

        MUST NOT truncate, pad or add special tokens, whatever the tokenizer's file says.
        """


class TokenScale:
    """Token positions of a text: ``at(offset)`` is the number of tokens that end at or before it.

    White space counts nothing where the tokenizer drops it; a token of over 20 characters counts as half its
    characters, evenly spread.
    """

    def __init__(self, text: str, pieces: Iterable[tuple[int, int]], tokenizer: Tokenizer) -> None:
        """Measure ``text`` piece by piece, so that the count of one block does not depend on its neighbours."""
        bounds = list(pieces)
        found = [
            tokenizer.token_ends(text[first:last]) + first
            for start, end in bounds
            for first, last in _windows(text, start, end)
        ]
        self._ends = _spread(text, bounds[0][0], np.concatenate(found)) if bounds else np.empty(0, dtype=np.int64)

    def at(self, offset: int) -> int:
        """Return the position of ``offset``, in tokens."""
        return int(np.searchsorted(self._ends, offset, side="right"))

    def all_at(self, offsets: Iterable[int]) -> NDArray[np.int64]:
        """Return the position of each of ``offsets``, in the order given."""
        wanted = np.fromiter(offsets, dtype=np.int64)
        return np.searchsorted(self._ends, wanted, side="right").astype(np.int64)

    def size(self, start: int, end: int) -> int:
        """Return the number of tokens of ``text[start:end]``."""
        return self.at(end) - self.at(start)

    def every(self, step: int, start: int, end: int) -> list[int]:
        """Return where every ``step``-th token of ``text[start:end]`` ends, both ends left out."""
        ends = self._ends[self.at(start) + step - 1 : self.at(end) : step]
        return [offset for offset in ends.tolist() if start < offset < end]

    def offset_after(self, offset: int, tokens: int) -> int:
        """Return where the ``tokens``-th token after ``offset`` ends, or the end of the last one."""
        index = min(self.at(offset) + tokens, len(self._ends)) - 1
        return max(offset, int(self._ends[index])) if index >= 0 else offset


def _windows(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield ``start`` to ``end`` in stretches of bounded length, cut before white space: no token lies across that."""
    while end - start > WINDOW_CHARS:
        cut = max(text.rfind(" ", start + 1, start + WINDOW_CHARS), text.rfind("\n", start + 1, start + WINDOW_CHARS))
        if cut < 0:
            cut = start + WINDOW_CHARS
        yield start, cut
        start = cut
    yield start, end


def clip(line: str, tokens: int, tokenizer: Tokenizer) -> tuple[str, int]:
    """Return as many words of ``line`` as fit into ``tokens``, or a piece of its first word, and their count."""
    line = line[: tokens * LONGEST_LINE_TOKEN]
    ends = _spread(line, 0, tokenizer.token_ends(line))
    if len(ends) <= tokens:
        return line, len(ends)
    cut = int(ends[tokens - 1]) if tokens else 0
    if not line[cut].isspace() and " " in line[:cut]:
        cut = line.rindex(" ", 0, cut)
    return line[:cut].rstrip(), int(np.searchsorted(ends, cut, side="right"))


def _spread(text: str, start: int, token_ends: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the ends of the tokens from ``start`` on, and one at every second character of those that are too long."""
    ends = token_ends.astype(np.int64)
    starts = np.concatenate((np.full(1, start, dtype=np.int64), ends[:-1]))
    inner = []
    for index in np.flatnonzero(ends - starts[: len(ends)] > LONGEST_TOKEN):
        end = int(ends[index])
        # What lies between two ends is white space and the token; only the token counts.
        length = len(text[starts[index] : end].lstrip())
        if length > LONGEST_TOKEN:
            # The token's own end stands for its last two characters.
            inner.append(np.arange(end - 2 * (length // 2) + 2, end, 2, dtype=np.int64))
    return np.sort(np.concatenate((ends, *inner))) if inner else ends

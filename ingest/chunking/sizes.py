"""How long passages are, in tokens of the embedding model's own tokenizer, and how a text is measured by them.

Owns the numbers of the recipe and the token scale. Knows no tokenizer: the embedder passes its own.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from search.errors import UsageError

__all__ = ["Sizes", "TokenScale", "Tokenizer", "clip"]

# Longest passage that is still one thought; above it retrieval quality falls. The prototype's sweep, 21 texts.
CHUNK_TOKENS = 420
# Lines of the context: the title and the last two headings; each may take this many tokens.
CONTEXT_LINES = 3
CONTEXT_LINE_TOKENS = 16
# Below this many tokens the parameters lose their meaning: the floor would be a single sentence.
LEAST_MAX = 32
# A WordPiece tokenizer turns a word of over 100 characters into one unknown token. No token of a vocabulary is longer
# than some 18 characters, so a longer one hides text: it counts as half its characters.
LONGEST_TOKEN = 20


class Tokenizer(Protocol):
    """Counts as the embedding model counts. MUST be repeatable: one text, one result under one recipe."""

    def token_ends(self, text: str) -> NDArray[np.int32]:
        """Return the end offset of every token of ``text``, in code points, never descending; shape (tokens,).

        MUST NOT truncate, pad or add special tokens, whatever the tokenizer's file says.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Parameters of chunking, in tokens; part of the recipe.

    ``limit`` is what the model takes, ``special`` how much of it its special tokens need. A passage has at most ``max``
    tokens, best ``target``, and at least ``floor`` unless its document, sheet or blob has no more. Two cuts that the
    content alone defines stand at least ``window`` apart. ``context_line`` bounds the title and each heading.
    """

    limit: int
    special: int
    max: int
    target: int
    floor: int
    window: int
    context_line: int = CONTEXT_LINE_TOKENS

    @classmethod
    def for_limit(cls, max_tokens: int, special_tokens: int = 2, chunk_tokens: int | None = None) -> Self:
        """Return the sizes for a model that takes ``max_tokens``, of which ``special_tokens`` are its own.

        ``chunk_tokens`` replaces the default for the longest passage (420); the model's limit still holds.
        Raises UsageError: the model, or the number asked for, leaves less than 32 tokens for a passage.
        """
        room = max_tokens - special_tokens - CONTEXT_LINES * CONTEXT_LINE_TOKENS
        longest = min(chunk_tokens or CHUNK_TOKENS, room)
        if longest < LEAST_MAX:
            raise UsageError(
                f"chunk size: {longest} tokens for a passage (model limit {max_tokens}) are too few; "
                f"at least {LEAST_MAX} are needed: take a model with a higher limit, or a larger chunk size"
            )
        # The ratios and the floor are those of the measured table in docs; integers, so that no rounding mode enters.
        floor = min(64, longest // 3)
        return cls(
            limit=max_tokens,
            special=special_tokens,
            max=longest,
            target=longest * 57 // 100,
            floor=floor,
            window=max(floor, longest * 27 // 100),
        )

    def to_json(self) -> dict[str, int]:
        """Return the numbers by name; they go into the recipe."""
        return asdict(self)


class TokenScale:
    """Token positions of a text: ``at(offset)`` is the number of tokens that end at or before it.

    White space counts nothing where the tokenizer drops it; a token of over 20 characters counts as half its
    characters, evenly spread.
    """

    def __init__(self, text: str, pieces: Iterable[tuple[int, int]], tokenizer: Tokenizer) -> None:
        """Measure ``text`` piece by piece, so that the count of one block does not depend on its neighbours."""
        bounds = list(pieces)
        found = [tokenizer.token_ends(text[start:end]) + start for start, end in bounds]
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


def clip(line: str, tokens: int, tokenizer: Tokenizer) -> tuple[str, int]:
    """Return as many words of ``line`` as fit into ``tokens``, or a piece of its first word, and their count."""
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

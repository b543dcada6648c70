"""How long passages are, in tokens of the embedding model's own tokenizer: the numbers of the recipe, and the version.

Pure numbers: a run that has nothing to cut reads them and imports nothing else of chunking.
"""

from dataclasses import asdict, dataclass
from typing import Self

from search.errors import UsageError

__all__ = ["CHUNKER_VERSION", "Sizes"]

# Raised with every change of what the chunker puts out; a golden test holds the two together.
CHUNKER_VERSION = "cdc-1"
# Longest passage that is still one thought; above it retrieval quality falls. The prototype's sweep, 21 texts.
CHUNK_TOKENS = 420
# Lines of the context: the title and the last two headings; each may take this many tokens.
CONTEXT_LINES = 3
CONTEXT_LINE_TOKENS = 16
# Below this many tokens the parameters lose their meaning: the floor would be a single sentence.
LEAST_MAX = 32


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

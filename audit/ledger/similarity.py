"""How alike two wordings are, for the semantic gate: by an embedder that is handed in, or by TF-IDF.

Owns: two functions from texts to a number in [0, 1]. Refuses to load a model: the package imports no sibling and no
vector library, so the embedder comes from outside. Refuses to decide: the gate only ever asks a person.
Sources: cosine similarity; inverse document frequency smoothed as in Manning, Raghavan & Schuetze, Introduction to
Information Retrieval, 6.2 (one is added to both counts, so that an unseen term has a weight).
"""

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

__all__ = ["PassageEmbedder", "Similarity", "embedding_similarity", "tfidf_similarity"]

K = TypeVar("K")
Similarity: TypeAlias = Callable[[str, str], float]

_WORD = re.compile(r"\w+")
# A gate compares one new wording with the few of its run: enough to embed each of them once.
_CACHED_TEXTS = 256


class PassageEmbedder(Protocol):
    """What is asked of an embedder; `search.embedding` has one. MUST be repeatable: one text, one vector."""

    def embed_passages(self, texts: Sequence[str]) -> Iterable[Iterable[float]]:
        """One vector per text, in the order given."""


def embedding_similarity(embedder: PassageEmbedder) -> Similarity:
    """Cosine of the two vectors, 0 where it is negative; each text is embedded once while it is remembered.

    The gate asks inside the claim transaction: an embedder that takes long holds up other writers.
    """

    @functools.lru_cache(maxsize=_CACHED_TEXTS)
    def vector(text: str) -> tuple[float, ...]:
        (found,) = embedder.embed_passages([text])
        return tuple(float(value) for value in found)

    def similarity(left: str, right: str) -> float:
        return _cosine(dict(enumerate(vector(left))), dict(enumerate(vector(right))))

    return similarity


def tfidf_similarity(background: Sequence[str] = ()) -> Similarity:
    """Cosine of the texts' words, weighted by how rare each is in `background`; without one all weigh the same.

    Give texts as they are usual for the tool: words that stand in all of them then say little.
    """
    seen = Counter(word for text in background for word in set(_words(text)))

    def weights(text: str) -> Mapping[str, float]:
        counts = Counter(_words(text))
        return {
            word: count * (math.log((1 + len(background)) / (1 + seen[word])) + 1) for word, count in counts.items()
        }

    def similarity(left: str, right: str) -> float:
        return _cosine(weights(left), weights(right))

    return similarity


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _cosine(left: Mapping[K, float], right: Mapping[K, float]) -> float:
    """Cosine of two sparse vectors, kept within [0, 1]; 0 where one is empty."""
    dot = sum(value * right.get(name, 0.0) for name, value in left.items())
    norms = math.sqrt(sum(value * value for value in left.values()) * sum(value * value for value in right.values()))
    return min(max(dot / norms, 0.0), 1.0) if norms else 0.0

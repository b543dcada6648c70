"""BM25 vectors, by the encoder of Qdrant Edge: one encoder for Edge and for a server alike.

Words are lower-cased, stop words dropped, the rest stemmed and hashed to an index. The weight of a passage's word holds
frequency and length; the rarity of a word (IDF) is applied by the engine, so a vector depends on nothing but its text
(I3). ``sparse_spec`` is light; the engine is imported with the first encoder. Source: Robertson & Zaragoza 2009.
"""

import re
from importlib.metadata import version

from .errors import UsageError
from .recipe import SparseSpec
from .records import SparseVector

__all__ = ["LANGUAGES", "SparseEncoder", "sparse_spec"]

PACKAGE = "qdrant-edge-py"
# Inside the ranges advised by Robertson & Zaragoza 2009. Part of the recipe: a change encodes every chunk anew.
K, B = 1.2, 0.75
AVG_LEN = 60.0
# Longer "words" are addresses, hashes and encoded data.
MAX_TOKEN_LEN = 40
# What the encoder of qdrant-edge-py 0.9.0 has stop words or a stemmer for.
LANGUAGES = frozenset({
    "arabic", "azerbaijani", "basque", "bengali", "catalan", "chinese", "danish", "dutch", "english", "finnish",
    "french", "german", "greek", "hebrew", "hinglish", "hungarian", "indonesian", "italian", "japanese", "kazakh",
    "nepali", "norwegian", "portuguese", "romanian", "russian", "slovene", "spanish", "swedish", "tajik", "turkish",
})  # fmt: skip
SURROGATES = re.compile("[\ud800-\udfff]")


def sparse_spec(language: str) -> SparseSpec:
    """Return how BM25 vectors of a language are made. Does not load the engine.

    Raises ``UsageError`` for a language without stop words and stemmer.
    """
    if language not in LANGUAGES:
        raise UsageError(f"language {language!r}: not known; one of {', '.join(sorted(LANGUAGES))}")
    return SparseSpec(
        encoder="qdrant-edge-bm25",
        version=version(PACKAGE),
        language=language,
        k=K,
        b=B,
        avg_len=AVG_LEN,
        max_token_len=MAX_TOKEN_LEN,
    )


class SparseEncoder:
    """Makes the BM25 vectors of one spec. Thread-safe; does not write."""

    def __init__(self, spec: SparseSpec) -> None:
        from qdrant_edge import Bm25, Bm25Config

        self.spec = spec
        self._model = Bm25(
            Bm25Config(
                k=spec.k,
                b=spec.b,
                avg_len=spec.avg_len,
                language=spec.language,
                max_token_len=spec.max_token_len,
            )
        )

    def encode_passage(self, text: str) -> SparseVector:
        """Return the vector of a passage, context included; a text without a word gives an empty one."""
        vector = self._model.embed_document(_encodable(text))
        return _ascending(vector.indices, vector.values)

    def encode_query(self, text: str) -> SparseVector:
        """Return the vector of a question: weight 1 for each of its words."""
        vector = self._model.embed_query(_encodable(text))
        return _ascending(vector.indices, vector.values)


def _ascending(indices: list[int], values: list[float]) -> SparseVector:
    """Sort by index; two words that share a hash become one entry, since the engine takes duplicates silently."""
    weights: dict[int, float] = {}
    for index, value in zip(indices, values, strict=True):
        weights[index] = weights.get(index, 0.0) + value
    ordered = sorted(weights.items())
    return SparseVector(tuple(index for index, _ in ordered), tuple(value for _, value in ordered))


def _encodable(text: str) -> str:
    """Replace lone surrogates, which the engine refuses."""
    return text if text.isascii() else SURROGATES.sub(" ", text)

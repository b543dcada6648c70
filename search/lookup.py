"""From a question to passages with citations: the whole of reading, in the order in which it happens.

One generation answers a question (I4). The question is cleaned and embedded (or taken from the cache), both searches
run in one batch, their hits are fused and near-equal ones collapsed. A nearest neighbour always exists, so only a floor
can say "no match": it holds for the best passage of an answer. Does not write, and never uses the network.
"""

import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .collapse import Group, Text, collapse
from .embedding import Embedder, passage_text
from .errors import IndexDamaged, RecipeMismatch, UsageError
from .fusion import Candidate, fuse, relevance
from .identity import ChunkId
from .points import citations_of, context_of, text_of
from .recipe import EmbeddingSpec, Recipe
from .records import Citation, Passage, SearchResult, SparseVector
from .sparse import SparseEncoder, sparse_spec
from .store import Payload, Snapshot, VectorReader, Where

__all__ = ["Lookup", "clean"]

# Hits of each search. Deeper lists changed nDCG@10 by less than 0.001 on the sets of fusion.py.
DEPTH = 100
# Passages that are read and compared at once: enough that the usual question needs one reading.
WINDOW = 20
# Places of a passage beside its citation; agent-tool.md 3.3.
ALSO_AT = 4
# Where the best passage reaches the floor, the others need this share of it. The golden passage with the lowest score
# has 0.22 and stands in fourth place; a floor for each passage alone would have to lie below that, and would let
# foreign questions through.
SHARE_OF_FLOOR = 0.5
EVERYWHERE = Where()


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    dense: NDArray[np.float32]
    sparse: SparseVector


@dataclass(frozen=True, slots=True)
class _Models:
    """What turns a question into vectors, for one recipe."""

    recipe: Recipe
    embedder: Embedder
    encoder: SparseEncoder


class Lookup:
    """Answers questions from what ``reader`` follows. Thread-safe.

    ``embedders`` returns the embedder of a spec and is called once per recipe, at the first question. ``limit`` and
    ``floor`` (the least score of an answer's best passage, 0..1) are the defaults of a lookup; ``query_cache`` is how
    many question vectors are kept.
    """

    def __init__(
        self,
        reader: VectorReader,
        embedders: Callable[[EmbeddingSpec], Embedder],
        *,
        limit: int = 5,
        floor: float = 0.25,
        query_cache: int = 256,
    ) -> None:
        self._reader = reader
        self._embedders = embedders
        self._limit = limit
        self._floor = floor
        self._query_cache = query_cache
        self._lock = threading.Lock()
        self._models: _Models | None = None
        self._questions: OrderedDict[str, _Question] = OrderedDict()

    def lookup(
        self, query: str, *, limit: int | None = None, where: Where = EVERYWHERE, floor: float | None = None
    ) -> SearchResult:
        """Return at most ``limit`` passages that answer ``query``, best first; none is "no match".

        Equal generation and query give an equal result. Raises ``UsageError`` for a query without a visible character,
        ``IndexMissing``, ``IndexDamaged``, ``IndexUnavailable``, ``RecipeMismatch`` or ``ModelUnavailable`` where the
        index cannot be asked, which is never an empty result.
        """
        text = clean(query)
        snapshot = self._reader.snapshot()
        models = self._models_of(snapshot.recipe)
        question = self._question(text, models)
        found = fuse(*snapshot.query(question.dense, question.sparse, depth=DEPTH, where=where))
        wanted = self._limit if limit is None else limit
        groups, payloads = _group(snapshot, found, question.text, wanted, where)
        cosines = {candidate.chunk_id: candidate.cosine for candidate in found}
        scored = [
            (group, relevance(cosines[group.head], _coverage(question.sparse, payloads[group.head], models.encoder)))
            for group in groups
        ]
        least = self._floor if floor is None else floor
        if max((score for _, score in scored), default=0.0) < least:
            scored = []
        good = [(group, score) for group, score in scored if score >= least * SHARE_OF_FLOOR]
        passages = [_passage(ref, group, score, payloads, where) for ref, (group, score) in enumerate(good, start=1)]
        return SearchResult(
            query=text,
            generation=snapshot.generation,
            passages=tuple(passages),
            completeness=snapshot.completeness,
        )

    def warm_up(self) -> None:
        """Load generation and models, so that the first question does not wait for them. Raises as ``lookup``."""
        self._models_of(self._reader.snapshot().recipe).embedder.embed_query("warm")

    def close(self) -> None:
        """Let go of the index."""
        self._reader.close()

    def _models_of(self, recipe: Recipe) -> _Models:
        with self._lock:
            if self._models is None or self._models.recipe != recipe:
                installed = sparse_spec(recipe.sparse.language)
                if (recipe.sparse.encoder, recipe.sparse.version) != (installed.encoder, installed.version):
                    raise RecipeMismatch(
                        f"index: its words were encoded by {recipe.sparse.encoder} {recipe.sparse.version}, installed "
                        f"is {installed.encoder} {installed.version}; rebuild the index with `ingest --rebuild`"
                    )
                embedder = self._embedders(recipe.embedding)
                self._models = _Models(recipe, embedder, SparseEncoder(recipe.sparse))
                self._questions.clear()
            return self._models

    def _question(self, text: str, models: _Models) -> _Question:
        with self._lock:
            known = self._questions.get(text) if models is self._models else None
            if known is not None:
                self._questions.move_to_end(text)
                return known
        # Outside the lock: embedding is the long part, and several threads may be asked at once.
        question = _Question(text, models.embedder.embed_query(text), models.encoder.encode_query(text))
        with self._lock:
            if models is self._models and self._query_cache > 0:
                self._questions[text] = question
                while len(self._questions) > self._query_cache:
                    self._questions.popitem(last=False)
        return question


def clean(query: str) -> str:
    """Return the query composed (NFC), control characters as spaces, white space at the ends removed.

    Raises ``UsageError`` where nothing visible is left.
    """
    composed = unicodedata.normalize("NFC", query)
    text = "".join(" " if unicodedata.category(character) == "Cc" else character for character in composed).strip()
    if not text:
        raise UsageError("query: empty; ask a question or give a few keywords")
    return text


def _group(
    snapshot: Snapshot, found: Sequence[Candidate], question: str, wanted: int, where: Where
) -> tuple[list[Group], dict[ChunkId, Payload]]:
    """Read passages window by window until there are ``wanted`` groups; return them, and what was read."""
    payloads: dict[ChunkId, Payload] = {}
    ranked: list[Text] = []
    groups: list[Group] = []
    for start in range(0, len(found), WINDOW):
        ids = [candidate.chunk_id for candidate in found[start : start + WINDOW]]
        read = snapshot.fetch(ids)
        missing = [chunk_id for chunk_id in ids if chunk_id not in read]
        if missing:
            raise IndexDamaged(
                f"generation {snapshot.generation}: found chunk {missing[0]} but cannot read it; run `ingest repair`"
            )
        payloads |= read
        # The engine compares a filter with the lists of a point: root of one place and path of another would do for it.
        meant = ids if where == EVERYWHERE else [one for one in ids if _citations(read[one], where)]
        ranked += [Text(chunk_id, text_of(read[chunk_id])) for chunk_id in meant]
        groups = collapse(ranked, question)
        if len(groups) >= wanted:
            break
    return groups[:wanted], payloads


def _coverage(question: SparseVector, payload: Payload, encoder: SparseEncoder) -> float:
    """Return the share of the question's words that stand in the passage or its context; 0 without words."""
    if not question.indices:
        return 0.0
    passage = encoder.encode_passage(passage_text(context_of(payload), text_of(payload)))
    return len(set(question.indices) & set(passage.indices)) / len(question.indices)


def _passage(ref: int, group: Group, score: float, payloads: dict[ChunkId, Payload], where: Where) -> Passage:
    citations = _citations(payloads[group.head], where)
    further = list(citations[1:])
    for chunk_id in group.others:
        further += _citations(payloads[chunk_id], where)
    return Passage(
        ref=ref,
        chunk_id=group.head,
        text=text_of(payloads[group.head]),
        score=score,
        citation=citations[0],
        also_at=tuple(further[:ALSO_AT]),
        more_locations=max(len(further) - ALSO_AT, 0),
        collapsed=group.others,
    )


def _citations(payload: Payload, where: Where) -> Sequence[Citation]:
    """Return the places of a passage that meet the whole filter, in their order."""
    return [citation for citation in citations_of(payload) if _meets(citation, where)]


def _meets(citation: Citation, where: Where) -> bool:
    path = None if where.path is None else where.path.rstrip("/")
    return (
        (not path or citation.path == path or citation.path.startswith(path + "/"))
        and (where.root is None or citation.root == where.root)
        and (where.media_type is None or citation.media_type in {where.media_type, None})
    )

"""The reader of published generations: follows ``CURRENT``, holds one shard open, answers queries from it.

Never writes, makes no folder, and opens nothing but ``CURRENT``, manifests and shards. Of the shard it calls load,
query_batch, retrieve, count and close, no more (a test reads this file for it). The engine has no read-only mode, but
a settled shard's bytes do not change when it is loaded, and a generation is loaded only after its files have been
compared with the manifest: a damaged one can load with no points, and would look like an empty index.

The engine holds the GIL during calls and loads (qdrant-edge-py 0.9.0; a load takes 0.1 s at 20,000 points).
"""

import logging
import threading
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qdrant_edge import (
    CountRequest,
    EdgeShard,
    FieldCondition,
    Filter,
    MatchPrefix,
    MatchValue,
    Query,
    QueryBatchRequest,
    QueryRequest,
)
from qdrant_edge import SparseVector as EngineSparseVector

from .engine import engine_call
from .errors import GroundedError, IndexDamaged, IndexUnavailable
from .generation import GenerationKey, IndexLayout, Manifest
from .identity import ChunkId
from .points import BM25, DENSE, MEDIA_TYPE, ROOTS, SOURCES
from .recipe import Recipe
from .records import Completeness, SparseVector
from .store import Hit, Payload, Where

if TYPE_CHECKING:
    # Names of the stub file alone.
    from qdrant_edge import ConditionType, ScoringQueryType

__all__ = ["EdgeReader", "EdgeSnapshot"]

logger = logging.getLogger(__name__)

# The engine breaks ties as it likes. Where the last hit of a list is tied with hits beyond it, more are fetched, so
# that the choice among them is ours; this often, each time this many times more.
TIE_ROUNDS, TIE_FACTOR = 3, 4
REPAIR = "run `ingest repair`"


class EdgeSnapshot:
    """One generation, open. Closed when the last holder lets go of it."""

    def __init__(self, name: str, shard: EdgeShard, manifest: Manifest) -> None:
        self._name = name
        self._shard = shard
        self._manifest = manifest
        weakref.finalize(self, _close, shard)

    @classmethod
    def load(cls, folder: Path) -> "EdgeSnapshot":
        """Open a generation that its manifest confirms: names and sizes of files, and the exact number of points.

        Raises ``IndexDamaged`` where it does not, ``SchemaMismatch`` for a later format.
        """
        manifest = Manifest.read(folder)
        manifest.check_sizes(folder)
        with engine_call(IndexDamaged, str(folder), REPAIR):
            shard = EdgeShard.load(str(folder))
            count = shard.count(CountRequest(exact=True))
        if count != manifest.chunks:
            _close(shard)
            raise IndexDamaged(f"{folder}: loads with {count} points, should have {manifest.chunks}; {REPAIR}")
        return cls(folder.name, shard, manifest)

    @property
    def generation(self) -> str:
        """Name of the generation."""
        return self._name

    @property
    def recipe(self) -> Recipe:
        """Recipe by which the generation was made."""
        return self._manifest.recipe

    @property
    def completeness(self) -> Completeness:
        """What the index lacks."""
        return self._manifest.completeness

    def query(
        self, dense: NDArray[np.float32], sparse: SparseVector, *, depth: int, where: Where
    ) -> tuple[list[Hit], list[Hit]]:
        """Return the best ``depth`` hits of both searches, best first, ties by chunk_id."""
        condition = _filter(where)
        searches: list[ScoringQueryType] = [Query.Nearest(dense.tolist(), using=DENSE)]
        if sparse.indices:
            words = EngineSparseVector(list(sparse.indices), list(sparse.values))
            searches.append(Query.Nearest(words, using=BM25))
        # One more than asked for shows whether the last hit is tied with one that is left out.
        found = self._search(searches, depth + 1, condition)
        lists = [
            self._settle_ties(search, hits, depth, condition) for search, hits in zip(searches, found, strict=True)
        ]
        return (lists[0], lists[1]) if len(lists) > 1 else (lists[0], [])

    def fetch(self, ids: Sequence[ChunkId]) -> dict[ChunkId, Payload]:
        """Return the payloads of points by id."""
        if not ids:
            return {}
        with self._calls():
            records = self._shard.retrieve(list(ids), True, False)
        return {ChunkId(str(record.id)): record.payload or {} for record in records}

    def _settle_ties(
        self, search: "ScoringQueryType", hits: list[Hit], depth: int, condition: Filter | None
    ) -> list[Hit]:
        limit = depth + 1
        for _ in range(TIE_ROUNDS):
            if len(hits) < limit or hits[-1].score != hits[depth - 1].score:
                break
            limit *= TIE_FACTOR
            hits = self._search([search], limit, condition)[0]
        return hits[:depth]

    def _search(self, searches: "Sequence[ScoringQueryType]", limit: int, condition: Filter | None) -> list[list[Hit]]:
        requests = [
            QueryRequest(limit=limit, query=search, filter=condition, with_payload=False, with_vector=False)
            for search in searches
        ]
        with self._calls():
            answers = self._shard.query_batch(QueryBatchRequest(requests))
        return [
            sorted((Hit(ChunkId(str(point.id)), point.score) for point in points), key=_best_first)
            for points in answers
        ]

    def _calls(self) -> AbstractContextManager[None]:
        return engine_call(IndexUnavailable, f"generation {self._name}", "try again; if it stays, " + REPAIR)


class EdgeReader:
    """A ``VectorReader`` over the generations of one index. Thread-safe."""

    def __init__(self, layout: IndexLayout) -> None:
        self._layout = layout
        self._lock = threading.Lock()
        self._held: EdgeSnapshot | None = None
        self._held_key: GenerationKey | None = None
        self._refused: GenerationKey | None = None

    def snapshot(self) -> EdgeSnapshot:
        """Return the generation that ``CURRENT`` names, loading it when it is another than the one held.

        One that cannot be loaded does not take an answer away: ``CURRENT`` is read once more, since the generation may
        have been collected in between, and then the one held stays in use, with a warning.
        """
        with self._lock:
            key = self._layout.current_key()
            if self._held is not None and key in {self._held_key, self._refused}:
                return self._held
            try:
                return self._load(key)
            except GroundedError:
                key = self._layout.current_key()
            try:
                return self._load(key)
            except GroundedError as error:
                if self._held is None:
                    raise
                self._refused = key
                logger.warning("reader.refused generation=%s reason=%s", key.name, error)
                return self._held

    def close(self) -> None:
        """Let go of the generation held; lookups that still use it finish first."""
        with self._lock:
            self._held = self._held_key = self._refused = None

    def _load(self, key: GenerationKey) -> EdgeSnapshot:
        loaded = EdgeSnapshot.load(self._layout.generation(key.name))
        self._held, self._held_key, self._refused = loaded, key, None
        logger.info("reader.loaded generation=%s", key.name)
        return loaded


def _best_first(hit: Hit) -> tuple[float, ChunkId]:
    return (-hit.score, hit.chunk_id)


def _filter(where: Where) -> Filter | None:
    must: list[ConditionType] = []
    if where.path is not None and (path := where.path.rstrip("/")):
        at = FieldCondition(SOURCES, match=MatchValue(path))
        below = FieldCondition(SOURCES, match=MatchPrefix(path + "/"))
        must.append(Filter(should=[at, below]))
    if where.root is not None:
        must.append(FieldCondition(ROOTS, match=MatchValue(where.root)))
    if where.media_type is not None:
        must.append(FieldCondition(MEDIA_TYPE, match=MatchValue(where.media_type)))
    return Filter(must=must) if must else None


def _close(shard: EdgeShard) -> None:
    with engine_call(IndexUnavailable, "shard", REPAIR):
        shard.close()

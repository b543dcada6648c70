"""The writer's side of one Qdrant Edge shard: make it, apply a difference, settle it, read it back for ``verify``.

Used by the child process that builds a generation, never on a published one; it decides nothing about what belongs
into a generation. Facts about the engine (qdrant-edge-py 0.9.0) that shape this module, all measured:

- with its write-ahead log a shard cannot be opened twice; without it, what is not flushed is lost with the process;
- NaN, zero vectors, unequal or repeated sparse indices, bytes and huge integers are taken silently: checked here first;
- a refused point leaves its batch applied in part: after any error the folder must be thrown away;
- the first load after an update folds journals and changes files, later loads change nothing: hence ``settle``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    KeywordIndexParams,
    Modifier,
    Point,
    ScrollRequest,
    UpdateOperation,
    VectorStorageDatatype,
)
from qdrant_edge import SparseVector as EngineSparseVector

from search.engine import engine_call
from search.errors import IndexDamaged, PublishFailed
from search.identity import ChunkId
from search.points import BM25, DENSE, KEYWORD_FIELDS, PREFIX_FIELDS
from search.recipe import EmbeddingSpec
from search.records import SparseVector

if TYPE_CHECKING:
    # Names of the stub file alone.
    from qdrant_edge import NamedVector, PointId

__all__ = ["PointRecord", "Shard", "StoredPoint", "iter_points", "settle"]

# A batch is one lock of the segments and one list in memory; larger ones are no faster (measured to 4,096).
BATCH = 512
# 7 to 12 times less work for a later optimize than the default, one segment per core (measured).
SEGMENTS = 8
# A search takes the calling thread only; more threads are no faster below 200,000 points (measured).
SEARCH_THREADS = 1
# Vectors are unit length up to float16; this is what the embedder promises.
UNIT_TOLERANCE = 1e-2
I64 = range(-(2**63), 2**63)
Item = TypeVar("Item")
CURE = "throw the unfinished generation away and run again"


@dataclass(frozen=True, slots=True)
class PointRecord:
    """A point to write: ``dense`` has shape (dim,) and unit length; ``payload`` holds JSON values."""

    chunk_id: ChunkId
    dense: NDArray[np.float32]
    sparse: SparseVector
    payload: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point read back; ``dense`` is None where it was not asked for."""

    chunk_id: ChunkId
    payload: Mapping[str, object]
    dense: NDArray[np.float32] | None


class Shard:
    """An open shard under construction. A context manager: leaving it closes the shard, flushed or not.

    Every method raises ``PublishFailed`` when the engine fails; the folder is then of no further use.
    """

    def __init__(self, shard: EdgeShard, folder: Path, spec: EmbeddingSpec) -> None:
        self._shard = shard
        self._folder = folder
        self._spec = spec

    @classmethod
    def create(cls, folder: Path, spec: EmbeddingSpec) -> Self:
        """Make an empty shard in ``folder``, which is made too, with all its payload indexes."""
        config = EdgeConfig(
            vectors={DENSE: EdgeVectorParams(spec.dim, Distance.Cosine, datatype=VectorStorageDatatype.Float16)},
            sparse_vectors={BM25: EdgeSparseVectorParams(modifier=Modifier.Idf)},
            optimizers=EdgeOptimizersConfig(default_segment_number=SEGMENTS),
            max_search_threads=SEARCH_THREADS,
            wal_enabled=False,
        )
        folder.mkdir(parents=True, exist_ok=True)
        with engine_call(PublishFailed, str(folder), CURE):
            shard = EdgeShard.create(str(folder), config)
            for field in (*KEYWORD_FIELDS, *PREFIX_FIELDS):
                schema = KeywordIndexParams(prefix=field in PREFIX_FIELDS)
                shard.update(UpdateOperation.create_field_index(field, schema))
        return cls(shard, folder, spec)

    @classmethod
    def open(cls, folder: Path, spec: EmbeddingSpec) -> Self:
        """Open a clone of a generation for writing; never the published folder itself."""
        with engine_call(PublishFailed, str(folder), CURE):
            return cls(EdgeShard.load(str(folder)), folder, spec)

    def __enter__(self) -> Self:
        """Enter; the shard is open already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the shard."""
        self.close()

    def apply(
        self,
        upserts: Sequence[PointRecord],
        payload_overwrites: Sequence[tuple[ChunkId, Mapping[str, object]]],
        deletes: Sequence[ChunkId],
    ) -> None:
        """Delete, then insert or replace points, then replace payloads, in batches. Durable after ``flush``.

        An overwrite or delete of an unknown id does nothing. All is checked before the first batch: raises
        ``ValueError`` for a vector or payload that the engine would spoil, with nothing applied.
        """
        for record in upserts:
            _check_record(record, self._spec.dim)
        for chunk_id, payload in payload_overwrites:
            _check_payload(chunk_id, payload)
        with self._calls():
            for ids in _batches(deletes):
                self._shard.update(UpdateOperation.delete_points(list(ids)))
            for records in _batches(upserts):
                self._shard.update(UpdateOperation.upsert_points([_point(record) for record in records]))
            for chunk_id, payload in payload_overwrites:
                self._shard.update(UpdateOperation.overwrite_payload([chunk_id], dict(payload)))

    def optimize(self) -> bool:
        """Build what indexes and merges are due; True when anything was. Flushes before and after."""
        with self._calls():
            self._shard.flush()
            changed = self._shard.optimize()
            self._shard.flush()
        return changed

    def flush(self) -> None:
        """Make all that was applied durable."""
        with self._calls():
            self._shard.flush()

    def close(self) -> None:
        """Close the shard. What was not flushed may be lost."""
        with self._calls():
            self._shard.close()

    def _calls(self) -> AbstractContextManager[None]:
        return engine_call(PublishFailed, str(self._folder), CURE)


def settle(folder: Path, expected_count: int) -> None:
    """Load, count and close a finished shard: after this its bytes never change again, whatever loads it (I1).

    Raises ``PublishFailed`` where the exact count is not the expected one, or the engine fails.
    """
    with engine_call(PublishFailed, str(folder), CURE):
        shard = EdgeShard.load(str(folder))
        try:
            count = shard.count(CountRequest(exact=True))
        finally:
            shard.close()
    if count != expected_count:
        raise PublishFailed(f"{folder}: holds {count} points, should hold {expected_count}; {CURE}")


def iter_points(folder: Path, *, with_payload: bool = True, with_dense: bool = False) -> Iterator[StoredPoint]:
    """Yield all points of a settled shard, in order of their ids; payloads are empty unless asked for.

    Loading leaves the bytes of a settled, undamaged shard as they are; compare it with its manifest first. Raises
    ``IndexDamaged`` where the engine cannot read it.
    """
    subject, cure = str(folder), "run `ingest repair`"
    with engine_call(IndexDamaged, subject, cure):
        shard = EdgeShard.load(str(folder))
    try:
        offset: PointId | None = None
        while True:
            request = ScrollRequest(
                offset=offset, limit=BATCH, with_payload=with_payload, with_vector=[DENSE] if with_dense else False
            )
            with engine_call(IndexDamaged, subject, cure):
                records, offset = shard.scroll(request)
            for record in records:
                vector = record.vector
                dense = np.asarray(vector[DENSE], dtype=np.float32) if isinstance(vector, dict) else None
                yield StoredPoint(ChunkId(str(record.id)), record.payload or {}, dense)
            if offset is None:
                return
    finally:
        with engine_call(IndexDamaged, subject, cure):
            shard.close()


def _point(record: PointRecord) -> Point:
    vector: dict[str, NamedVector] = {DENSE: record.dense.tolist()}
    if record.sparse.indices:
        vector[BM25] = EngineSparseVector(list(record.sparse.indices), list(record.sparse.values))
    return Point(record.chunk_id, vector, dict(record.payload))


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _check_record(record: PointRecord, dim: int) -> None:
    dense, sparse = record.dense, record.sparse
    if dense.shape != (dim,) or not abs(float(np.linalg.norm(dense)) - 1.0) <= UNIT_TOLERANCE:
        raise ValueError(f"chunk {record.chunk_id}: the dense vector is not one of {dim} finite values of unit length")
    ascending = all(low < high for low, high in pairwise(sparse.indices))
    if len(sparse.indices) != len(sparse.values) or not ascending:
        raise ValueError(f"chunk {record.chunk_id}: the sparse indices are not unique and ascending, one per value")
    if not all(math.isfinite(value) for value in sparse.values):
        raise ValueError(f"chunk {record.chunk_id}: the sparse vector holds a value that is not finite")
    _check_payload(record.chunk_id, record.payload)


def _check_payload(chunk_id: ChunkId, payload: Mapping[str, object]) -> None:
    UUID(chunk_id)
    for name, value in payload.items():
        if not _is_storable(value):
            raise ValueError(f"chunk {chunk_id}: payload field {name} holds what the index cannot store")


def _is_storable(value: object) -> bool:
    """True for JSON values that come back as they went in."""
    match value:
        case None | bool():
            return True
        case str():
            return not any("\ud800" <= character <= "\udfff" for character in value) if not value.isascii() else True
        case int():
            return value in I64
        case float():
            return math.isfinite(value)
        case list():
            return all(_is_storable(item) for item in value)
        case dict():
            return all(isinstance(key, str) and _is_storable(key) and _is_storable(item) for key, item in value.items())
        case _:
            return False

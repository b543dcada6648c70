"""How vectors lie in the catalog: dense as float16, sparse as two arrays, both little-endian.

numpy is imported where it is used: it costs 0.1 s, and a run with nothing to do needs none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.identity import ChunkId
from search.records import SparseVector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["StoredVector", "dense_array", "pack_dense", "pack_sparse", "unpack_sparse"]

DENSE = "<f2"  # what the Edge shard stores, so nothing is lost twice
INDEX = "<u4"
VALUE = "<f4"


@dataclass(frozen=True, slots=True)
class StoredVector:
    """The vectors of one chunk, as they are saved. ``dense`` is float16 bytes, unit length before rounding."""

    chunk_id: ChunkId
    dense: bytes
    sparse: SparseVector


def pack_dense(vector: NDArray[np.float32]) -> bytes:
    """Return the bytes of a vector of shape (dim,), rounded to float16."""
    return vector.astype(DENSE).tobytes()


def dense_array(blob: bytes) -> NDArray[np.float32]:
    """Return the vector, shape (dim,), of packed bytes."""
    import numpy as np

    return np.frombuffer(blob, dtype=DENSE).astype(np.float32)


def pack_sparse(vector: SparseVector) -> bytes:
    """Return indices, then values, of a sparse vector."""
    import numpy as np

    indices = np.asarray(vector.indices, dtype=INDEX).tobytes()
    return indices + np.asarray(vector.values, dtype=VALUE).tobytes()


def unpack_sparse(blob: bytes) -> SparseVector:
    """Return the sparse vector of packed bytes."""
    import numpy as np

    half = len(blob) // 2
    indices = np.frombuffer(blob[:half], dtype=INDEX)
    values = np.frombuffer(blob[half:], dtype=VALUE)
    return SparseVector(tuple(indices.tolist()), tuple(values.tolist()))

"""The protocol by which a lookup asks a store. It has no writing method, and neither has any implementation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .identity import ChunkId
from .recipe import Recipe
from .records import Completeness, SparseVector

__all__ = ["Hit", "Snapshot", "VectorReader", "Where"]

Payload = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Hit:
    """A point found by one of the two searches; ``score`` is the engine's (cosine, or BM25 with IDF)."""

    chunk_id: ChunkId
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Restricts a search inside the engine, before ranking. Empty fields do not restrict.

    ``path`` matches sources at or under it (on a ``/`` boundary, case-sensitive, relative to the source's root);
    ``root`` is a root's label; ``media_type`` a document's.
    """

    path: str | None = None
    root: str | None = None
    media_type: str | None = None


class Snapshot(Protocol):
    """One complete generation, held open (I4). MUST be repeatable and thread-safe. MUST NOT write."""

    @property
    def generation(self) -> str:
        """Name of the generation."""

    @property
    def recipe(self) -> Recipe:
        """Recipe by which the generation was made."""

    @property
    def completeness(self) -> Completeness:
        """What the index lacks."""

    def query(
        self, dense: NDArray[np.float32], sparse: SparseVector, *, depth: int, where: Where
    ) -> tuple[list[Hit], list[Hit]]:
        """Return the best ``depth`` hits of the dense and of the sparse search, in one batch, same filter.

        Best first; ties by chunk_id. ``dense`` has shape (dim,). An empty sparse vector gives no sparse hits. Raises
        ``IndexUnavailable`` when the engine fails.
        """

    def fetch(self, ids: Sequence[ChunkId]) -> dict[ChunkId, Payload]:
        """Return the payloads of points by id; unknown ids are left out. Raises ``IndexUnavailable``."""


class VectorReader(Protocol):
    """Follows the store's current generation. MUST NOT write, and has no method that could."""

    def snapshot(self) -> Snapshot:
        """Return the generation that is current now; a held one stays usable until it is dropped.

        Raises ``IndexMissing`` where there is none (nothing is created), ``IndexDamaged`` where the current one fails
        its checks and no earlier one is held, ``IndexUnavailable`` where the store cannot be reached.
        """

    def close(self) -> None:
        """Let go of everything that is open. May be called twice."""

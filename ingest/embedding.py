"""Step 7: vectors for chunks that have none yet, saved batch by batch.

A batch that was saved is never computed again, whatever becomes of the run. Chunks wait here until there are enough of
them for batches of near-equal length, which is what makes a CPU embed quickly.
"""

from collections.abc import Iterable

from ingest.catalog.database import Catalog
from ingest.catalog.vectors import StoredVector, pack_dense
from ingest.failpoints import Failpoints
from ingest.progress import Progress
from search.embedding import Embedder, passage_text
from search.identity import ChunkId, RecipeId
from search.records import Chunk
from search.sparse import SparseEncoder

__all__ = ["EmbeddingStage"]

# Chunks that one saved batch holds: what a kill can lose, a few seconds of work on two cores.
BATCH = 128


class EmbeddingStage:
    """Takes chunks, computes the vectors that the catalog lacks, and saves them."""

    def __init__(
        self,
        catalog: Catalog,
        recipe: RecipeId,
        embedder: Embedder,
        sparse: SparseEncoder,
        failpoints: Failpoints,
        progress: Progress,
    ) -> None:
        self._catalog = catalog
        self._recipe = recipe
        self._embedder = embedder
        self._sparse = sparse
        self._failpoints = failpoints
        self._progress = progress
        self._waiting: dict[ChunkId, Chunk] = {}
        self._known: set[ChunkId] = set()
        self.computed = 0
        self.reused = 0

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Take the chunks of one document; full batches are embedded and saved at once."""
        fresh = {chunk.chunk_id: chunk for chunk in chunks if chunk.chunk_id not in self._known}
        self._known.update(fresh)
        missing = self._catalog.missing_vectors(self._recipe, list(fresh))
        self.reused += len(fresh) - len(missing)
        self._waiting.update((chunk_id, fresh[chunk_id]) for chunk_id in missing)
        while len(self._waiting) >= BATCH:
            self._embed(BATCH)

    def finish(self) -> None:
        """Embed and save what still waits."""
        while self._waiting:
            self._embed(BATCH)

    def _embed(self, count: int) -> None:
        ids = list(self._waiting)[:count]
        texts = [passage_text(self._waiting[key].context, self._waiting[key].text) for key in ids]
        dense = self._embedder.embed_passages(texts)
        vectors = [
            StoredVector(key, pack_dense(vector), self._sparse.encode_passage(text))
            for key, vector, text in zip(ids, dense, texts, strict=True)
        ]
        self._failpoints.reach("embed")
        self._catalog.save_vectors(self._recipe, vectors)
        self._failpoints.reach("saved")
        for key in ids:
            del self._waiting[key]
        self.computed += len(ids)
        self._progress.chunks(self.computed, self.computed + len(self._waiting))

"""Publishing one edit in an index of 20,000 chunks, and what it costs beside copying the files of a generation.

The vectors are random (seeded): what a publish costs does not depend on what they mean. ``CHUNKS=200000`` measures the
larger size of the storage design.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ingest.catalog.changes import CatalogChanges, DocumentRow, RootRow, SourceRow, pack_text
from ingest.catalog.database import Catalog
from ingest.catalog.vectors import StoredVector, pack_dense
from ingest.failpoints import Failpoints
from ingest.publish.clone import allocated_bytes
from ingest.publish.publisher import Publisher
from search.generation import IndexLayout
from search.identity import ChunkId, DocumentId, chunk_id, document_id
from search.recipe import EmbeddingSpec, Recipe
from search.records import Chunk, Location, SparseVector
from search.sparse import sparse_spec
from search.sparse_copy import copy_folder

CHUNKS = int(os.environ.get("CHUNKS", "20000"))
PER_DOCUMENT = 100
EDITS = 5
DIM = 384
# Words of a passage are drawn by rank, as words are used; 40,000 stems are those of a few thousand pages of English.
VOCABULARY = 40_000
WORDS = ["harbour", "lantern", "kettle", "bridge", "window", "engine", "ticket", "morning", "ferry", "signal", "rope"]


def main() -> None:
    """Build the index, publish edits, print the medians and ratios."""
    with tempfile.TemporaryDirectory(prefix="grounded-bench-") as folder:
        layout = IndexLayout(Path(folder) / ".grounded")
        catalog = Catalog.open(layout.catalog)
        recipe = _recipe()
        maker = _Maker(catalog, recipe)
        documents = [maker.document(number, "first") for number in range(CHUNKS // PER_DOCUMENT)]
        first = _publish(catalog, layout, recipe, _changes(documents))
        size = allocated_bytes(layout.generations) / CHUNKS
        print(f"first publish of {CHUNKS} chunks: {first:.2f} s, {size:.0f} B/chunk")
        edits = [
            _publish(catalog, layout, recipe, _changes([maker.document(edit, f"edit {edit}")])) for edit in range(EDITS)
        ]
        copies = list(_copies(layout, catalog, Path(folder)))
        edit, copy = statistics.median(edits), statistics.median(copies)
        print(f"publish of one edit, p50 of {EDITS}: {edit:.3f} s (builder already started, as in a run)")
        print(f"copy of a generation's files, p50: {copy:.3f} s; publish / copy = {edit / copy:.1f}")
        print(f"disk, catalog and two generations: {_disk(layout) / CHUNKS:.0f} B/chunk")
        catalog.close()


class _Maker:
    """Makes documents of synthetic chunks, and saves random vectors for them."""

    def __init__(self, catalog: Catalog, recipe: Recipe) -> None:
        self._catalog = catalog
        self._recipe = recipe
        self._random = np.random.default_rng(20)

    def document(self, number: int, edition: str) -> DocumentRow:
        """Return a document of 100 chunks, of which the first one depends on the edition."""
        texts = [self._text(number, part, edition if part == 0 else "first") for part in range(PER_DOCUMENT)]
        text = "\n\n".join(texts)
        chunks: list[tuple[Chunk, Location]] = []
        start = 0
        for part in texts:
            chunks.append(
                (Chunk(chunk_id("", part), "", part, 110), Location(char_start=start, char_end=start + len(part)))
            )
            start += len(part) + 2
        self._save([chunk.chunk_id for chunk, _ in chunks])
        return DocumentRow(
            document_id=document_id(text.encode()), suggested="text", kind="text", media_type="text/plain",
            fingerprint="bench", status="indexed", text=pack_text(text), chars=len(text), chunks=chunks,
        )  # fmt: skip

    def _text(self, number: int, part: int, edition: str) -> str:
        picked = np.random.default_rng([number, part]).integers(0, len(WORDS), 90)
        return f"{edition} {number} {part}: " + " ".join(WORDS[index] for index in picked)

    def _save(self, ids: list[ChunkId]) -> None:
        missing = self._catalog.missing_vectors(self._recipe.vector_recipe_id, ids)
        dense = self._random.standard_normal((len(missing), DIM)).astype(np.float32)
        dense /= np.linalg.norm(dense, axis=1, keepdims=True)
        indices = [np.unique(self._random.zipf(1.2, 90) % VOCABULARY) for _ in missing]
        self._catalog.save_vectors(
            self._recipe.vector_recipe_id,
            [
                StoredVector(key, pack_dense(vector), SparseVector(tuple(found.tolist()), (1.0,) * len(found)))
                for key, vector, found in zip(missing, dense, indices, strict=True)
            ],
        )


def _changes(documents: list[DocumentRow]) -> CatalogChanges:
    root = Path("/bench")
    return CatalogChanges(
        roots=[RootRow(root, "bench")],
        sources=[
            SourceRow(
                path=f"/bench/{row.chunks[1][0].text.split()[1]}.txt".encode(), root=root,
                shown=f"{row.chunks[1][0].text.split()[1]}.txt", path_b64=None, size=row.chars, mtime_ns=1, ctime_ns=1,
                ino=1, dev=1, racy=False, document_id=DocumentId(row.document_id),
            )
            for row in documents
        ],
        documents=documents,
    )  # fmt: skip


def _publish(catalog: Catalog, layout: IndexLayout, recipe: Recipe, changes: CatalogChanges) -> float:
    publisher = Publisher(catalog, layout, Failpoints(), space_margin_bytes=0)
    publisher.prepare()
    publisher.wait_until_ready()
    begun = time.perf_counter()
    try:
        publisher.publish(changes, recipe, from_scratch=False, new_points=1)
    finally:
        publisher.close()
    return time.perf_counter() - begun


def _copies(layout: IndexLayout, catalog: Catalog, folder: Path) -> Iterator[float]:
    for number in range(EDITS):
        begun = time.perf_counter()
        copy_folder(layout.generation(catalog.generation or ""), folder / f"copy-{number}")
        yield time.perf_counter() - begun


def _recipe() -> Recipe:
    spec = EmbeddingSpec(model="bench", files={}, dim=DIM, max_tokens=256)
    return Recipe(embedding=spec, sparse=sparse_spec("english"), chunking={"version": "bench"})


def _disk(layout: IndexLayout) -> int:
    return allocated_bytes(layout.index)


if __name__ == "__main__":
    main()

"""Stand-ins for tests: a deterministic embedder without a model, and a generation written as the publisher writes one.

For use inside one process; a test that starts ``ingest`` uses the bundled model, which loads in about a second.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.shard import PointRecord, Shard, settle
from search.embedding import Embedder, passage_text
from search.generation import MANIFEST, FileEntry, IndexLayout, Manifest, generation_name
from search.identity import ChunkId, canonical_json, chunk_id, document_id, sparse_sha256, text_hash
from search.recipe import EmbeddingSpec, Recipe
from search.records import Citation
from search.sparse import SparseEncoder, sparse_spec

__all__ = ["FAKE_SPEC", "FakeEmbedder", "Place", "fake_recipe", "point", "publish_generation", "tree_bytes"]

FAKE_SPEC = EmbeddingSpec(model="fake", files={"fake": "0" * 64}, dim=64, max_tokens=256)
WORD = re.compile(r"\w+")


class FakeEmbedder:
    """An ``Embedder`` whose vector is the sum of one fixed random direction per lower-case word.

    Texts that share words are near, so a search finds what a person expects. Made from sha256: the same in every
    process and on every machine. ``embedded`` counts the texts, passages and questions apart.
    """

    def __init__(self, spec: EmbeddingSpec = FAKE_SPEC) -> None:
        self._spec = spec
        self.passages_embedded = 0
        self.queries_embedded = 0

    @property
    def spec(self) -> EmbeddingSpec:
        return self._spec

    def token_ends(self, text: str) -> NDArray[np.int32]:
        return np.array([match.end() for match in WORD.finditer(text)], dtype=np.int32)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.passages_embedded += len(texts)
        rows = [self._vector(text) for text in texts]
        return np.stack(rows) if rows else np.empty((0, self._spec.dim), dtype=np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.queries_embedded += 1
        return self._vector(text)

    def _vector(self, text: str) -> NDArray[np.float32]:
        total = np.zeros(self._spec.dim)
        # One direction that all texts share keeps the vector of a text without words from being zero.
        for word in ["", *(match.group().lower() for match in WORD.finditer(text))]:
            seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()[:8], "big")
            total += np.random.default_rng(seed).standard_normal(self._spec.dim)
        return (total / np.linalg.norm(total)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage of a test stands."""

    path: str
    root: str = "docs"
    media_type: str = "text/markdown"
    char_start: int = 0


def fake_recipe(spec: EmbeddingSpec = FAKE_SPEC) -> Recipe:
    """A recipe around an embedding spec."""
    return Recipe(embedding=spec, sparse=sparse_spec("english"), chunking={"version": "test"})


def point(embedder: Embedder, text: str, *places: Place, context: str = "") -> PointRecord:
    """A point as the publisher makes it."""
    joined = passage_text(context, text)
    citations = [
        Citation(
            root=place.root,
            path=place.path,
            document_id=document_id(place.path.encode()),
            media_type=place.media_type,
            char_start=place.char_start,
            char_end=place.char_start + len(text),
        )
        for place in places
    ]
    locations = [citation.to_json() for citation in citations]
    for location in locations:
        del location["uri"]
    payload: dict[str, object] = {
        "text": text,
        "context": context,
        "text_hash": text_hash(context, text),
        "n_tokens": len(embedder.token_ends(joined)),
        "media_type": sorted({place.media_type for place in places}),
        "roots": sorted({place.root for place in places}),
        "sources": sorted({place.path for place in places}),
        "documents": sorted({citation.document_id for citation in citations}),
        "locations": locations,
    }
    sparse = SparseEncoder(sparse_spec("english")).encode_passage(joined)
    return PointRecord(chunk_id(context, text), embedder.embed_passages([joined])[0], sparse, payload)


def publish_generation(
    home: Path, points: Iterable[PointRecord], *, revision: int = 1, recipe: Recipe | None = None
) -> IndexLayout:
    """Write one generation and point ``CURRENT`` at it; the order of steps is that of the publisher."""
    layout = IndexLayout(home)
    recipe = recipe or fake_recipe()
    records = list(points)
    folder = layout.generation(generation_name(revision))
    with Shard.create(folder, recipe.embedding) as shard:
        shard.apply(records, [], [])
        shard.optimize()
    settle(folder, len(records))
    files = {
        str(path.relative_to(folder)): FileEntry(path.stat().st_size, sparse_sha256(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = Manifest(
        revision=revision,
        recipe=recipe,
        chunks=len(records),
        documents=len(records),
        statuses={"indexed": len(records), "failed": 1},
        documents_with_gaps=0,
        removals_withheld=0,
        files=files,
    )
    (folder / MANIFEST).write_text(canonical_json(manifest.to_json()), encoding="utf-8")
    point_at(layout, folder.name)
    return layout


def point_at(layout: IndexLayout, name: str) -> None:
    """Replace ``CURRENT`` by rename."""
    aside = layout.pointer.with_suffix(".tmp")
    aside.write_text(name + "\n", encoding="ascii")
    aside.replace(layout.pointer)


def tree_bytes(folder: Path) -> Mapping[str, str]:
    """Every file below ``folder`` and its sha256."""
    return {str(path.relative_to(folder)): sparse_sha256(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def ids(points: Iterable[PointRecord]) -> set[ChunkId]:
    """The ids of points."""
    return {record.chunk_id for record in points}

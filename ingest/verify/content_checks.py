"""Checks that read contents: passages against the stored texts, and a sample of vectors against the model."""

from itertools import groupby

import numpy as np

from ingest.catalog.changes import unpack_text
from ingest.catalog.database import Catalog
from ingest.catalog.vectors import dense_array
from search.embedding import embedder_of, passage_text
from search.errors import GroundedError
from search.identity import ChunkId, chunk_id
from search.settings import Settings, cache_folder

from .findings import Check, check

__all__ = ["texts", "vectors"]

# Chunks that are embedded once more: a second or two on two cores.
SAMPLE = 32
# A stored vector is rounded to float16; one of another text or model is far below this.
LEAST_COSINE = 0.999


def texts(catalog: Catalog) -> Check:
    """Compare every passage with the characters that it cites, and every id with what it is made from (I3)."""
    wrong: list[str] = []
    rows = catalog.connection.execute(
        "SELECT l.document_id, d.text, l.ordinal, l.char_start, l.char_end, c.chunk_id, c.context, c.text "
        "FROM locations l JOIN documents d USING(document_id) JOIN chunks c USING(chunk_id) "
        "ORDER BY l.document_id, l.ordinal"
    )
    count = 0
    for document_id, places in groupby(rows, key=lambda row: row[0]):
        text: str | None = None
        for _, packed, ordinal, start, end, key, context, passage in places:
            text = unpack_text(packed) if text is None else text
            count += 1
            if text[start:end] != passage:
                wrong.append(f"{document_id}#{ordinal}: the cited characters are not the passage")
            if chunk_id(context, passage) != key:
                wrong.append(f"{key}: not the id of its context and text")
    return check(
        "passages",
        wrong,
        fine=f"{count} passages stand verbatim at their cited place",
        wrong="passages are not what they cite",
        remedy="ingest run --rebuild FOLDER",
    )


def vectors(catalog: Catalog, settings: Settings) -> Check:
    """Embed an evenly spread sample of chunks again, and compare with the saved vectors."""
    name = "vectors"
    recipe = catalog.recipe
    if recipe is None:
        return Check(name, "error", False, "the catalog has no recipe", "ingest run --rebuild FOLDER")
    ids = [ChunkId(row[0]) for row in catalog.connection.execute("SELECT chunk_id FROM points ORDER BY chunk_id")]
    sample = ids[:: max(1, len(ids) // SAMPLE)]
    saved = catalog.vectors(recipe.vector_recipe_id, sample)
    try:
        embedder = embedder_of(
            recipe.embedding, model=settings.model, threads=settings.embed_threads, cache=cache_folder()
        )
        passages = [_passage(catalog, key) for key in saved]
        fresh = embedder.embed_passages(passages)
    except GroundedError as error:
        return Check(name, "warning", False, f"not compared: {error}", "make the model available")
    cosines = {key: float(np.dot(vector, dense_array(saved[key][0]))) for key, vector in zip(saved, fresh, strict=True)}
    wrong = [f"{key}: cosine {value:.4f}" for key, value in cosines.items() if not value >= LEAST_COSINE]
    return check(
        name,
        wrong,
        fine=f"{len(saved)} sampled vectors are those of the model",
        wrong="sampled vectors are not those of the model",
        remedy="ingest repair --recompute",
    )


def _passage(catalog: Catalog, key: ChunkId) -> str:
    context, text = catalog.connection.execute("SELECT context, text FROM chunks WHERE chunk_id = ?", (key,)).fetchone()
    return passage_text(context, text)

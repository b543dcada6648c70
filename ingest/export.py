"""``ingest export``: the state of an index in a form in which equal states are equal bytes (I5).

Sorted JSON lines: sources, documents, chunks. Nothing in them depends on when, where, in which order or in how many
runs the state was reached: no times, no run ids, no revision, no absolute path. Reader versions are left out too, since
they say how a text was got, not what it is.
"""

import json
from collections.abc import Iterator

from search.identity import canonical_json, digest

from .catalog.changes import unpack_text
from .catalog.database import Catalog

__all__ = ["export"]


def export(catalog: Catalog) -> Iterator[str]:
    """Yield the lines, without line ends. Does not write."""
    for line in (*_sources(catalog), *_documents(catalog)):
        yield canonical_json(line)
    for line in _chunks(catalog):
        yield canonical_json(line)


def _sources(catalog: Catalog) -> Iterator[dict[str, object]]:
    rows = catalog.connection.execute(
        "SELECT root, shown, path_b64, document_id, status, reason, withheld FROM source_states "
        "ORDER BY root, shown, path_b64"
    )
    for root, shown, path_b64, document_id, status, reason, withheld in rows:
        yield {
            "message_type": "source",
            "root": root,
            "path": shown,
            "path_b64": path_b64,
            "document_id": document_id,
            "status": status,
            "reason": reason,
            "withheld": bool(withheld),
        }


def _documents(catalog: Catalog) -> Iterator[dict[str, object]]:
    rows = catalog.connection.execute(
        "SELECT document_id, kind, media_type, title, status, reason, text, chars, warnings, gaps FROM documents "
        "ORDER BY document_id"
    )
    for document_id, kind, media_type, title, status, reason, text, chars, warnings, gaps in rows:
        yield {
            "message_type": "document",
            "document_id": document_id,
            "kind": kind,
            "media_type": media_type,
            "title": title,
            "status": status,
            "reason": reason,
            "text_hash": digest([unpack_text(text).encode("utf-8", "surrogatepass")]),
            "chars": chars,
            "warnings": json.loads(warnings),
            "gaps": json.loads(gaps),
        }


def _chunks(catalog: Catalog) -> Iterator[dict[str, object]]:
    recipe = catalog.recipe
    rows = catalog.connection.execute(
        "SELECT c.chunk_id, c.context, c.text, c.n_tokens, v.dense, v.sparse FROM chunks c "
        "LEFT JOIN vectors v ON v.chunk_id = c.chunk_id AND v.vector_recipe = ? "
        "WHERE EXISTS (SELECT 1 FROM locations l WHERE l.chunk_id = c.chunk_id) ORDER BY c.chunk_id",
        (recipe.vector_recipe_id if recipe else "",),
    )
    for chunk_id, context, text, n_tokens, dense, sparse in rows:
        yield {
            "message_type": "chunk",
            "chunk_id": chunk_id,
            "context": context,
            "text": text,
            "n_tokens": n_tokens,
            "dense_hash": digest([dense]) if dense is not None else None,
            "sparse_hash": digest([sparse]) if sparse is not None else None,
            "locations": list(_locations(catalog, chunk_id)),
        }


LOCATION = (
    "document_id", "ordinal", "char_start", "char_end", "line_start", "line_end", "part_kind", "part_first",
    "part_last", "part_label", "part_starts", "cells", "headings",
)  # fmt: skip


def _locations(catalog: Catalog, chunk_id: str) -> Iterator[dict[str, object]]:
    rows = catalog.connection.execute(
        "SELECT document_id, ordinal, char_start, char_end, line_start, line_end, part_kind, part_first, part_last, "
        "part_label, part_starts, cells, headings FROM locations WHERE chunk_id = ? ORDER BY document_id, ordinal",
        (chunk_id,),
    )
    for row in rows:
        values = dict(zip(LOCATION, row, strict=True))
        for name in ("part_starts", "headings"):
            values[name] = json.loads(values[name]) if values[name] else []
        yield {name: value for name, value in values.items() if value is not None}

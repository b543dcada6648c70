"""``ingest status``: what an index holds, what it lacks, and what it costs. Does not write."""

import contextlib
from pathlib import Path

from search.generation import IndexLayout
from search.settings import Settings

from .catalog import state
from .catalog.database import Catalog
from .publish.clone import allocated_bytes
from .reporting import failures

__all__ = ["status"]


def status(settings: Settings) -> dict[str, object]:
    """Return the object that ``ingest status --json`` prints; without an index ``exists`` is false."""
    layout = IndexLayout(settings.home)
    base: dict[str, object] = {
        "message_type": "status",
        "exists": layout.catalog.exists(),
        "settings": settings.describe(),
        "index": None,
        "failures": [],
    }
    if not base["exists"]:
        return base
    with contextlib.closing(Catalog.open_read_only(layout.catalog)) as catalog:
        base["index"] = _summary(layout, catalog)
        base["failures"] = [failure._asdict() for failure in failures(catalog)]
    return base


def _summary(layout: IndexLayout, catalog: Catalog) -> dict[str, object]:
    connection = catalog.connection
    statuses = dict(connection.execute("SELECT status, count(*) FROM source_states GROUP BY status ORDER BY status"))
    (withheld,) = connection.execute("SELECT count(*) FROM sources WHERE withheld").fetchone()
    documents, gaps = connection.execute(
        "SELECT count(*), coalesce(sum(gaps <> '[]'), 0) FROM documents WHERE status = 'indexed'"
    ).fetchone()
    (chunks,) = connection.execute("SELECT count(*) FROM points").fetchone()
    unreferenced, unreferenced_bytes = connection.execute(
        "SELECT count(*), coalesce(sum(length(dense) + length(sparse)), 0) FROM vectors v "
        "WHERE NOT EXISTS (SELECT 1 FROM locations l WHERE l.chunk_id = v.chunk_id)"
    ).fetchone()
    recipe = catalog.recipe
    newest = catalog.runs(1)
    return {
        "folder": str(layout.home),
        "revision": catalog.revision,
        "generation": catalog.generation,
        "model": recipe.embedding.model if recipe else None,
        "recipe": recipe.recipe_id if recipe else None,
        "roots": [str(root.path).encode("utf-8", "replace").decode() for root in state.known_roots(catalog)],
        "sources": statuses,
        "removals_withheld": withheld,
        "documents": documents,
        "documents_with_gaps": gaps,
        "chunks": chunks,
        "chunks_kept_for_undo": unreferenced,
        "bytes_kept_for_undo": unreferenced_bytes,
        "catalog_bytes": _size(layout.catalog),
        "generation_bytes": allocated_bytes(layout.generations) if layout.generations.is_dir() else 0,
        "last_run": newest[0]["outcome"] if newest else None,
    }


def _size(path: Path) -> int:
    return path.stat().st_size

"""What the planner needs to know of the catalog, read in two queries. Does not write."""

import sys
from pathlib import Path

from ingest.plan import CatalogDocument, CatalogSource, CatalogState
from ingest.sources import Root, StatTuple
from search.identity import DocumentId

from .database import Catalog

__all__ = ["known_roots", "load", "withheld_paths"]

UNSIGNED = (1 << 64) - 1


def known_roots(catalog: Catalog) -> list[Root]:
    """Return the roots of earlier runs, by path."""
    rows = catalog.connection.execute("SELECT path, name FROM roots ORDER BY path")
    return [Root(Path(path.decode("utf-8", "surrogateescape")), name) for path, name in rows]


def load(catalog: Catalog) -> CatalogState:
    """Return sources by real path, and documents by id.

    Equal strings and equal documents are shared, and tuples are made without a call into Python: 100,000 sources take
    60 MB and half a second.
    """
    share, make = sys.intern, tuple.__new__
    kinds: dict[tuple[str, str, str, str | None, str], CatalogDocument] = {}
    documents: dict[DocumentId, CatalogDocument] = {}
    for document_id, *values in catalog.connection.execute(
        "SELECT document_id, suggested, kind, fingerprint, failure_key, status FROM documents"
    ):
        facts = make(CatalogDocument, values)
        documents[DocumentId(share(document_id))] = kinds.setdefault(facts, facts)
    sources: dict[bytes, CatalogSource] = {}
    for path, root, size, mtime_ns, ctime_ns, ino, dev, racy, document_id, problem in catalog.connection.execute(
        "SELECT s.path, r.name, size, mtime_ns, ctime_ns, ino, dev, racy, document_id, problem "
        "FROM sources s JOIN roots r USING(root_id)"
    ):
        stat = make(StatTuple, (size, mtime_ns, ctime_ns, ino & UNSIGNED, dev & UNSIGNED))
        known = DocumentId(share(document_id)) if document_id else None
        status = problem or (documents[known].status if known else "")
        sources[path] = make(CatalogSource, (path, share(root), stat, bool(racy), known, status))
    return CatalogState(sources=sources, documents=documents)


def withheld_paths(catalog: Catalog) -> set[bytes]:
    """Return the real paths of sources whose removal an earlier run withheld."""
    return {row[0] for row in catalog.connection.execute("SELECT path FROM sources WHERE withheld <> 0")}

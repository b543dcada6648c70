"""From a plan and the documents that were read to the changes of the catalog. Pure."""

from collections.abc import Iterator, Mapping

from search.identity import DocumentId

from .catalog.changes import CatalogChanges, DocumentRow, RootRow, SourceRow
from .plan import PENDING, CatalogState, IngestPlan, Item
from .sources import Scan, path_b64, shown_path

__all__ = ["changes_of", "fallen_sources", "touched_rows"]

# A source that has a document has these statuses by itself; all others are its document's.
OWN_PROBLEMS = frozenset({"unreadable", "unstable"})


def changes_of(
    plan: IngestPlan,
    documents: Mapping[DocumentId, DocumentRow],
    catalog: CatalogState,
    scan: Scan,
    *,
    withheld_before: set[bytes],
) -> CatalogChanges:
    """Return what has to change in the catalog. Rows that stand there already as they should are left out."""
    rows = [
        (item, _source_row(item)) for item in plan.items if item.row is not None and not _only_touched(item, catalog)
    ]
    wanted = {item.row.document_id for item, _ in rows if item.row is not None}
    withheld = {item.path for item in plan.items if item.verdict == "withheld"}
    written = {item.path for item, _ in rows}
    seen = {source.path for source in scan.seen}
    return CatalogChanges(
        roots=[RootRow(root.path, root.name) for root in scan.roots],
        sources=[row for _, row in rows],
        removed=list(plan.removals),
        documents=[documents[item.document_id] for item in plan.work if item.document_id in wanted],
        flagged=sorted(withheld - withheld_before),
        unflagged=sorted((withheld_before & seen) - withheld - written),
    )


def touched_rows(plan: IngestPlan, catalog: CatalogState) -> Iterator[SourceRow]:
    """Yield the rows of sources whose stat tuple alone is new: no new revision, since no reader could see it."""
    for item in plan.items:
        if item.row is not None and item.row != catalog.sources.get(item.path) and _only_touched(item, catalog):
            yield _source_row(item)


def fallen_sources(
    plan: IngestPlan, documents: Mapping[DocumentId, DocumentRow], catalog: CatalogState
) -> frozenset[bytes]:
    """Return the sources that are indexed now and would not be after this run, though they are still there."""
    fallen: set[bytes] = set()
    for item in plan.items:
        before = catalog.sources.get(item.previous or item.path)
        if before is None or before.status != "indexed" or item.row is None or item.row.document_id is None:
            continue
        document = documents.get(item.row.document_id)
        if item.row.status == PENDING and document is not None and document.status != "indexed":
            fallen.add(before.path)
    return frozenset(fallen)


def _only_touched(item: Item, catalog: CatalogState) -> bool:
    before = catalog.sources.get(item.path)
    if item.row is None or before is None:
        return False
    return (item.row.root, item.row.document_id, item.row.status) == (before.root, before.document_id, before.status)


def _source_row(item: Item) -> SourceRow:
    row = item.row
    if row is None:
        raise ValueError(f"{item.path!r}: a source without a row has nothing to write")
    own = row.document_id is None or row.status in OWN_PROBLEMS
    return SourceRow(
        path=item.path,
        root=item.home.path,
        shown=shown_path(item.path, item.home.path),
        path_b64=path_b64(item.path, item.home.path),
        size=row.stat.size_bytes,
        mtime_ns=row.stat.mtime_ns,
        ctime_ns=row.stat.ctime_ns,
        ino=row.stat.ino,
        dev=row.stat.dev,
        racy=row.racy,
        document_id=row.document_id,
        problem=row.status if own else None,
        reason=item.reason if own else None,
    )

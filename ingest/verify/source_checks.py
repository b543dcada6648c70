"""Checks of the sources: what the catalog knows against the disk, and stored texts against another reading."""

from pathlib import Path

from ingest.catalog import state
from ingest.catalog.changes import unpack_text
from ingest.catalog.database import Catalog
from ingest.observation import Observer
from ingest.opening import stat_source, stat_tuple
from ingest.parsing.document import Document
from ingest.parsing.pool import WorkerPool
from ingest.parsing.wire import Job
from ingest.sources import Failure, Root, Seen, hash_source, parts_of, shown_path
from search.identity import DocumentId

from .findings import Check, check

__all__ = ["on_disk", "parsed_again"]

RUN = "ingest run FOLDER"
# Where stat tuples are as ever, a usual run sees no reason to look.
REHASH = "ingest run --rehash FOLDER"
# Documents that are parsed once more.
SAMPLE = 16


def on_disk(catalog: Catalog) -> Check:
    """Compare every source with its file: stat first, and the content where that proves nothing."""
    known = state.load(catalog)
    roots = {root.name: root for root in state.known_roots(catalog)}
    wrong: list[str] = []
    remedy = RUN
    for source in known.sources.values():
        seen = _seen(source.path, roots[source.root])
        if seen is None:
            wrong.append(f"{shown_path(source.path, roots[source.root].path)}: no longer there")
        elif source.document_id is not None and (seen.stat != source.stat or source.racy):
            now = hash_source(seen)
            if isinstance(now, Failure):
                wrong.append(f"{seen.shown}: {now.reason}")
            elif now != source.document_id:
                wrong.append(f"{seen.shown}: changed since it was ingested")
                remedy = REHASH if seen.stat == source.stat else remedy
    return check(
        "sources",
        wrong,
        fine=f"{len(known.sources)} sources are as they were ingested",
        wrong="sources differ from what was ingested",
        remedy=remedy,
    )


def parsed_again(catalog: Catalog, observer: Observer) -> Check:
    """Parse an evenly spread sample of documents again, and compare the texts."""
    roots = {root.name: root for root in state.known_roots(catalog)}
    rows = catalog.connection.execute(
        "SELECT d.document_id, d.suggested, d.text, s.root, s.path FROM documents d JOIN "
        "(SELECT document_id, min(path) AS path, root FROM source_states GROUP BY document_id) s USING(document_id) "
        "WHERE d.status = 'indexed' ORDER BY d.document_id"
    ).fetchall()
    sample = rows[:: max(1, len(rows) // SAMPLE)]
    texts = {DocumentId(document_id): packed for document_id, _, packed, _, _ in sample}
    jobs = [
        _job(DocumentId(document_id), kind, seen)
        for document_id, kind, _, root, path in sample
        if (seen := _seen(path, roots[root])) is not None
    ]
    wrong: list[str] = []
    with WorkerPool(1, observer.limits, options=observer.reader_options) as pool:
        for job, result in pool.results(jobs):
            if isinstance(result, Document) and result.text != unpack_text(texts[job.document_id]):
                wrong.append(f"{job.name}: reading it again gives another text")
    return check(
        "readers",
        wrong,
        fine=f"{len(jobs)} sampled documents read again give their stored text",
        wrong="sampled documents are read differently now",
        remedy="ingest run --rebuild FOLDER",
    )


def _seen(path: bytes, root: Root) -> Seen | None:
    try:
        found = stat_source(root.path, parts_of(path, root.path))
    except OSError:
        return None
    return Seen(path, root, stat_tuple(found), False)


def _job(document_id: DocumentId, kind: str, seen: Seen) -> Job:
    return Job(
        document_id=document_id,
        root=Path(seen.root),
        parts=seen.parts,
        size_bytes=seen.stat.size_bytes,
        kind=kind,
        name=seen.shown,
    )

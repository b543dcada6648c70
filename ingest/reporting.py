"""Fills a run's report from the plan, and from the catalog as it stands after the run. Does not write."""

import json
from collections.abc import Iterable, Iterator

from .catalog.changes import CatalogChanges
from .catalog.database import Catalog
from .plan import IngestPlan
from .publish.publisher import Published
from .report import FailedSource, RunReport, SkippedSource
from .sources import Scan, Scope, path_b64, shown_path
from .statuses import FINE, gap_entries, retry_rule

__all__ = ["count_chunks", "count_sources", "doubts", "failures", "list_sources"]


def count_sources(report: RunReport, plan: IngestPlan, scan: Scan) -> None:
    """Count the verdicts of the plan that was carried out."""
    verdicts, counts = plan.counts, report.sources
    counts.seen = len(scan.seen)
    counts.unchanged = verdicts["same"] + verdicts["touched"]
    counts.added = verdicts["new"] + verdicts["alias"]
    counts.changed = verdicts["changed"] + verdicts["reparse"] + verdicts["retry"]
    counts.renamed = verdicts["moved"]
    counts.removed = verdicts["removed"]
    counts.withheld = verdicts["withheld"]
    counts.skipped = len(scan.skips)


def count_chunks(report: RunReport, catalog: Catalog, published: Published | None) -> None:
    """Count the chunks; without a publish all of them were kept."""
    report.revision, report.generation = catalog.revision, catalog.generation
    (report.chunks.total,) = catalog.connection.execute("SELECT count(*) FROM points").fetchone()
    if published is not None:
        report.published = True
        report.chunks.written = published.totals.written
        report.chunks.relocated = published.totals.relocated
        report.chunks.removed = published.totals.removed
    report.chunks.kept = report.chunks.total - report.chunks.written


def list_sources(report: RunReport, catalog: Catalog, plan: IngestPlan, scan: Scan, changes: CatalogChanges) -> None:
    """Name what is not in the index and why: failures in the scope of this run, skips, unobserved and withheld."""
    report.failures = [
        FailedSource(error.given, "unreadable", error.reason, retry_rule("unreadable")) for error in scan.errors
    ]
    report.failures += failures(catalog, scan.scopes)
    report.sources.failed = len(report.failures)
    report.skips = [
        SkippedSource(skip.shown, skip.rule, skip.home.name, path_b64(skip.path, skip.home.path)) for skip in scan.skips
    ]
    report.scopes = [
        {"root": home.name, "folder": shown_path(prefix, home.path), "file": file} for prefix, home, file in scan.scopes
    ]
    report.unobserved = [
        {**kept._asdict(), "root": missed.home.name if missed.home is not None else ""}
        for kept, missed in zip(plan.unobserved, scan.unobserved, strict=True)
    ]
    report.withheld = [withheld.to_json() for withheld in plan.withheld]
    report.messages += [withheld.message for withheld in plan.withheld]
    report.warnings = list(doubts(catalog, (document.document_id for document in changes.documents)))


def failures(catalog: Catalog, scopes: Iterable[Scope] | None = None) -> list[FailedSource]:
    """Return the sources that are not in the index, by root and path; only those that ``scopes`` cover, if given."""
    covering = None if scopes is None else tuple(scopes)
    rows = catalog.connection.execute(
        "SELECT path, shown, status, reason, root, path_b64 FROM source_states WHERE path IN ("
        "SELECT path FROM sources WHERE problem IS NOT NULL UNION ALL SELECT s.path FROM documents d "
        "JOIN sources s USING(document_id) WHERE d.status <> 'indexed') AND status NOT IN (?, ?, ?) "
        "ORDER BY root, shown",
        FINE,
    )
    return [
        FailedSource(shown, status, reason or status, retry_rule(status), root, exact)
        for path, shown, status, reason, root, exact in rows
        if covering is None or any(scope.covers(path) for scope in covering)
    ]


def doubts(catalog: Catalog, document_ids: Iterable[str] | None = None) -> Iterator[dict[str, object]]:
    """Yield what is missing or doubtful in indexed documents, all or these: one entry a source, by root and path."""
    connection = catalog.connection
    if document_ids is None:
        rows = connection.execute(DOUBTS + BY_PATH)
    else:
        rows = connection.execute(DOUBTS + OF_THESE + BY_PATH, (json.dumps(list(document_ids)),))
    for root, shown, kind, warnings, gaps in rows:
        yield {
            "source": shown,
            "root": root,
            "warnings": json.loads(warnings),
            "gaps": gap_entries(kind, json.loads(gaps)),
        }


DOUBTS = (
    "SELECT r.name, s.shown, d.kind, d.warnings, d.gaps "
    "FROM documents d JOIN sources s USING(document_id) JOIN roots r USING(root_id) "
    "WHERE d.status = 'indexed' AND s.problem IS NULL AND (d.warnings <> '[]' OR d.gaps <> '[]') "
)
OF_THESE = "AND d.document_id IN (SELECT value FROM json_each(?)) "
BY_PATH = "ORDER BY r.name, s.shown, s.path"

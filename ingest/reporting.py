"""Fills a run's report from the plan, and from the catalog as it stands after the run. Does not write."""

import json
from collections.abc import Iterable

from .catalog.changes import CatalogChanges
from .catalog.database import Catalog
from .plan import IngestPlan
from .publish.publisher import Published
from .report import FailedSource, RunReport, SkippedSource, retry_rule
from .sources import Scan, Scope

__all__ = ["count_chunks", "count_sources", "failures", "list_sources"]

# Statuses of a source that is as it should be.
FINE = ("indexed", "empty")


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
    report.skips = [SkippedSource(skip.shown, skip.rule) for skip in scan.skips]
    report.unobserved = [kept._asdict() for kept in plan.unobserved]
    report.withheld = [withheld.to_json() for withheld in plan.withheld]
    report.messages += [withheld.message for withheld in plan.withheld]
    report.warnings = _warnings(catalog, [document.document_id for document in changes.documents])


def failures(catalog: Catalog, scopes: Iterable[Scope] | None = None) -> list[FailedSource]:
    """Return the sources that are not in the index, by root and path; only those that ``scopes`` cover, if given."""
    covering = None if scopes is None else tuple(scopes)
    rows = catalog.connection.execute(
        "SELECT path, shown, status, reason FROM source_states WHERE path IN ("
        "SELECT path FROM sources WHERE problem IS NOT NULL UNION ALL SELECT s.path FROM documents d "
        "JOIN sources s USING(document_id) WHERE d.status <> 'indexed') AND status NOT IN (?, ?) ORDER BY root, shown",
        FINE,
    )
    return [
        FailedSource(shown, status, reason or status, retry_rule(status))
        for path, shown, status, reason in rows
        if covering is None or any(scope.covers(path) for scope in covering)
    ]


def _warnings(catalog: Catalog, document_ids: list[str]) -> list[dict[str, object]]:
    """Return what is doubtful in the documents that were read now: one entry a source."""
    rows = catalog.connection.execute(
        "SELECT shown, warnings, gaps FROM source_states WHERE status = 'indexed' "
        "AND (warnings <> '[]' OR gaps <> '[]') AND document_id IN (SELECT value FROM json_each(?)) "
        "ORDER BY root, shown",
        (json.dumps(document_ids),),
    )
    return [
        {
            "source": shown,
            "warnings": json.loads(warnings),
            "gaps": [{"part": part, "reason": reason} for part, reason in json.loads(gaps)],
        }
        for shown, warnings, gaps in rows
    ]

"""The audit event of a run: one, keyed by the run's id, made through the same package as every other event (I7)."""

import logging

from audit import Audit, AuditError, JsonValue, StepKey
from search.generation import IndexLayout

from .report import RunReport

__all__ = ["record_run"]

log = logging.getLogger(__name__)


def record_run(layout: IndexLayout, report: RunReport) -> None:
    """Write the event of a finished run: ids and counts, never names or texts.

    The index is already published, so an audit store that cannot be written does not undo the run: it is said in the
    report's messages.
    """
    body: dict[str, JsonValue] = {
        "outcome": report.outcome,
        "revision": report.revision,
        "published": report.published,
        "sources": {name: getattr(report.sources, name) for name in report.sources.__slots__},
        "chunks": {name: getattr(report.chunks, name) for name in report.chunks.__slots__},
        "embeddings_computed": report.computed,
    }
    try:
        store = Audit(layout.audit)
        try:
            store.record(StepKey(report.run_id, "run"), kind="run", scope="local", subject="ingest", body=body)
        finally:
            store.close()
    except AuditError as error:
        log.warning("audit.failed run=%s error=%s", report.run_id, error)
        report.messages.append(f"audit event of this run: not written ({error})")

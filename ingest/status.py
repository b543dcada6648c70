"""``ingest status``: what an index holds, what it lacks and why, source by source, and what it costs. Does not write.

Statuses come from the catalog. What rules left out and what could not be seen is no part of it, so these come from the
reports of the newest runs: for each folder, from the last run that looked at it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast

from search.generation import IndexLayout
from search.settings import Settings

from .catalog import state
from .catalog.database import Catalog
from .publish.clone import allocated_bytes
from .report import FailedSource, SkippedSource
from .reporting import doubts, failures
from .seen import shown_text
from .statuses import gap_entries, retry_rule, skip_reason

__all__ = ["IndexStatus", "LastLook"]

Entry = dict[str, object]

# Reports that are searched for the last look at every root; a root that is never there again would have them all read.
LOOKS = 50


class LastLook(NamedTuple):
    """What the catalog does not hold: sources left out by a rule, and folders whose content nobody could see."""

    skips: tuple[SkippedSource, ...]
    unobserved: tuple[Mapping[str, object], ...]


class IndexStatus:
    """One state of an index, held until the block ends. Raises as ``Catalog.open_read_only``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._layout = IndexLayout(settings.home)
        self._catalog = Catalog.open_read_only(self._layout.catalog) if self._layout.catalog.exists() else None
        if self._catalog is not None:
            self._catalog.connection.execute("BEGIN")  # one state for all that is asked, whatever a run publishes
        self.last_look = LastLook((), ()) if self._catalog is None else _last_look(self._catalog)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._catalog is not None:
            self._catalog.close()

    @property
    def exists(self) -> bool:
        """True when there is an index."""
        return self._catalog is not None

    def to_json(self) -> Entry:
        """Return what ``ingest status --json`` prints, but for ``sources``."""
        return {
            "message_type": "status",
            "exists": self.exists,
            "settings": self._settings.describe(),
            "index": self.summary(),
            "failures": [failure.to_json() for failure in self.failures()],
            "unobserved": list(self.last_look.unobserved),
        }

    def failures(self) -> Sequence[FailedSource]:
        """Return the sources that are not in the index and ought to be, by root and path."""
        return failures(self._catalog) if self._catalog is not None else ()

    def doubts(self) -> Iterator[Entry]:
        """Yield what is missing or doubtful in sources that are in the index, by root and path."""
        return doubts(self._catalog) if self._catalog is not None else iter(())

    def summary(self) -> Entry | None:
        """Return counts, sizes and names of the index, or None where there is none."""
        if self._catalog is None:
            return None
        connection, layout, recipe = self._catalog.connection, self._layout, self._catalog.recipe
        statuses = dict(
            connection.execute("SELECT status, count(*) FROM source_states GROUP BY status ORDER BY status")
        )
        (withheld,) = connection.execute("SELECT count(*) FROM sources WHERE withheld <> 0").fetchone()
        documents, gaps = connection.execute(
            "SELECT count(*), coalesce(sum(gaps <> '[]'), 0) FROM documents WHERE status = 'indexed'"
        ).fetchone()
        (chunks,) = connection.execute("SELECT count(*) FROM points").fetchone()
        unreferenced, unreferenced_bytes = connection.execute(
            "SELECT count(*), coalesce(sum(length(dense) + length(sparse)), 0) FROM vectors v "
            "WHERE NOT EXISTS (SELECT 1 FROM locations l WHERE l.chunk_id = v.chunk_id)"
        ).fetchone()
        newest = self._catalog.runs(1)
        return {
            "folder": str(layout.home),
            "revision": self._catalog.revision,
            "generation": self._catalog.generation,
            "model": recipe.embedding.model if recipe else None,
            "recipe": recipe.recipe_id if recipe else None,
            "roots": [shown_text(bytes(root.path)) for root in state.known_roots(self._catalog)],
            "sources": statuses,
            "sources_skipped": len(self.last_look.skips),
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

    def sources(self) -> Iterator[Entry]:
        """Yield every source with its one status, by root and path; then those that rules left out.

        One query, read as the caller goes on: 100,000 sources take no memory to speak of.
        """
        if self._catalog is None:
            return
        for row in self._catalog.connection.execute(SOURCES):
            yield _source(row)
        for skip in self.last_look.skips:
            yield {
                **skip.to_json(),
                "status": "skipped",
                "reason": skip_reason(skip.rule),
                "retry": retry_rule("skipped"),
            }


SOURCES = """
SELECT r.name, s.shown, s.path_b64, coalesce(s.problem, d.status),
       CASE WHEN s.problem IS NULL THEN d.reason ELSE s.reason END,
       s.document_id, d.kind, d.media_type, s.size, c.chunks, s.withheld, d.warnings, d.gaps
FROM sources s JOIN roots r USING(root_id) LEFT JOIN documents d USING(document_id)
LEFT JOIN (SELECT document_id, count(DISTINCT chunk_id) AS chunks FROM locations GROUP BY document_id) c
       USING(document_id)
ORDER BY r.name, s.shown, s.path
"""


def _source(row: Sequence[object]) -> Entry:
    root, shown, exact, status, reason, document_id, kind, media_type, size_bytes, chunks, withheld, doubts, gaps = row
    entry: Entry = {"source": shown, "root": root}
    if exact is not None:
        entry["path_b64"] = exact
    entry |= {
        "status": status,
        "reason": reason,
        "retry": retry_rule(str(status)),
        "document_id": document_id,
        "kind": kind,
        "media_type": media_type,
        "size_bytes": size_bytes,
        "chunks": chunks or 0,
        "withheld": bool(withheld),
        "warnings": json.loads(doubts) if isinstance(doubts, str) and doubts != "[]" else [],
        "gaps": gap_entries(str(kind), json.loads(gaps)) if isinstance(gaps, str) and gaps != "[]" else [],
    }
    return entry


def _last_look(catalog: Catalog) -> LastLook:
    """Return what the newest runs left out and could not see; an older run counts where no newer one looked."""
    waiting = {root.name for root in state.known_roots(catalog)}
    covered: list[Mapping[str, object]] = []
    skips: dict[tuple[str, str], SkippedSource] = {}
    unobserved: dict[tuple[str, str], Mapping[str, object]] = {}
    # Reports without scopes are those of runs that saw nothing but what an earlier one had seen.
    reports = catalog.connection.execute(
        "SELECT report FROM runs WHERE outcome = 'done' AND json_type(report, '$.scopes') = 'array' "
        "ORDER BY started_ms DESC, rowid DESC LIMIT ?",
        (LOOKS,),
    )
    withheld = set(
        catalog.connection.execute(
            "SELECT r.name, s.shown FROM sources s JOIN roots r USING(root_id) WHERE withheld <> 0"
        )
    )
    for (text,) in reports:
        report = cast("dict[str, list[dict[str, object]]]", json.loads(text))
        for item in report["skips"]:
            place = str(item["root"]), str(item["source"])
            if place[0] in waiting and place not in withheld and not any(_covers(scope, *place) for scope in covered):
                exact = cast("str | None", item.get("path_b64"))
                skips.setdefault(place, SkippedSource(place[1], str(item["rule"]), place[0], exact))
        for item in report["unobserved"]:
            place = str(item["root"]), str(item["shown"])
            if place[0] in waiting and not any(_covers(scope, *place) for scope in covered):
                unobserved.setdefault(place, item)
        covered += report["scopes"]
        waiting -= {str(scope["root"]) for scope in report["scopes"] if not scope["folder"]}
        if not waiting:
            break
    return LastLook(
        tuple(skip for _, skip in sorted(skips.items())), tuple(item for _, item in sorted(unobserved.items()))
    )


def _covers(scope: Mapping[str, object], root: str, shown: str) -> bool:
    folder = str(scope["folder"])
    if scope["root"] != root:
        return False
    return shown == folder if scope["file"] else not folder or shown == folder or shown.startswith(folder + "/")


def _size(path: Path) -> int:
    return path.stat().st_size

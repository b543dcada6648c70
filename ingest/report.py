"""What a run says when it ends: counts by name, failures, skips, seconds. The JSON names are only ever extended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from search.errors import ExitCode
from search.identity import RunId

__all__ = ["ChunkCounts", "FailedSource", "RunReport", "SkippedSource", "SourceCounts"]


@dataclass(slots=True)
class SourceCounts:
    """Sources of a run. ``unchanged`` counts touched files too; ``changed`` those that were read again, why ever."""

    seen: int = 0
    unchanged: int = 0
    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    withheld: int = 0
    skipped: int = 0
    failed: int = 0


@dataclass(slots=True)
class ChunkCounts:
    """Chunks of a run: new points, untouched ones, ones whose place alone changed, removed ones, and all there are."""

    written: int = 0
    kept: int = 0
    relocated: int = 0
    removed: int = 0
    total: int = 0


class FailedSource(NamedTuple):
    """A source that is not in the index, and why; ``retry`` says when it is tried again.

    ``root`` is the label of its root, and empty for a root that could not be read. ``path_b64`` is the exact path where
    ``source`` is not.
    """

    source: str
    status: str
    reason: str
    retry: str
    root: str = ""
    path_b64: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the failure as reports list it."""
        return _without_exact_twin(self._asdict())


class SkippedSource(NamedTuple):
    """A source that a rule left out; ``root`` and ``path_b64`` as of a failed one."""

    source: str
    rule: str
    root: str = ""
    path_b64: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the source as reports list it."""
        return _without_exact_twin(self._asdict())


@dataclass(slots=True, kw_only=True)
class RunReport:
    """The outcome of one run.

    ``scopes`` are the folders and files that it looked at, by root and path below it; None where a witness vouched for
    what an earlier run had seen.
    """

    run_id: RunId
    outcome: str = "done"
    revision: int = 0
    generation: str | None = None
    published: bool = False
    sources: SourceCounts = field(default_factory=SourceCounts)
    chunks: ChunkCounts = field(default_factory=ChunkCounts)
    computed: int = 0
    reused: int = 0
    failures: list[FailedSource] = field(default_factory=list)
    skips: list[SkippedSource] = field(default_factory=list)
    scopes: Sequence[Mapping[str, object]] | None = None
    unobserved: Sequence[Mapping[str, object]] = ()
    withheld: Sequence[Mapping[str, object]] = ()
    messages: list[str] = field(default_factory=list)
    warnings: Sequence[Mapping[str, object]] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """Withheld removals win over failed sources; the report shows both."""
        if self.outcome == "interrupted":
            return ExitCode.INTERRUPTED
        if self.sources.withheld:
            return ExitCode.REMOVALS_WITHHELD
        return ExitCode.SOURCES_FAILED if self.failures or self.unobserved else ExitCode.DONE

    def to_json(self) -> dict[str, object]:
        """Return the object that ``ingest run --json`` prints."""
        counted = {name: getattr(self.sources, name) for name in SourceCounts.__slots__}
        return {
            "message_type": "run_report",
            "run_id": self.run_id,
            "outcome": self.outcome,
            "exit_code": int(self.exit_code),
            "revision": self.revision,
            "generation": self.generation,
            "published": self.published,
            "sources": counted,
            "chunks": {name: getattr(self.chunks, name) for name in ChunkCounts.__slots__},
            "embeddings": {"computed": self.computed, "reused": self.reused},
            "failures": [item.to_json() for item in self.failures],
            "skips": [item.to_json() for item in self.skips],
            "scopes": None if self.scopes is None else list(self.scopes),
            "unobserved": list(self.unobserved),
            "withheld": list(self.withheld),
            "warnings": list(self.warnings),
            "messages": self.messages,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
        }


def _without_exact_twin(values: dict[str, object]) -> dict[str, object]:
    """Leave the exact path out where the one for people is exact."""
    if values["path_b64"] is None:
        del values["path_b64"]
    return values

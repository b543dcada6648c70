"""Stand-ins for the tests of the agent tool: a searcher with a canned answer, and the records it answers with."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from audit import CallKey, StepKey
from search.identity import ChunkId, chunk_id, document_id
from search.records import Citation, Completeness, Passage, SearchResult

__all__ = ["CannedSearcher", "citation", "found", "key", "passage"]


def key(request: str = "req-1", step: str = "4.0") -> CallKey:
    """A key as an orchestrator passes it."""
    return CallKey(StepKey(request, step), "meta")


def citation(path: str = "hr/leave.md", **fields: object) -> Citation:
    """A citation; whatever is given replaces what is usual."""
    values: dict[str, object] = {
        "root": "handbook",
        "document_id": document_id(path.encode("utf-8", "surrogatepass")),
        "line_start": 12,
        "char_start": 0,
        "char_end": 35,
        **fields,
    }
    return Citation(path=path, **values)  # type: ignore[arg-type]  # names and types are those of the record


def passage(ref: int = 1, text: str = "Carry-over is capped at five days.", **fields: object) -> Passage:
    """A passage; whatever is given replaces what is usual."""
    values: dict[str, object] = {"score": 0.9, "citation": citation(), "chunk_id": chunk_id(str(ref), text), **fields}
    return Passage(ref=ref, text=text, **values)  # type: ignore[arg-type]  # as above


def found(*passages: Passage, generation: str = "000018", **lacks: int) -> SearchResult:
    """A result of a search."""
    return SearchResult(query="leave", generation=generation, passages=passages, completeness=Completeness(**lacks))


def ids(passages: Sequence[Passage]) -> list[ChunkId]:
    """The ids of passages."""
    return [item.chunk_id for item in passages]


@dataclass
class CannedSearcher:
    """Answers every question with one result, or raises; ``asked`` holds what reached it.

    ``before`` runs at every search, in its thread: to wait for an event, to raise, to kill.
    """

    result: SearchResult = field(default_factory=lambda: found(passage()))
    before: Callable[[], None] | None = None
    asked: list[tuple[str, int | None, str | None]] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)

    def search(self, query: str, *, limit: int | None, path: str | None, until: float) -> SearchResult:
        """See ``Searcher``."""
        self.asked.append((query, limit, path))
        if self.before is not None:
            self.before()
        return self.result

    def close(self) -> None:
        """See ``Searcher``."""
        self.closed.set()

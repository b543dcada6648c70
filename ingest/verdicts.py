"""The records of planning: what the planner must know of the catalog, and the plan that it makes.

Pure data. ``IngestPlan.to_json`` is what ``--dry-run`` prints.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from search.identity import DocumentId

from .guard import Withheld
from .seen import Root, Seen, StatTuple, is_under, path_b64, shown_path, shown_text

__all__ = [
    "PENDING",
    "VERDICTS",
    "CatalogDocument",
    "CatalogSource",
    "CatalogState",
    "IngestPlan",
    "Item",
    "Kept",
    "Verdict",
    "Work",
]

Verdict = Literal[
    "same", "touched", "new", "changed", "alias", "moved", "reparse", "retry", "kept", "removed", "withheld"
]  # fmt: skip
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

# Status of a row whose document is to be parsed in this run; the outcome takes its place.
PENDING = "pending"


class CatalogSource(NamedTuple):
    """A row of ``sources``. ``root`` is the label; what is shown follows from path and root.

    ``status`` is that of the document, or ``unreadable``, ``unstable``, ``too_large`` of the source itself. With one of
    the first two, ``document_id`` names what was last read there and still counts.
    """

    path: bytes
    root: str
    stat: StatTuple
    racy: bool
    document_id: DocumentId | None
    status: str


class CatalogDocument(NamedTuple):
    """What decides whether a known document must be parsed again.

    ``suggested`` is the kind that the names of its sources suggested when it was parsed, ``kind`` what it turned out to
    be. ``failure_key`` stands only where parsing failed: for what could mend a failure of this kind and status.
    """

    suggested: str
    kind: str
    fingerprint: str
    failure_key: str | None
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """The catalog at the start of a run: sources by real path, documents by id."""

    sources: Mapping[bytes, CatalogSource]
    documents: Mapping[DocumentId, CatalogDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """The verdict on one source.

    ``row`` is the row to store, exactly; None leaves the stored one as it is (``removed``: takes it away). ``before``
    and ``document_id`` are the documents before and after the run. ``previous`` is the path that a moved source had.
    """

    verdict: Verdict
    path: bytes
    home: Root
    row: CatalogSource | None = None
    before: DocumentId | None = None
    document_id: DocumentId | None = None
    previous: bytes | None = None
    reason: str | None = None

    @property
    def shown(self) -> str:
        """Path below the root, for people."""
        return shown_path(self.path, self.home.path)


class Work(NamedTuple):
    """A document to parse: as which kind, and from which source its bytes are read."""

    document_id: DocumentId
    kind: str
    source: Seen


class Kept(NamedTuple):
    """A prefix that could not be observed, and how many known sources under it stay for that reason."""

    shown: str
    reason: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestPlan:
    """What a run will do. All parts are sorted: equal inputs give equal plans, in whatever order they came.

    ``items`` is ordered by path and leaves out what is the same; ``counts`` has every verdict. ``removals`` are the
    rows to delete: removed sources and the old paths of moved ones. ``resourced`` documents stay as they are while the
    set of their sources or a label changes; ``orphaned`` ones have no source afterwards; ``stale`` ones ought to be
    parsed anew but have no source that this run observed.
    """

    items: tuple[Item, ...]
    work: tuple[Work, ...]
    removals: tuple[bytes, ...]
    resourced: tuple[DocumentId, ...]
    orphaned: tuple[DocumentId, ...]
    stale: tuple[DocumentId, ...]
    withheld: tuple[Withheld, ...]
    unobserved: tuple[Kept, ...]
    roots: tuple[Root, ...]
    counts: Mapping[Verdict, int]

    @property
    def is_empty(self) -> bool:
        """True when nothing is to be parsed, stored or removed."""
        return not (self.work or self.removals or self.orphaned or any(item.row is not None for item in self.items))

    def to_json(self) -> dict[str, object]:
        """Return the plan with paths as people read them, and exact ones beside those that are not UTF-8."""
        return {
            "message_type": "ingest_plan",
            "counts": dict(self.counts),
            "items": [self._item(item) for item in self.items],
            "work": [
                {"document_id": work.document_id, "kind": work.kind, "root": work.source.home.name}
                | {"source": work.source.shown}
                for work in self.work
            ],
            "stale": list(self.stale),
            "withheld": [refusal.to_json() for refusal in self.withheld],
            "unobserved": [kept._asdict() for kept in self.unobserved],
        }

    def _item(self, item: Item) -> dict[str, object]:
        values: dict[str, object] = {"verdict": item.verdict, "root": item.home.name, "source": item.shown}
        if (exact := path_b64(item.path, item.home.path)) is not None:
            values["path_b64"] = exact
        if item.document_id is not None:
            values["document_id"] = item.document_id
        if item.previous is not None:
            values["previous"] = self._shown(item.previous)
        if item.reason is not None:
            values["reason"] = item.reason
        return values

    def _shown(self, path: bytes) -> str:
        home = next((root for root in self.roots if is_under(path, bytes(root.path))), None)
        return shown_path(path, home.path) if home is not None else shown_text(path)

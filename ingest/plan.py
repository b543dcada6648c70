"""The plan of a run: observed sources x what could not be observed x catalog -> what to do. Pure.

No clock, no disk, no chance; what it walks it sorts. Nothing is removed without evidence (I6): only a source in the
scope of the run, in a folder that was read without it or left out by a rule, and only within the mass-delete guard.
The names that others need of planning are exported here, wherever they are defined.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from search.identity import DocumentId

from .draft import READ_AGAIN, Detection, Draft, Hashes, draft, to_hash
from .guard import Guard, Loss, Withheld, refusals
from .parsing.registry import richest_kind
from .seen import Scan, Scope, Seen
from .verdicts import (
    PENDING,
    VERDICTS,
    CatalogDocument,
    CatalogSource,
    CatalogState,
    IngestPlan,
    Item,
    Kept,
    Verdict,
    Work,
)

__all__ = [
    "PENDING",
    "CatalogDocument",
    "CatalogSource",
    "CatalogState",
    "Detection",
    "Guard",
    "IngestPlan",
    "Item",
    "Kept",
    "Verdict",
    "Work",
    "plan",
    "to_hash",
]


def plan(
    scan: Scan,
    hashes: Hashes,
    catalog: CatalogState,
    *,
    guard: Guard,
    kind_of: Callable[[bytes], str],
    fingerprint_of: Callable[[str], str],
    failure_key_of: Callable[[str, str], str],
    retry: Collection[str] = (),
    fallen: Collection[bytes] = (),
) -> IngestPlan:
    """Return what a run does about what was seen. ``hashes`` has an outcome for everything that ``to_hash`` named.

    ``kind_of`` tells what a file name suggests, ``fingerprint_of`` what a document of a kind is parsed with now, and
    ``failure_key_of`` what a failure of a kind and status hangs on now. Failed documents with a status in ``retry`` are
    tried again in any case. ``fallen`` is for the second application of the guard: sources of the catalog (for a moved
    one its previous path) that were indexed and would lose their passages by this plan; they count as losses, and keep
    them where losses are withheld.
    """
    if unknown := set(fallen) - catalog.sources.keys():
        raise ValueError(f"{len(unknown)} fallen sources are not in the catalog: they have no passages to lose")
    kinds = _Kinds(kind_of, fingerprint_of, failure_key_of, READ_AGAIN.union(retry))
    made = draft(scan, hashes, catalog, frozenset())
    falls = frozenset({*made.falls, *fallen})
    refused = refusals(_losses(scan, catalog, made, falls), guard)
    held = frozenset(path for path in falls if any(refusal.scope.covers(path) for refusal in refused))
    if held:
        made = draft(scan, hashes, catalog, held)
    return _finish(scan, catalog, made, refused, held, kinds)


@dataclass(frozen=True, slots=True)
class _Kinds:
    """What names suggest, and what documents are parsed with."""

    of_name: Callable[[bytes], str]
    fingerprint_of: Callable[[str], str]
    failure_key_of: Callable[[str, str], str]
    retry: frozenset[str]

    def suggested(self, path: bytes) -> str:
        return self.of_name(path.rpartition(b"/")[2])

    def richest(self, paths: Iterable[bytes]) -> str:
        """Return the richest kind that any of the names suggests."""
        return richest_kind(self.suggested(path) for path in paths)

    def misnamed(self, catalog: CatalogState) -> set[DocumentId]:
        """Return the documents that some name suggests another kind for than the one they were parsed as.

        Most of them rightly have a richer one. Looked at in every run: a change of kind may have to wait for a run that
        can read the document.
        """
        of_name, documents = self.of_name, catalog.documents
        return {
            row.document_id
            for path, row in catalog.sources.items()
            if row.document_id is not None
            and row.document_id in documents
            and documents[row.document_id].suggested != of_name(path.rpartition(b"/")[2])
        }

    def outdated(self, documents: Mapping[DocumentId, CatalogDocument]) -> dict[DocumentId, Verdict]:
        """Return the documents that another recipe made, or whose failure may have passed."""
        prints: dict[str, str] = {}
        found: dict[DocumentId, Verdict] = {}
        for document_id, document in documents.items():
            kind, status = document.kind, document.status
            if document.failure_key is None:
                if kind not in prints:
                    prints[kind] = self.fingerprint_of(kind)
                if document.fingerprint != prints[kind]:
                    found[document_id] = "reparse"
            elif document.failure_key != self.failure_key_of(kind, status) or status in self.retry:
                found[document_id] = "retry"
        return found


def _losses(scan: Scan, catalog: CatalogState, made: Draft, falls: frozenset[bytes]) -> list[Loss]:
    """Return for each scope what it would lose; nothing to lose costs nothing to count."""
    lost = sorted({*made.lost, *falls})
    if not lost:
        return []
    return [
        Loss(
            scope,
            tuple(path for path in lost if scope.covers(path)),
            sum(map(scope.covers, catalog.sources)),
            sum(scope.covers(seen.path) for seen in scan.seen),
        )
        for scope in scan.scopes
    ]


def _finish(
    scan: Scan,
    catalog: CatalogState,
    made: Draft,
    refused: tuple[Withheld, ...],
    held: frozenset[bytes],
    kinds: _Kinds,
) -> IngestPlan:
    """Carry out the guard's word, and derive from the sources what becomes of their documents."""
    items = made.items
    removals = _settle_losses(catalog, made, {refusal.scope for refusal in refused})
    changed = _changed_documents(catalog, items, removals)
    outdated = kinds.outdated(catalog.documents)
    concerned = changed | outdated.keys() | kinds.misnamed(catalog)
    after = _sources_after(catalog, items, removals, concerned)
    held_documents = {catalog.sources[path].document_id for path in held}
    seen = {source.path: source for source in scan.seen} if after else {}

    def is_readable(path: bytes) -> bool:
        return path in seen and (path not in items or items[path].verdict not in {"kept", "withheld"})

    same = made.same
    work: list[Work] = []
    stale, resourced, orphaned = [], [], []
    for document_id in sorted(concerned):
        known = catalog.documents.get(document_id)
        paths = after.get(document_id)
        if paths is None:
            if document_id in changed and known is not None:
                orphaned.append(document_id)
            continue
        kind = kinds.richest(paths)
        if document_id not in held_documents and (known is None or document_id in outdated or known.suggested != kind):
            readable = [path for path in paths if is_readable(path)]
            if readable:
                source = next((path for path in readable if kinds.suggested(path) == kind), readable[0])
                work.append(Work(document_id, kind, seen[source]))
                same -= sum(path not in items for path in readable)
                for path in readable:
                    _await_parsing(catalog, items, seen[path], outdated.get(document_id, "reparse"))
                continue
            stale.append(document_id)
        if document_id in changed and known is not None:
            resourced.append(document_id)

    counts = Counter(item.verdict for item in items.values())
    counts["same"] = same
    return IngestPlan(
        items=tuple(item for _, item in sorted(items.items())),
        work=tuple(work),
        removals=tuple(sorted(removals)),
        resourced=tuple(resourced),
        orphaned=tuple(orphaned),
        stale=tuple(stale),
        withheld=refused,
        unobserved=tuple(Kept(item.shown, item.reason, made.kept[item.prefix]) for item in scan.unobserved),
        roots=scan.roots,
        counts={verdict: counts[verdict] for verdict in VERDICTS},
    )


def _settle_losses(catalog: CatalogState, made: Draft, refused: Collection[Scope]) -> set[bytes]:
    """Give each lost source its verdict; return the rows to delete, with those that moved ones leave behind."""
    items = made.items
    removals = {item.previous for item in items.values() if item.previous is not None} - items.keys()
    for path, scope in made.lost.items():
        row = catalog.sources[path]
        if scope in refused:
            rehomed = row._replace(root=scope.home.name)
            items[path] = Item(
                verdict="withheld",
                path=path,
                home=scope.home,
                row=None if rehomed == row else rehomed,
                before=row.document_id,
                document_id=row.document_id,
            )
        else:
            items[path] = Item(verdict="removed", path=path, home=scope.home, before=row.document_id)
            removals.add(path)
    return removals


def _changed_documents(
    catalog: CatalogState, items: Mapping[bytes, Item], removals: Collection[bytes]
) -> set[DocumentId]:
    """Return the documents that win or lose a source, or whose sources are shown in another way."""
    changed = {catalog.sources[path].document_id for path in removals}
    for path, item in items.items():
        row = catalog.sources.get(path)
        if item.before != item.document_id:
            changed |= {item.before, item.document_id}
        elif row is not None and item.row is not None and item.row.root != row.root:
            changed.add(row.document_id)
    return {document_id for document_id in changed if document_id is not None}


def _sources_after(
    catalog: CatalogState, items: Mapping[bytes, Item], removals: Collection[bytes], documents: Collection[DocumentId]
) -> dict[DocumentId, list[bytes]]:
    """Return the sources that the documents have after the run, by path; documents without any are left out."""
    after: dict[DocumentId, list[bytes]] = defaultdict(list)
    if not documents:
        return after
    for path, row in catalog.sources.items():
        document_id = row.document_id
        if document_id is not None and document_id in documents and path not in items and path not in removals:
            after[document_id].append(path)
    for path, item in items.items():
        if item.document_id is not None and item.document_id in documents:
            after[item.document_id].append(path)
    for paths in after.values():
        paths.sort()
    return dict(after)


def _await_parsing(catalog: CatalogState, items: dict[bytes, Item], seen: Seen, verdict: Verdict) -> None:
    """Mark the row of a source whose document is parsed in this run; the verdict counts where there is no other."""
    item = items.get(seen.path)
    if item is None:
        row = catalog.sources[seen.path]
        item = Item(
            verdict=verdict,
            path=seen.path,
            home=seen.home,
            row=row,
            before=row.document_id,
            document_id=row.document_id,
        )
    stored = item.row if item.row is not None else catalog.sources[seen.path]
    items[seen.path] = replace(
        item,
        verdict=verdict if item.verdict == "touched" else item.verdict,
        row=stored._replace(status=PENDING),
    )

"""The verdict on each source by itself: what was seen of it against its row. Pure; the first half of planning.

The guard and what becomes of documents are ``plan``'s business.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from search.identity import DocumentId

from .seen import Failure, Root, Scan, Scope, Seen
from .verdicts import PENDING, CatalogSource, CatalogState, Item, Verdict

__all__ = ["READ_AGAIN", "Detection", "Draft", "Hashes", "draft", "to_hash"]

Detection = Literal["stat", "stat-no-inode", "hash"]
Hashes = Mapping[bytes, DocumentId | Failure]

# The one status with passages; only a source that has them can lose them.
INDEXED = "indexed"
# These say nothing of the bytes, so the source is read in every run.
READ_AGAIN = frozenset({"unreadable", "unstable"})


def to_hash(scan: Scan, catalog: CatalogState, *, detection: Detection = "stat") -> list[Seen]:
    """Return the sources whose bytes must be looked at, by path: new, touched, racy, or without a document so far."""
    known = catalog.sources
    if detection == "hash":
        return list(scan.seen)
    fields = 5 if detection == "stat" else 3  # size, mtime, ctime; inode and device of network file systems change
    found = []
    for seen in scan.seen:
        row = known.get(seen.path)
        if (
            row is None
            or row.racy
            or (row.stat != seen.stat if fields == 5 else row.stat[:fields] != seen.stat[:fields])
            or row.document_id is None
            or row.status in READ_AGAIN
        ):
            found.append(seen)
    return found


@dataclass(slots=True)
class Draft:
    """Verdicts on sources, before the guard and before documents are looked at.

    ``lost`` are rows that would be removed, with the scope that covers them; ``falls`` are sources that would lose
    their passages though they stay; ``kept`` counts rows by the unobserved prefix that keeps them.
    """

    items: dict[bytes, Item] = field(default_factory=dict)
    same: int = 0
    lost: dict[bytes, Scope] = field(default_factory=dict)
    falls: set[bytes] = field(default_factory=set)
    kept: Counter[bytes] = field(default_factory=Counter)


def draft(scan: Scan, hashes: Hashes, catalog: CatalogState, held: frozenset[bytes]) -> Draft:
    """Judge each source. ``held`` ones keep their rows, whatever was seen of them."""
    made = Draft()
    known = catalog.sources
    for seen in scan.seen:
        row = known.get(seen.path)
        outcome = hashes.get(seen.path)
        if seen.path in held:
            made.items[seen.path] = _hold(seen, known[seen.path])
        elif outcome is None and row is not None and row.root == seen.home.name:
            made.same += 1  # by far the most frequent case: no record is made
        elif row is None and isinstance(outcome, Failure) and outcome.status == "gone":
            continue
        else:
            item = _judge(seen, row, outcome, catalog)
            if item is None:
                made.same += 1
                continue
            made.items[seen.path] = item
            if item.verdict == "changed" and item.document_id is None and row is not None and row.status == INDEXED:
                made.falls.add(seen.path)
    _judge_missing(scan, catalog, made)
    _pair_moves(catalog, made)
    return made


def _hold(seen: Seen, row: CatalogSource) -> Item:
    stays = row._replace(root=seen.home.name)
    return Item(
        verdict="withheld",
        path=seen.path,
        home=seen.home,
        row=None if stays == row else stays,
        before=row.document_id,
        document_id=row.document_id,
        reason="would lose its passages",
    )


def _judge(
    seen: Seen, row: CatalogSource | None, outcome: DocumentId | Failure | None, catalog: CatalogState
) -> Item | None:
    """Judge a source that was seen; None if its row says all that there is to say."""
    before = row.document_id if row is not None else None
    verdict: Verdict
    if outcome is None:
        if row is None:
            raise ValueError(f"{seen.shown}: unknown, and it was not hashed")
        verdict, after = "touched", row._replace(root=seen.home.name)
    elif isinstance(outcome, Failure) and outcome.status != "too_large":
        verdict = "kept"
        if row is None:
            after = CatalogSource(seen.path, seen.home.name, seen.stat, seen.racy, None, outcome.status)
        else:  # the stored tuple stays: it belongs to the bytes that were last read
            status = row.status if outcome.status == "gone" else outcome.status
            after = row._replace(root=seen.home.name, status=status)
    else:
        document_id, status = (None, outcome.status) if isinstance(outcome, Failure) else (outcome, PENDING)
        if document_id is not None and document_id in catalog.documents:
            status = catalog.documents[document_id].status
        after = CatalogSource(seen.path, seen.home.name, seen.stat, seen.racy, document_id, status)
        if after == row:
            return None
        if row is None or (before is None and document_id is not None):
            verdict = "new"
        else:
            verdict = "changed" if document_id != before else "touched"
    return Item(
        verdict=verdict,
        path=seen.path,
        home=seen.home,
        row=None if after == row else after,
        before=before,
        document_id=after.document_id,
        reason=outcome.reason if isinstance(outcome, Failure) else None,
    )


def _judge_missing(scan: Scan, catalog: CatalogState, made: Draft) -> None:
    """Judge the rows of which the scan met no source."""
    reasons = dict.fromkeys(scan.gone, "gone while the scan ran")
    reasons.update((item.prefix, item.reason) for item in scan.unobserved)
    for path in sorted(catalog.sources.keys() - {seen.path for seen in scan.seen}):
        row = catalog.sources[path]
        scope = next((scope for scope in scan.scopes if scope.covers(path)), None)
        prefix = next((prefix for prefix in _prefixes(path) if prefix in reasons), None) if reasons else None
        home = scan.superseded.get(row.root) or (scope.home if scope is not None else None)
        stays = row if home is None else row._replace(root=home.name)
        if prefix is not None:
            made.kept[prefix] += 1
            home = home or _root_of(scan, path)
            reason = reasons[prefix]
        elif scope is not None:
            made.lost[path] = scope
            continue
        elif stays == row or home is None:
            continue  # outside this run
        else:
            reason = "its root went into an outer one"
        made.items[path] = Item(
            verdict="kept",
            path=path,
            home=home,
            row=None if stays == row else stays,
            before=row.document_id,
            document_id=row.document_id,
            reason=reason,
        )


def _root_of(scan: Scan, path: bytes) -> Root:
    return next(root for root in scan.roots if Scope(bytes(root.path), root, False).covers(path))


def _prefixes(path: bytes) -> Iterator[bytes]:
    """Yield the path and every folder above it."""
    yield path
    while (cut := path.rfind(b"/")) > 0:
        path = path[:cut]
        yield path
    yield b"/"


def _pair_moves(catalog: CatalogState, made: Draft) -> None:
    """Turn new sources of known documents into moved ones or aliases; what was moved away is no longer lost."""
    arrivals: dict[DocumentId, list[bytes]] = defaultdict(list)
    for path, item in sorted(made.items.items()):
        if item.verdict == "new" and item.document_id in catalog.documents and item.document_id is not None:
            arrivals[item.document_id].append(path)
    if not arrivals:
        return
    removed: dict[DocumentId, list[bytes]] = defaultdict(list)
    left: dict[DocumentId, list[bytes]] = defaultdict(list)
    staying = set()
    for path, row in sorted(catalog.sources.items()):
        document_id = row.document_id
        if document_id is None or document_id not in arrivals:
            continue
        if path in made.lost:
            removed[document_id].append(path)
        elif path in made.items and made.items[path].document_id != document_id:
            left[document_id].append(path)
        else:
            staying.add(document_id)
    for document_id, paths in arrivals.items():
        origins = removed[document_id] or ([] if document_id in staying else left[document_id])
        for path, origin in zip(paths, origins, strict=False):
            made.items[path] = replace(made.items[path], verdict="moved", previous=origin)
            made.lost.pop(origin, None)
        if origins or document_id in staying:
            for path in paths[len(origins) :]:
                made.items[path] = replace(made.items[path], verdict="alias")

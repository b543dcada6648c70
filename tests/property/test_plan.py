"""Planning under random states: order does not matter, twice is once, and nothing goes without evidence (I6)."""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.guard import ALL
from ingest.plan import PENDING, CatalogDocument, CatalogSource, CatalogState, Guard, IngestPlan, plan, to_hash
from ingest.sources import Failure, Root, Scan, Scope, Seen, StatTuple, Unobserved
from search.identity import DocumentId

ROOTS = (Root(Path("/r/a"), "a"), Root(Path("/r/b"), "b"))
FOLDERS = (b"/r/a", b"/r/a/x", b"/r/a/x/y", b"/r/b", b"/r/b/z")
NAMES = (b"1.md", b"2.txt", b"3.html")
PATHS = tuple(folder + b"/" + name for folder in FOLDERS for name in NAMES)

paths = st.sampled_from(PATHS)
documents = st.sampled_from([DocumentId(letter) for letter in "ABCD"])


@dataclass(frozen=True)
class State:
    """A disk, what a run sees of it, and what an earlier disk left in the catalog."""

    before: dict[bytes, DocumentId]
    disk: dict[bytes, DocumentId]
    unobserved: frozenset[bytes]
    failures: dict[bytes, Failure]
    scopes: tuple[Root, ...]
    guard: Guard
    version: int


states = st.builds(
    State,
    before=st.dictionaries(paths, documents),
    disk=st.dictionaries(paths, documents),
    unobserved=st.frozensets(st.sampled_from(FOLDERS), max_size=2),
    failures=st.dictionaries(
        paths,
        st.sampled_from([Failure("unreadable", "EIO"), Failure("unstable", "changed"), Failure("too_large", "big")]),
    ),
    scopes=st.sampled_from([ROOTS, ROOTS[:1], ROOTS[1:], ()]),
    guard=st.builds(
        Guard,
        sources=st.integers(0, 4),
        share=st.sampled_from([0.0, 0.3, 1.0]),
        allow=st.sampled_from([None, 0, 2, ALL]),
    ),
    version=st.sampled_from([1, 2]),
)


def kind_of(name: bytes) -> str:
    """Suggest a kind by the ending."""
    return {b"md": "markdown", b"html": "html"}.get(name.rpartition(b".")[2], "text")


def home(path: bytes) -> Root:
    """Return the root of a path."""
    return next(root for root in ROOTS if path.startswith(bytes(root.path) + b"/"))


def tuple_of(path: bytes, document: DocumentId) -> StatTuple:
    """Return a tuple that tells contents apart."""
    return StatTuple(1, ord(document), ord(document), PATHS.index(path), 1)


def catalog_of(sources: dict[bytes, DocumentId], version: int) -> CatalogState:
    """Return the catalog that an earlier run made of a disk."""
    rows = [
        CatalogSource(path, home(path).name, tuple_of(path, document), False, document, "indexed")
        for path, document in sources.items()
    ]
    kinds: dict[DocumentId, list[str]] = {}
    for path, document in sources.items():
        kinds.setdefault(document, []).append(kind_of(path))
    known = {
        document: CatalogDocument(kind, kind, str(version), None, "indexed")
        for document, suggested in kinds.items()
        for kind in [min(suggested, key=lambda kind: (kind == "text", kind))]
    }
    return CatalogState(sources={row.path: row for row in rows}, documents=known)


def scan_of(state: State) -> Scan:
    """Return what a scan of the state sees: only what is in scope and under no unobserved prefix."""
    unobserved = [Unobserved(prefix, None, "EACCES") for prefix in sorted(state.unobserved)]
    scopes = tuple(Scope(bytes(root.path), root, False) for root in state.scopes)
    seen = [
        Seen(path, home(path), tuple_of(path, document), False)
        for path, document in sorted(state.disk.items())
        if any(scope.covers(path) for scope in scopes)
        and not any(path.startswith(prefix + b"/") for prefix in state.unobserved)
    ]
    return Scan(roots=ROOTS, superseded={}, scopes=scopes, seen=tuple(seen), skips=(), unobserved=tuple(unobserved),
                errors=(), gone=())  # fmt: skip


def plan_of(state: State, scan: Scan, catalog: CatalogState, fallen: frozenset[bytes] = frozenset()) -> IngestPlan:
    """Plan a run; ``fallen`` sources count as losses."""
    hashes = {seen.path: state.failures.get(seen.path, state.disk[seen.path]) for seen in to_hash(scan, catalog)}
    return plan(
        scan,
        hashes,
        catalog,
        guard=state.guard,
        kind_of=kind_of,
        fingerprint_of=lambda kind: str(state.version),
        failure_key_of=lambda kind, status: "",
        fallen=fallen,
    )


def apply(made: IngestPlan, catalog: CatalogState, version: int) -> CatalogState:
    """Carry a plan out on a model of the catalog, as the pipeline does: each parsed document becomes ``indexed``."""
    rows = {path: row for path, row in catalog.sources.items() if path not in made.removals}
    rows.update({item.path: item.row for item in made.items if item.row is not None})
    known = {document: row for document, row in catalog.documents.items() if document not in made.orphaned}
    for work in made.work:
        known[work.document_id] = CatalogDocument(work.kind, work.kind, str(version), None, "indexed")
    done = {work.document_id for work in made.work}
    for path, row in rows.items():
        if row.status == PENDING:
            assert row.document_id in done, "a row waits for a document that nobody parses"
            rows[path] = row._replace(status="indexed")
    return CatalogState(sources=rows, documents=known)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(states, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_its_inputs(state: State, chance: random.Random) -> None:
    """Sources, scopes, rows and documents in any order give an equal plan."""
    scan, catalog = scan_of(state), catalog_of(state.before, 1)
    wanted = plan_of(state, scan, catalog)

    def shuffled(values: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(chance.sample(values, len(values)))

    mixed = Scan(roots=scan.roots, superseded={}, scopes=shuffled(scan.scopes), seen=shuffled(scan.seen), skips=(),  # type: ignore[arg-type]  # the same values in another order
                 unobserved=scan.unobserved, errors=(), gone=())  # fmt: skip
    turned = CatalogState(
        sources=dict(reversed(list(catalog.sources.items()))), documents=dict(reversed(list(catalog.documents.items())))
    )
    found = plan_of(state, mixed, turned)
    assert sorted(map(repr, found.withheld)) == sorted(map(repr, wanted.withheld))
    assert (found.items, found.work, found.removals, found.resourced, found.orphaned, found.stale, found.counts) == (
        wanted.items, wanted.work, wanted.removals, wanted.resourced, wanted.orphaned, wanted.stale, wanted.counts,
    )  # fmt: skip


@settings(max_examples=200, derandomize=True, deadline=None)
@given(states)
def test_carrying_a_plan_out_leaves_nothing_to_do(state: State) -> None:
    """Twice is once: the second plan of the same disk stores, parses and deletes nothing."""
    scan, catalog = scan_of(state), catalog_of(state.before, 1)
    first = plan_of(state, scan, catalog)
    after = apply(first, catalog, state.version)

    second = plan_of(state, scan, after)

    assert second.is_empty
    assert (second.resourced, second.orphaned) == ((), ())
    assert second.stale == first.stale
    assert {refusal.scope for refusal in second.withheld} <= {refusal.scope for refusal in first.withheld}


@pytest.mark.invariant("I6")
@settings(max_examples=200, derandomize=True, deadline=None)
@given(states)
def test_a_row_goes_only_where_its_folder_was_read_without_it(state: State) -> None:
    """In scope, under no unobserved prefix, not on the disk; and never more than the guard lets through."""
    scan, catalog = scan_of(state), catalog_of(state.before, 1)
    made = plan_of(state, scan, catalog)
    moved = {item.previous for item in made.items if item.previous is not None}

    for path in made.removals:
        assert any(scope.covers(path) for scope in scan.scopes)
        assert not any(path.startswith(prefix + b"/") for prefix in state.unobserved)
        assert path not in state.disk
    for scope in scan.scopes:
        lost = [path for path in made.removals if scope.covers(path) and path not in moved]
        if state.guard.allow is None and lost:
            total = sum(map(scope.covers, catalog.sources))
            assert any(scope.covers(seen.path) for seen in scan.seen)
            assert len(lost) <= state.guard.sources or len(lost) <= state.guard.share * total
    if state.guard.allow is not None:
        assert len(set(made.removals) - moved) <= state.guard.allow


@settings(max_examples=200, derandomize=True, deadline=None)
@given(states)
def test_a_plan_accounts_for_every_source_and_parses_what_has_no_passages(state: State) -> None:
    """Seen and known sources each have one verdict, and each document that stays is known or parsed."""
    scan, catalog = scan_of(state), catalog_of(state.before, 1)
    made = plan_of(state, scan, catalog)

    moved = {item.previous for item in made.items if item.previous is not None and item.previous in made.removals}
    in_run = {seen.path for seen in scan.seen} | {
        path
        for path in catalog.sources
        if any(scope.covers(path) for scope in scan.scopes)
        or any(path.startswith(prefix + b"/") for prefix in state.unobserved)
    }
    assert sum(made.counts.values()) == len(in_run - moved)
    after = apply(made, catalog, state.version)
    assert {row.document_id for row in after.sources.values()} - {None} == after.documents.keys()


@settings(max_examples=200, derandomize=True, deadline=None)
@given(states, st.frozensets(paths))
def test_sources_that_would_fall_keep_their_documents_where_losses_are_withheld(
    state: State, fallen: frozenset[bytes]
) -> None:
    """The second application of the guard never removes more than the first, and what it holds stays as it is."""
    scan, catalog = scan_of(state), catalog_of(state.before, 1)
    first = plan_of(state, scan, catalog)
    falls = frozenset(path for path in fallen if path in catalog.sources and path in state.disk)
    second = plan_of(state, scan, catalog, falls)

    assert set(second.removals) <= set(first.removals)
    held = {item.path for item in second.items if item.verdict == "withheld"}
    work = {item.document_id for item in second.work}
    for path in falls & held:
        assert catalog.sources[path].document_id not in work
    after = apply(second, catalog, state.version)
    for path in held:
        assert after.sources[path] == catalog.sources[path]
        document = catalog.sources[path].document_id
        assert document is not None
        assert path not in falls or after.documents[document] == catalog.documents[document]

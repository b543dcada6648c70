"""Planning: one row per verdict, what becomes of documents, and the guard. No files are touched."""

import json
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ingest.guard import ALL
from ingest.plan import (
    PENDING,
    CatalogDocument,
    CatalogSource,
    CatalogState,
    Detection,
    Guard,
    IngestPlan,
    plan,
    to_hash,
)
from ingest.sources import Failure, Root, RootError, Scan, Scope, Seen, StatTuple, Unobserved
from search.identity import DocumentId

DOCS = Root(Path("/r/docs"), "docs")
OTHER = Root(Path("/r/other"), "other")
DENIED = "EACCES: Permission denied"


def stats(ino: int, mtime_ns: int = 1) -> StatTuple:
    """Return a tuple of a file of one byte."""
    return StatTuple(1, mtime_ns, mtime_ns, ino, 7)


def kind_of(name: bytes) -> str:
    """Suggest a kind by the ending."""
    return {b"md": "markdown", b"html": "html", b"xlsx": "xlsx"}.get(name.rpartition(b".")[2], "text")


@dataclass
class World:
    """A scan and a catalog, described by paths below ``/r`` and single letters for documents."""

    rows: dict[str, str] = field(default_factory=dict)  # what the catalog has: path -> document
    disk: dict[str, str] = field(default_factory=dict)  # what is there: path -> document
    touched: Collection[str] = ()
    failures: Mapping[str, Failure] = field(default_factory=dict)
    unobserved: Collection[str] = ()
    gone: Collection[str] = ()
    failed: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # document -> kind and status of its failure
    roots: tuple[Root, ...] = (DOCS,)
    scopes: tuple[str, ...] = ("docs",)
    statuses: Mapping[str, str] = field(default_factory=dict)
    racy: Collection[str] = ()
    superseded: Mapping[str, Root] = field(default_factory=dict)

    def scan(self) -> Scan:
        """Return what a scan would say."""
        seen = [
            Seen(
                b"/r/" + path.encode(), self.home(path), stats(self.ino(path), 2 if path in self.touched else 1), False
            )
            for path in self.disk
        ]
        prefixes = [Unobserved(b"/r/" + path.encode(), self.home(path), DENIED) for path in self.unobserved]
        return Scan(
            roots=self.roots,
            superseded=self.superseded,
            scopes=tuple(Scope(b"/r/" + name.encode(), self.home(name), False) for name in self.scopes),
            seen=tuple(sorted(seen)),
            skips=(),
            unobserved=tuple(prefixes),
            errors=(),
            gone=tuple(b"/r/" + path.encode() for path in self.gone),
        )

    def home(self, path: str) -> Root:
        """Return the root of a path."""
        return next(root for root in self.roots if (path + "/").startswith(root.path.name + "/"))

    def ino(self, path: str) -> int:
        """Return an inode that belongs to the path."""
        return sum(path.encode())

    def catalog(self) -> CatalogState:
        """Return the catalog at the start of the run."""
        documents = {}
        for document in sorted({*self.rows.values()} - {""}):
            names = [path.encode() for path, held in self.rows.items() if held == document]
            kind = min((kind_of(name) for name in names), key=lambda kind: (kind == "text", kind))
            if document in self.failed:
                read_as, status = self.failed[document]
                documents[DocumentId(document)] = CatalogDocument(kind, read_as, "1", "1", status)
            else:
                documents[DocumentId(document)] = CatalogDocument(kind, kind, "1", None, "indexed")
        rows = [
            CatalogSource(
                b"/r/" + path.encode(),
                path.partition("/")[0],
                stats(self.ino(path)),
                path in self.racy,
                DocumentId(document) if document else None,
                self.statuses.get(path, self.failed.get(document, ("", "indexed"))[1]),
            )
            for path, document in self.rows.items()
        ]
        return CatalogState(sources={row.path: row for row in rows}, documents=documents)

    def plan(
        self,
        guard: Guard | None = None,
        *,
        fingerprint: str = "1",
        failure_key_of: Callable[[str, str], str] = lambda kind, status: "1",
        detection: Detection = "stat",
        fallen: Collection[str] = (),
        retry: Collection[str] = (),
    ) -> IngestPlan:
        """Plan the run."""
        scan, catalog = self.scan(), self.catalog()
        hashes = {}
        for seen in to_hash(scan, catalog, detection=detection):
            path = seen.path.decode().removeprefix("/r/")
            hashes[seen.path] = self.failures.get(path, DocumentId(self.disk[path]))
        return plan(
            scan,
            hashes,
            catalog,
            guard=guard or Guard(),
            kind_of=kind_of,
            fingerprint_of=lambda kind: fingerprint,
            failure_key_of=failure_key_of,
            fallen=[b"/r/" + path.encode() for path in fallen],
            retry=retry,
        )


def verdicts(result: IngestPlan) -> dict[str, str]:
    """Return path below ``/r`` to verdict."""
    return {item.path.decode().removeprefix("/r/"): item.verdict for item in result.items}


def parsed(result: IngestPlan) -> list[tuple[str, str, str]]:
    """Return document, kind and the source that is read."""
    return [(work.document_id, work.kind, work.source.path.decode().removeprefix("/r/")) for work in result.work]


def removed(result: IngestPlan) -> list[str]:
    """Return the rows to delete, below ``/r``."""
    return [path.decode().removeprefix("/r/") for path in result.removals]


TABLE: list[tuple[str, World, dict[str, str], list[tuple[str, str, str]]]] = [
    ("same", World({"docs/a.md": "A"}, {"docs/a.md": "A"}), {}, []),
    ("touched", World({"docs/a.md": "A"}, {"docs/a.md": "A"}, touched=["docs/a.md"]), {"docs/a.md": "touched"}, []),
    ("new", World({}, {"docs/a.md": "A"}), {"docs/a.md": "new"}, [("A", "markdown", "docs/a.md")]),
    (
        "changed",
        World({"docs/a.md": "A"}, {"docs/a.md": "B"}, touched=["docs/a.md"]),
        {"docs/a.md": "changed"},
        [("B", "markdown", "docs/a.md")],
    ),
    ("alias", World({"docs/a.md": "A"}, {"docs/a.md": "A", "docs/b.md": "A"}), {"docs/b.md": "alias"}, []),
    ("moved", World({"docs/a.md": "A"}, {"docs/b.md": "A"}), {"docs/b.md": "moved"}, []),
    (
        "moved, one of two",
        World({"docs/a.md": "A", "docs/c.md": "A"}, {"docs/a.md": "A", "docs/b.md": "A"}),
        {"docs/b.md": "moved"},
        [],
    ),
    (
        "moved away from a path that has new bytes",
        World({"docs/a.md": "A"}, {"docs/a.md": "B", "docs/b.md": "A"}, touched=["docs/a.md"]),
        {"docs/a.md": "changed", "docs/b.md": "moved"},
        [("B", "markdown", "docs/a.md")],
    ),
    (
        "moved and copied at once",
        World({"docs/a.md": "A"}, {"docs/b.md": "A", "docs/c.md": "A"}),
        {"docs/b.md": "moved", "docs/c.md": "alias"},
        [],
    ),
    (
        "two new sources, one document",
        World({}, {"docs/a.txt": "A", "docs/b.md": "A"}),
        {"docs/a.txt": "new", "docs/b.md": "new"},
        [("A", "markdown", "docs/b.md")],
    ),
    (
        "unreadable",
        World({"docs/a.md": "A"}, {"docs/a.md": "A"}, ["docs/a.md"], {"docs/a.md": Failure("unreadable", DENIED)}),
        {"docs/a.md": "kept"},
        [],
    ),
    (
        "unstable",
        World({"docs/a.md": "A"}, {"docs/a.md": "A"}, ["docs/a.md"], {"docs/a.md": Failure("unstable", "changed")}),
        {"docs/a.md": "kept"},
        [],
    ),
    (
        "gone when it was hashed",
        World({"docs/a.md": "A"}, {"docs/a.md": "A"}, ["docs/a.md"], {"docs/a.md": Failure("gone", "ENOENT")}),
        {"docs/a.md": "kept"},
        [],
    ),
    (
        "gone during the scan",
        World({"docs/sub/a.md": "A", "docs/b.md": "B"}, {"docs/b.md": "B"}, gone=["docs/sub"]),
        {"docs/sub/a.md": "kept"},
        [],
    ),
    (
        "under an unobserved prefix",
        World({"docs/sub/a.md": "A", "docs/b.md": "B"}, {"docs/b.md": "B"}, unobserved=["docs/sub"]),
        {"docs/sub/a.md": "kept"},
        [],
    ),
    (
        "beside an unobserved prefix",
        World({"docs/subway.md": "A", "docs/b.md": "B"}, {"docs/b.md": "B"}, unobserved=["docs/sub"]),
        {"docs/subway.md": "removed"},
        [],
    ),
    ("removed", World({"docs/a.md": "A", "docs/b.md": "B"}, {"docs/b.md": "B"}), {"docs/a.md": "removed"}, []),
    ("outside this run", World({"other/a.md": "A"}, {}, roots=(DOCS, OTHER)), {}, []),
    (
        "withheld",
        World({"docs/a.md": "A", "docs/b.md": "B"}, {}),
        {"docs/a.md": "withheld", "docs/b.md": "withheld"},
        [],
    ),
    (
        "too large",
        World({}, {"docs/a.md": "A"}, failures={"docs/a.md": Failure("too_large", "2 bytes")}),
        {"docs/a.md": "new"},
        [],
    ),
    (
        "too large as before",
        World(
            {"docs/a.md": ""},
            {"docs/a.md": "A"},
            failures={"docs/a.md": Failure("too_large", "2 bytes")},
            statuses={"docs/a.md": "too_large"},
        ),
        {},
        [],
    ),
    (
        "no longer too large",
        World({"docs/a.md": ""}, {"docs/a.md": "A"}, statuses={"docs/a.md": "too_large"}),
        {"docs/a.md": "new"},
        [("A", "markdown", "docs/a.md")],
    ),
    (
        "a richer name arrives",
        World({"docs/a.txt": "A"}, {"docs/a.txt": "A", "docs/b.md": "A"}),
        {"docs/a.txt": "reparse", "docs/b.md": "alias"},
        [("A", "markdown", "docs/b.md")],
    ),
    (
        "the richer name leaves",
        World({"docs/a.txt": "A", "docs/b.md": "A"}, {"docs/a.txt": "A"}),
        {"docs/a.txt": "reparse", "docs/b.md": "removed"},
        [("A", "text", "docs/a.txt")],
    ),
    (
        "any structured kind is richer than text",
        World({"docs/a.txt": "A"}, {"docs/a.txt": "A", "docs/b.html": "A"}),
        {"docs/a.txt": "reparse", "docs/b.html": "alias"},
        [("A", "html", "docs/b.html")],
    ),
    (
        "copied while one of two has new bytes",
        World(
            {"docs/a.md": "A", "docs/c.md": "A"},
            {"docs/a.md": "B", "docs/b.md": "A", "docs/c.md": "A"},
            touched=["docs/a.md"],
        ),
        {"docs/a.md": "changed", "docs/b.md": "alias"},
        [("B", "markdown", "docs/a.md")],
    ),
    (
        "of two rich kinds the first by name",
        World({"docs/b.md": "A"}, {"docs/a.html": "A", "docs/b.md": "A"}),
        {"docs/a.html": "alias", "docs/b.md": "reparse"},
        [("A", "html", "docs/a.html")],
    ),
]


@pytest.mark.parametrize(("world", "wanted", "work"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_each_case_has_its_verdict_and_its_work(
    world: World, wanted: dict[str, str], work: list[tuple[str, str, str]]
) -> None:
    """One row per case: verdicts other than ``same``, and what is parsed, as what, read from where."""
    result = world.plan()

    assert verdicts(result) == wanted
    assert parsed(result) == work
    assert result.counts["same"] == len(world.disk.keys() - wanted.keys())


def test_a_new_source_that_is_gone_again_leaves_no_trace() -> None:
    """It never was in the index, and the next run decides."""
    result = World({}, {"docs/a.md": "A"}, failures={"docs/a.md": Failure("gone", "ENOENT")}).plan()

    assert result.is_empty
    assert not any(result.counts.values())


def test_nothing_changed_plans_nothing() -> None:
    """An empty plan: no row to store, none to delete, no document touched."""
    result = World({"docs/a.md": "A", "docs/b.md": "B"}, {"docs/a.md": "A", "docs/b.md": "B"}).plan()

    assert result.is_empty
    assert (result.items, result.resourced, result.orphaned, result.stale) == ((), (), (), ())
    assert {verdict: count for verdict, count in result.counts.items() if count} == {"same": 2}


def test_a_moved_source_deletes_its_old_row_and_names_it() -> None:
    """One item, one row to store, one to delete; the document is not parsed but its payloads change."""
    result = World({"docs/a.md": "A"}, {"docs/b.md": "A"}).plan()

    assert result.items[0].previous == b"/r/docs/a.md"
    assert result.items[0].row == CatalogSource(b"/r/docs/b.md", "docs", stats(World().ino("docs/b.md")), False,
                                                DocumentId("A"), "indexed")  # fmt: skip
    assert removed(result) == ["docs/a.md"]
    assert (result.resourced, result.orphaned, result.work) == (("A",), (), ())


def test_a_document_without_sources_is_orphaned_and_one_with_sources_is_not() -> None:
    """Chunks of no other source go; deleting one of two copies only changes payloads."""
    result = World(
        {"docs/a.md": "A", "docs/copy.md": "A", "docs/b.md": "B", "docs/c.md": "C"},
        {"docs/a.md": "A", "docs/c.md": "C"},
    ).plan()

    assert removed(result) == ["docs/b.md", "docs/copy.md"]
    assert result.orphaned == ("B",)
    assert result.resourced == ("A",)


def test_a_racy_row_is_hashed_again_and_then_trusted() -> None:
    """Its tuple proves nothing once; with equal bytes the flag goes and nothing is parsed."""
    world = World({"docs/a.md": "A"}, {"docs/a.md": "A"}, racy=["docs/a.md"])
    assert [seen.path for seen in to_hash(world.scan(), world.catalog())] == [b"/r/docs/a.md"]
    result = world.plan()
    assert verdicts(result) == {"docs/a.md": "touched"}
    assert result.items[0].row is not None
    assert not result.items[0].row.racy

    world.disk["docs/a.md"] = "B"  # as a change within the clock's grain leaves it
    assert verdicts(world.plan()) == {"docs/a.md": "changed"}


@pytest.mark.parametrize(("detection", "hashed"), [("stat", 1), ("stat-no-inode", 0), ("hash", 1)])
def test_change_detection_compares_what_the_file_system_can_be_trusted_with(detection: Detection, hashed: int) -> None:
    """Network file systems hand out other inodes for the same files; ``hash`` trusts no tuple."""
    world = World({"docs/a.md": "A"}, {"docs/a.md": "A"})
    scan = world.scan()
    moved = scan.seen[0]._replace(stat=scan.seen[0].stat._replace(ino=99, dev=99))
    other = Scan(
        roots=scan.roots, superseded={}, scopes=scan.scopes, seen=(moved,), skips=(), unobserved=(), errors=(), gone=()
    )

    assert len(to_hash(other, world.catalog(), detection=detection)) == hashed
    assert len(to_hash(scan, world.catalog(), detection=detection)) == (detection == "hash")


def test_an_unreadable_source_keeps_its_document_and_is_tried_in_every_run() -> None:
    """The row says so once; the stored tuple stays, and an equal tuple does not stop the next attempt."""
    world = World({"docs/a.md": "A"}, {"docs/a.md": "A"}, ["docs/a.md"])
    world.failures = {"docs/a.md": Failure("unreadable", DENIED)}
    item = world.plan().items[0]
    assert (item.document_id, item.reason) == ("A", DENIED)
    assert item.row is not None
    assert item.row == world.catalog().sources[item.path]._replace(status="unreadable")

    world.statuses = {"docs/a.md": "unreadable"}
    assert world.plan().items[0].row is None, "nothing new to store"

    world.failures, world.touched = {}, ()
    again = world.plan()
    assert verdicts(again) == {"docs/a.md": "touched"}
    assert again.items[0].row is not None
    assert again.items[0].row.status == "indexed"


def test_a_new_recipe_parses_documents_again_where_a_source_is_at_hand() -> None:
    """Every source of the document waits for the outcome; a document that this run cannot read is stale."""
    world = World(
        {"docs/a.md": "A", "docs/sub/b.md": "B", "docs/copy.md": "A"},
        {"docs/a.md": "A", "docs/copy.md": "A"},
        unobserved=["docs/sub"],
    )
    result = world.plan(fingerprint="2")

    assert verdicts(result) == {"docs/a.md": "reparse", "docs/copy.md": "reparse", "docs/sub/b.md": "kept"}
    assert parsed(result) == [("A", "markdown", "docs/a.md")]
    assert [item.row.status for item in result.items if item.row is not None] == [PENDING, PENDING]
    assert result.stale == ("B",)
    assert result.counts["same"] == 0
    world.touched = ["docs/a.md"]
    assert verdicts(world.plan(fingerprint="2"))["docs/a.md"] == "reparse", "rather than touched"


def test_a_failed_document_is_tried_again_when_its_key_changes_or_on_request() -> None:
    """A hopeless file costs once; a new copy of it costs nothing."""
    world = World({"docs/a.md": "A"}, {"docs/a.md": "A", "docs/copy.md": "A"}, failed={"A": ("markdown", "damaged")})

    assert parsed(world.plan(fingerprint="2")) == []
    assert verdicts(world.plan()) == {"docs/copy.md": "alias"}
    changed = world.plan(failure_key_of=lambda kind, status: "2")
    assert verdicts(changed) == {"docs/a.md": "retry", "docs/copy.md": "alias"}
    assert parsed(changed) == [("A", "markdown", "docs/a.md")]
    assert parsed(world.plan(retry=["damaged"])) == [("A", "markdown", "docs/a.md")]


def test_each_failure_has_the_key_of_its_own_kind_and_status() -> None:
    """Of two broken documents the one is tried again whose cause has changed; a PDF named .txt is a PDF."""
    disk = {"docs/a.txt": "A", "docs/b.txt": "B", "docs/c.txt": "C"}
    failed = {"A": ("pdf", "needs_password"), "B": ("pdf", "damaged"), "C": ("text", "needs_password")}
    world = World(disk, disk, failed=failed)
    changed = world.plan(failure_key_of=lambda kind, status: "2" if (kind, status) == failed["A"] else "1")
    assert parsed(changed) == [("A", "text", "docs/a.txt")]


def test_a_document_that_could_not_be_opened_is_tried_again_in_every_run() -> None:
    """The system refused, which says nothing of the bytes; no key can tell when it stops to."""
    disk = {"docs/a.md": "A"}
    assert parsed(World(disk, disk, failed={"A": ("markdown", "unreadable")}).plan()) == [
        ("A", "markdown", "docs/a.md")
    ]


def test_sources_of_a_superseded_root_change_their_label_and_nothing_else() -> None:
    """Payloads, not embeddings; also for sources that were not seen."""
    outer = Root(Path("/r"), "r")
    world = World({"docs/a.md": "A", "docs/sub/b.md": "B"}, {}, superseded={"docs": outer})
    scan = Scan(
        roots=(outer,),
        superseded={"docs": outer},
        scopes=(Scope(b"/r", outer, False),),
        seen=(Seen(b"/r/docs/a.md", outer, stats(world.ino("docs/a.md")), False),),
        skips=(),
        unobserved=(Unobserved(b"/r/docs/sub", outer, DENIED),),
        errors=(),
        gone=(),
    )
    result = plan(scan, {}, world.catalog(), guard=Guard(), kind_of=kind_of, fingerprint_of=lambda kind: "1",
                  failure_key_of=lambda kind, status: "1")  # fmt: skip

    assert verdicts(result) == {"docs/a.md": "touched", "docs/sub/b.md": "kept"}
    assert [item.row.root for item in result.items if item.row is not None] == ["r", "r"]
    assert [item.shown for item in result.items] == ["docs/a.md", "docs/sub/b.md"]
    assert (result.resourced, result.work) == (("A", "B"), ())


def many(count: int, start: int = 0) -> dict[str, str]:
    """Return numbered sources, each with a document of its own."""
    return {f"docs/{number:03}.md": f"D{number}" for number in range(start, start + count)}


@pytest.mark.parametrize(
    ("known", "gone", "withheld"),
    [
        (60, 20, False),  # not more than 20
        (60, 21, True),
        (70, 21, False),  # not more than 30 %
        (69, 21, True),
        (3, 2, False),
        (2, 2, True),  # nothing left at all
        (1, 1, True),
    ],
)
def test_the_guard_withholds_large_losses(known: int, gone: int, withheld: bool) -> None:
    """More than 20 sources and more than 30 % of a root, or all that there was."""
    result = World(many(known), many(known - gone, gone)).plan()

    assert result.counts["withheld" if withheld else "removed"] == gone
    assert removed(result) == ([] if withheld else sorted(many(gone)))
    assert len(result.withheld) == withheld
    assert len(result.orphaned) == (0 if withheld else gone)


def test_additions_and_changes_apply_while_removals_are_withheld() -> None:
    """The message names root, number, share, examples and what confirms."""
    result = World(many(40), {**many(10, 30), "docs/new.md": "N"}).plan()

    assert verdicts(result)["docs/new.md"] == "new"
    assert parsed(result) == [("N", "markdown", "docs/new.md")]
    (refusal,) = result.withheld
    assert refusal.message == (
        "root docs: 30 of 40 sources (75%) would be removed (000.md, 001.md, 002.md, 003.md, 004.md, ...). Removals "
        "are withheld, all else applies; if they are meant, run: ingest run /r/docs --allow-removals 30"
    )


def test_moved_sources_do_not_count_as_losses() -> None:
    """A folder renamed as a whole is no mass deletion."""
    renamed = {path.replace("docs/", "docs/new/"): document for path, document in many(50).items()}
    result = World(many(50), renamed).plan()

    assert result.counts["moved"] == 50
    assert (result.withheld, result.work) == ((), ())
    assert removed(result) == sorted(many(50))


@pytest.mark.parametrize(
    ("allow", "gone", "withheld"), [(30, 30, 0), (30, 31, 1), (ALL, 40, 0), (0, 1, 1), (sys.maxsize, 40, 0), (5, 0, 0)]
)
def test_a_confirmed_number_is_a_ceiling(allow: int, gone: int, withheld: int) -> None:
    """As many as were confirmed go; with one more, none does."""
    result = World(many(40), many(40 - gone, gone)).plan(Guard(allow=allow))

    assert len(result.withheld) == withheld
    assert len(removed(result)) == (0 if withheld else gone)


def test_the_guard_judges_each_root_by_itself() -> None:
    """An unmounted root keeps all; the other one loses what was deleted from it."""
    world = World(
        {**many(5), "other/a.md": "A", "other/b.md": "B"},
        {"other/b.md": "B"},
        roots=(DOCS, OTHER),
        scopes=("docs", "other"),
    )
    result = world.plan()

    assert removed(result) == ["other/a.md"]
    assert result.counts["withheld"] == 5
    assert [(refusal.subject, refusal.reason) for refusal in result.withheld] == [("docs", "empty")]


def test_sources_that_would_lose_their_passages_count_before_publishing() -> None:
    """A reader broken by an upgrade: its documents are not parsed anew, their rows stay, and removals are withheld."""
    world = World(many(40), {**many(39, 1), "docs/new.md": "N"})
    first = world.plan(fingerprint="2")
    assert (len(first.work), first.withheld, removed(first)) == (40, (), ["docs/000.md"])

    second = world.plan(fingerprint="2", fallen=many(30, 5))

    assert second.counts["withheld"] == 31
    assert [(refusal.count, refusal.total) for refusal in second.withheld] == [(31, 40)]
    assert {document for document, _, _ in parsed(second)} == {
        "N",
        *(f"D{n}" for n in (1, 2, 3, 4, 35, 36, 37, 38, 39)),
    }
    assert removed(second) == []
    assert (second.orphaned, second.stale) == ((), ("D0",)), "held documents are left alone, a deleted one is stale"


def test_changed_sources_that_would_fall_keep_what_they_had() -> None:
    """New bytes that cannot be parsed, on a large scale: no row moves on, the new documents are not parsed."""
    changed = {path: document + "x" for path, document in many(30).items()}
    world = World(many(40), {**many(40), **changed}, touched=list(changed))

    result = world.plan(fallen=list(changed))

    assert result.counts["withheld"] == 30
    assert all(item.row is None and item.document_id == item.before for item in result.items)
    assert (result.work, result.orphaned, result.stale) == ((), (), ())


def test_growing_over_the_limit_counts_as_a_loss_at_once() -> None:
    """The planner knows it without parsing."""
    large = {path: Failure("too_large", "2 bytes") for path in many(30)}
    world = World(many(40), many(40), touched=list(large), failures=large)

    assert world.plan().counts["withheld"] == 30
    few = dict(list(large.items())[:3])
    world = World(many(40), many(40), touched=list(few), failures=few)
    assert world.plan().orphaned == ("D0", "D1", "D2")


def test_a_source_that_is_not_in_the_catalog_cannot_fall() -> None:
    """The mistake is told, instead of a guard that counts wrongly."""
    with pytest.raises(ValueError, match="1 fallen sources are not in the catalog"):
        World({}, {"docs/a.md": "A"}).plan(fallen=["docs/a.md"])


def test_an_unknown_source_must_be_hashed() -> None:
    """Leaving a hash out is a mistake of the caller, not an unchanged source."""
    world = World({}, {"docs/a.md": "A"})
    with pytest.raises(ValueError, match=r"a\.md: unknown, and it was not hashed"):
        plan(world.scan(), {}, world.catalog(), guard=Guard(), kind_of=kind_of, fingerprint_of=str,
             failure_key_of=lambda kind, status: "1")  # fmt: skip


def test_a_failed_root_keeps_all_that_is_known_under_it() -> None:
    """It is no scope of the run, and its rows are counted in the report."""
    scan = World({}, {}).scan()
    failed = Scan(
        roots=scan.roots,
        superseded={},
        scopes=(),
        seen=(),
        skips=(),
        unobserved=(Unobserved(b"/r/docs", DOCS, "ENOENT: No such file or directory"),),
        errors=(RootError("docs", b"/r/docs", "ENOENT: No such file or directory"),),
        gone=(),
    )
    result = plan(failed, {}, World(many(3)).catalog(), guard=Guard(), kind_of=kind_of, fingerprint_of=lambda kind: "1",
                  failure_key_of=lambda kind, status: "1")  # fmt: skip

    assert result.counts["kept"] == 3
    assert result.is_empty
    assert [(kept.shown, kept.rows) for kept in result.unobserved] == [("docs", 3)]


def test_the_printed_plan_is_json_with_exact_names() -> None:
    """What ``--dry-run`` prints can be read back, and a name that is not UTF-8 has its bytes beside it."""
    world = World({"docs/a.md": "A", "docs/b.md": "B"}, {"docs/c.md": "A", "docs/b.md": "B"})
    scan = world.scan()
    odd = Seen(b"/r/docs/caf\xe9.md", DOCS, stats(5), False)
    scan = Scan(roots=scan.roots, superseded={}, scopes=scan.scopes, seen=(*scan.seen, odd), skips=(), unobserved=(),
                errors=(), gone=())  # fmt: skip
    hashes = {b"/r/docs/c.md": DocumentId("A"), odd.path: DocumentId("E")}
    result = plan(scan, hashes, world.catalog(), guard=Guard(), kind_of=kind_of, fingerprint_of=lambda kind: "1",
                  failure_key_of=lambda kind, status: "1")  # fmt: skip

    printed = json.loads(json.dumps(result.to_json()))

    assert printed["counts"]["moved"] == 1
    assert printed["items"] == [
        {"verdict": "moved", "root": "docs", "source": "c.md", "document_id": "A", "previous": "a.md"},
        {"verdict": "new", "root": "docs", "source": "caf\\xe9.md", "path_b64": "Y2Fm6S5tZA==", "document_id": "E"},
    ]
    assert printed["work"] == [{"document_id": "E", "kind": "markdown", "root": "docs", "source": "caf\\xe9.md"}]

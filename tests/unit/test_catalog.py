"""The catalog: what is committed is there, what is not is gone, and what nobody refers to goes in time."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ingest.catalog import changes as catalog_changes
from ingest.catalog import projection, state
from ingest.catalog.changes import CatalogChanges, DocumentRow, RootRow, SourceRow, pack_text, unpack_text
from ingest.catalog.database import SCHEMA, Catalog
from ingest.catalog.vectors import StoredVector, dense_array, pack_dense, pack_sparse, unpack_sparse
from search.errors import IndexDamaged, IndexMissing, SchemaMismatch
from search.identity import ChunkId, DocumentId, RecipeId, RunId, chunk_id, document_id
from search.records import Chunk, Location, SparseVector

RECIPE, OTHER = RecipeId("r" * 16), RecipeId("o" * 16)
ROOT = RootRow(Path("/docs"), "docs")
INNER = RootRow(Path("/docs/inner"), "inner")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A fresh catalog."""
    opened = Catalog.open(tmp_path / "index" / "catalog.db")
    yield opened
    opened.close()


def passage(text: str) -> tuple[Chunk, Location]:
    """A chunk of one text, at the start of its document."""
    return Chunk(chunk_id("", text), "", text, 3), Location(char_start=0, char_end=len(text), line_start=1, line_end=1)


def document(*texts: str, name: str = "") -> DocumentRow:
    """A document with one chunk per text."""
    whole = "\n".join(texts)
    return DocumentRow(
        document_id=document_id((name + whole).encode()), suggested="text", kind="text", media_type="text/plain",
        fingerprint="text/1", status="indexed", text=pack_text(whole), chars=len(whole),
        chunks=[passage(text) for text in texts],
    )  # fmt: skip


def source(path: str, document_id: DocumentId | None, root: RootRow = ROOT, problem: str | None = None) -> SourceRow:
    """A source of a document."""
    return SourceRow(
        path=path.encode(), root=root.path, shown=path.removeprefix(f"{root.path}/"), path_b64=None, size=1, mtime_ns=2,
        ctime_ns=3, ino=(1 << 64) - 1, dev=4, racy=False, document_id=document_id, problem=problem,
        reason="no right" if problem else None,
    )  # fmt: skip


def publish(catalog: Catalog, changes: CatalogChanges, revision: int) -> projection.Totals:
    """Apply changes as a publish does, without a generation."""
    totals = projection.Totals()
    with catalog.transaction():
        catalog_changes.apply(catalog, changes, now_ms=0)
        for batch in projection.changed(catalog):
            projection.record(catalog, batch, totals)
        catalog_changes.sweep(catalog, revision=revision, vector_recipe=RECIPE)
    return totals


def vector(key: ChunkId) -> StoredVector:
    """Some vector of a chunk."""
    return StoredVector(key, pack_dense(np.ones(4, dtype=np.float32)), SparseVector((1, 7), (0.5, 2.0)))


def count(catalog: Catalog, table: str) -> int:
    """How many rows a table has."""
    (rows,) = catalog.connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(rows)


# ---- opening


def test_a_missing_catalog_is_not_made_by_reading(tmp_path: Path) -> None:
    """Looking for an index leaves no folder behind."""
    with pytest.raises(IndexMissing, match="ingest FOLDER"):
        Catalog.open_read_only(tmp_path / "index" / "catalog.db")
    assert list(tmp_path.glob("index")) == []


def test_every_write_through_a_reading_catalog_is_refused(catalog: Catalog) -> None:
    """By SQLite itself, whatever the statement."""
    reading = Catalog.open_read_only(catalog.path)
    for statement in (
        "INSERT INTO settings VALUES ('a', '1')",
        "DELETE FROM settings",
        "CREATE TABLE t(a)",
        "DROP TABLE runs",
    ):
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reading.connection.execute(statement)
    reading.close()


def test_reading_leaves_no_file_behind(catalog: Catalog) -> None:
    """SQLite's own two files go with the last connection."""
    catalog.close()
    before = sorted(catalog.path.parent.iterdir())
    reading = Catalog.open_read_only(catalog.path)
    assert reading.revision == 0
    reading.close()
    assert sorted(catalog.path.parent.iterdir()) == before == [catalog.path]


@pytest.mark.parametrize("opening", [Catalog.open, Catalog.open_read_only])
def test_a_catalog_of_a_newer_program_is_refused(opening: object, catalog: Catalog) -> None:
    """Exit code 12, and nothing in it is touched."""
    catalog.connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    catalog.close()
    with pytest.raises(SchemaMismatch, match="install a newer"):
        opening(catalog.path)  # type: ignore[operator]  # one of the two


def test_a_file_that_is_no_catalog_is_damage(tmp_path: Path) -> None:
    """The message names the file and what to do."""
    path = tmp_path / "catalog.db"
    path.write_bytes(b"no database at all" * 400)
    with pytest.raises(IndexDamaged, match="ingest again"):
        Catalog.open(path)


# ---- transactions, vectors, runs


@pytest.mark.invariant("I1")
def test_a_failed_transaction_leaves_nothing(catalog: Catalog) -> None:
    """Neither for this connection nor for another one."""

    def interrupted() -> None:
        with catalog.transaction():
            catalog.set_setting("revision", 5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert catalog.revision == 0
    with catalog.transaction():
        catalog.set_setting("revision", 6)
    reading = Catalog.open_read_only(catalog.path)
    assert (reading.revision, reading.generation) == (6, "000006")
    reading.close()


def test_saved_vectors_are_there_for_another_process(catalog: Catalog) -> None:
    """As they were, under their recipe only; missing ones are named in the order asked."""
    keys = [chunk_id("", text) for text in "abc"]
    catalog.save_vectors(RECIPE, [vector(keys[1])])
    reading = Catalog.open_read_only(catalog.path)
    assert reading.missing_vectors(RECIPE, keys) == [keys[0], keys[2]]
    assert reading.missing_vectors(OTHER, keys) == keys
    assert reading.vectors(RECIPE, keys) == {keys[1]: (vector(keys[1]).dense, vector(keys[1]).sparse)}
    reading.close()


def test_vectors_and_texts_are_packed_without_loss() -> None:
    """Float16 as the engine stores it, sparse ones exactly, texts with half characters too."""
    assert dense_array(pack_dense(np.array([0.5, -0.25], dtype=np.float32))).tolist() == [0.5, -0.25]
    for sparse in (SparseVector((), ()), SparseVector((0, (1 << 32) - 1), (0.5, 2.0))):
        assert unpack_sparse(pack_sparse(sparse)) == sparse
    for text in ("", "ä\ud800\n", "x" * 10_000):
        assert unpack_text(pack_text(text)) == text


def test_a_run_that_never_ended_is_marked_by_the_next(catalog: Catalog) -> None:
    """It was killed: under the lock no other run can be going on."""
    for number in ("1", "2"):
        catalog.begin_run(RunId(number), started_ms=int(number), pid=7, arguments={"roots": []})
    catalog.end_run(RunId("2"), ended_ms=9, outcome="done", report={"chunks": {}}, revision=3)
    assert [(run["run_id"], run["outcome"], run["report"]) for run in catalog.runs(5)] == [
        ("2", "done", {"chunks": {}}),
        ("1", "killed", None),
    ]
    assert len(catalog.runs(1)) == 1


# ---- changes


def test_what_was_applied_is_what_is_loaded(catalog: Catalog) -> None:
    """Sources with unsigned inode numbers and problems of their own; documents with what decides about parsing them."""
    one = document("one")
    publish(
        catalog,
        CatalogChanges(
            roots=[ROOT], documents=[one],
            sources=[source("/docs/a", one.document_id), source("/docs/b", None, problem="unreadable")],
        ),
        1,
    )  # fmt: skip
    loaded = state.load(catalog)
    row = loaded.sources[b"/docs/a"]
    assert (row.root, row.stat.ino, row.document_id, row.status) == ("docs", (1 << 64) - 1, one.document_id, "indexed")
    assert (loaded.sources[b"/docs/b"].document_id, loaded.sources[b"/docs/b"].status) == (None, "unreadable")
    assert loaded.documents[one.document_id].fingerprint == "text/1"
    assert [root.path for root in state.known_roots(catalog)] == [ROOT.path]


@pytest.mark.invariant("I2")
def test_points_follow_the_sources_of_a_document(catalog: Catalog) -> None:
    """A second source changes the payload only; the last one takes document and point away."""
    one = document("one")
    first = publish(
        catalog, CatalogChanges(roots=[ROOT], documents=[one], sources=[source("/docs/a", one.document_id)]), 1
    )
    copied = publish(catalog, CatalogChanges(roots=[ROOT], sources=[source("/docs/b", one.document_id)]), 2)
    removed = publish(catalog, CatalogChanges(roots=[ROOT], removed=[b"/docs/a"]), 3)
    last = publish(catalog, CatalogChanges(roots=[ROOT], removed=[b"/docs/b"]), 4)
    assert [(totals.written, totals.relocated, totals.removed) for totals in (first, copied, removed, last)] == [
        (1, 0, 0),
        (0, 1, 0),
        (0, 1, 0),
        (0, 0, 1),
    ]
    assert (count(catalog, "documents"), count(catalog, "locations"), count(catalog, "points")) == (0, 0, 0)


def test_what_nobody_refers_to_stays_for_one_more_revision(catalog: Catalog) -> None:
    """An undo finds its vectors; one revision later they are gone."""
    one, two = document("one"), document("two")
    key = one.chunks[0][0].chunk_id
    catalog.save_vectors(RECIPE, [vector(key)])
    publish(catalog, CatalogChanges(roots=[ROOT], documents=[one], sources=[source("/docs/a", one.document_id)]), 1)
    publish(catalog, CatalogChanges(roots=[ROOT], removed=[b"/docs/a"]), 2)
    assert catalog.missing_vectors(RECIPE, [key]) == []
    publish(catalog, CatalogChanges(roots=[ROOT], documents=[two], sources=[source("/docs/b", two.document_id)]), 3)
    assert catalog.missing_vectors(RECIPE, [key]) == [key]
    assert count(catalog, "chunks") == 1


def test_what_comes_back_in_time_is_kept(catalog: Catalog) -> None:
    """A chunk that was unreferenced for one revision only is as if it had never been."""
    one, two = document("one"), document("two")
    key = one.chunks[0][0].chunk_id
    catalog.save_vectors(RECIPE, [vector(key)])
    there = CatalogChanges(roots=[ROOT], documents=[one], sources=[source("/docs/a", one.document_id)])
    publish(catalog, there, 1)
    publish(catalog, CatalogChanges(roots=[ROOT], removed=[b"/docs/a"]), 2)
    publish(catalog, there, 3)
    for revision, path in ((4, "/docs/b"), (5, "/docs/c")):
        publish(
            catalog, CatalogChanges(roots=[ROOT], documents=[two], sources=[source(path, two.document_id)]), revision
        )
    assert catalog.missing_vectors(RECIPE, [key]) == []


def test_a_root_that_went_into_an_outer_one_is_forgotten(catalog: Catalog) -> None:
    """Once its last source is shown under the outer one; changes that name no roots forget none."""
    one = document("one")
    row = source("/docs/inner/a", one.document_id, INNER)
    publish(catalog, CatalogChanges(roots=[INNER], documents=[one], sources=[row]), 1)
    publish(catalog, CatalogChanges(roots=[ROOT]), 2)
    assert [root.name for root in state.known_roots(catalog)] == ["docs", "inner"]
    publish(catalog, CatalogChanges(roots=[ROOT], sources=[source("/docs/inner/a", one.document_id)]), 3)
    assert [root.name for root in state.known_roots(catalog)] == ["docs"]
    publish(catalog, CatalogChanges(removed=[b"/docs/inner/a"]), 4)
    assert [root.name for root in state.known_roots(catalog)] == ["docs"]

"""The connection to the catalog: one per run, ``BEGIN IMMEDIATE``, WAL, ``synchronous=FULL``, foreign keys on.

Holds settings, runs and saved vectors. Vectors are saved in transactions of their own during step 7: they are content
addressed, so a killed run loses at most one batch of embedding work. All else of a run goes into the one transaction of
step 8, which ``changes`` fills.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self, cast

from search.errors import IndexDamaged, IndexMissing, IndexUnavailable, NotEnoughSpace, SchemaMismatch
from search.generation import generation_name
from search.identity import ChunkId, RecipeId, RunId
from search.recipe import Recipe
from search.records import SparseVector

from .vectors import StoredVector, pack_sparse, unpack_sparse

__all__ = ["SCHEMA", "Catalog"]

# The last migration of schema.py; a catalog with a greater number was written by a newer program.
SCHEMA = 1


# The second: no room for the 32 KB that all processes share while the catalog is open, readers too.
FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})


class Catalog:
    """An open catalog. Not thread-safe: a run uses it from one thread."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the catalog for writing, made and migrated where needed.

        Raises ``SchemaMismatch`` for one of a newer program, ``IndexDamaged`` for a file that is no catalog.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        with _named(path):
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if _schema(connection, path) < SCHEMA:
                from .schema import migrate  # sqlite-utils costs 60 ms, and an up-to-date catalog needs none of it

                migrate(connection)
        return cls(connection, path)

    @classmethod
    def open_read_only(cls, path: Path) -> Self:
        """Open an existing catalog for reading; every write is refused by SQLite.

        Raises ``IndexMissing`` where there is none, ``IndexUnavailable`` where this process may not write and the last
        writer left work in the log beside it. Leaves no file behind.
        """
        if not path.exists():
            raise IndexMissing(f"index {path.parent.parent}: not there; make it with `ingest FOLDER`")
        with _named(path):
            connection = sqlite3.connect(f"file:{_uri_path(path)}?{_mode(path)}", uri=True, isolation_level=None)
            connection.execute("PRAGMA query_only = ON")
            if _schema(connection, path) < SCHEMA:
                raise SchemaMismatch(f"catalog {path}: of an earlier version; `ingest run` brings it up to date")
        return cls(connection, path)

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in one ``BEGIN IMMEDIATE`` transaction: committed at its end, rolled back by any exception."""
        with _named(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self.connection.in_transaction:  # a full disk has already rolled back
                    self.connection.rollback()
                raise
            self.connection.commit()

    # -- settings ------------------------------------------------------------------------------------------------------

    def setting(self, name: str) -> object | None:
        """Return a stored value, or None. Does not write."""
        row = self.connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set_setting(self, name: str, value: object) -> None:
        """Store a JSON value; belongs into a transaction."""
        text = json.dumps(value, sort_keys=True)
        self.connection.execute("INSERT OR REPLACE INTO settings(name, value) VALUES (?, ?)", (name, text))

    @property
    def revision(self) -> int:
        """Revision of the last published state; 0 before the first."""
        return cast("int", self.setting("revision") or 0)

    @property
    def generation(self) -> str | None:
        """Name of the current generation, or None before the first."""
        return generation_name(self.revision) if self.revision else None

    @property
    def recipe(self) -> Recipe | None:
        """Recipe of the published state, or None before the first."""
        values = self.setting("recipe")
        return None if values is None else Recipe.from_json(cast("Mapping[str, object]", values))

    # -- vectors -------------------------------------------------------------------------------------------------------

    def missing_vectors(self, recipe: RecipeId, chunk_ids: Sequence[ChunkId]) -> list[ChunkId]:
        """Return those of the ids, in order, for which no vector of this recipe is stored. Does not write."""
        cursor = self.connection.execute(
            "SELECT chunk_id FROM vectors WHERE vector_recipe = ? AND chunk_id IN (SELECT value FROM json_each(?))",
            (recipe, json.dumps(chunk_ids)),
        )
        known = {row[0] for row in cursor}
        return [chunk_id for chunk_id in chunk_ids if chunk_id not in known]

    def save_vectors(self, recipe: RecipeId, vectors: Iterable[StoredVector]) -> None:
        """Save vectors in a transaction of their own: durable on return."""
        since = self.revision  # nothing refers to them until a publish says so
        rows = [(recipe, item.chunk_id, item.dense, pack_sparse(item.sparse), since) for item in vectors]
        with self.transaction():
            self.connection.executemany(
                "INSERT INTO vectors(vector_recipe, chunk_id, dense, sparse, unreferenced_since) "
                "VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT(vector_recipe, chunk_id) DO UPDATE SET dense = excluded.dense, sparse = excluded.sparse",
                rows,
            )

    def vectors(self, recipe: RecipeId, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, tuple[bytes, SparseVector]]:
        """Return dense blob (float16, little-endian) and sparse vector of each id that has them. Does not write."""
        cursor = self.connection.execute(
            "SELECT chunk_id, dense, sparse FROM vectors "
            "WHERE vector_recipe = ? AND chunk_id IN (SELECT value FROM json_each(?))",
            (recipe, json.dumps(chunk_ids)),
        )
        return {ChunkId(chunk_id): (dense, unpack_sparse(sparse)) for chunk_id, dense, sparse in cursor}

    # -- runs ----------------------------------------------------------------------------------------------------------

    def begin_run(self, run_id: RunId, *, started_ms: int, pid: int, arguments: Mapping[str, object]) -> None:
        """Add the row of a run that has begun; those that an earlier process never ended are marked ``killed``.

        Called under the writer lock, so no other run can be going on.
        """
        with self.transaction():
            self.connection.execute("UPDATE runs SET outcome = 'killed' WHERE outcome = 'running'")
            self.connection.execute(
                "INSERT INTO runs(run_id, started_ms, pid, arguments, outcome) VALUES (?, ?, ?, ?, 'running')",
                (run_id, started_ms, pid, json.dumps(arguments, sort_keys=True)),
            )

    def end_run(
        self, run_id: RunId, *, ended_ms: int, outcome: str, report: Mapping[str, object] | None, revision: int
    ) -> None:
        """Complete the row of a run with its report."""
        with self.transaction():
            self.connection.execute(
                "UPDATE runs SET ended_ms = ?, outcome = ?, report = ?, revision = ? WHERE run_id = ?",
                (ended_ms, outcome, json.dumps(report) if report is not None else None, revision, run_id),
            )

    def runs(self, limit: int) -> list[dict[str, object]]:
        """Return the newest runs, newest first. Does not write."""
        cursor = self.connection.execute(
            "SELECT run_id, started_ms, ended_ms, pid, arguments, outcome, report, revision FROM runs "
            "ORDER BY started_ms DESC, rowid DESC LIMIT ?",
            (limit,),
        )
        return [
            {
                "run_id": run_id,
                "started_ms": started,
                "ended_ms": ended,
                "pid": pid,
                "arguments": json.loads(arguments),
                "outcome": outcome,
                "report": json.loads(report) if report else None,
                "revision": revision,
            }
            for run_id, started, ended, pid, arguments, outcome, report, revision in cursor
        ]


def _schema(connection: sqlite3.Connection, path: Path) -> int:
    version = cast("int", connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA:
        raise SchemaMismatch(
            f"catalog {path}: schema {version}, this program knows up to {SCHEMA}; install a newer grounded-ingest"
        )
    return version


def _uri_path(path: Path) -> str:
    """Quote the characters that mean something in an SQLite URI."""
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _mode(path: Path) -> str:
    """Return how a reader opens the catalog.

    Not mode=ro: such a connection makes the -wal and -shm files that reading needs, and never removes them. Where no
    file can be made (a read-only mount, the index of another user) SQLite reads the database alone, as ``immutable``;
    so nothing may stand in the log beside it.
    """
    if os.access(path.parent, os.W_OK):
        return "mode=rw"
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        raise IndexUnavailable(
            f"catalog {path}: a run is at work or was killed, and its log can only be read by somebody who may write "
            "here; try again when it has ended, or let its user run `ingest`"
        )
    return "mode=ro&immutable=1"


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, naming the file and the cure."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode in FULL:
            raise NotEnoughSpace(f"catalog {path}: the disk is full; free some space and run again") from error
        raise IndexDamaged(f"catalog {path}: cannot be used ({error}); check its permissions and its disk") from error
    except sqlite3.DatabaseError as error:
        raise IndexDamaged(
            f"catalog {path}: damaged ({error}); move the folder {path.parent} away and ingest again"
        ) from error

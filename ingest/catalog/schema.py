"""The catalog's tables, as numbered migrations: each runs in one transaction with the row that records it.

Paths are bytes, since a file name need not be text. Times are integer milliseconds of the wall clock, and never decide
anything. ``PRAGMA user_version`` holds the number of the last migration, so that opening an up-to-date catalog costs
one integer and no import of this module. What a source's status is follows from two columns: its own problem (it could
not be read), else its document's status.
"""

import sqlite3

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

__all__ = ["migrate"]

catalog = Migrations("catalog")


@catalog()
def m001_tables(db: Database) -> None:
    """Create all tables. ``points`` is what the current generation holds: the next publish is a diff against it."""
    for statement in TABLES:
        db.execute(statement)
    db.execute("PRAGMA user_version = 1")


TABLES = (
    """CREATE TABLE roots(
      root_id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE, added_ms INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE documents(
      document_id TEXT PRIMARY KEY, suggested TEXT NOT NULL, kind TEXT NOT NULL, media_type TEXT NOT NULL, title TEXT,
      fingerprint TEXT NOT NULL, failure_key TEXT, status TEXT NOT NULL, reason TEXT, text BLOB NOT NULL,
      chars INTEGER NOT NULL, meta TEXT NOT NULL, warnings TEXT NOT NULL, gaps TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE sources(
      path BLOB PRIMARY KEY, root_id INTEGER NOT NULL REFERENCES roots(root_id), shown TEXT NOT NULL, path_b64 TEXT,
      size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, ino INTEGER NOT NULL,
      dev INTEGER NOT NULL, racy INTEGER NOT NULL, document_id TEXT REFERENCES documents(document_id),
      problem TEXT, reason TEXT, withheld INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX sources_by_document ON sources(document_id)",
    # What every run asks of all sources, so that a run with nothing to do reads no row twice.
    "CREATE INDEX documents_not_indexed ON documents(status) WHERE status <> 'indexed'",
    "CREATE INDEX sources_with_problem ON sources(path) WHERE problem IS NOT NULL",
    "CREATE INDEX sources_withheld ON sources(path) WHERE withheld <> 0",
    """CREATE TABLE chunks(
      chunk_id TEXT PRIMARY KEY, context TEXT NOT NULL, text TEXT NOT NULL, n_tokens INTEGER NOT NULL,
      text_hash TEXT NOT NULL, unreferenced_since INTEGER
    ) STRICT""",
    """CREATE TABLE locations(
      document_id TEXT NOT NULL REFERENCES documents(document_id) ON DELETE CASCADE, ordinal INTEGER NOT NULL,
      chunk_id TEXT NOT NULL REFERENCES chunks(chunk_id), char_start INTEGER NOT NULL, char_end INTEGER NOT NULL,
      line_start INTEGER, line_end INTEGER, part_kind TEXT, part_first INTEGER, part_last INTEGER, part_label TEXT,
      part_starts TEXT, cells TEXT, headings TEXT NOT NULL, PRIMARY KEY(document_id, ordinal)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX locations_by_chunk ON locations(chunk_id)",
    """CREATE TABLE vectors(
      vector_recipe TEXT NOT NULL, chunk_id TEXT NOT NULL, dense BLOB NOT NULL, sparse BLOB NOT NULL,
      unreferenced_since INTEGER, PRIMARY KEY(vector_recipe, chunk_id)
    ) STRICT""",
    "CREATE INDEX chunks_unreferenced ON chunks(unreferenced_since) WHERE unreferenced_since IS NOT NULL",
    "CREATE INDEX vectors_unreferenced ON vectors(unreferenced_since) WHERE unreferenced_since IS NOT NULL",
    "CREATE INDEX vectors_by_chunk ON vectors(chunk_id)",
    "CREATE TABLE points(chunk_id TEXT PRIMARY KEY, payload_hash TEXT NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE runs(
      run_id TEXT PRIMARY KEY, started_ms INTEGER NOT NULL, ended_ms INTEGER, pid INTEGER NOT NULL,
      arguments TEXT NOT NULL, outcome TEXT NOT NULL, report TEXT, revision INTEGER
    ) STRICT""",
    "CREATE INDEX runs_by_start ON runs(started_ms)",
    "CREATE TABLE settings(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE VIEW source_states AS
      SELECT s.path, s.shown, s.path_b64, s.root_id, r.name AS root, s.document_id, s.withheld,
             coalesce(s.problem, d.status) AS status,
             CASE WHEN s.problem IS NULL THEN d.reason ELSE s.reason END AS reason,
             d.gaps, d.warnings
      FROM sources s JOIN roots r USING(root_id) LEFT JOIN documents d USING(document_id)""",
)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the catalog to this program's schema, one transaction for each step that it lacks."""
    catalog.apply(Database(connection))

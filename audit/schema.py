"""The tables of `audit.db`, as numbered migrations.

Owns: every CREATE statement. A migration and the row that records it share one transaction; a published one is never
edited, a change is a new one. Plain SQL, not sqlite-utils: the CHECK constraints, triggers and partial indexes below
*are* the design, and a builder can say none of them. Refuses to open a file of a newer program. Needs SQLite 3.37
(STRICT).
"""

import sqlite3

from .errors import AuditIncompatible

__all__ = ["MIGRATIONS", "migrate", "version"]

_EVENTS_AND_USAGE = """
CREATE TABLE clock(
  id INTEGER PRIMARY KEY CHECK(id = 1), last_ms INTEGER NOT NULL, boot_id TEXT NOT NULL, boottime_ms INTEGER NOT NULL,
  jump_ms INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE audit_events(
  scope TEXT NOT NULL, seq INTEGER NOT NULL, request_id TEXT NOT NULL, step_id TEXT NOT NULL, kind TEXT NOT NULL,
  part TEXT NOT NULL DEFAULT '', at INTEGER NOT NULL, body TEXT NOT NULL, prev_hash TEXT NOT NULL, hash TEXT NOT NULL,
  key_id TEXT NOT NULL,
  PRIMARY KEY(scope, seq), UNIQUE(scope, prev_hash), UNIQUE(scope, request_id, step_id, kind, part)) STRICT;
CREATE INDEX audit_events_at ON audit_events(at);
CREATE INDEX audit_events_of ON audit_events(request_id, step_id);
CREATE TABLE audit_seals(
  scope TEXT NOT NULL, seq INTEGER NOT NULL, hash TEXT NOT NULL, at INTEGER NOT NULL, exported_to TEXT,
  PRIMARY KEY(scope, seq)) STRICT;
CREATE TRIGGER audit_events_no_update BEFORE UPDATE ON audit_events
  BEGIN SELECT RAISE(ABORT, 'audit_events is append only'); END;
CREATE TRIGGER audit_events_no_delete BEFORE DELETE ON audit_events
  WHEN OLD.seq > (SELECT coalesce(max(seq), 0) FROM audit_seals WHERE scope = OLD.scope AND exported_to IS NOT NULL)
  BEGIN SELECT RAISE(ABORT, 'audit_events is append only'); END;
CREATE TABLE audit_content(
  scope TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(scope, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE audit_attempts(
  scope TEXT NOT NULL, request_id TEXT NOT NULL, step_id TEXT NOT NULL, kind TEXT NOT NULL, n INTEGER NOT NULL,
  args_hash TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER, outcome TEXT NOT NULL DEFAULT 'started',
  body TEXT, PRIMARY KEY(scope, request_id, step_id, kind, n)) STRICT, WITHOUT ROWID;
CREATE TABLE usage(
  scope TEXT NOT NULL, request_id TEXT NOT NULL, step_id TEXT NOT NULL, meter TEXT NOT NULL, subject TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN('reserved', 'settled', 'void')), units INTEGER NOT NULL CHECK(units >= 0),
  fingerprint TEXT NOT NULL, counted_at INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 1, last_at INTEGER NOT NULL,
  PRIMARY KEY(scope, request_id, step_id, meter)) STRICT, WITHOUT ROWID;
CREATE INDEX usage_window ON usage(scope, subject, meter, counted_at, units) WHERE state <> 'void';
CREATE INDEX usage_prune ON usage(last_at);
"""

_LEDGER = """
CREATE TABLE runs(
  workflow_id TEXT PRIMARY KEY, scope TEXT NOT NULL, agent_id TEXT NOT NULL, created_at INTEGER NOT NULL,
  closed_at INTEGER, resume_until INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'open' CHECK(state IN('open', 'closed'))) STRICT;
CREATE TABLE actions(
  idempotency_key TEXT PRIMARY KEY CHECK(length(idempotency_key) <= 255), scope TEXT NOT NULL, agent_id TEXT NOT NULL,
  workflow_id TEXT NOT NULL REFERENCES runs(workflow_id), step_id TEXT NOT NULL, action_type TEXT NOT NULL,
  sample INTEGER NOT NULL DEFAULT 0 CHECK(sample >= 0), sampled_from TEXT, told TEXT CHECK(told IN('ok', 'error')),
  tool_class TEXT NOT NULL CHECK(tool_class IN('read_only', 'repeatable', 'dangerous')),
  identity_fp TEXT NOT NULL, args_hash TEXT NOT NULL, fp_version INTEGER NOT NULL DEFAULT 1, dedup_key TEXT,
  downstream_key TEXT NOT NULL UNIQUE, key_sent_at INTEGER,
  status TEXT NOT NULL CHECK(status IN('PENDING', 'SUCCESS', 'FAILED')), phase TEXT NOT NULL,
  effect TEXT NOT NULL DEFAULT 'none' CHECK(effect IN('none', 'unknown', 'done')),
  fence INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, dispatches INTEGER NOT NULL DEFAULT 0,
  holder TEXT, boot_id TEXT, lease_mono_ms INTEGER, sent_mono_ms INTEGER, next_at INTEGER,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, completed_at INTEGER,
  result_kind TEXT CHECK(result_kind IN('inline', 'omitted')), result_hash TEXT, args_data TEXT, error_data TEXT,
  result_data TEXT,
  CHECK((status = 'PENDING' AND phase IN('gated', 'ready', 'claimed', 'dispatched', 'retry_wait', 'in_doubt'))
     OR (status = 'FAILED' AND phase IN('permanent', 'exhausted', 'denied', 'expired', 'voided'))
     OR (status = 'SUCCESS' AND phase = 'done')),
  CHECK((status = 'PENDING') = (completed_at IS NULL)), CHECK((status = 'SUCCESS') = (effect = 'done')),
  CHECK(phase <> 'in_doubt' OR effect = 'unknown'),
  CHECK(phase NOT IN('claimed', 'dispatched')
     OR (holder IS NOT NULL AND boot_id IS NOT NULL AND lease_mono_ms IS NOT NULL)),
  -- I8: what may have happened is claimed, sent, in doubt or closed by a person; never a failure that invites a retry.
  CHECK(tool_class <> 'dangerous' OR effect <> 'unknown'
     OR phase IN('claimed', 'dispatched', 'in_doubt', 'voided'))) STRICT;
CREATE INDEX actions_by_agent ON actions(agent_id, action_type, created_at);
CREATE INDEX actions_rebind ON actions(workflow_id, action_type, identity_fp, sample, created_at);
CREATE UNIQUE INDEX actions_dedup ON actions(scope, dedup_key) WHERE dedup_key IS NOT NULL AND status <> 'FAILED';
CREATE INDEX actions_attention ON actions(phase, updated_at) WHERE status = 'PENDING';
CREATE INDEX actions_prune ON actions(completed_at) WHERE status <> 'PENDING';
CREATE TABLE bindings(
  call_key TEXT PRIMARY KEY, workflow_id TEXT NOT NULL REFERENCES runs(workflow_id), at INTEGER NOT NULL,
  idempotency_key TEXT NOT NULL REFERENCES actions(idempotency_key) ON DELETE CASCADE) STRICT, WITHOUT ROWID;
CREATE INDEX bindings_of ON bindings(idempotency_key);
CREATE TABLE action_events(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, idempotency_key TEXT NOT NULL, fence INTEGER NOT NULL, what TEXT NOT NULL,
  actor TEXT NOT NULL, at INTEGER NOT NULL, body TEXT) STRICT;
CREATE INDEX action_events_of ON action_events(idempotency_key, seq);
CREATE TABLE approvals(
  approval_id TEXT PRIMARY KEY, idempotency_key TEXT NOT NULL, args_hash TEXT NOT NULL, asked_at INTEGER NOT NULL,
  reason TEXT NOT NULL CHECK(reason IN('tool', 'similar')), expires_at INTEGER NOT NULL, decided_at INTEGER,
  decided_by TEXT, note TEXT,
  state TEXT NOT NULL CHECK(state IN('asked', 'approved', 'denied', 'expired', 'spent'))) STRICT;
CREATE UNIQUE INDEX approvals_open ON approvals(idempotency_key) WHERE state IN('asked', 'approved');
CREATE TABLE tombstones(
  key_hash TEXT PRIMARY KEY, status TEXT NOT NULL, completed_at INTEGER NOT NULL, pruned_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
"""

# Number N brings a file from version N-1 to N.
MIGRATIONS: tuple[str, ...] = (_EVENTS_AND_USAGE, _LEDGER)

_META = "CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID"


def version(conn: sqlite3.Connection) -> int:
    """The schema version of the file; 0 for an empty one. Does not write."""
    if conn.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'meta'").fetchone() is None:
        return 0
    row = conn.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    return int(row[0]) if row else 0


def migrate(conn: sqlite3.Connection) -> None:
    """Bring the file to this program's version, all steps in one transaction; nothing if it is there already.

    Raises AuditIncompatible: the file is newer than the program.
    """
    found = version(conn)
    if found > len(MIGRATIONS):
        raise AuditIncompatible(
            f"audit.db: schema {found}, this program knows {len(MIGRATIONS)}; use the newer program"
        )
    if found == len(MIGRATIONS):
        return
    conn.execute("BEGIN IMMEDIATE")
    try:
        conn.execute(_META)
        for step in MIGRATIONS[version(conn) :]:
            for statement in _statements(step):
                conn.execute(statement)
        conn.execute("INSERT OR REPLACE INTO meta(name, value) VALUES('schema', ?)", (len(MIGRATIONS),))
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    """The single statements of a script; `executescript` would commit the open transaction."""
    found, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found

"""What happened, once and for ever: append-only events in one HMAC chain per scope.

Owns: the chain (append, seal, verify), the opt-in content beside it, and removal below an exported seal. One row per
(scope, request, step, kind, part), written in the transaction of what it reports. Refuses to change a row, and to hold
content in it: bodies are ids, counts and HMACs. Evidence, not proof: who has the chain key can rebuild the chain, so
production passes it from outside, and a tail that was cut off is seen only with a seal that was exported before.
"""

import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from .chain import ChainCheck, Event, Problem, Seal, VerifyReport, select_events
from .errors import AuditUnavailable
from .failpoints import failpoint
from .keys import (
    GENESIS,
    ChainKey,
    IdKey,
    JsonValue,
    StepKey,
    canonical,
    check_event_part,
    check_name,
    check_part,
    same,
)
from .store import Store, Transaction

__all__ = ["CLOCK_SCOPE", "Emit", "Event", "Events", "Problem", "Redactor", "Seal", "VerifyReport"]

log = logging.getLogger(__name__)

# The scope of what the store itself reports; no host can have it.
CLOCK_SCOPE = "~audit"
# A seal this often, and at close, so that losing a tail by accident shows even where nobody exports.
SEAL_EVERY = 1000
_BATCH = 500

# Returns what of a content may be kept, or None to keep nothing.
Redactor: TypeAlias = Callable[[Mapping[str, JsonValue]], Mapping[str, JsonValue] | None]
# Puts seals somewhere safe, durable on return, and says where. Raises OSError when it could not.
Emit: TypeAlias = Callable[[Sequence[Seal]], str]

_LAST_EVENT = "SELECT seq, hash FROM audit_events WHERE scope = ? ORDER BY seq DESC LIMIT 1"
_LAST_SEAL = "SELECT seq, hash FROM audit_seals WHERE scope = ? ORDER BY seq DESC LIMIT 1"


class Events:
    """The chain of events over one store."""

    def __init__(
        self,
        store: Store,
        ids: IdKey,
        chain: ChainKey,
        *,
        redactor: Redactor | None = None,
        seal_every: int = SEAL_EVERY,
        seal_to: Emit | None = None,
    ) -> None:
        """Content is dropped unless a redactor says what of it may stay.

        Every `seal_every` events of a scope its head is sealed; with `seal_to` the seal also leaves the file.
        """
        self._store = store
        self._ids = ids
        self._chain = chain
        self._redactor = redactor
        self._seal_every, self._seal_to = seal_every, seal_to
        # Scopes with events of this process after their last seal, and those whose N-th event waits for its commit.
        self._unsealed: set[str] = set()
        self._due: set[str] = set()
        store.on_jump = self._clock_jumped
        if seal_to is not None:
            store.on_commit = self._export_due

    def append(
        self,
        tx: Transaction,
        *,
        scope: str,
        step: StepKey,
        kind: str,
        body: Mapping[str, JsonValue],
        part: str = "",
        content: Mapping[str, JsonValue] | None = None,
    ) -> Event | None:
        """Add one event in the caller's transaction.

        None, and nothing written, when this key, kind and part has its event already (I7).
        """
        check_part(scope, "scope", ours=True)
        check_name(kind, "kind")
        check_event_part(part)
        known = tx.conn.execute(
            "SELECT 1 FROM audit_events WHERE scope = ? AND request_id = ? AND step_id = ? AND kind = ? AND part = ?",
            (scope, step.request, step.step, kind, part),
        ).fetchone()
        if known is not None:
            return None
        kept = self._redactor(content) if self._redactor is not None and content is not None else None
        kept_text = canonical(dict(kept)) if kept is not None else None
        fields = dict(body)
        if kept_text is not None:
            fields["content_hmac"] = self._ids.fingerprint(kept_text)
        seq, prev_hash = self.head(tx.conn, scope)
        unsigned = Event(
            scope,
            seq + 1,
            step.request,
            step.step,
            kind,
            part,
            tx.now_ms,
            canonical(fields),
            prev_hash,
            "",
            self._chain.key_id,
        )
        event = Event(**{**unsigned.__dict__, "hash": unsigned.expected_hash(self._chain)})
        tx.conn.execute(
            "INSERT INTO audit_events VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            tuple(event.__dict__.values()),
        )
        if kept_text is not None:
            tx.conn.execute(
                "INSERT INTO audit_content(scope, seq, body) VALUES(?, ?, ?)", (scope, event.seq, kept_text)
            )
        self._unsealed.add(scope)
        if event.seq % self._seal_every == 0:
            _insert_seal(tx, Seal(scope, event.seq, event.hash, tx.now_ms))
            self._due.add(scope)
        failpoint("events.appended")
        return event

    def head(self, conn: sqlite3.Connection, scope: str) -> tuple[int, str]:
        """(seq, hash) that the next event of the scope follows: the last row, else the last seal, else the beginning.

        Does not write.
        """
        for query in (_LAST_EVENT, _LAST_SEAL):
            row = conn.execute(query, (scope,)).fetchone()
            if row is not None:
                return int(row[0]), str(row[1])
        return 0, GENESIS

    def scopes(self) -> tuple[str, ...]:
        """Every scope that has events or seals, sorted. Does not write."""
        with self._store.read() as conn:
            return tuple(
                row[0]
                for row in conn.execute("SELECT scope FROM audit_events UNION SELECT scope FROM audit_seals ORDER BY 1")
            )

    def walk(self, scope: str, *, after: int = 0) -> Iterator[Event]:
        """The events of a scope by seq, from the one after `after` to the head at the time of the call. Does not write.

        Fetched in batches without an open transaction: rows never change, and a long export must not hold up
        checkpoints.
        """
        with self._store.read() as conn:
            last = self.head(conn, scope)[0]
        while after < last:
            with self._store.read() as conn:
                rows = conn.execute(
                    select_events("WHERE scope = ? AND seq > ? AND seq <= ? ORDER BY seq, rowid LIMIT ?"),
                    (scope, after, last, _BATCH),
                ).fetchall()
            if not rows:
                return
            yield from (Event(*row) for row in rows)
            after = int(rows[-1][1])

    def seals(self, scope: str) -> tuple[Seal, ...]:
        """The seals of a scope by seq. Does not write."""
        with self._store.read() as conn:
            rows = conn.execute(
                "SELECT scope, seq, hash, at, exported_to FROM audit_seals WHERE scope = ? ORDER BY seq", (scope,)
            ).fetchall()
        return tuple(Seal(*row) for row in rows)

    def seal(self, *, scope: str | None = None, exported_to: str | None = None) -> tuple[Seal, ...]:
        """Seal the head of one scope, or of all; returns the seals, for the caller to put where `exported_to` says.

        Call it once more with the same heads after the copy is safe: only then does `exported_to` allow events below to
        be removed.
        """
        made = []
        scopes = self.scopes() if scope is None else (scope,)
        with self._store.write() as tx:
            for name in scopes:
                seq, digest = self.head(tx.conn, name)
                if seq:
                    seal = Seal(name, seq, digest, tx.now_ms, exported_to)
                    _insert_seal(tx, seal)
                    made.append(seal)
        return tuple(made)

    def seal_open_ends(self) -> tuple[Seal, ...]:
        """Seal every scope that this process added to since its last seal, and export the seals where that was asked.

        What cannot be done is logged and tried again with the next seal: the events themselves are safe.
        """
        made: list[Seal] = []
        for scope in sorted(self._unsealed):
            try:
                seals = self.seal(scope=scope)
                if self._seal_to is not None and seals:
                    self.note_exported(seals, self._seal_to(seals))
            except (AuditUnavailable, OSError) as error:
                log.warning("events.seal scope=%s: %s", scope, error)
            else:
                self._unsealed.discard(scope)
                made += seals
        return tuple(made)

    def note_exported(self, seals: Iterable[Seal], exported_to: str) -> None:
        """Record that copies of these seals are safe elsewhere.

        What lies at or below them may now be removed by age.
        """
        with self._store.write() as tx:
            for seal in seals:
                _insert_seal(tx, Seal(seal.scope, seal.seq, seal.hash, tx.now_ms, exported_to))

    def verify(self, *, scope: str | None = None, heads: Sequence[Seal] = ()) -> VerifyReport:
        """Check every hash and link; `heads` are seals that were exported, without which a cut tail may stay unseen.

        Does not write.
        """
        names = set(self.scopes()) | {head.scope for head in heads}
        chosen = sorted(names) if scope is None else [scope]
        problems: list[Problem] = []
        count = 0
        for name in chosen:
            check = ChainCheck(name, (*self.seals(name), *(head for head in heads if head.scope == name)), self._chain)
            for event in self.walk(name):
                check.see(event)
                self._check_content(event, check)
                count += 1
            problems += check.end()
        return VerifyReport(count, len(chosen), tuple(problems))

    def content(self, scope: str, seq: int) -> Mapping[str, JsonValue] | None:
        """The content kept beside an event, or None. Does not write."""
        with self._store.read() as conn:
            row = conn.execute("SELECT body FROM audit_content WHERE scope = ? AND seq = ?", (scope, seq)).fetchone()
        return dict(json.loads(row[0])) if row else None

    def erase_content(self, scope: str, seq: int) -> bool:
        """Remove the content beside an event (a person's right); the chain, which holds only its HMAC, stays valid.

        True if there was one.
        """
        with self._store.write() as tx:
            return tx.conn.execute("DELETE FROM audit_content WHERE scope = ? AND seq = ?", (scope, seq)).rowcount == 1

    def removable(self, conn: sqlite3.Connection, before_ms: int) -> dict[str, int]:
        """Per scope the highest exported seal at or below which every event is older than `before_ms`.

        Does not write.
        """
        rows = conn.execute(
            "SELECT s.scope, max(s.seq) FROM audit_seals s WHERE s.exported_to IS NOT NULL AND NOT EXISTS(SELECT 1"
            " FROM audit_events e"
            " WHERE e.scope = s.scope AND e.seq <= s.seq AND e.at >= ?) GROUP BY s.scope",
            (before_ms,),
        ).fetchall()
        return dict(rows)

    def remove(self, tx: Transaction, scope: str, up_to: int) -> int:
        """Delete the events of a scope up to an exported seal, content with them; returns how many.

        The trigger refuses any others.
        """
        tx.conn.execute("DELETE FROM audit_content WHERE scope = ? AND seq <= ?", (scope, up_to))
        return tx.conn.execute("DELETE FROM audit_events WHERE scope = ? AND seq <= ?", (scope, up_to)).rowcount

    def _export_due(self) -> None:
        """After a commit: let the seals of this process leave the file, where the N-th event of a scope was reached."""
        if self._due:
            self._due.clear()
            self.seal_open_ends()

    def _clock_jumped(self, tx: Transaction) -> None:
        boottime_ms = self._store.clock.boottime_ms()
        step = StepKey("~clock", f"{tx.now_ms}-{boottime_ms}", ours=True)
        self.append(tx, scope=CLOCK_SCOPE, step=step, kind="clock_jump", body={"off_ms": tx.tick.jump_ms})

    def _check_content(self, event: Event, check: "ChainCheck") -> None:
        if (expected := event.fields.get("content_hmac")) is None:
            return
        with self._store.read() as conn:
            row = conn.execute(
                "SELECT body FROM audit_content WHERE scope = ? AND seq = ?", (event.scope, event.seq)
            ).fetchone()
        if row is not None and not same(str(expected), self._ids.fingerprint(row[0])):
            check.report(event.seq, "edit", "the content beside the event is not what it was")


def _insert_seal(tx: Transaction, seal: Seal) -> None:
    """Add a seal; one that is there keeps its first place of export."""
    tx.conn.execute(
        "INSERT INTO audit_seals(scope, seq, hash, at, exported_to) VALUES(?, ?, ?, ?, ?) ON CONFLICT(scope, seq)"
        " DO UPDATE SET"
        " exported_to = coalesce(audit_seals.exported_to, excluded.exported_to) WHERE audit_seals.hash = excluded.hash",
        (seal.scope, seal.seq, seal.hash, seal.at_ms, seal.exported_to),
    )

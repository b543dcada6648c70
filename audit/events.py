"""What happened, once and for ever: append-only events in one HMAC chain per scope.

Owns: the chain (append, seal, verify), the opt-in content beside it, and removal below an exported seal. One row per
(scope, request, step, kind, part), written in the transaction of what it reports. Refuses to change a row, and to hold
content in it: bodies are ids, counts and HMACs. Evidence, not proof: who has the chain key can rebuild the chain, so
production passes it from outside, and a tail that was cut off is seen only with a seal that was exported before.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

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

__all__ = ["CLOCK_SCOPE", "Event", "Events", "Problem", "Redactor", "Seal", "VerifyReport"]

# The scope of what the store itself reports; no host can have it.
CLOCK_SCOPE = "~audit"
# A local seal this often, so that losing a tail by accident shows even where nobody exports.
SEAL_EVERY = 1000
_BATCH = 500

# Returns what of a content may be kept, or None to keep nothing.
Redactor: TypeAlias = Callable[[Mapping[str, JsonValue]], Mapping[str, JsonValue] | None]
ProblemName: TypeAlias = Literal["edit", "gap", "fork", "missing tail"]

_LAST_EVENT = "SELECT seq, hash FROM audit_events WHERE scope = ? ORDER BY seq DESC LIMIT 1"
_LAST_SEAL = "SELECT seq, hash FROM audit_seals WHERE scope = ? ORDER BY seq DESC LIMIT 1"
_COLUMNS = "scope, seq, request_id, step_id, kind, part, at, body, prev_hash, hash, key_id"


def select_events(rest: str) -> str:
    """The query of whole events, in the order of Event's fields; `rest` is a constant of the caller."""
    return f"SELECT {_COLUMNS} FROM audit_events {rest}"  # noqa: S608 - constants only


@dataclass(frozen=True)
class Event:
    """One row of the chain.

    `at_ms`: store time, milliseconds since 1970, UTC; `body`: canonical JSON text of an object.
    """

    scope: str
    seq: int
    request: str
    step: str
    kind: str
    part: str
    at_ms: int
    body: str
    prev_hash: str
    hash: str
    key_id: str

    @property
    def key(self) -> str:
        """`request:step`."""
        return f"{self.request}:{self.step}"

    @property
    def fields(self) -> Mapping[str, JsonValue]:
        """The body as an object; empty when someone damaged it (verify names that)."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def principal(self) -> str:
        """Who did it: the subject, or the scope where the event names none."""
        subject = self.fields.get("subject")
        return subject if isinstance(subject, str) else self.scope

    def expected_hash(self, key: ChainKey) -> str:
        """What `hash` must be under this key."""
        return key.link(
            [
                1,
                self.scope,
                self.seq,
                self.request,
                self.step,
                self.kind,
                self.part,
                self.at_ms,
                self.body,
                self.key_id,
                self.prev_hash,
            ]
        )


@dataclass(frozen=True)
class Seal:
    """The head of one scope at some time. `exported_to` names where a copy went; None is a seal in the file alone."""

    scope: str
    seq: int
    hash: str
    at_ms: int
    exported_to: str | None = None


@dataclass(frozen=True)
class Problem:
    """One fault of the chain: what, where (the first bad seq), and why one thinks so."""

    scope: str
    seq: int
    name: ProblemName
    detail: str


@dataclass(frozen=True)
class VerifyReport:
    """Events checked over all scopes, and problems ordered by scope and seq."""

    events: int
    scopes: int
    problems: tuple[Problem, ...]


class Events:
    """The chain of events over one store."""

    def __init__(self, store: Store, ids: IdKey, chain: ChainKey, *, redactor: Redactor | None = None) -> None:
        """Content is dropped unless a redactor says what of it may stay."""
        self._store = store
        self._ids = ids
        self._chain = chain
        self._redactor = redactor
        store.on_jump = self._clock_jumped

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
        if event.seq % SEAL_EVERY == 0:
            _insert_seal(tx, Seal(scope, event.seq, event.hash, tx.now_ms))
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
            check = _ChainCheck(name, (*self.seals(name), *(head for head in heads if head.scope == name)), self._chain)
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

    def _clock_jumped(self, tx: Transaction) -> None:
        boottime_ms = self._store.clock.boottime_ms()
        step = StepKey("~clock", f"{tx.now_ms}-{boottime_ms}", ours=True)
        self.append(tx, scope=CLOCK_SCOPE, step=step, kind="clock_jump", body={"off_ms": tx.tick.jump_ms})

    def _check_content(self, event: Event, check: "_ChainCheck") -> None:
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


class _ChainCheck:
    """Walks one scope by seq and names each fault.

    The table's constraints are not trusted: who edits a row can also drop them.
    """

    def __init__(self, scope: str, seals: Sequence[Seal], chain: ChainKey) -> None:
        self._scope, self._seals, self._chain = scope, seals, chain
        self._sealed = {seal.seq: "" for seal in seals}
        self._seq, self._hash, self._first = 0, GENESIS, True
        self._problems: list[Problem] = []

    def report(self, seq: int, name: ProblemName, detail: str) -> None:
        self._problems.append(Problem(self._scope, seq, name, detail))

    def see(self, event: Event) -> None:
        """Check the next event against the one before it."""
        if self._first:
            self._first = False
            self._start(event.seq)
        key = self._chain.named(event.key_id)
        intact = key is not None and same(event.hash, event.expected_hash(key))
        if not intact:
            self.report(
                event.seq,
                "edit",
                f"key {event.key_id} is not known" if key is None else "its hash does not fit its fields",
            )
        if event.seq > self._seq + 1:
            self.report(self._seq + 1, "gap", f"events {self._seq + 1} to {event.seq - 1} are missing")
        elif event.seq <= self._seq:
            self.report(event.seq, "fork", "two events have this number")
        elif intact and event.prev_hash != self._hash:
            self.report(event.seq, "fork", "it follows another event than the one before it")
        if event.seq in self._sealed:
            self._sealed[event.seq] = event.hash
        self._seq, self._hash = max(event.seq, self._seq), event.hash

    def end(self) -> list[Problem]:
        """Compare with the seals; every fault of the scope by seq."""
        newest = max(self._seals, key=lambda seal: seal.seq, default=None)
        if self._first and newest is not None and newest.exported_to is not None:
            return self._problems  # retention has removed everything up to an exported seal, and nothing came since
        if newest is not None and newest.seq > self._seq:
            self.report(
                self._seq + 1, "missing tail", f"event {newest.seq} was sealed, the last one here is {self._seq}"
            )
        for seal in self._seals:
            if (found := self._sealed[seal.seq]) and not same(found, seal.hash):
                self.report(seal.seq, "fork", "it was sealed with another hash")
        return sorted(self._problems, key=lambda problem: problem.seq)

    def _start(self, seq: int) -> None:
        """What the first event must follow.

        The beginning, or an exported seal below which retention removed everything.
        """
        for seal in self._seals:
            if seal.exported_to is not None and seal.seq == seq - 1:
                self._seq, self._hash = seal.seq, seal.hash

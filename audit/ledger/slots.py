"""The row of one action and every way it may change.

Owns: the slot, the table of legal transitions, and the one statement that makes them. A transition is guarded by fence
and phase in its WHERE and leaves a row in `action_events`; ends, doubts and suspected doubles are audit events too, in
the same transaction. Refuses what the table does not hold, and to lower what is known of the effect: unknown stays
unknown until a lookup, a success or a person says more (I8).
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from sqlite3 import Connection
from types import MappingProxyType
from typing import Literal, TypeAlias

from audit.events import Events
from audit.keys import ActionKey, JsonValue, StepKey, canonical
from audit.store import Transaction

from .errors import LedgerError
from .tools import Effect, Failure, ToolClass

__all__ = ["ENDED", "LEGAL", "PHASES", "Phase", "Slot", "Slots"]

Phase: TypeAlias = Literal[
    "gated", "ready", "claimed", "dispatched", "retry_wait", "in_doubt",
    "done", "permanent", "exhausted", "denied", "expired", "voided",
]  # fmt: skip

_STATUS: Mapping[str, str] = {
    **dict.fromkeys(("gated", "ready", "claimed", "dispatched", "retry_wait", "in_doubt"), "PENDING"),
    **dict.fromkeys(("permanent", "exhausted", "denied", "expired", "voided"), "FAILED"),
    "done": "SUCCESS",
}
PHASES = frozenset(_STATUS)
ENDED = frozenset(phase for phase, status in _STATUS.items() if status != "PENDING")

# Who may make a transition, and under which guard, is said where it is made; that it exists at all, here.
LEGAL: frozenset[tuple[str, str]] = frozenset(
    {
        ("gated", "ready"), ("gated", "denied"), ("gated", "expired"), ("ready", "denied"), ("ready", "expired"),
        ("ready", "claimed"), ("retry_wait", "claimed"), ("claimed", "dispatched"), ("claimed", "retry_wait"),
        ("claimed", "in_doubt"), ("claimed", "claimed"), ("dispatched", "claimed"), ("dispatched", "in_doubt"),
        ("dispatched", "retry_wait"), ("dispatched", "permanent"), ("dispatched", "done"), ("in_doubt", "done"),
        ("retry_wait", "done"), ("in_doubt", "in_doubt"), ("in_doubt", "retry_wait"), ("in_doubt", "claimed"),
        ("in_doubt", "voided"), ("retry_wait", "exhausted"), ("permanent", "claimed"),
        ("permanent", "gated"), ("retry_wait", "gated"),
    }
)  # fmt: skip


@dataclass(frozen=True)
class Slot:
    """One row of `actions`; the fields are its columns.

    Times in milliseconds: `*_at` store time, `*_mono_ms` monotonic.
    """

    idempotency_key: str
    scope: str
    agent_id: str
    workflow_id: str
    step_id: str
    action_type: str
    sample: int
    sampled_from: str | None
    told: Literal["ok", "error"] | None
    tool_class: ToolClass
    identity_fp: str
    args_hash: str
    fp_version: int
    dedup_key: str | None
    downstream_key: str
    key_sent_at: int | None
    status: str
    phase: Phase
    effect: Effect
    fence: int
    attempts: int
    dispatches: int
    holder: str | None
    boot_id: str | None
    lease_mono_ms: int | None
    sent_mono_ms: int | None
    next_at: int | None
    created_at: int
    updated_at: int
    completed_at: int | None
    result_kind: Literal["inline", "omitted"] | None
    result_hash: str | None
    args_data: str | None
    error_data: str | None
    result_data: str | None

    @property
    def key(self) -> ActionKey:
        """The primary key in its parts."""
        return ActionKey(self.workflow_id, self.step_id, self.action_type, self.sample)

    @property
    def dangerous(self) -> bool:
        """True when a second effect would do harm."""
        return self.tool_class == "dangerous"

    @property
    def error(self) -> Failure | None:
        """The last recorded failure."""
        return Failure(**json.loads(self.error_data)) if self.error_data else None

    @property
    def label(self) -> str:
        """Tool and sample, as parts of events name them."""
        return self.action_type + (f"#s{self.sample}" if self.sample else "")


_NAMES = tuple(field.name for field in fields(Slot))
_COLUMNS = ", ".join(_NAMES)
_INSERT = f"INSERT INTO actions({_COLUMNS}) VALUES({', '.join('?' * len(_NAMES))}) ON CONFLICT DO NOTHING"
_UPDATE = (
    f"UPDATE actions SET {', '.join(f'{name} = ?' for name in _NAMES)}"  # noqa: S608 - constants
    " WHERE idempotency_key = ? AND fence = ? AND phase = ?"
)


def select_slots(rest: str) -> str:
    """The query of whole slots; `rest` is a constant of the caller."""
    return f"SELECT {_COLUMNS} FROM actions {rest}"  # noqa: S608 - constants


def _row(slot: Slot) -> tuple[object, ...]:
    """The columns in their order; `dataclasses.astuple` would copy every value deeply."""
    return tuple(vars(slot).values())


class Slots:
    """Reads and changes slots in the caller's transaction."""

    def __init__(self, events: Events, *, keep_arguments: bool) -> None:
        """keep_arguments: the semantic gate compares wordings, so they stay after the end."""
        self._events = events
        self._keep_arguments = keep_arguments

    def get(self, tx: Transaction, key: str) -> Slot | None:
        """The slot of a key, without following bindings."""
        row = tx.conn.execute(select_slots("WHERE idempotency_key = ?"), (key,)).fetchone()
        return Slot(*row) if row else None

    def insert(self, tx: Transaction, slot: Slot, *, actor: str) -> bool:
        """Add a new slot; False when its key or its dedup key was taken meanwhile."""
        if tx.conn.execute(_INSERT, _row(slot)).rowcount != 1:
            return False
        self.note(tx, slot, f"-> {slot.phase}", actor=actor)
        return True

    def move(
        self,
        tx: Transaction,
        slot: Slot,
        phase: Phase,
        *,
        actor: str,
        body: Mapping[str, JsonValue] | None = None,
        changes: Mapping[str, object] = MappingProxyType({}),
    ) -> Slot | None:
        """Make one transition from the state that the caller saw.

        None, and a `late_...` row, when the slot is not in it any more. Not an exception: raised inside the transaction
        it would take the row along, and the record has the answer for the caller (see LostLease).
        """
        if (slot.phase, phase) not in LEGAL:
            raise LedgerError(
                f"action {slot.idempotency_key}: no way from {slot.phase} to {phase}; this is an error of the program"
            )
        after = dataclasses.replace(slot, **{"phase": phase, **changes})  # type: ignore[arg-type]  # columns of the row
        status = _STATUS[phase]
        after = dataclasses.replace(
            after,
            status=status,
            updated_at=tx.now_ms,
            completed_at=None if status == "PENDING" else tx.now_ms,
            args_data=after.args_data if status == "PENDING" or self._keep_arguments or phase == "permanent" else None,
        )
        done = tx.conn.execute(_UPDATE, (*_row(after), slot.idempotency_key, slot.fence, slot.phase)).rowcount
        if done != 1:
            self.note(tx, slot, f"late_{phase}", actor=actor, body=body)
            return None
        self.note(tx, after, f"{slot.phase} -> {phase}", actor=actor, body=body)
        if phase in ENDED or (phase == "in_doubt" and slot.phase != "in_doubt"):
            self.report(tx, after, f"{after.label}@{after.fence}.{phase}", body)
        return after

    def note(
        self, tx: Transaction, slot: Slot, what: str, *, actor: str, body: Mapping[str, JsonValue] | None = None
    ) -> None:
        """Add a row to the history of the slot."""
        text = canonical(dict(body)) if body else None
        tx.conn.execute(
            "INSERT INTO action_events(idempotency_key, fence, what, actor, at, body) VALUES(?, ?, ?, ?, ?, ?)",
            (slot.idempotency_key, slot.fence, what, actor, tx.now_ms, text),
        )

    def history_length(self, conn: Connection) -> int:
        """The number of the newest row of the history, removed ones counted too; it never goes back. Does not write."""
        row = conn.execute("SELECT seq FROM sqlite_sequence WHERE name = 'action_events'").fetchone()
        return int(row[0]) if row else 0

    def report(self, tx: Transaction, slot: Slot, part: str, body: Mapping[str, JsonValue] | None = None) -> None:
        """Add an audit event about the slot: ids and counts, no argument and no result."""
        self._events.append(
            tx,
            scope=slot.scope,
            step=StepKey(slot.workflow_id, slot.step_id),
            kind="action",
            part=part,
            body={
                **(body or {}),
                "tool": slot.action_type,
                "agent": slot.agent_id,
                "action_key": slot.idempotency_key,
                "phase": slot.phase,
                "effect": slot.effect,
                "fence": slot.fence,
                "resends": max(slot.dispatches - 1, 0),
            },
        )

"""Actions for people: lists, one action with its history, and what needs attention. Everything here only reads.

Owns: the read-side shapes of the ledger. Refuses to show arguments in lists; only what a person must decide on shows
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from audit.store import Store

from .holders import Holders
from .slots import Slot, select_slots
from .values import Codec

__all__ = ["ActionEvent", "ActionView", "Views"]


@dataclass(frozen=True)
class ActionView:
    """One action. `why`: what a person should look at, empty in plain lists.

    `args`: what would be sent, only where it must be judged.
    """

    key: str
    scope: str
    agent: str
    tool: str
    status: str
    phase: str
    effect: str
    fence: int
    attempts: int
    dispatches: int
    created_ms: int
    updated_ms: int
    why: str = ""
    args: object = None
    args_hash: str | None = None
    approval_id: str | None = None
    expires_ms: int | None = None


@dataclass(frozen=True)
class ActionEvent:
    """One transition, made or refused."""

    at_ms: int
    fence: int
    what: str
    actor: str
    body: str | None


class Views:
    """Read-side queries over one store."""

    def __init__(self, store: Store, holders: Holders, codec: Codec) -> None:
        self._store, self._holders, self._codec = store, holders, codec

    def actions(self, *, limit: int, phase: str | None = None) -> tuple[ActionView, ...]:
        """The newest actions, newest first."""
        with self._store.read() as conn:
            rows = conn.execute(
                select_slots("WHERE ? IS NULL OR phase = ? ORDER BY created_at DESC, idempotency_key DESC LIMIT ?"),
                (phase, phase, limit),
            ).fetchall()
        return tuple(_view(Slot(*row)) for row in rows)

    def action(self, key: str) -> ActionView | None:
        """One action by its key or by a key that is bound to it."""
        with self._store.read() as conn:
            row = conn.execute(
                select_slots(
                    "WHERE idempotency_key = coalesce((SELECT idempotency_key FROM bindings WHERE call_key = ?), ?)"
                ),
                (key, key),
            ).fetchone()
        return _view(Slot(*row)) if row else None

    def history(self, key: str) -> tuple[ActionEvent, ...]:
        """Every transition of an action, oldest first."""
        with self._store.read() as conn:
            rows = conn.execute(
                "SELECT at, fence, what, actor, body FROM action_events WHERE idempotency_key = ? ORDER BY seq", (key,)
            ).fetchall()
        return tuple(ActionEvent(*row) for row in rows)

    def of_step(self, workflow: str, step: str) -> tuple[ActionView, ...]:
        """The actions of one step, samples in order."""
        with self._store.read() as conn:
            rows = conn.execute(
                select_slots("WHERE workflow_id = ? AND step_id = ? ORDER BY action_type, sample"), (workflow, step)
            ).fetchall()
        return tuple(_view(Slot(*row)) for row in rows)

    def attention(self) -> tuple[ActionView, ...]:
        """Gated, in doubt, and lapsed actions, oldest first."""
        with self._store.read() as conn:
            rows = conn.execute(
                select_slots("WHERE phase IN('gated', 'in_doubt', 'claimed', 'dispatched') ORDER BY updated_at")
            ).fetchall()
            asked = {
                key: (approval, expires)
                for key, approval, expires in conn.execute(
                    "SELECT idempotency_key, approval_id, expires_at FROM approvals WHERE state = 'asked'"
                )
            }
        found = (self._judged(Slot(*row), asked) for row in rows)
        return tuple(view for view in found if view is not None)

    def _judged(self, slot: Slot, asked: Mapping[str, tuple[str, int]]) -> ActionView | None:
        """What a person should look at, or None: the holder is alive and will report."""
        if slot.phase in ("claimed", "dispatched"):
            state = self._holders.liveness(slot)
            return None if state == "alive" else replace(_view(slot), why=f"{slot.phase}, its holder is {state}")
        args = self._codec.value(slot.args_data or "null")
        view = replace(_view(slot), args=args, args_hash=slot.args_hash)
        if slot.phase == "in_doubt":
            return replace(view, why="sent, outcome unknown: did it happen?")
        approval_id, expires_ms = asked.get(slot.idempotency_key, (None, None))
        return replace(view, why="waits for approval", approval_id=approval_id, expires_ms=expires_ms)


def _view(slot: Slot) -> ActionView:
    return ActionView(
        slot.idempotency_key, slot.scope, slot.agent_id, slot.action_type, slot.status, slot.phase, slot.effect,
        slot.fence, slot.attempts, slot.dispatches, slot.created_at, slot.updated_at,
    )  # fmt: skip

"""What nobody's call does: closing what ran out, and removing what is old enough.

Owns: sweep and prune. Prune works in batches, leaves a tombstone for every key it removes, and never touches what is
pending: a key whose record is gone must be refused, not taken for new. Refuses to prune while a clock jump is open.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from audit.errors import ClockJumped
from audit.failpoints import failpoint
from audit.keys import IdKey, StepKey
from audit.store import Store, Transaction
from audit.usage import Usage

from .approvals import Approvals
from .binding import tombstone_hash
from .claims import Claims, Look
from .holders import Holders
from .slots import Phase, Slot, Slots, select_slots
from .tools import Tool

__all__ = ["LedgerPruned", "SweepReport", "Upkeep"]

_BATCH = 500
# Longer than any audit or dispute asks back (13 months), see the design: a key must be refused long after its row is
# gone.
_TOMBSTONES_MS = 400 * 86_400_000


@dataclass(frozen=True)
class SweepReport:
    """How many.

    Spooled outcomes read, questions expired, dead or lapsed sends put in doubt, actions given up, usage settled or
    given back, and files of dead holders removed. `looks`: in-doubt actions whose target was asked.
    """

    spooled: int
    expired: int
    in_doubt: int
    exhausted: int
    looks: int
    settled: int
    voided: int
    holders: int


@dataclass(frozen=True)
class LedgerPruned:
    """How many actions were removed (or would be), and how many tombstones were old enough to go."""

    actions: int
    tombstones: int
    dry_run: bool


_LOST = "WHERE phase IN('dispatched', 'claimed') ORDER BY updated_at"
_DOUBT = "WHERE phase = 'in_doubt' AND (next_at IS NULL OR next_at <= ?) ORDER BY updated_at"
_WAITING = "WHERE phase = 'retry_wait' ORDER BY updated_at"
_OLD = (
    "WHERE status <> 'PENDING' AND completed_at < ? AND EXISTS(SELECT 1 FROM runs r WHERE r.workflow_id ="
    " actions.workflow_id"
    " AND r.state = 'closed' AND r.resume_until < ?) AND NOT EXISTS(SELECT 1 FROM bindings b JOIN runs r"
    " USING(workflow_id)"
    " WHERE b.idempotency_key = actions.idempotency_key AND r.state = 'open')"
    " AND NOT EXISTS(SELECT 1 FROM actions s WHERE s.sampled_from = actions.idempotency_key AND s.status = 'PENDING')"
    " ORDER BY completed_at LIMIT ?"
)
_OLD_TOMBSTONES = "DELETE FROM tombstones WHERE pruned_at < ?"


class Upkeep:
    """Sweeps and prunes one store."""

    def __init__(
        self,
        store: Store,
        slots: Slots,
        approvals: Approvals,
        claims: Claims,
        holders: Holders,
        usage: Usage,
        ids: IdKey,
    ) -> None:
        self._store, self._slots, self._approvals, self._claims = store, slots, approvals, claims
        self._holders, self._usage, self._ids = holders, usage, ids

    def sweep(
        self, tools: Mapping[str, Tool], *, drain: Callable[[], int], look: Callable[[Look, Tool], None]
    ) -> SweepReport:
        """Close what ran out; asks targets about in-doubt actions of the tools given (outside any transaction)."""
        spooled = drain()
        with self._store.write() as tx:
            expired = sum(self._approvals.expire(tx, slot) is not None for slot in self._approvals.overdue(tx))
            doubted = sum(self._doubt(tx, slot) for slot in _all(tx, _LOST))
            exhausted = sum(self._exhaust(tx, slot, tools) for slot in _all(tx, _WAITING))
        looks = self._look(tools, look)
        with self._store.write() as tx:
            settled, voided = self._settle(tx)
            rows = tx.conn.execute("SELECT DISTINCT holder FROM actions WHERE holder IS NOT NULL").fetchall()
        # A holder file is the witness of what the WAL holds: it may go only when the main file holds that, too.
        holders = self._holders.tidy(row[0] for row in rows) if self._store.checkpoint() else 0
        return SweepReport(spooled, expired, doubted, exhausted, looks, settled, voided, holders)

    def prune(self, retention: timedelta, *, dry_run: bool) -> LedgerPruned:
        """Remove ended actions of closed runs, older than the retention and past their resume. Raises ClockJumped."""
        removed = 0
        while True:
            with self._store.write() as tx:
                if tx.tick.jump_ms:
                    raise ClockJumped(
                        "prune: the wall clock jumped and nobody accepted it; mend it, or run `ingest audit clock"
                        " --accept`"
                    )
                before = tx.now_ms - retention // timedelta(milliseconds=1)
                old = _all(tx, _OLD, before, tx.now_ms, -1 if dry_run else _BATCH)
                for slot in [] if dry_run else old:
                    self._bury(tx, slot)
                removed += len(old)
                if dry_run or not old:
                    query = "SELECT 1 FROM tombstones WHERE pruned_at < ?" if dry_run else _OLD_TOMBSTONES
                    gone = tx.conn.execute(query, (min(before, tx.now_ms - _TOMBSTONES_MS),))
                    return LedgerPruned(removed, len(gone.fetchall()) if dry_run else gone.rowcount, dry_run)
            failpoint("F10")

    def _bury(self, tx: Transaction, slot: Slot) -> None:
        """A tombstone for the slot's key, every key bound to it and its dedup key.

        Then the row goes, with what hangs on it.
        """
        key = slot.idempotency_key
        bound = [row[0] for row in tx.conn.execute("SELECT call_key FROM bindings WHERE idempotency_key = ?", (key,))]
        hashes = [tombstone_hash(self._ids, name) for name in (key, *bound)]
        if slot.dedup_key is not None and slot.status != "FAILED":
            hashes.append(slot.dedup_key)
        tx.conn.executemany(
            "INSERT OR IGNORE INTO tombstones(key_hash, status, completed_at, pruned_at) VALUES(?, ?, ?, ?)",
            [(digest, slot.status, slot.completed_at, tx.now_ms) for digest in hashes],
        )
        tx.conn.execute("DELETE FROM action_events WHERE idempotency_key = ?", (key,))
        tx.conn.execute("DELETE FROM approvals WHERE idempotency_key = ?", (key,))
        tx.conn.execute("DELETE FROM actions WHERE idempotency_key = ?", (key,))

    def _doubt(self, tx: Transaction, slot: Slot) -> bool:
        """A dangerous send whose holder is gone is in doubt; a claim that sent nothing is free again."""
        if self._holders.liveness(slot) == "alive":
            return False
        changes: dict[str, object] = {"next_at": tx.now_ms}
        phase: Phase = "in_doubt"
        if slot.phase == "claimed" and (slot.effect == "none" or not slot.dangerous):
            phase, changes["holder"] = "retry_wait", None
            changes["attempts"] = max(slot.attempts - 1, 0)
        elif not slot.dangerous:
            return False
        else:
            changes["effect"] = "unknown"
        self._slots.move(tx, slot, phase, actor="sweep", changes=changes)
        return phase == "in_doubt"

    def _exhaust(self, tx: Transaction, slot: Slot, tools: Mapping[str, Tool]) -> bool:
        tool = tools.get(slot.action_type)
        if tool is None or slot.attempts < tool.max_attempts:
            return False
        return self._slots.move(tx, slot, "exhausted", actor="sweep") is not None

    def _look(self, tools: Mapping[str, Tool], look: Callable[[Look, Tool], None]) -> int:
        with self._store.write() as tx:
            turns = [
                (self._claims.take_turn(tx, slot, tool), tool)
                for slot in _all(tx, _DOUBT, tx.now_ms)
                if (tool := tools.get(slot.action_type)) is not None and tool.lookup is not None
            ]
        for turn, tool in turns:
            look(turn, tool)
        return len(turns)

    def _settle(self, tx: Transaction) -> tuple[int, int]:
        """Reserved usage of steps whose actions have all ended.

        Given back if certainly nothing happened, else counted as estimated.
        """
        settled = voided = 0
        rows = tx.conn.execute(
            "SELECT scope, request_id, step_id, meter FROM usage u WHERE state = 'reserved' AND NOT EXISTS(SELECT"
            " 1 FROM actions a"
            " WHERE a.workflow_id = u.request_id AND a.step_id = u.step_id AND a.status = 'PENDING')"
        ).fetchall()
        for scope, request, step, meter in rows:
            effects = tx.conn.execute(
                "SELECT effect FROM actions WHERE workflow_id = ? AND step_id = ?", (request, step)
            ).fetchall()
            key = StepKey(request, step, ours=True)
            if effects and all(effect == "none" for (effect,) in effects):
                voided += self._usage.void(tx, scope=scope, step=key, meter=meter)
            elif effects:
                settled += self._usage.settle(tx, scope=scope, step=key, meter=meter)
        return settled, voided


def _all(tx: Transaction, rest: str, *values: object) -> list[Slot]:
    return [Slot(*row) for row in tx.conn.execute(select_slots(rest), values).fetchall()]

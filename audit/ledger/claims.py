"""What a call may do now: answer from the record, wait, look, or execute. One transaction decides.

Owns: the table of section "what a repeat returns" of the design, claims, run limits and counting. Refuses to execute
while the holder lives, to send a dangerous action again whose effect is unknown unless the target honours its key, and
to let a full limit leave a row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from audit.failpoints import failpoint
from audit.keys import ActionKey, IdKey, fresh_downstream_key
from audit.store import Store, Transaction
from audit.usage import Usage

from .approvals import Approvals
from .binding import Bound, Gate, bind, dedup_slot, find, is_pruned, similar
from .errors import LostLease, Reentrant, Refused, RunError
from .holders import Holders
from .outcomes import Outcome
from .requests import Request, dedup_key
from .runs import Run, find_run
from .slots import Phase, Slot, Slots
from .tools import Tool

__all__ = ["Answer", "Claims", "Decision", "Drain", "Execute", "Look", "Wait"]

# How long an in-doubt slot is left alone between two lookups, and to whom the turn belongs meanwhile.
LOOKUP_SPACING_MS = 5_000
# A retry doubles from one second to a minute; Retry-After of the target comes first.
BACKOFF_MS, BACKOFF_MAX_MS = 1_000, 60_000


@dataclass(frozen=True)
class Answer:
    """Nothing more to do: the outcome."""

    outcome: Outcome


@dataclass(frozen=True)
class Wait:
    """Somebody else acts, or it is too early (`until_at`, store time).

    `outcome` is what to say when patience ends first.
    """

    slot: Slot
    until_at: int | None
    outcome: Outcome


@dataclass(frozen=True)
class Execute:
    """The slot belongs to this call, which may dispatch it.

    `reworded`: the slot sends other words than the call has.
    """

    slot: Slot
    reworded: bool


@dataclass(frozen=True)
class Look:
    """The turn to ask the target belongs to this call.

    `trusted`: the sender has stopped and the effect would be visible by now.
    """

    slot: Slot
    trusted: bool


@dataclass(frozen=True)
class Drain:
    """Outcomes wait in the spool; the slot may be decided by one of them."""


Decision: TypeAlias = Answer | Wait | Execute | Look | Drain


class Claims:
    """Decides calls over one store."""

    def __init__(
        self,
        store: Store,
        slots: Slots,
        approvals: Approvals,
        usage: Usage,
        holders: Holders,
        ids: IdKey,
        *,
        gate: Gate | None,
        render: Callable[[Slot, Request], Outcome],
        spooled: Callable[[], bool],
    ) -> None:
        self._store, self._slots, self._approvals, self._usage = store, slots, approvals, usage
        self._holders, self._ids, self._gate, self.render, self._spooled = holders, ids, gate, render, spooled
        # Claims of this process that it gave up without being able to say so in the store.
        self.abandoned: set[tuple[str, int]] = set()

    def decide(self, request: Request, executing: frozenset[str]) -> Decision:
        """Bind the call to a slot and say what to do. `executing`: slots whose tool is running in this very context.

        Raises RunError, Refused (a sample nobody asked for), Reentrant.
        """
        with self._store.write() as tx:
            run = find_run(tx, request.key.workflow)
            if run is None:
                raise RunError(f"run {request.key.workflow}: unknown; open_run first")
            if request.scope is not None and request.scope != run.scope:
                return Answer(Outcome(kind="conflict", key=request.key))
            bound = find(tx, request, run, self._ids)
            if bound is None and is_pruned(tx, request, run, self._ids):
                return Answer(Outcome(kind="pruned", key=request.key))
            if bound is None:
                return self._first(tx, request, run)
            if bound.slot.scope != run.scope:
                return Answer(Outcome(kind="conflict", key=request.key))
            if bound.slot.idempotency_key in executing:
                raise Reentrant(
                    f"action {bound.slot.idempotency_key}: called by its own tool; give the inner call its own step"
                )
            return self._repeat(tx, request, run, bound)

    def wait_over(self, slot: Slot) -> bool:
        """True when the holder that somebody waits for is not alive, or may have spooled. Does not write."""
        if slot.phase == "dispatched" and self._spooled():
            return True
        return slot.phase in ("claimed", "dispatched") and self._gone(slot)

    def moved_on(self, slot: Slot) -> bool:
        """True when the row is not in the state that was seen. Does not write."""
        with self._store.read() as conn:
            row = conn.execute(
                "SELECT phase, fence, next_at FROM actions WHERE idempotency_key = ?", (slot.idempotency_key,)
            ).fetchone()
        return bool(row != (slot.phase, slot.fence, slot.next_at))

    def key_usable(self, slot: Slot, tool: Tool, now_ms: int) -> bool:
        """True when sending again with the same downstream key is safe.

        The target honours it and still remembers it.
        """
        if not tool.honours_key or tool.key_ttl_s is None:
            return False
        return slot.key_sent_at is None or now_ms < slot.key_sent_at + int(tool.key_ttl_s * 1000)

    def _gone(self, slot: Slot) -> bool:
        return (slot.idempotency_key, slot.fence) in self.abandoned or self._holders.liveness(slot) != "alive"

    # -- a call that no slot answers yet

    def _first(self, tx: Transaction, request: Request, run: Run) -> Decision:
        if run.state == "closed":
            raise RunError(f"run {run.workflow}: closed; a new action needs an open run")
        self._check_sample(tx, request)
        tool, key = request.tool, request.key
        if self._run_is_full(tx, tool, run, but=None):
            return Answer(Outcome(kind="limited", key=key))
        counted = self._usage.count(
            tx,
            scope=run.scope,
            step=key.usage_key,
            meter=tool.name,
            subject=run.agent,
            fingerprint=request.identity_fp,
        )
        if counted.state in ("limited", "too_many_attempts"):
            wait = counted.retry_after_ms
            return Answer(Outcome(kind="limited", key=key, retry_after_s=None if wait is None else wait / 1000))
        failpoint("F11")
        asks = "tool" if tool.approval is not None else "similar" if similar(tx, request, run, self._gate) else None
        slot = (
            self._owned(tx, self._fresh(tx, request, run), tool.lease_s)
            if asks is None
            else self._fresh(tx, request, run)
        )
        if not self._slots.insert(tx, slot, actor=self._actor(slot)):
            raise LostLease(f"action {key}: its slot appeared inside one transaction; this is an error of the program")
        if asks is None:
            return Execute(slot, reworded=False)
        expires_s = tool.approval.expires_s if tool.approval is not None else None
        self._approvals.ask(tx, slot, reason="tool" if asks == "tool" else "similar", expires_s=expires_s)
        return Answer(self._say(tx, slot, request))

    def _check_sample(self, tx: Transaction, request: Request) -> None:
        key = request.key
        if key.sample == 0:
            return
        parent = str(ActionKey(key.workflow, key.step, key.tool))
        (granted,) = tx.conn.execute(
            "SELECT count(*) FROM action_events WHERE idempotency_key = ? AND what = 'resampled'", (parent,)
        ).fetchone()
        if granted < key.sample:
            raise Refused(f"action {key}: nobody asked for this sample; call resample first")

    def _fresh(self, tx: Transaction, request: Request, run: Run) -> Slot:
        """A gated slot of the call; claiming it is the next step where nobody has to be asked."""
        key = request.key
        parent = str(ActionKey(key.workflow, key.step, key.tool)) if key.sample else None
        dedup = dedup_key(request, request.version, ids=self._ids, scope=run.scope, workflow=run.workflow)
        return Slot(
            idempotency_key=str(key), scope=run.scope, agent_id=run.agent, workflow_id=key.workflow, step_id=key.step,
            action_type=key.tool, sample=key.sample, sampled_from=parent, told=None, tool_class=request.tool.tool_class,
            identity_fp=request.identity_fp, args_hash=request.args_hash, fp_version=request.version, dedup_key=dedup,
            downstream_key=fresh_downstream_key(), key_sent_at=None, status="PENDING", phase="gated", effect="none",
            fence=0, attempts=0, dispatches=0, holder=None, boot_id=None, lease_mono_ms=None, sent_mono_ms=None,
            next_at=None, created_at=tx.now_ms, updated_at=tx.now_ms, completed_at=None, result_kind=None,
            result_hash=None, args_data=request.args_text, error_data=None, result_data=None,
        )  # fmt: skip

    # -- a call that a slot answers

    def _repeat(self, tx: Transaction, request: Request, run: Run, bound: Bound) -> Decision:
        slot = bound.slot
        same = request.identities.get(slot.fp_version) == slot.identity_fp
        if same and slot.args_hash != request.args_hash:
            self._slots.note(tx, slot, "reworded", actor=self._actor(slot))
        if same:
            return self._same(tx, slot, request, run)
        if bound.how == "exact" and slot.phase in ("permanent", "retry_wait") and self._correctable(slot, request.tool):
            return self._corrected(tx, slot, request, run)
        return Answer(Outcome(kind="conflict", key=request.key))

    def _same(self, tx: Transaction, slot: Slot, request: Request, run: Run) -> Decision:
        expired = self._approvals.expire(tx, slot)
        slot = slot if expired is None else expired
        match slot.phase:
            case "claimed" | "dispatched":
                if slot.phase == "dispatched" and self._spooled():
                    return Drain()
                if not self._gone(slot):
                    return Wait(slot, None, self._say(tx, slot, request))
                return self._take_over(tx, slot, request, run)
            case "ready" | "retry_wait":
                return self._again(tx, slot, request, run)
            case "in_doubt":
                return self._doubt(tx, slot, request)
            case _:
                return Answer(self._say(tx, slot, request))

    def _take_over(self, tx: Transaction, slot: Slot, request: Request, run: Run) -> Decision:
        """The holder is dead, lapsed or has given up."""
        if slot.phase == "claimed":
            harmless = slot.effect == "none" or self.key_usable(slot, request.tool, tx.now_ms)
            if not slot.dangerous or harmless:
                return self._claim(tx, slot, request, attempts=slot.attempts)
            return self._same(tx, self._moved(tx, slot, "in_doubt", effect="unknown"), request, run)
        if not slot.dangerous:
            return self._claim(tx, slot, request, changes={"effect": "unknown"})
        return self._same(tx, self._moved(tx, slot, "in_doubt", effect="unknown", next_at=tx.now_ms), request, run)

    def _again(self, tx: Transaction, slot: Slot, request: Request, run: Run) -> Decision:
        """Certainly nothing happened (or it may be repeated): claim, when it is time."""
        if slot.attempts >= request.tool.max_attempts:
            return Answer(self._say(tx, self._moved(tx, slot, "exhausted"), request))
        if slot.next_at is not None and slot.next_at > tx.now_ms:
            return Wait(slot, slot.next_at, self._say(tx, slot, request))
        if self._run_is_full(tx, request.tool, run, but=slot):
            return Answer(Outcome(kind="limited", key=request.key))
        return self._claim(tx, slot, request)

    def _doubt(self, tx: Transaction, slot: Slot, request: Request) -> Decision:
        """Sent, and nobody holds the answer: the spool, the same key again, or a lookup; else a person."""
        if self._spooled():
            return Drain()
        tool, now_boot = request.tool, self._store.clock.boot_id()
        if slot.boot_id != now_boot:
            # After a reboot the sender is dead; the time to settle starts when the row is first seen.
            changes = {"boot_id": now_boot, "holder": None, "sent_mono_ms": self._store.clock.mono_ms()}
            slot = self._moved(tx, slot, "in_doubt", **changes)
        usable = self.key_usable(slot, tool, tx.now_ms) and slot.attempts < tool.max_attempts
        if not usable and tool.lookup is None:
            return Answer(self._say(tx, slot, request))
        if slot.next_at is not None and slot.next_at > tx.now_ms:
            return Wait(slot, slot.next_at, self._say(tx, slot, request))
        if usable:
            return self._claim(tx, slot, request)
        return self.take_turn(tx, slot, tool)

    def take_turn(self, tx: Transaction, slot: Slot, tool: Tool) -> Look:
        """Reserve the next lookup of an in-doubt slot.

        Others come after the spacing, or when the effect has settled if that is later.
        """
        stopped = slot.holder is None or self._holders.liveness(slot) == "dead"
        sent, now = slot.sent_mono_ms or 0, self._store.clock.mono_ms()
        left = sent + int(tool.settle_s * 1000) - now
        pause = min(left, LOOKUP_SPACING_MS) if left > 0 else LOOKUP_SPACING_MS
        return Look(self._moved(tx, slot, "in_doubt", next_at=tx.now_ms + pause), stopped and left <= 0)

    # -- a corrected call

    def _correctable(self, slot: Slot, tool: Tool) -> bool:
        return slot.effect == "none" and slot.attempts < tool.max_attempts

    def _corrected(self, tx: Transaction, slot: Slot, request: Request, run: Run) -> Decision:
        """Another identity after a failure without effect: new arguments, new keys, a new approval."""
        if run.state == "closed":
            raise RunError(f"run {run.workflow}: closed; a new action needs an open run")
        other = dedup_slot(tx, request, run, self._ids)
        if other is not None and other.idempotency_key != slot.idempotency_key:
            bind(tx, request, other)
            return self._same(tx, other, request, run)
        if self._run_is_full(tx, request.tool, run, but=slot):
            return Answer(Outcome(kind="limited", key=request.key))
        self._approvals.spend(tx, slot)
        new = self._fresh(tx, request, run)
        changes = {
            "identity_fp": new.identity_fp, "args_hash": new.args_hash,
            "fp_version": new.fp_version, "dedup_key": new.dedup_key,
            "downstream_key": new.downstream_key, "args_data": new.args_data, "key_sent_at": None, "told": None,
            "error_data": None, "next_at": None, "sent_mono_ms": None,
        }  # fmt: skip
        if request.tool.approval is not None:
            gated = self._moved(tx, slot, "gated", fence=slot.fence + 1, holder=None, **changes)
            self._approvals.ask(tx, gated, reason="tool", expires_s=request.tool.approval.expires_s)
            return Answer(self._say(tx, gated, request))
        return self._claim(tx, slot, request, changes=changes)

    # -- shared

    def _run_is_full(self, tx: Transaction, tool: Tool, run: Run, *, but: Slot | None) -> bool:
        if tool.limit_per_run is None:
            return False
        (taken,) = tx.conn.execute(
            "SELECT count(*) FROM actions WHERE workflow_id = ? AND action_type = ? AND idempotency_key <> ?"
            " AND (effect <> 'none' OR phase IN('claimed', 'dispatched'))",
            (run.workflow, tool.name, "" if but is None else but.idempotency_key),
        ).fetchone()
        return bool(taken >= tool.limit_per_run)

    def _owned(self, tx: Transaction, slot: Slot, lease_s: float) -> Slot:
        """The slot as this process's claim."""
        clock = self._store.clock
        return replace(
            slot, phase="claimed", fence=slot.fence + 1, attempts=slot.attempts + 1, holder=self._holders.own(),
            boot_id=clock.boot_id(), lease_mono_ms=clock.mono_ms() + int(lease_s * 1000),
            next_at=None, updated_at=tx.now_ms,
        )  # fmt: skip

    def _claim(
        self,
        tx: Transaction,
        slot: Slot,
        request: Request,
        *,
        attempts: int | None = None,
        changes: Mapping[str, object] = MappingProxyType({}),
    ) -> Execute:
        owned = self._owned(tx, slot, request.tool.lease_s)
        ownership = {
            "fence": owned.fence,
            "attempts": owned.attempts if attempts is None else attempts,
            "holder": owned.holder,
            "boot_id": owned.boot_id,
            "lease_mono_ms": owned.lease_mono_ms,
            "next_at": None,
        }
        moved = self._moved(tx, slot, "claimed", **{**changes, **ownership})
        return Execute(moved, reworded=moved.args_hash != request.args_hash)

    def _moved(self, tx: Transaction, slot: Slot, phase: Phase, **changes: object) -> Slot:
        """A transition of a row that was read in this very transaction, which nobody can have changed."""
        after = self._slots.move(tx, slot, phase, actor=self._actor(slot), changes=changes)
        if after is None:
            raise LostLease(
                f"action {slot.idempotency_key}: changed inside one transaction; this is an error of the program"
            )
        return after

    def _say(self, tx: Transaction, slot: Slot, request: Request) -> Outcome:
        outcome = self.render(slot, request)
        if slot.phase == "gated" and (question := self._approvals.open_for(tx, slot)) is not None:
            return replace(outcome, approval_id=question.approval_id)
        if slot.next_at is not None and slot.phase in ("retry_wait", "in_doubt"):
            return replace(outcome, retry_after_s=max(slot.next_at - tx.now_ms, 0) / 1000)
        return outcome

    def _actor(self, slot: Slot) -> str:
        return f"agent:{slot.agent_id}"


def backoff_ms(attempts: int) -> int:
    """How long to wait after the n-th attempt failed without effect."""
    return int(min(BACKOFF_MS * 2 ** max(attempts - 1, 0), BACKOFF_MAX_MS))

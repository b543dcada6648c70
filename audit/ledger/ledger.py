"""The ledger: what an orchestrator puts in front of every tool that sends, creates, charges or appends.

Owns: the public calls, each a line or two over the parts beside it. Refuses to let a model near keys, approvals or
verdicts: they come from the host and from persons.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from sqlite3 import Connection
from typing import Literal

from audit.errors import BadDeclaration
from audit.events import Events
from audit.failpoints import failpoint
from audit.keys import ActionKey, IdKey
from audit.store import Store
from audit.usage import Usage

from .approvals import Approvals
from .binding import Gate, tombstone_hash
from .claims import Claims, Look
from .drivers import AsyncDriver, run_course
from .endings import Endings
from .errors import LedgerUnavailable, LostLease, Refused
from .holders import Holders
from .outcomes import Outcome, OutcomeKind, Told
from .protocol import Course, Inquire, Protocol
from .requests import BadArguments, Request, snapshot
from .retries import RetryReport, retry_report
from .runs import close_run, open_run
from .slots import Slot, Slots, select_slots
from .spool import Spool
from .tools import Failure, Tool
from .upkeep import LedgerPruned, SweepReport, Upkeep
from .values import Codec
from .views import ActionView, Views

__all__ = ["Ledger", "Verdict"]

Verdict = Literal["happened", "did_not_happen", "void"]

# More new attempts of one action than any orchestrator means; one that resamples in a loop is stopped.
MAX_SAMPLES = 20

_KIND: Mapping[str, OutcomeKind] = {
    "gated": "needs_approval",
    "ready": "needs_approval",
    "claimed": "running",
    "dispatched": "running",
    "retry_wait": "retry_after",
    "in_doubt": "in_doubt",
    "done": "done",
}


class Ledger:
    """Actions over one store: at most one effect per intent, `in_doubt` where nobody can know (I8).

    Thread-safe, usable after fork.
    """

    def __init__(
        self,
        store: Store,
        events: Events,
        usage: Usage,
        ids: IdKey,
        *,
        retention: timedelta,
        gate: Gate | None = None,
        types: Sequence[type] = (),
        sleep: Callable[[float], None] = time.sleep,
        reserve: bool = False,
    ) -> None:
        """gate: the semantic gate, off when None. types: dataclasses that may be results.

        sleep: how a waiting call waits. reserve: the first call makes room in the WAL for outcomes on a full disk.

        Raises BadDeclaration: the retention is shorter than a run that was opened may take to resume.
        LedgerUnavailable: the store has lost dispatches that it had committed.
        """
        self._store, self._ids, self._retention, self._sleep = store, ids, retention, sleep
        self._tools: dict[str, Tool] = {}
        self._codec = Codec(ids, types)
        self._slots = Slots(events, keep_arguments=gate is not None)
        self._approvals = Approvals(self._slots, events)
        self._holders = Holders(store.folder, store.clock)
        spool = Spool(store.folder)
        self._endings = Endings(store, self._slots, self._approvals, self._codec, spool, self._holders, self._tools)
        self._claims = Claims(
            store, self._slots, self._approvals, usage, self._holders, ids,
            gate=gate, render=self._outcome, spooled=spool.pending,
        )  # fmt: skip
        self._protocol = Protocol(store, self._claims, self._endings, self._codec, reserve=reserve)
        self._upkeep = Upkeep(store, self._slots, self._approvals, self._claims, self._holders, usage, ids)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._driver = AsyncDriver(self._executor)
        self.views = Views(store, self._holders, self._codec)
        self._check_retention()
        self._check_history()
        self._endings.drain()

    # -- runs and calls

    def open_run(self, workflow: str, *, scope: str, agent: str, resume_within: timedelta) -> None:
        """Open a run, or open it again on resume. Raises RunError (closed, or another scope's), BadDeclaration."""
        if resume_within > self._retention:
            raise BadDeclaration(
                f"run {workflow}: may resume after its records are gone; raise the retention or shorten resume_within"
            )
        with self._store.write() as tx:
            open_run(tx, workflow, scope=scope, agent=agent, resume_ms=resume_within // timedelta(milliseconds=1))

    def close_run(self, workflow: str) -> None:
        """Close a run: repeats are still answered, new actions are refused. Raises RunError."""
        with self._store.write() as tx:
            close_run(tx, workflow)

    def register(self, *tools: Tool) -> None:
        """Make tools known to sweep and retry_report; every call does so too.

        Raises BadDeclaration on two tools of one name.
        """
        for tool in tools:
            known = self._tools.setdefault(tool.name, tool)
            if known.tool_class != tool.tool_class or known.identity != tool.identity:
                raise BadDeclaration(f"tool {tool.name}: declared twice, differently; one name is one tool")
            self._tools[tool.name] = tool

    def call(
        self,
        tool: Tool,
        args: Mapping[str, object],
        *,
        workflow: str,
        step: str,
        sample: int = 0,
        wait_s: float = 30.0,
        scope: str | None = None,
    ) -> Outcome:
        """Do the action of this step once, or answer what became of it.

        Blocks up to `wait_s` for others, retries and doubt.

        scope: when given and not the run's, the answer is `conflict`, without data. The arguments are taken as they are
        now.
        Raises LedgerUnavailable (nothing was sent), OutcomeNotRecorded (it happened), Reentrant, RunError, Refused,
        BadKey.
        """
        request = self._request(tool, args, ActionKey(workflow, step, tool.name, sample), scope)
        if isinstance(request, Outcome):
            return request
        return run_course(self._protocol.course(request, wait_s=wait_s), self._sleep)

    async def acall(
        self,
        tool: Tool,
        args: Mapping[str, object],
        *,
        workflow: str,
        step: str,
        sample: int = 0,
        wait_s: float = 30.0,
        scope: str | None = None,
    ) -> Outcome:
        """As call, in the event loop.

        Cancelled before dispatch it leaves the action free; after it, `on_cancel` of the tool decides.
        """
        request = self._request(tool, args, ActionKey(workflow, step, tool.name, sample), scope)
        if isinstance(request, Outcome):
            return request
        course: Course = self._protocol.course(request, wait_s=wait_s)
        outcome = await self._driver.run(course, finish=tool.on_cancel == "finish")
        return replace(outcome, _run_in_thread=self._driver.in_thread)

    async def adrain(self) -> None:
        """Wait for actions that went on after their callers were cancelled."""
        await self._driver.drain()

    def call_local(
        self,
        tool: Tool,
        args: Mapping[str, object],
        fn: Callable[[Connection], object],
        *,
        workflow: str,
        step: str,
        sample: int = 0,
        wait_s: float = 30.0,
    ) -> Outcome:
        """As call, for an effect in this very file: `fn(conn)` and its record are one transaction, so exactly once.

        `fn` must neither commit nor roll back. What it raises undoes it, certainly without effect.
        """

        def whole(slot: Slot) -> Slot | None:
            with self._store.write() as tx:
                sent = self._slots.move(
                    tx, slot, "dispatched", actor=f"holder:{slot.holder}", changes={"dispatches": slot.dispatches + 1}
                )
                if sent is None:
                    return None
                stored = self._codec.store(fn(tx.conn))
                self._endings.apply_success(tx, sent.idempotency_key, sent.fence, stored, actor=f"holder:{slot.holder}")
            return sent

        request = self._request(tool, args, ActionKey(workflow, step, tool.name, sample), None)
        if isinstance(request, Outcome):
            return request
        return run_course(self._protocol.course(request, wait_s=wait_s, local=whole), self._sleep)

    def get(self, key: ActionKey) -> Outcome | None:
        """What is known of an action, by its key or one bound to it. Never executes, does not write."""
        text = str(key)
        with self._store.read() as conn:
            row = conn.execute(
                select_slots(
                    "WHERE idempotency_key = coalesce((SELECT idempotency_key FROM bindings WHERE call_key = ?), ?)"
                ),
                (text, text),
            ).fetchone()
            digest = tombstone_hash(self._ids, text)
            pruned = row is None and conn.execute("SELECT 1 FROM tombstones WHERE key_hash = ?", (digest,)).fetchone()
        if row is None:
            return Outcome(kind="pruned", key=key) if pruned else None
        return self._outcome(Slot(*row), None)

    # -- decisions of the host and of persons

    def resample(self, key: ActionKey, *, reason: str, by: str) -> int:
        """Ask for a new attempt of an ended action; returns the sample number to call with.

        Asking twice before calling is asking once.

        Raises Refused: unknown, still pending (in doubt, too), or too many samples.
        """
        base = ActionKey(key.workflow, key.step, key.tool)
        with self._store.write() as tx:
            (granted,) = tx.conn.execute(
                "SELECT count(*) FROM action_events WHERE idempotency_key = ? AND what = 'resampled'", (str(base),)
            ).fetchone()
            newest = self._slots.get(tx, str(replace(base, sample=granted)))
            parent = self._slots.get(tx, str(base))
            if parent is None:
                raise Refused(f"action {base}: unknown; there is nothing to do anew")
            if newest is None:
                return int(granted)
            if newest.status == "PENDING":
                raise Refused(f"action {newest.idempotency_key}: {newest.phase}; a new attempt waits for its end")
            if granted >= MAX_SAMPLES:
                raise Refused(f"action {base}: {granted} samples; start a new step instead")
            self._slots.note(tx, parent, "resampled", actor=by, body={"sample": granted + 1, "reason": reason})
            return int(granted) + 1

    def resolve(
        self, key: ActionKey, *, fence: int, verdict: Verdict, by: str, note: str, result: object = None
    ) -> Outcome:
        """A person's word on an action in doubt.

        It happened (with its result), it did not (it may run again), or closed without knowing.

        Raises Refused: not in doubt, or no note on closing; LostLease: it moved on since `fence` was shown.
        """
        if verdict == "void" and not note.strip():
            raise Refused(f"action {key}: closing it needs a note that says why")
        self._endings.drain()
        with self._store.write() as tx:
            slot = self._slots.get(tx, str(key))
            if slot is None:
                raise Refused(f"action {key}: unknown; see `ingest audit attention`")
            if slot.fence != fence:
                raise LostLease(f"action {key}: fence {slot.fence} by now, not {fence}; look at it again")
            allowed = ("dispatched", "in_doubt", "retry_wait") if verdict == "happened" else ("in_doubt",)
            if slot.phase not in allowed:
                raise Refused(f"action {key}: {slot.phase}, not in doubt; nothing was changed")
            word = {"verdict": verdict, "note": note}
            if verdict == "happened":
                self._endings.apply_success(tx, str(key), fence, self._codec.store(result), actor=by)
                self._slots.note(tx, slot, "resolved", actor=by, body=word)
            elif verdict == "did_not_happen":
                changes: dict[str, object] = {"effect": "none", "holder": None, "next_at": tx.now_ms}
                self._slots.move(tx, slot, "retry_wait", actor=by, body=word, changes=changes)
            else:
                self._slots.move(
                    tx, slot, "voided", actor=by, body={"verdict": verdict}, changes={"holder": None, "next_at": None}
                )
                self._slots.note(tx, slot, "resolved", actor=by, body=word)
            failpoint("F9")
            after = self._slots.get(tx, str(key))
        return self._outcome(after if after is not None else slot, None)

    def approve(self, approval_id: str, *, args_hash: str, by: str, note: str = "") -> None:
        """A person's yes to exactly the arguments with this hash. The same yes twice is one. Raises Refused."""
        with self._store.write() as tx:
            self._approvals.decide(tx, approval_id, approve=True, args_hash=args_hash, by=by, note=note)

    def deny(self, approval_id: str, *, by: str, note: str = "") -> None:
        """A person's no. The same no twice is one. Raises Refused."""
        with self._store.write() as tx:
            self._approvals.decide(tx, approval_id, approve=False, args_hash=None, by=by, note=note)

    # -- upkeep and reports

    def attention(self) -> Sequence[ActionView]:
        """What waits for a person: gated, in doubt, lapsed. Does not write."""
        return self.views.attention()

    def sweep(self) -> SweepReport:
        """Close what ran out and ask targets about what is in doubt. Safe to run at any time, by anybody."""
        return self._upkeep.sweep(self._tools, drain=self._endings.drain, look=self._look)

    def prune(self, *, dry_run: bool = False) -> LedgerPruned:
        """Remove old ended actions of closed runs, leaving tombstones. Raises ClockJumped."""
        return self._upkeep.prune(self._retention, dry_run=dry_run)

    def retry_report(self, layers: Mapping[str, Mapping[str, int]]) -> RetryReport:
        """Multiply {tool: {layer: attempts}} and warn where a dangerous tool is retried by another layer.

        Does not write.
        """
        return retry_report(layers, self._tools)

    def close(self) -> None:
        """End the thread of async calls."""
        self._executor.shutdown()

    # -- parts

    def _request(self, tool: Tool, args: Mapping[str, object], key: ActionKey, scope: str | None) -> Request | Outcome:
        self.register(tool)
        try:
            return snapshot(tool, args, key, codec=self._codec, ids=self._ids, scope=scope)
        except BadArguments as error:
            return Outcome(kind="failed", key=key, error=error.failure)

    def _outcome(self, slot: Slot, request: Request | None) -> Outcome:
        """What a slot says now; `replayed` until the course of this very call says otherwise."""
        kind = _KIND.get(slot.phase, "failed")
        result = self._codec.value(slot.result_data) if slot.result_data is not None else None
        error = slot.error
        if kind == "failed" and error is None:
            error = Failure("permanent", "none", slot.phase)
        return Outcome(
            kind=kind,
            key=slot.key,
            fence=slot.fence,
            result=result,
            replayed=kind in ("done", "failed"),
            reworded=request is not None and slot.args_hash != request.args_hash,
            result_omitted=slot.result_kind == "omitted",
            effect=slot.effect,
            error=error if kind != "done" else None,
            _acknowledge=partial(self._acknowledge, slot.idempotency_key),
        )

    def _acknowledge(self, key: str, told: Told) -> None:
        failpoint("F7")
        with self._store.write() as tx:
            tx.conn.execute(
                "UPDATE actions SET told = ? WHERE idempotency_key = ? AND coalesce(told, '') <> 'ok'", (told, key)
            )

    def _look(self, look: Look, tool: Tool) -> None:
        inquire = Inquire(tool, self._protocol.call_of(look.slot, tool))
        inquire.ask()
        self._endings.looked(look.slot, inquire.answer, trusted=look.trusted)

    def _check_history(self) -> None:
        """Refuse a store that knows of fewer dispatches than were committed to it: it would send some of them again."""
        witnessed, holder = self._holders.furthest()  # before the store, which only grows
        with self._store.read() as conn:
            known = self._slots.history_length(conn)
        if known < witnessed:
            raise LedgerUnavailable(
                f"audit file {self._store.path}: knows {known} transitions of actions, {witnessed} had been committed"
                f" (holders/{holder}); its WAL was lost or an old copy was put back, so what it takes for new may have"
                " been sent. Restore the file, or check the targets and then remove that holder file"
            )

    def _check_retention(self) -> None:
        with self._store.read() as conn:
            (longest,) = conn.execute("SELECT coalesce(max(resume_until - created_at), 0) FROM runs").fetchone()
        if longest > self._retention // timedelta(milliseconds=1):
            days = longest / 86_400_000
            raise BadDeclaration(
                f"retention: shorter than a run that may resume for {days:.1f} days; give at least that"
            )

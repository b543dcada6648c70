"""What happens to a slot once its tool was, or was not, called.

Owns: the dispatch mark, the record of results and failures, the word of a lookup, and the spool behind all of them.
After the effect, recording must not fail: the result, then the bare fact, then once more, then a line in the spool, and
only then an error that carries the result. Refuses to lower what is known (I8), and to let a holder that lost its slot
act or overwrite; what it brings too late is noted.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict

from audit.errors import AuditUnavailable
from audit.failpoints import failpoint
from audit.keys import JsonValue, canonical
from audit.store import Store, Transaction

from .approvals import Approvals
from .claims import backoff_ms
from .errors import OutcomeNotRecorded
from .holders import Holders
from .outcomes import Outcome
from .slots import Phase, Slot, Slots
from .spool import Spool, SpoolLine
from .tools import Failure, Found, Lookup, NotFound, Tool
from .values import Codec, Stored

__all__ = ["Endings"]

log = logging.getLogger(__name__)


class Endings:
    """Marks and records over one store."""

    def __init__(
        self,
        store: Store,
        slots: Slots,
        approvals: Approvals,
        codec: Codec,
        spool: Spool,
        holders: Holders,
        tools: Mapping[str, Tool],
    ) -> None:
        """`tools`: those this process has met, by name."""
        self._holders = holders
        self._store, self._slots, self._approvals = store, slots, approvals
        self._codec, self._spool, self._tools = codec, spool, tools

    def dispatch(self, slot: Slot, tool: Tool) -> Slot | None:
        """Commit "about to call": the last guard before the effect, then its witness beside the store.

        None when the slot was lost; then nothing may be sent.
        """
        clock = self._store.clock
        failpoint("F1")
        with self._store.write() as tx:
            changes = {
                "sent_mono_ms": clock.mono_ms(),
                "key_sent_at": tx.now_ms if slot.key_sent_at is None else slot.key_sent_at,
                "dispatches": slot.dispatches + 1,
                "lease_mono_ms": clock.mono_ms() + int(tool.lease_s * 1000),
            }
            sent = self._slots.move(tx, slot, "dispatched", actor=f"holder:{slot.holder}", changes=changes)
            length = self._slots.history_length(tx.conn)
        # After the commit, so that a witness never says more than the store once knew.
        if sent is not None and sent.holder is not None:
            self._holders.witness(sent.holder, length)
        return sent

    def release(self, slot: Slot) -> None:
        """Give a claim back that sent nothing. A slot that was lost meanwhile is left alone."""
        with self._store.write() as tx:
            current = self._slots.get(tx, slot.idempotency_key)
            if current is None or (current.fence, current.phase) != (slot.fence, "claimed"):
                return
            phase: Phase = "in_doubt" if slot.dangerous and slot.effect == "unknown" else "retry_wait"
            self._slots.move(
                tx, current, phase, actor=f"holder:{slot.holder}",
                changes={"holder": None, "next_at": tx.now_ms, "attempts": max(current.attempts - 1, 0)},
            )  # fmt: skip

    def succeed(self, slot: Slot, result: object, *, actor: str | None = None) -> Slot | Outcome | None:
        """Record a result under the fence test.

        The slot when it is done by this result; an outcome when only the spool has it; None when it came too late, and
        the record answers.

        Raises OutcomeNotRecorded, which carries the result.
        """
        stored = self._codec.store(result)
        by = actor or f"holder:{slot.holder}"
        bare = Stored("omitted", stored.digest, None)
        for attempt in (stored, bare, stored):
            try:
                with self._store.write() as tx:
                    done = self.apply_success(tx, slot.idempotency_key, slot.fence, attempt, actor=by)
                    failpoint("F5")
            except AuditUnavailable as error:
                log.warning("ledger.record key=%s: %s", slot.idempotency_key, error)
            else:
                failpoint("F6")
                return done
        line = SpoolLine(slot.idempotency_key, slot.fence, stored, None)
        self._spooled(line, result)
        value = None if stored.text is None else self._codec.value(stored.text)
        return Outcome(
            kind="done", key=slot.key, fence=slot.fence, result=value, result_omitted=stored.text is None, effect="done"
        )

    def fail(self, slot: Slot, failure: Failure) -> None:
        """Record a failure under the fence test; where the store refuses, in the spool.

        A failure that can be recorded nowhere leaves the slot as sent, which is the truth as far as anybody knows.
        """
        try:
            with self._store.write() as tx:
                self.apply_failure(tx, slot.idempotency_key, slot.fence, failure, actor=f"holder:{slot.holder}")
                failpoint("F5")
        except AuditUnavailable as error:
            log.warning("ledger.record key=%s: %s", slot.idempotency_key, error)
            self._spooled(SpoolLine(slot.idempotency_key, slot.fence, None, failure), None)
        else:
            failpoint("F6")

    def looked(self, slot: Slot, answer: Lookup, *, trusted: bool) -> None:
        """Record the word of a lookup. NotFound counts only if trusted, or if it can never come later."""
        match answer:
            case Found():
                self.succeed(slot, answer.result, actor="lookup")
            case NotFound() if trusted or answer.definitive:
                with self._store.write() as tx:
                    current = self._slots.get(tx, slot.idempotency_key)
                    if current is not None and (current.fence, current.phase) == (slot.fence, "in_doubt"):
                        changes = {"effect": "none", "holder": None, "next_at": tx.now_ms}
                        self._slots.move(tx, current, "retry_wait", actor="lookup", changes=changes)
            case _:
                log.info("ledger.lookup key=%s: still in doubt", slot.idempotency_key)

    def drain(self) -> int:
        """Bring the spooled outcomes into the store, each under its fence test; returns how many lines were read."""
        return self._spool.drain(self._apply_line)

    def apply_success(self, tx: Transaction, key: str, fence: int, stored: Stored, *, actor: str) -> Slot | None:
        """Bring a success to its slot: fence unchanged is all it needs; returns the slot, done.

        Otherwise it is noted, beside another success suspected, and None.
        """
        slot = self._slots.get(tx, key)
        if slot is None:
            return None
        if slot.fence == fence and slot.phase in ("dispatched", "in_doubt", "retry_wait"):
            changes = {
                "effect": "done", "holder": None, "next_at": None, "result_kind": stored.kind,
                "result_hash": stored.digest,
                "result_data": stored.text, "error_data": None,
            }  # fmt: skip
            self._approvals.spend(tx, slot)
            return self._slots.move(tx, slot, "done", actor=actor, changes=changes)
        if slot.fence == fence and slot.phase == "done":
            return slot
        self._slots.note(tx, slot, "late_success", actor=actor, body={"fence": fence})
        tool = self._tools.get(slot.action_type)
        if slot.phase == "done" and slot.dangerous and not (tool is not None and tool.honours_key):
            self._suspect(tx, slot, fence, actor)
        return None

    def apply_failure(self, tx: Transaction, key: str, fence: int, failure: Failure, *, actor: str) -> None:
        """Bring a failure to its slot.

        For dangerous tools the effect decides first: unknown leads to doubt, whatever the class.
        """
        slot = self._slots.get(tx, key)
        if slot is None:
            return
        body: dict[str, JsonValue] = {"error": failure.code, "class": failure.kind, "attempt_effect": failure.effect}
        if slot.fence != fence or slot.phase not in ("dispatched", "in_doubt"):
            self._slots.note(tx, slot, "late_failure", actor=actor, body={**body, "fence": fence})
            return
        error = canonical(asdict(failure))
        if slot.phase == "in_doubt":
            # Somebody took it for lapsed. The sender has stopped, which a lookup may now rely on; what is known stays
            # (I8).
            self._slots.move(
                tx, slot, "in_doubt", actor=actor, body=body, changes={"holder": None, "error_data": error}
            )
            return
        unknown = failure.effect == "unknown" or slot.effect == "unknown"
        changes: dict[str, object] = {"holder": None, "error_data": error, "effect": "unknown" if unknown else "none"}
        wait = backoff_ms(slot.attempts) if failure.retry_after_s is None else int(failure.retry_after_s * 1000)
        phase: Phase = "retry_wait"
        changes["next_at"] = tx.now_ms + wait
        if slot.dangerous and unknown:
            phase = "in_doubt"
            tool = self._tools.get(slot.action_type)
            if tool is None or not tool.honours_key:
                changes["next_at"] = tx.now_ms  # a lookup may be asked at once; only sending again waits
        elif failure.kind == "permanent":
            phase, changes["next_at"] = "permanent", None
            self._approvals.spend(tx, slot)
        self._slots.move(tx, slot, phase, actor=actor, body=body, changes=changes)

    def _suspect(self, tx: Transaction, slot: Slot, fence: int, actor: str) -> None:
        """Two sends of a dangerous action reported success: never silence."""
        log.warning("ledger.double_effect_suspected key=%s fence=%d", slot.idempotency_key, fence)
        self._slots.note(tx, slot, "double_effect_suspected", actor=actor, body={"fence": fence})
        self._slots.report(tx, slot, f"{slot.label}@{fence}.double_effect_suspected")

    def _spooled(self, line: SpoolLine, result: object) -> None:
        try:
            self._spool.add(line)
        except OSError as error:
            raise OutcomeNotRecorded(
                f"action {line.key}: it ended, and neither store nor spool took the record ({error}); keep the result",
                result,
            ) from error

    def _apply_line(self, line: SpoolLine) -> None:
        with self._store.write() as tx:
            if line.stored is not None:
                self.apply_success(tx, line.key, line.fence, line.stored, actor="spool")
            elif line.failure is not None:
                self.apply_failure(tx, line.key, line.fence, line.failure, actor="spool")

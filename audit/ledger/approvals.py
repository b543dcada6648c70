"""Questions to a person: asked for exactly these arguments, answered once, in time.

Owns: the approval rows and their compare-and-set. An approval is bound to the hash of the arguments that the person was
shown; a double click is one click; after expiry it is refused. Refuses the model as approver: only hosts call this, and
no text of a model reaches it.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from audit.events import Events
from audit.failpoints import failpoint
from audit.keys import StepKey, fresh_approval_id
from audit.store import Transaction

from .errors import Refused
from .slots import Slot, Slots

__all__ = ["Approvals", "Question", "Reason"]

Reason: TypeAlias = Literal["tool", "similar"]

# For a gate that asks on behalf of a tool without an approval of its own: long enough for a weekend.
DEFAULT_EXPIRES_S = 3 * 86_400.0


@dataclass(frozen=True)
class Question:
    """One row of `approvals`."""

    approval_id: str
    idempotency_key: str
    args_hash: str
    reason: Reason
    expires_at: int
    state: Literal["asked", "approved", "denied", "expired", "spent"]


_COLUMNS_OF = "SELECT approval_id, idempotency_key, args_hash, reason, expires_at, state FROM approvals WHERE"
_BY_ID = f"{_COLUMNS_OF} approval_id = ?"
_OPEN = f"{_COLUMNS_OF} idempotency_key = ? AND state IN('asked', 'approved')"
_OVERDUE = f"{_COLUMNS_OF} state IN('asked', 'approved') AND expires_at <= ?"


class Approvals:
    """Asks, answers and closes questions in the caller's transaction."""

    def __init__(self, slots: Slots, events: Events) -> None:
        self._slots = slots
        self._events = events

    def ask(self, tx: Transaction, slot: Slot, *, reason: Reason, expires_s: float | None) -> Question:
        """Ask about a gated slot."""
        expires_at = tx.now_ms + int((DEFAULT_EXPIRES_S if expires_s is None else expires_s) * 1000)
        question = Question(fresh_approval_id(), slot.idempotency_key, slot.args_hash, reason, expires_at, "asked")
        tx.conn.execute(
            "INSERT INTO approvals(approval_id, idempotency_key, args_hash, asked_at, reason, expires_at, state)"
            " VALUES(?, ?, ?, ?, ?, ?, 'asked')",
            (question.approval_id, question.idempotency_key, question.args_hash, tx.now_ms, reason, expires_at),
        )
        self._report(tx, slot, question, "asked")
        return question

    def open_for(self, tx: Transaction, slot: Slot) -> Question | None:
        """The question that is asked or approved for a slot."""
        row = tx.conn.execute(_OPEN, (slot.idempotency_key,)).fetchone()
        return Question(*row) if row else None

    def decide(
        self, tx: Transaction, approval_id: str, *, approve: bool, args_hash: str | None, by: str, note: str
    ) -> None:
        """Answer a question. The same answer again changes nothing.

        Raises Refused: unknown, expired, answered otherwise, or about other arguments than those shown.
        """
        verdict: Literal["approved", "denied"] = "approved" if approve else "denied"
        row = tx.conn.execute(_BY_ID, (approval_id,)).fetchone()
        if row is None:
            raise Refused(f"approval {approval_id}: unknown; see `ingest audit attention`")
        question = Question(*row)
        if args_hash is not None and question.args_hash != args_hash:
            raise Refused(f"approval {approval_id}: asked for other arguments than those shown; look at it again")
        if question.state == verdict or (verdict == "approved" and question.state == "spent"):
            return
        slot = self._slots.get(tx, question.idempotency_key)
        if question.state not in ("asked", "approved") or slot is None or slot.phase not in ("gated", "ready"):
            raise Refused(f"approval {approval_id}: already {question.state}; nothing was changed")
        if question.state == "approved" and approve:
            return
        if question.expires_at <= tx.now_ms:
            raise Refused(f"approval {approval_id}: expired; the call must be made anew")
        self._close(tx, question, verdict, by=by, note=note)
        failpoint("F8")
        self._slots.move(tx, slot, "ready" if approve else "denied", actor=by, body={"approval_id": approval_id})
        self._report(tx, slot, question, verdict)

    def expire(self, tx: Transaction, slot: Slot) -> Slot | None:
        """Close an overdue question together with its slot; None when it is not overdue."""
        question = self.open_for(tx, slot)
        if slot.phase not in ("gated", "ready") or (question is not None and question.expires_at > tx.now_ms):
            return None
        if question is not None:
            self._close(tx, question, "expired", by="clock", note="")
            self._report(tx, slot, question, "expired")
        return self._slots.move(tx, slot, "expired", actor="clock")

    def overdue(self, tx: Transaction) -> tuple[Slot, ...]:
        """The gated and ready slots whose question has run out."""
        questions = [Question(*row) for row in tx.conn.execute(_OVERDUE, (tx.now_ms,)).fetchall()]
        found = (self._slots.get(tx, question.idempotency_key) for question in questions)
        return tuple(slot for slot in found if slot is not None and slot.phase in ("gated", "ready"))

    def spend(self, tx: Transaction, slot: Slot) -> None:
        """Use up the answer: the action was done, failed for good, or became another one."""
        tx.conn.execute(
            "UPDATE approvals SET state = 'spent' WHERE idempotency_key = ? AND state IN('asked', 'approved')",
            (slot.idempotency_key,),
        )

    def _close(self, tx: Transaction, question: Question, state: str, *, by: str, note: str) -> None:
        tx.conn.execute(
            "UPDATE approvals SET state = ?, decided_at = ?, decided_by = ?, note = ?"
            " WHERE approval_id = ? AND state IN('asked', 'approved')",
            (state, tx.now_ms, by, note, question.approval_id),
        )

    def _report(self, tx: Transaction, slot: Slot, question: Question, state: str) -> None:
        self._events.append(
            tx,
            scope=slot.scope,
            step=StepKey(slot.workflow_id, slot.step_id),
            kind="approval",
            part=f"{slot.label}@{question.approval_id}.{state}",
            body={
                "approval_id": question.approval_id,
                "tool": slot.action_type,
                "agent": slot.agent_id,
                "reason": question.reason,
            },
        )

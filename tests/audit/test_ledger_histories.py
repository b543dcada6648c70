"""Row 40 of the fault catalogue: random histories against a small oracle."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from audit import ActionKey, Audit, Call, Outcome, Refused
from audit.faults import FakeClock, Target
from audit.ledger.ledger import Verdict
from tests.audit.ledger_desk import WEEK, send

ORDERS = st.sampled_from(["A", "B"])
STEPS = st.sampled_from(["1", "2", "3"])
ENDS = st.sampled_from(["ok", "lost", "vanished", "refused", "unreachable"])


class NotFoundError(Exception):
    """A clear no of the target."""

    status = 404


class Histories(RuleBasedStateMachine):
    """Calls, failures of every kind, restarts, lapses, acknowledgements, verdicts, in any order.

    The oracle counts wishes: an order that the model was told `ok` about, or that a person said did not happen, may be
    acted on once more. Nothing else may.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="histories-"))
        self.clock = FakeClock()
        self.target = Target(self.folder / "target.jsonl")
        self.allowed = {"A": 1, "B": 1}
        self.told: set[tuple[str, str]] = set()
        self.audit = self._open()

    def _open(self) -> Audit:
        audit = Audit(self.folder / "audit", durable=False, clock=self.clock, sleep=self.clock.advance)
        audit.ledger.open_run("w", scope="acme", agent="desk", resume_within=WEEK)
        return audit

    def _act(self, end: str, call: Call) -> object:
        if end in ("ok", "lost"):
            self.target.act(call)
        match end:
            case "lost" | "vanished":
                raise TimeoutError
            case "refused":
                raise NotFoundError
            case "unreachable":
                raise ConnectionRefusedError
        return f"did {call.args['order']}"

    def _send(self, step: str, order: str, end: str, note: str) -> Outcome:
        tool = self.target.tool(lambda call: self._act(end, call), max_attempts=4)
        return send(self.audit, tool, step=step, order=order, note=note, wait_s=0)

    @rule(
        step=STEPS,
        order=ORDERS,
        end=ENDS,
        note=st.sampled_from(["x", "y"]),
        told=st.sampled_from(["ok", "error", "no"]),
    )
    def call(self, step: str, order: str, end: str, note: str, told: str) -> None:
        """One call; whatever it is answered, a result is the result of its own identity."""
        outcome = self._send(step, order, end, note)
        if outcome.kind == "done":
            assert outcome.result in (f"did {order}", "seen by a person")
        if told == "no" or outcome.kind == "conflict":
            return
        outcome.ack("ok" if told == "ok" else "error")
        if told == "ok" and outcome.kind == "done" and (str(outcome.key), order) not in self.told:
            self.told.add((str(outcome.key), order))
            self.allowed[order] += 1

    @rule()
    def restart(self) -> None:
        """The process ends in good order, and another opens the file."""
        self.audit.close()
        self.audit = self._open()

    @rule(seconds=st.sampled_from([1.0, 130.0, 86_400.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.clock.advance(seconds)

    @rule()
    def reboot(self) -> None:
        """The machine starts anew."""
        self.audit.close()
        self.clock.reboot(off_s=30)
        self.audit = self._open()

    @rule()
    def sweep(self) -> None:
        """Upkeep at any time."""
        self.audit.ledger.sweep()

    @precondition(lambda self: any(view.phase == "in_doubt" for view in self.audit.ledger.attention()))
    @rule(verdict=st.sampled_from(["happened", "did_not_happen", "void"]))
    def resolve(self, verdict: str) -> None:
        """A person who looked ends the oldest doubt, truthfully."""
        view = next(view for view in self.audit.ledger.attention() if view.phase == "in_doubt")
        order = view.args["order"] if isinstance(view.args, dict) else ""
        there = any(str(act.key) == self._key_of(view.key) for act in self.target.acts())
        if verdict != "void":
            verdict = "happened" if there else "did_not_happen"
        word: Verdict = "void" if verdict == "void" else "happened" if verdict == "happened" else "did_not_happen"
        key = ActionKey.parse(view.key)
        self.audit.ledger.resolve(
            key, fence=view.fence, verdict=word, by="jane", note="looked", result="seen by a person"
        )
        if verdict == "void" and there:
            # Closed without knowing: the same wish at another step is a new one, on the person's word.
            self.allowed[order] += 1

    @rule(step=STEPS)
    def resample(self, step: str) -> None:
        """The orchestrator wants a new attempt: refused while anything is pending, else one more wish."""
        key = ActionKey("w", step, "send")
        try:
            sample = self.audit.ledger.resample(key, reason="again", by="planner")
        except Refused:
            return
        order = "A"
        tool = self.target.tool(lambda call: self._act("ok", call))
        before = self.target.effects("order")["A",]
        send(self.audit, tool, step=step, order=order, sample=sample, wait_s=0)
        self.allowed["A"] += self.target.effects("order")["A",] - before

    def _key_of(self, action: str) -> str:
        row = self.audit.store.connection().execute(
            "SELECT downstream_key FROM actions WHERE idempotency_key = ?", (action,)
        )
        return str(row.fetchone()[0])

    @invariant()
    def no_wish_is_acted_on_twice(self) -> None:
        """E <= 1 per intent."""
        for (order,), count in self.target.effects("order").items():
            assert count <= self.allowed[str(order)], (order, count, self.allowed)

    @invariant()
    def every_success_has_its_effect(self) -> None:
        """No SUCCESS without an effect, no effect of a dangerous action called failed."""
        keys = {act.key for act in self.target.acts()}
        rows = self.audit.store.connection().execute("SELECT downstream_key, status, phase FROM actions").fetchall()
        for key, status, phase in rows:
            assert status != "SUCCESS" or key in keys
            assert status != "FAILED" or phase == "voided" or key not in keys

    def teardown(self) -> None:
        """The chain is sound, whatever happened."""
        assert self.audit.verify().problems == ()
        self.audit.close()
        shutil.rmtree(self.folder)


Histories.TestCase.settings = settings(max_examples=15, stateful_step_count=20, derandomize=True, deadline=None)
TestHistories = pytest.mark.invariant("I8")(pytest.mark.slow(Histories.TestCase))

"""What the ledger's tests share: a desk that opens audits over one folder and calls one tool over a counting target."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from audit import ActionKey, Audit, Call, Outcome, Tool
from audit.faults import Counts, FakeClock, Target, counting

WEEK = timedelta(days=7)
Run = Callable[[Call], object]


@dataclass
class Desk:
    """One folder, one target, one run `w` of agent `desk` in scope `acme`; identity is (order, purpose)."""

    folder: Path
    target: Target
    clock: FakeClock | None = None
    audits: list[Audit] = field(default_factory=list)
    # How many effects of one intent the test brings about on purpose; more at its end is a failure.
    most_effects: int = 1
    # Why the file cannot be checked at the end: the test has destroyed it on purpose.
    destroyed: str = ""

    def open(self, **options: object) -> Audit:
        """Open an audit, as a new process would, and the run."""
        given: dict[str, object] = {"durable": False, "clock": self.clock, "busy_timeout_s": 10.0}
        if self.clock is not None:
            given["sleep"] = self.clock.advance
        audit = Audit(self.folder, **{**given, **options})  # type: ignore[arg-type]  # options of Audit, by name
        self.audits.append(audit)
        audit.ledger.open_run("w", scope="acme", agent="desk", resume_within=WEEK)
        return audit

    def tool(self, run: Run | None = None, **options: object) -> Tool:
        """A dangerous tool over the target."""
        return self.target.tool(run, **options)

    def counts(self, audit: Audit) -> Counts:
        """The four counters."""
        return counting(audit, self.target, "order", "purpose")

    def check(self) -> None:
        """The four counters, the chain and the file, as every test of the ledger must leave them.

        Never more effects of one intent than the test means; one row per key, one unit per request:step:meter, one
        event per request:step:kind:part.
        """
        if self.destroyed or not (self.folder / "audit.db").exists():
            return
        audit = Audit(self.folder, durable=False, clock=self.clock, create=False)
        try:
            counts = self.counts(audit)
        finally:
            audit.close()
        assert counts.problems == ()
        assert max(counts.effects.values(), default=0) <= self.most_effects, counts.effects
        for counter in (counts.rows, counts.events):
            assert set(counter.values()) <= {1}, counter
        # Tokens are counted by the thousand; all else by the call.
        assert {units for key, units in counts.units.items() if not key.endswith(":tokens")} <= {1}, counts.units

    def close(self) -> None:
        """Close every audit."""
        for audit in self.audits:
            audit.close()


def send(
    audit: Audit,
    tool: Tool,
    *,
    step: str = "4.0",
    order: str = "P-1",
    purpose: str = "refund",
    note: str = "first words",
    workflow: str = "w",
    sample: int = 0,
    wait_s: float = 20.0,
) -> Outcome:
    """One call of the tool."""
    args = {"order": order, "purpose": purpose, "note": note}
    return audit.ledger.call(tool, args, workflow=workflow, step=step, sample=sample, wait_s=wait_s)


def key(step: str = "4.0", sample: int = 0, tool: str = "send") -> ActionKey:
    """The key of such a call."""
    return ActionKey("w", step, tool, sample)


def history(audit: Audit, step: str = "4.0", sample: int = 0) -> list[str]:
    """What happened to a slot, in order."""
    return [event.what for event in audit.ledger.views.history(str(key(step, sample)))]


def phase(audit: Audit, step: str = "4.0", sample: int = 0) -> str:
    """The phase of a slot; `absent` when there is none."""
    view = audit.ledger.views.action(str(key(step, sample)))
    return "absent" if view is None else view.phase

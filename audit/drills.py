"""Drills: a host's own tool, put through the faults that repeat calls, with its effects counted outside.

Owns: the scenes and their verdicts. Each scene has a ledger of its own in a fresh folder, so that no drill touches real
records. Refuses to guess the number of effects: the host counts them. Point it at a test system: a drill acts, once per
scene.
"""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from .audit import Audit
from .faults import crash_after_success, lost_reply, run_child
from .ledger import Outcome, Tool

__all__ = ["Drill", "DrillRow", "drill"]


@dataclass(frozen=True)
class Drill:
    """What a host gives.

    The tool, arguments of one action, and a count of the effects so far, from the target itself.
    """

    tool: Tool
    args: Mapping[str, object]
    effects: Callable[[], int]


@dataclass(frozen=True)
class DrillRow:
    """One fault.

    Effects it led to, the outcome of the last call, and whether one effect (or an honest doubt) was reached.
    """

    fault: str
    effects: int
    outcome: str
    held: bool


def drill(given: Drill) -> tuple[DrillRow, ...]:
    """Run every scene, in order."""
    return tuple(_scene(given, name, scene) for name, scene in _SCENES.items())


def _scene(given: Drill, name: str, scene: Callable[["_Stage"], Outcome]) -> DrillRow:
    before = given.effects()
    with tempfile.TemporaryDirectory(prefix="drill-") as folder:
        outcome = scene(_Stage(Path(folder), given))
    effects = given.effects() - before
    # Without lookup and without an honoured key nobody can know: doubt with at most one effect is the best there is.
    held = effects == 1 if outcome.kind == "done" else outcome.kind == "in_doubt" and effects <= 1
    return DrillRow(name, effects, outcome.kind, held)


@dataclass(frozen=True)
class _Stage:
    folder: Path
    given: Drill

    def send(self, tool: Tool | None = None, *, step: str = "1") -> Outcome:
        audit = Audit(self.folder, durable=False)
        try:
            audit.ledger.open_run("drill", scope="drill", agent="drill", resume_within=timedelta(days=1))
            return audit.ledger.call(tool or self.given.tool, self.given.args, workflow="drill", step=step)
        finally:
            audit.close()

    def acknowledge(self, outcome: Outcome, told: str) -> None:
        audit = Audit(self.folder, durable=False)
        audit.ledger.open_run("drill", scope="drill", agent="drill", resume_within=timedelta(days=1))
        found = audit.ledger.get(outcome.key)
        if found is not None:
            found.ack("error" if told == "error" else "ok")
        audit.close()


def _crash(stage: _Stage) -> Outcome:
    tool = replace(stage.given.tool, run=crash_after_success(stage.given.tool.run))
    with run_child(lambda: stage.send(tool)) as child:
        child.ended()
    return stage.send(step="2")


def _lost(stage: _Stage) -> Outcome:
    lost = iter([True])
    run = stage.given.tool.run
    losing = lost_reply(run)
    tool = replace(stage.given.tool, run=lambda call: losing(call) if next(lost, False) else run(call))
    stage.send(tool)
    return stage.send(tool, step="2")


def _fake(stage: _Stage) -> Outcome:
    stage.acknowledge(stage.send(), "error")
    return stage.send(step="2")


def _twice(stage: _Stage) -> Outcome:
    with ExitStack() as stack:
        children = [stack.enter_context(run_child(lambda: stage.send().kind)) for _ in range(2)]
        for child in children:
            child.ended()
    return stage.send()


def _slow(stage: _Stage) -> Outcome:
    with run_child(lambda: stage.send().kind, failpoint="F4", hold=True) as child:
        child.wait_reached()
        with run_child(lambda: stage.send().kind) as impatient:
            child.release()
            impatient.ended()
    return stage.send(step="2")


_SCENES: Mapping[str, Callable[[_Stage], Outcome]] = {
    "crash after success": _crash,
    "lost reply": _lost,
    "fake error": _fake,
    "duplicate delivery": _twice,
    "slow reply": _slow,
}

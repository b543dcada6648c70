"""Runs: whose data an action is, and how long its run may be resumed.

Owns: opening and closing. Refuses a run id under another scope or agent, new actions in a closed run, and an id that
was used before: a workflow id is never used again, because its keys are the memory of what was done.
"""

from dataclasses import dataclass
from typing import Literal

from audit.keys import check_part
from audit.store import Transaction

from .errors import RunError

__all__ = ["Run", "close_run", "find_run", "open_run"]


@dataclass(frozen=True)
class Run:
    """One row of `runs`."""

    workflow: str
    scope: str
    agent: str
    state: Literal["open", "closed"]


def find_run(tx: Transaction, workflow: str) -> Run | None:
    """The run of an id, or None."""
    row = tx.conn.execute(
        "SELECT workflow_id, scope, agent_id, state FROM runs WHERE workflow_id = ?", (workflow,)
    ).fetchone()
    return Run(*row) if row else None


def open_run(tx: Transaction, workflow: str, *, scope: str, agent: str, resume_ms: int) -> None:
    """Open a run, or open it again on resume (which extends its time).

    Raises RunError: closed, or of another scope or agent.
    """
    check_part(workflow, "workflow")
    check_part(scope, "scope")
    check_part(agent, "agent")
    tx.conn.execute(
        "INSERT INTO runs(workflow_id, scope, agent_id, created_at, resume_until) VALUES(?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET resume_until = max(resume_until, excluded.resume_until)"
        " WHERE scope = excluded.scope AND agent_id = excluded.agent_id AND state = 'open'",
        (workflow, scope, agent, tx.now_ms, tx.now_ms + resume_ms),
    )
    run = find_run(tx, workflow)
    if run is None or (run.scope, run.agent) != (scope, agent):
        raise RunError(f"run {workflow}: this id belongs to another scope or agent; use an id of your own")
    if run.state == "closed":
        raise RunError(f"run {workflow}: closed; a workflow id is never used again, open a new one")


def close_run(tx: Transaction, workflow: str) -> None:
    """Close a run: repeats are still answered, new actions are refused. Closing twice is closing once.

    Raises RunError.
    """
    if find_run(tx, workflow) is None:
        raise RunError(f"run {workflow}: unknown; open_run first")
    tx.conn.execute(
        "UPDATE runs SET state = 'closed', closed_at = ? WHERE workflow_id = ? AND state = 'open'",
        (tx.now_ms, workflow),
    )

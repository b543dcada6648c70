# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
# DBOS is optional, and where it is missing nothing of it has a type.
"""A durable workflow on DBOS that mails a refund once, however often its process dies, or two of them run it.

Run `python -m tests.audit.example_dbos FOLDER`; kill it anywhere; run it again. DBOS runs a step again whose end it had
not recorded, with the same workflow id and step id: the keys of the ledger. Needs the extra `engines`.
"""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from dbos import DBOS, SetWorkflowID

from audit import Audit
from audit.faults import Target

# One resumable run: DBOS and the ledger call it by one name.
RUN = "req-71"


def run(folder: Path, mail: Callable[[str], str]) -> str:
    """Run the workflow, or recover it; `mail` gets the step and returns what the model reads."""
    database = f"sqlite:///{folder / 'dbos.db'}"
    DBOS(config={"name": "desk", "system_database_url": database, "run_admin_server": False})

    @DBOS.step()
    def mail_step() -> str:
        return mail(f"{DBOS.step_id}.0")

    @DBOS.workflow()
    def agent() -> str:
        return str(mail_step())

    DBOS.launch()
    try:
        with SetWorkflowID(RUN):
            return str(DBOS.start_workflow(agent).get_result())
    finally:
        DBOS.destroy()


def main(folder: Path) -> str:
    """Mail the refund of order R-1 through the ledger."""
    audit = Audit(folder / "audit")
    outbox = Target(folder / "outbox.jsonl", "lookup")  # stands for a mail service with a sent list
    refund = outbox.tool(name="mail")
    audit.ledger.open_run(RUN, scope="shop", agent="desk", resume_within=timedelta(days=7))

    def mail(step: str) -> str:
        args = {"order": "R-1", "purpose": "refund", "note": "Your refund is on its way."}
        return audit.ledger.call(refund, args, workflow=RUN, step=step).model_text

    try:
        return run(folder, mail)
    finally:
        audit.close()


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))

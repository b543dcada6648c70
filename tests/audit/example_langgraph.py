# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-any-return,unused-ignore"
# LangGraph is optional, and where it is missing nothing of it has a type.
"""An agent on LangGraph that mails a refund once, however often its process dies.

Run `python -m tests.audit.example_langgraph FOLDER`; kill it anywhere; run it again. LangGraph runs the node again that
had not ended, with the same `langgraph_step`: the step of the ledger. Needs the extra `engines`.
"""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from audit import Audit
from audit.faults import Target

# One resumable run: the thread of LangGraph and the workflow of the ledger have one name.
RUN = "req-71"


class State(TypedDict):
    """What the agent knows."""

    answer: str


def run(folder: Path, mail: Callable[[str], str]) -> str:
    """Start the agent, or resume it from its checkpoint; `mail` gets the step and returns what the model reads."""

    def node(state: State, config: RunnableConfig) -> State:
        return {"answer": mail(f"{config['metadata']['langgraph_step']}.0")}

    graph = StateGraph(State)
    graph.add_node("mail", node)
    graph.add_edge(START, "mail")
    graph.add_edge("mail", END)
    with SqliteSaver.from_conn_string(str(folder / "graph.db")) as saver:
        app = graph.compile(checkpointer=saver)
        config: RunnableConfig = {"configurable": {"thread_id": RUN}}
        before = app.get_state(config)
        if before.values.get("answer"):
            return str(before.values["answer"])
        return str(app.invoke(None if before.next else {"answer": ""}, config, durability="sync")["answer"])


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

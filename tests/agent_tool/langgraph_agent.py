"""A scripted LangGraph agent, run as a process: two parallel lookups, then one more, then an end.

    python langgraph_agent.py STATE_FOLDER DURABILITY [DIES_AT]

It resumes the thread that it finds. DIES_AT is the number of the lookup in whose midst it kills itself.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from agent_tool.adapters import langchain
from agent_tool.tool import LookupTool
from audit import Audit
from tests.agent_tool.doubles import CannedSearcher

SCRIPT = [["leave", "holidays"], ["shifts"]]


def main(folder: Path, durability: str, dies_at: int) -> None:
    """Run or resume the thread to its end."""
    searcher = CannedSearcher()

    def die() -> None:
        if len(searcher.asked) == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    searcher.before = die
    tool = LookupTool(searcher, Audit(folder / "audit", durable=False))

    def model(state: MessagesState) -> dict[str, Any]:
        turn = sum(isinstance(message, AIMessage) for message in state["messages"])
        if turn == len(SCRIPT):
            return {"messages": [AIMessage("done")]}
        # A model asked anew writes new ids, as real ones do.
        calls = [{"name": "lookup", "args": {"query": query}, "id": f"call_{uuid4().hex}"} for query in SCRIPT[turn]]
        return {"messages": [AIMessage("", tool_calls=calls)]}

    def tools(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        calls = last(state["messages"]).tool_calls
        answers = []
        for call in calls:
            key = langchain.call_key(config, calls, call["id"])
            content, artifact = langchain.output(tool.lookup(call["args"], key=key, principal="local"))
            answers.append(ToolMessage(content, tool_call_id=call["id"], artifact=artifact))
        return {"messages": answers}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: "tools" if last(state["messages"]).tool_calls else END)
    graph.add_edge("tools", "model")
    with SqliteSaver.from_conn_string(str(folder / "threads.db")) as saver:
        agent = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "thread-1", "request_id": "req-71"}}
        begun = agent.get_state(config).next
        question = None if begun else {"messages": [HumanMessage("How much leave is there?")]}
        state = agent.invoke(question, config, durability=durability)
    tool.close()
    print(json.dumps([message.type for message in state["messages"]]))


def last(messages: list[AnyMessage]) -> AIMessage:
    """The model's newest message."""
    message = messages[-1]
    assert isinstance(message, AIMessage)
    return message


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)

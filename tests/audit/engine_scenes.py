# mypy: disable-error-code="import-not-found,untyped-decorator,misc,attr-defined,name-defined,arg-type,unused-ignore"
# The packages of this group are optional, and where they are missing nothing of them has a type.
"""Real engines and SDKs that repeat a call: how many effects that has, without the ledger and with it.

Run `python -m tests.audit.engine_scenes` in an environment with the extra `engines` for the table of docs/ledger.md.
Each scene imports its library when it runs, so the table can be read where none is installed.
"""

import asyncio
import importlib.metadata
import importlib.util
import json
import logging
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path

from audit import Audit, Call
from audit.failpoints import arm, failpoint
from audit.faults import Target, run_child
from tests.audit.ledger_desk import Desk, send

__all__ = ["SCENES", "Scene", "installed", "table"]


@dataclass(frozen=True)
class Scene:
    """One library and one way in which it repeats a call; `play(desk, guarded)` returns the number of effects."""

    library: str
    module: str
    fault: str
    without: int
    play: Callable[[Desk, bool], int]

    @property
    def name(self) -> str:
        """For the id of a test."""
        return f"{self.library}: {self.fault}"


def act(desk: Desk, audit: Audit | None, step: str) -> str:
    """The side effect of an agent's step, with the ledger or without; then the point where a scene stops it."""
    tool = desk.tool()
    if audit is None:
        tool.run(Call({"order": "P-1", "purpose": "refund"}, "none", 1, 1, 30.0))
    else:
        assert send(audit, tool, step=step).kind == "done"
    failpoint("acted")
    return "sent"


def opened(desk: Desk, guarded: bool) -> Audit | None:
    """The ledger of a guarded scene."""
    return desk.open() if guarded else None


def effects(desk: Desk) -> int:
    """What the target has done."""
    return len(desk.target.acts())


# -- LangGraph


def langgraph_kill(desk: Desk, guarded: bool) -> int:
    """Killed inside a node, resumed: the node runs again."""

    def run() -> str:
        from tests.audit import example_langgraph

        audit = opened(desk, guarded)
        return example_langgraph.run(desk.folder.parent, lambda step: act(desk, audit, step))

    with run_child(run, failpoint="acted") as child:
        assert child.ended() == -9
    with run_child(run) as child:
        assert child.result() == "sent"
    return effects(desk)


def langgraph_interrupt(desk: Desk, guarded: bool) -> int:
    """A node acts, then asks a person by `interrupt()`; its resume begins the node anew."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command, interrupt

    audit = opened(desk, guarded)

    def node(state: dict[str, str], config: dict[str, dict[str, object]]) -> dict[str, str]:
        act(desk, audit, f"{config['metadata']['langgraph_step']}.0")
        return {"answer": interrupt("was that right?")}

    app = _langgraph(node).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    app.invoke({"answer": ""}, config)
    assert app.invoke(Command(resume="yes"), config)["answer"] == "yes"
    return effects(desk)


def langgraph_retry_policy(desk: Desk, guarded: bool) -> int:
    """A node acts, then fails; RetryPolicy runs it again, three times in all."""
    from langgraph.types import RetryPolicy

    audit = opened(desk, guarded)
    policy = RetryPolicy(initial_interval=0.001, max_attempts=3, jitter=False, retry_on=OSError)

    def node(state: dict[str, str], config: dict[str, dict[str, object]]) -> dict[str, str]:
        act(desk, audit, f"{config['metadata']['langgraph_step']}.0")
        raise ConnectionError("the next call of this node failed")

    with suppress(ConnectionError):
        _langgraph(node, retry_policy=policy).compile().invoke({"answer": ""})
    return effects(desk)


def _langgraph(node: Callable[..., dict[str, str]], **options: object) -> object:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph import END, START, StateGraph

    node.__annotations__ = {"config": RunnableConfig}
    graph = StateGraph(dict)
    graph.add_node("mail", node, **options)
    graph.add_edge(START, "mail")
    graph.add_edge("mail", END)
    return graph


# -- DBOS


def dbos_kill(desk: Desk, guarded: bool) -> int:
    """Killed inside a step, recovered: the step runs again."""
    run = partial(_dbos, desk, guarded)
    with run_child(run, failpoint="acted") as child:
        assert child.ended() == -9
    with run_child(run) as child:
        assert child.result() == "sent"
    return effects(desk)


def dbos_two_processes(desk: Desk, guarded: bool) -> int:
    """Two processes run one workflow id: the start of the second recovers what the first still runs."""
    acted, go_on = get_context("fork").Event(), get_context("fork").Event()
    first_time = iter([True])

    def hold_once() -> None:
        if next(first_time, False):
            acted.set()
            go_on.wait(30)

    def first() -> str:
        arm("acted", hold_once)
        return _dbos(desk, guarded)

    with run_child(first) as slow:
        assert acted.wait(30)
        with run_child(partial(_dbos, desk, guarded)) as second:
            assert second.result() == "sent"
        go_on.set()
        slow.ended()
    return effects(desk)


def _dbos(desk: Desk, guarded: bool) -> str:
    from tests.audit import example_dbos

    audit = opened(desk, guarded)
    return example_dbos.run(desk.folder.parent, lambda step: act(desk, audit, step))


# -- SDKs of model vendors


class Vendor(ThreadingHTTPServer):
    """Counts POSTs and treats each as `fault` says: a status, `drop` or `timeout`."""

    daemon_threads = True
    posts = 0
    fault = "500"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), VendorHandler)
        self.over = threading.Event()


class VendorHandler(BaseHTTPRequestHandler):
    """A model vendor with a bad day."""

    server: Vendor

    def do_POST(self) -> None:
        """Count, then fail."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.posts += 1
        if self.server.fault == "timeout":
            self.server.over.wait(30)
        if not self.server.fault.isdigit():
            self.close_connection = True
            return
        self.send_response(int(self.server.fault))
        self.send_header("Content-Length", "2")
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep the output clean."""


@contextmanager
def serving(fault: str) -> Iterator[Vendor]:
    """A loopback vendor."""
    server = Vendor()
    server.fault = fault
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def anthropic_post(url: str, **options: object) -> object:
    """One message through the vendor's SDK."""
    from anthropic import Anthropic

    with Anthropic(api_key="k", base_url=url, timeout=0.3, **options) as client:
        client._calculate_retry_timeout = lambda *_, **__: 0.001  # its pause is not what is measured
        return client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])


def openai_post(url: str, **options: object) -> object:
    """One completion through the vendor's SDK."""
    from openai import OpenAI

    with OpenAI(api_key="k", base_url=url, timeout=0.3, **options) as client:
        client._calculate_retry_timeout = lambda *_, **__: 0.001  # its pause is not what is measured
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])


# What both SDKs repeat by default, without any key.
SDK_FAULTS = ("timeout", "drop", "408", "409", "429", "500", "503", "529")


def sdk(post: Callable[..., object], fault: str, desk: Desk, guarded: bool) -> int:
    """POSTs of one call; with the ledger the SDK is told not to retry, and the step is called twice."""
    with serving(fault) as vendor:
        url = f"http://127.0.0.1:{vendor.server_address[1]}"
        if guarded:
            audit = desk.open()
            tool = desk.tool(lambda call: post(url, max_retries=0))
            kinds = {send(audit, tool, wait_s=0).kind for _ in range(2)}
            assert kinds <= {"in_doubt", "retry_after", "failed"}
            # Only what was clearly refused may be called failed, or may be tried again.
            assert kinds == {"in_doubt"} or fault in ("409", "429", "529")
        else:
            with suppress(Exception):  # each SDK has its own error for it
                post(url)
        return vendor.posts


# -- Agents whose model is told of an error


def pydantic_ai_retry(desk: Desk, guarded: bool) -> int:
    """The tool acts, then raises ModelRetry; the model calls again in other words."""
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    audit = opened(desk, guarded)
    turns: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turns.append(f"words {len(turns)}")
        if len(turns) > 2:
            return ModelResponse(parts=[TextPart("finished")])
        return ModelResponse(parts=[ToolCallPart("refund", {"note": turns[-1]})])

    agent = Agent(FunctionModel(model))

    @agent.tool_plain(retries=2)
    def refund(note: str) -> str:
        _refund(desk, audit, turns, note)
        if len(turns) == 1:
            raise ModelRetry("the mail server answered strangely")
        return "sent"

    assert asyncio.run(agent.run("refund P-1")).output == "finished"
    return effects(desk)


def openai_agents_error(desk: Desk, guarded: bool) -> int:
    """The tool acts and raises TimeoutError, of which the model is told; it calls again in other words."""
    import agents
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    audit = opened(desk, guarded)
    turns: list[str] = []

    class Scripted(Model):
        """Calls the tool twice, in other words each time, then ends."""

        async def get_response(self, *args: object, **options: object) -> object:
            turns.append(f"words {len(turns)}")
            if len(turns) > 2:
                text = ResponseOutputText(annotations=[], text="finished", type="output_text")
                done = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
                return agents.ModelResponse(output=[done], usage=agents.Usage(), response_id=None)
            call = ResponseFunctionToolCall(
                call_id=f"c{len(turns)}", name="refund", arguments=json.dumps({"note": turns[-1]}), type="function_call"
            )
            return agents.ModelResponse(output=[call], usage=agents.Usage(), response_id=None)

        def stream_response(self, *args: object, **options: object) -> object:
            raise NotImplementedError  # asked for by the protocol alone: nothing is streamed here

    @agents.function_tool
    def refund(note: str) -> str:
        """Refund P-1."""
        _refund(desk, audit, turns, note)
        if len(turns) == 1:
            raise TimeoutError("no answer")
        return "sent"

    agents.set_tracing_disabled(True)
    agent = agents.Agent(name="desk", model=Scripted(), tools=[refund])
    assert asyncio.run(agents.Runner.run(agent, "refund P-1")).final_output == "finished"
    return effects(desk)


def _refund(desk: Desk, audit: Audit | None, turns: list[str], note: str) -> None:
    """One tool call of an agent: its turn is the step; the model will be told of an error."""
    if audit is None:
        act(desk, None, "")
    else:
        send(audit, desk.tool(), step=f"{len(turns)}.0", note=note).ack("error")


def mcp_timeout(desk: Desk, guarded: bool) -> int:
    """The server acts and answers late; the client gives up; the model calls again at its next step."""
    from mcp import Client
    from mcp.server.mcpserver import MCPServer

    audit = opened(desk, guarded)
    server = MCPServer("mail")

    @server.tool()
    async def mail(order: str) -> str:
        act(desk, None, "")
        await asyncio.Event().wait()
        return order

    async def scene() -> None:
        async with Client(server) as client:

            async def run(call: Call) -> object:
                return await client.call_tool("mail", {"order": str(call.args["order"])}, read_timeout_seconds=0.5)

            for turn in range(2):
                args = {"order": "P-1", "purpose": "refund", "note": f"words {turn}"}
                if audit is None:
                    with suppress(Exception):  # the client's own error of a timeout
                        await run(Call(args, "none", 1, 1, 30.0))
                else:
                    outcome = await audit.ledger.acall(desk.tool(run), args, workflow="w", step=f"{turn}.0")
                    assert outcome.kind == "in_doubt"

    asyncio.run(scene())
    return effects(desk)


SCENES: tuple[Scene, ...] = (
    Scene("langgraph", "langgraph.checkpoint.sqlite", "killed in a node, resumed", 2, langgraph_kill),
    Scene("langgraph", "langgraph.checkpoint.sqlite", "acts before `interrupt()`, resumed", 2, langgraph_interrupt),
    Scene("langgraph", "langgraph.checkpoint.sqlite", "`RetryPolicy` after the effect", 3, langgraph_retry_policy),
    Scene("dbos", "dbos", "killed in a step, recovered", 2, dbos_kill),
    Scene("dbos", "dbos", "two processes, one workflow id", 2, dbos_two_processes),
    *(Scene("anthropic", "anthropic", f"SDK, {fault}", 3, partial(sdk, anthropic_post, fault)) for fault in SDK_FAULTS),
    *(Scene("openai", "openai", f"SDK, {fault}", 3, partial(sdk, openai_post, fault)) for fault in SDK_FAULTS),
    Scene("mcp", "mcp.server.mcpserver", "client times out, model calls again", 2, mcp_timeout),
    Scene("openai-agents", "agents", "model is told of an error, rewords", 2, openai_agents_error),
    Scene("pydantic-ai-slim", "pydantic_ai", "`ModelRetry`, reworded", 2, pydantic_ai_retry),
)


def installed(scene: Scene) -> bool:
    """True when the library of the scene can be imported."""
    try:
        return importlib.util.find_spec(scene.module) is not None
    except ModuleNotFoundError:
        return False


def table() -> Iterator[str]:
    """The table of docs/ledger.md, line by line, as measured now."""
    yield "| library | fault | effects without the ledger | with it |"
    yield "|---|---|---|---|"
    for scene in SCENES:
        if not installed(scene):
            yield f"| {scene.library} | {scene.fault} | not installed | |"
            continue
        found = []
        for guarded in (False, True):
            with tempfile.TemporaryDirectory() as name:
                desk = Desk(Path(name) / "audit", Target(Path(name) / "target.jsonl"))
                found.append(scene.play(desk, guarded))
                desk.close()
        version = importlib.metadata.version(scene.library)
        yield f"| {scene.library} {version} | {scene.fault} | {found[0]} | {found[1]} |"


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for line in table():
        print(line, flush=True)


if __name__ == "__main__":
    main()

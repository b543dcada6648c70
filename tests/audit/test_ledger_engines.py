# mypy: disable-error-code="import-not-found,untyped-decorator,misc,attr-defined,name-defined,arg-type"
# The packages of this group are optional, and where they are missing nothing of them has a type.
"""Real engines and SDKs, without and with the ledger. An optional group: each test says which package it needs."""

import asyncio
import importlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from audit import Audit, Call
from audit.failpoints import failpoint
from audit.faults import lost_reply, run_child
from tests.audit.ledger_desk import Desk, send

MakeDesk = Callable[..., Desk]

# Third-party packages warn about themselves; that is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore")


def act(desk: Desk, audit: Audit | None, step: str) -> None:
    """The side effect of an agent's step, with the ledger or without; then the point where a test kills the process."""
    tool = desk.tool()
    if audit is None:
        tool.run(Call({"order": "P-1", "purpose": "refund"}, "none", 1, 1, 30.0))
    else:
        assert send(audit, tool, step=step).kind == "done"
    failpoint("acted")


@pytest.mark.invariant("I8")
@pytest.mark.parametrize(("guarded", "effects"), [(False, 2), (True, 1)])
def test_langgraph_killed_inside_a_node_and_resumed(
    make_desk: MakeDesk, tmp_path: Path, guarded: bool, effects: int
) -> None:
    """LangGraph with a SQLite checkpointer runs the node again on resume.

    `langgraph_step` is the same, so it is a replay.
    """
    pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs langgraph-checkpoint-sqlite")
    desk = make_desk()

    def run(resume: bool) -> list[int]:
        from langchain_core.runnables import RunnableConfig
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import END, START, StateGraph

        audit = desk.open() if guarded else None
        steps: list[int] = []

        def node(state: dict[str, int], config: RunnableConfig) -> dict[str, int]:
            steps.append(int(config["metadata"]["langgraph_step"]))
            act(desk, audit, f"{steps[-1]}.0")
            return {"n": state["n"] + 1}

        graph = StateGraph(dict)
        graph.add_node("mail", node)
        graph.add_edge(START, "mail")
        graph.add_edge("mail", END)
        with SqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as saver:
            app = graph.compile(checkpointer=saver)
            config: RunnableConfig = {"configurable": {"thread_id": "t"}}
            app.invoke(None if resume else {"n": 0}, config, durability="sync")
        return steps

    with run_child(run, False, failpoint="acted") as child:
        assert child.ended() == -9
    with run_child(run, True) as child:
        assert child.result() == [1]
    assert len(desk.target.acts()) == effects


@pytest.mark.invariant("I8")
@pytest.mark.parametrize(("guarded", "effects"), [(False, 2), (True, 1)])
def test_dbos_killed_inside_a_step_and_recovered(
    make_desk: MakeDesk, tmp_path: Path, guarded: bool, effects: int
) -> None:
    """DBOS runs a step again whose end it had not recorded; workflow id and step id are the same, so it is a replay."""
    pytest.importorskip("dbos", reason="needs dbos")
    desk = make_desk()

    def run() -> None:
        from dbos import DBOS, SetWorkflowID

        audit = desk.open() if guarded else None
        DBOS(
            config={
                "name": "desk",
                "system_database_url": f"sqlite:///{tmp_path / 'dbos.db'}",
                "run_admin_server": False,
            }
        )

        @DBOS.step()
        def mail() -> None:
            act(desk, audit, f"{DBOS.step_id}.0")

        @DBOS.workflow()
        def agent() -> str:
            mail()
            return "done"

        DBOS.launch()
        with SetWorkflowID("w-1"):
            assert DBOS.start_workflow(agent).get_result() == "done"
        DBOS.destroy()

    with run_child(run, failpoint="acted") as child:
        assert child.ended() == -9
    with run_child(run) as child:
        assert child.ended() == 0
    assert len(desk.target.acts()) == effects


class Vendor(ThreadingHTTPServer):
    """Counts POSTs and answers every one with 500."""

    daemon_threads = True
    posts = 0


class VendorHandler(BaseHTTPRequestHandler):
    """A model vendor with a bad day."""

    server: Vendor

    def do_POST(self) -> None:
        """Count, then fail."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.posts += 1
        self.send_response(500)
        self.send_header("Content-Length", "2")
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep the output clean."""


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    """A loopback vendor."""
    server = Vendor(("127.0.0.1", 0), VendorHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def anthropic_post(url: str, max_retries: int | None) -> object:
    """One message through the vendor's SDK."""
    from anthropic import Anthropic

    options = {} if max_retries is None else {"max_retries": max_retries}
    with Anthropic(api_key="k", base_url=url, **options) as client:
        return client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])


def openai_post(url: str, max_retries: int | None) -> object:
    """One completion through the vendor's SDK."""
    from openai import OpenAI

    options = {} if max_retries is None else {"max_retries": max_retries}
    with OpenAI(api_key="k", base_url=url, **options) as client:
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])


@pytest.mark.parametrize(("package", "post"), [("anthropic", anthropic_post), ("openai", openai_post)])
def test_sdk_retries_are_three_posts_unless_the_ledger_owns_them(
    make_desk: MakeDesk, vendor: Vendor, package: str, post: Callable[[str, int | None], object]
) -> None:
    """By default 3 POSTs on a 500, without any key; told not to retry, under the ledger.

    1, in doubt, and the report warns.
    """
    module = pytest.importorskip(package, reason=f"needs {package}")
    url = f"http://127.0.0.1:{vendor.server_address[1]}"
    with pytest.raises(module.APIError):
        post(url, None)
    assert vendor.posts == 3
    vendor.posts = 0
    desk = make_desk()
    audit = desk.open()
    tool = desk.tool(lambda call: post(url, 0))
    assert [send(audit, tool, step=step).kind for step in ("4.0", "5.0")] == ["in_doubt", "in_doubt"]
    assert vendor.posts == 1
    assert audit.ledger.retry_report({"send": {"sdk": 3}}).warnings


@pytest.mark.invariant("I8")
@pytest.mark.parametrize(("guarded", "effects"), [(False, 2), (True, 1)])
def test_pydantic_ai_tells_the_model_to_retry_and_it_rewords(make_desk: MakeDesk, guarded: bool, effects: int) -> None:
    """The tool acts, then raises ModelRetry; the model calls again in other words: answered from the record."""
    pytest.importorskip("pydantic_ai", reason="needs pydantic-ai-slim")
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    desk = make_desk()
    audit = desk.open() if guarded else None
    turns: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turns.append(f"words {len(turns)}")
        if len(turns) > 2:
            return ModelResponse(parts=[TextPart("finished")])
        return ModelResponse(parts=[ToolCallPart("refund", {"note": turns[-1]})])

    agent = Agent(FunctionModel(model))

    @agent.tool_plain(retries=2)
    def refund(note: str) -> str:
        if audit is None:
            act(desk, None, "")
        else:
            send(audit, desk.tool(), step=f"{len(turns)}.0", note=note).ack("error")
        if len(turns) == 1:
            raise ModelRetry("the mail server answered strangely")
        return "sent"

    assert asyncio.run(agent.run("refund P-1")).output == "finished"
    assert len(desk.target.acts()) == effects


def powertools(desk: Desk, run: Callable[[dict[str, str]], object]) -> Callable[[dict[str, str]], object]:
    """The tool behind aws-lambda-powertools' idempotency, its records in memory, its key a hash of the arguments."""
    idempotency = pytest.importorskip(
        "aws_lambda_powertools.utilities.idempotency", reason="needs aws-lambda-powertools, boto3"
    )
    exceptions = importlib.import_module("aws_lambda_powertools.utilities.idempotency.exceptions")
    records: dict[str, object] = {}

    class Memory(idempotency.BasePersistenceLayer):
        """Keeps records as its contract says: put fails while one is there and has not expired."""

        def _get_record(self, idempotency_key: str) -> object:
            if idempotency_key not in records:
                raise exceptions.IdempotencyItemNotFoundError
            return records[idempotency_key]

        def _put_record(self, data_record: object) -> None:
            if data_record.idempotency_key in records:
                raise exceptions.IdempotencyItemAlreadyExistsError
            records[data_record.idempotency_key] = data_record

        def _update_record(self, data_record: object) -> None:
            records[data_record.idempotency_key] = data_record

        def _delete_record(self, data_record: object) -> None:
            del records[data_record.idempotency_key]

    decorate = idempotency.idempotent_function(data_keyword_argument="args", persistence_store=Memory())
    guarded = decorate(run)
    return lambda args: guarded(args=args)


def test_powertools_acts_twice_where_the_ledger_acts_once(make_desk: MakeDesk) -> None:
    """Its two known gaps beside ours: an exception deletes its record, and other words are another key."""
    desk = make_desk()
    lost = iter([True])

    def run(args: dict[str, str]) -> object:
        receipt = desk.target.act(Call(args, "none", 1, 1, 30.0))
        if next(lost, False):
            raise TimeoutError
        return receipt

    guarded = powertools(desk, run)
    first = {"order": "timeout", "purpose": "refund", "note": "words"}
    with pytest.raises(TimeoutError):
        guarded(first)
    guarded(first)
    assert desk.target.effects("order")["timeout",] == 2
    second = {"order": "reworded", "purpose": "refund", "note": "words"}
    assert guarded(second) == guarded(dict(second))
    guarded({**second, "note": "other words"})
    assert desk.target.effects("order")["reworded",] == 2
    audit = desk.open()
    lose = lost_reply(desk.target.act)
    for step, note in (("1.0", "words"), ("2.0", "other words")):
        send(audit, desk.tool(lose), step=step, order="ours", note=note)
    assert desk.target.effects("order")["ours",] == 1


@pytest.mark.invariant("I8")
@pytest.mark.parametrize(("guarded", "effects"), [(False, 2), (True, 1)])
def test_mcp_a_client_that_times_out_and_a_model_that_calls_again(
    make_desk: MakeDesk, guarded: bool, effects: int
) -> None:
    """The server acts and answers late; the client gives up; the model calls again at its next step.

    In doubt, one effect.
    """
    pytest.importorskip("mcp.server.mcpserver", reason="needs mcp")
    from mcp import Client
    from mcp.server.mcpserver import MCPServer

    desk = make_desk()
    audit = desk.open() if guarded else None
    server = MCPServer("mail")

    @server.tool()
    async def mail(order: str) -> str:
        act(desk, None, "")
        await asyncio.Event().wait()
        return order

    async def scene() -> list[str]:
        kinds: list[str] = []
        async with Client(server) as client:

            async def run(call: Call) -> object:
                return await client.call_tool("mail", {"order": str(call.args["order"])}, read_timeout_seconds=0.5)

            for turn in range(2):
                args = {"order": "P-1", "purpose": "refund", "note": f"words {turn}"}
                if audit is None:
                    with pytest.raises(Exception, match=r"(?i)timed out|timeout"):
                        await run(Call(args, "none", 1, 1, 30.0))
                else:
                    outcome = await audit.ledger.acall(desk.tool(run), args, workflow="w", step=f"{turn}.0")
                    kinds.append(outcome.kind)
        return kinds

    assert set(asyncio.run(scene())) <= {"in_doubt"}
    assert len(desk.target.acts()) == effects


@pytest.mark.invariant("I8")
@pytest.mark.parametrize(("guarded", "effects"), [(False, 2), (True, 1)])
def test_openai_agents_tell_the_model_of_a_timeout_and_it_rewords(
    make_desk: MakeDesk, guarded: bool, effects: int
) -> None:
    """The tool acts and raises TimeoutError, which the model is told; it calls again in other words."""
    agents = pytest.importorskip("agents", reason="needs openai-agents")
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    desk = make_desk()
    audit = desk.open() if guarded else None
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
            raise NotImplementedError

    @agents.function_tool
    def refund(note: str) -> str:
        """Refund P-1."""
        if audit is None:
            act(desk, None, "")
        else:
            send(audit, desk.tool(), step=f"{len(turns)}.0", note=note).ack("error")
        if len(turns) == 1:
            raise TimeoutError("no answer")
        return "sent"

    agents.set_tracing_disabled(True)
    agent = agents.Agent(name="desk", model=Scripted(), tools=[refund])
    result = asyncio.run(agents.Runner.run(agent, "refund P-1"))
    assert result.final_output == "finished"
    assert len(desk.target.acts()) == effects

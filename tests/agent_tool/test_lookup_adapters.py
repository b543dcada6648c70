"""The adapters: one suite over all shapes, then each against the real package where it is installed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_tool.adapters import anthropic, langchain, openai, pydantic_ai
from agent_tool.contract import REQUEST_META, STEP_META
from agent_tool.tool import LookupResult, LookupTool
from audit import Audit, BadKey, CallKey
from tests.agent_tool.doubles import CannedSearcher, citation, found, passage
from tests.harness import REPOSITORY

CONFIG = {"configurable": {"request_id": "req-9", "thread_id": "t"}, "metadata": {"langgraph_step": 4}}
CALLS = [{"id": "a"}, {"id": "b"}]


def responses(*call_ids: str, before: int = 3) -> SimpleNamespace:
    """The context of the last of some calls, ``before`` responses into a conversation."""
    parts = [SimpleNamespace(part_kind="tool-call", tool_call_id=name) for name in call_ids]
    earlier = [SimpleNamespace(kind=kind, parts=[]) for _ in range(before) for kind in ("request", "response")]
    return SimpleNamespace(
        messages=[*earlier, SimpleNamespace(kind="response", parts=parts)], tool_call_id=call_ids[-1]
    )


KEYS = {
    "openai": lambda index: openai.call_key("req-9", 4, index),
    "anthropic": lambda index: anthropic.call_key("req-9", 4, index),
    "langchain": lambda index: langchain.call_key(CONFIG, CALLS, CALLS[index]["id"]),
    "pydantic_ai": lambda index: pydantic_ai.call_key("req-9", responses(*"ab"[: index + 1])),
}


@pytest.fixture
def tool(tmp_path: Path) -> Iterator[LookupTool]:
    """A tool over a canned searcher with two passages."""
    result = found(
        passage(1, "First paragraph.\n\nSecond paragraph.", citation=citation(heading_path=("Leave",))),
        passage(2, "Other."),
    )
    bound = LookupTool(CannedSearcher(result), Audit(tmp_path / "audit", durable=False))
    yield bound
    bound.close()


def look(tool: LookupTool, key: CallKey, query: str = "leave") -> LookupResult:
    """One call."""
    return tool.lookup({"query": query, "limit": None, "path": None}, key=key, principal="local")


@pytest.mark.parametrize("adapter", KEYS)
def test_every_adapter_plans_the_same_position(adapter: str) -> None:
    """Turn and place: parallel calls of one message are two steps, a resumed one is the same."""
    assert [str(KEYS[adapter](index).step) for index in (0, 1, 0)] == ["req-9:4.0", "req-9:4.1", "req-9:4.0"]


def test_one_call_through_all_adapters_is_one_event(tool: LookupTool, tmp_path: Path) -> None:
    """Same arguments and key: same passages, one unit, whoever brought it."""
    results = [look(tool, make(0)) for make in KEYS.values()]
    chunks = {json.dumps([item["chunk_id"] for item in result.structured["passages"]]) for result in results}
    audit = Audit(tmp_path / "audit", create=False)
    assert len(chunks) == 1
    assert (len(audit.tail()), audit.usage_report().units_total) == (1, 1)
    audit.close()


def test_strict_openai_schemas_require_everything_and_allow_null() -> None:
    """What strict mode does not know leaves the schema, and stays a rule of lookup."""
    parameters = openai.definition()["parameters"]
    assert parameters["required"] == list(parameters["properties"]) == ["query", "limit", "path"]
    assert [rules["type"] for rules in parameters["properties"].values()] == [
        "string",
        ["integer", "null"],
        ["string", "null"],
    ]
    for word in ("pattern", "default", "minLength", "maxLength", "$schema"):
        assert f'"{word}"' not in json.dumps(openai.definition())
    assert openai.chat_definition()["function"]["parameters"] == parameters


def test_anthropic_blocks_carry_one_passage_each_split_at_blank_lines(tool: LookupTool) -> None:
    """The notice first; citations on for all, or the API refuses."""
    block = anthropic.output(look(tool, KEYS["anthropic"](0)), "toolu_1")
    notice, first, second = block["content"]
    assert block["is_error"] is False
    assert notice["text"].startswith("Passages are quoted")
    assert [part["text"] for part in first["content"]] == ["First paragraph.", "Second paragraph."]
    assert (first["source"], first["title"]) == ("docs://handbook/hr/leave.md#L12", "[1] hr/leave.md > Leave")
    assert {item["citations"]["enabled"] for item in (first, second)} == {True}


@pytest.mark.parametrize("status", ["no_match", "error"])
def test_what_is_no_passage_goes_out_as_text(tool: LookupTool, status: str) -> None:
    """In every shape; only an error is marked as one."""
    text = f"{status}: sentence"
    error = look(tool, KEYS["openai"](0), "a\x00").error if status == "error" else None
    structured = None if error else {"status": "no_match", "passages": [], "notice": "n"}
    result = LookupResult(status=status, text=text, structured=structured, error=error)
    block = anthropic.output(result, "toolu_1")
    assert (block["content"], block["is_error"]) == ([{"type": "text", "text": text}], status == "error")
    assert openai.output(result, "c")["output"] == openai.chat_output(result, "c")["content"] == text
    assert langchain.output(result) == (text, structured)
    assert pydantic_ai.output(result)[0] == text


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"configurable": {"thread_id": "t"}},
        {"configurable": {"thread_id": "a:b"}, "metadata": {"langgraph_step": 1}},
        {"configurable": {}, "metadata": {"langgraph_step": 1}},
    ],
)
def test_a_langchain_config_without_a_position_is_refused(config: dict[str, Any]) -> None:
    """Nothing is made up in its place; the thread stands in for a request."""
    with pytest.raises(BadKey):
        langchain.call_key(config, CALLS, "a")
    with pytest.raises(BadKey):
        langchain.call_key(CONFIG, CALLS, "unknown")
    thread = {"configurable": {"thread_id": "t"}, "metadata": {"langgraph_step": 1}}
    assert str(langchain.call_key(thread, CALLS, "b").step) == "t:1.1"


def test_a_pydantic_ai_call_outside_the_last_response_is_refused() -> None:
    """Its place cannot be known."""
    with pytest.raises(BadKey):
        pydantic_ai.call_key("r", SimpleNamespace(messages=[], tool_call_id="a"))


def test_openai_agents_pass_the_key_in_meta() -> None:
    """Request of the host, id of the call."""
    meta = openai.agents_meta("req-9", SimpleNamespace(tool_call_id="call_1"))
    assert meta == {REQUEST_META: "req-9", STEP_META: "call_1"}


@pytest.mark.adapters
def test_openai_types_take_definition_and_output(tool: LookupTool) -> None:
    """The package's own types accept both shapes."""
    pytest.importorskip("openai", reason="the adapters group is not installed: openai")
    from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionToolMessageParam
    from openai.types.responses import FunctionToolParam
    from openai.types.responses.response_input_param import FunctionCallOutput
    from pydantic import TypeAdapter

    result = look(tool, KEYS["openai"](0))
    for shape, value in (
        (FunctionToolParam, openai.definition()),
        (ChatCompletionFunctionToolParam, openai.chat_definition()),
        (FunctionCallOutput, openai.output(result, "call_1")),
        (ChatCompletionToolMessageParam, openai.chat_output(result, "call_1")),
    ):
        assert TypeAdapter(shape).validate_python(value)["type" if "type" in value else "role"]


@pytest.mark.adapters
def test_anthropic_types_take_definition_and_output(tool: LookupTool) -> None:
    """Search results inside a tool result."""
    pytest.importorskip("anthropic", reason="the adapters group is not installed: anthropic")
    from anthropic.types import ToolParam, ToolResultBlockParam
    from pydantic import TypeAdapter

    assert TypeAdapter(ToolParam).validate_python(anthropic.definition())["name"] == "lookup"
    block = anthropic.output(look(tool, KEYS["anthropic"](0)), "toolu_1")
    TypeAdapter(ToolResultBlockParam).validate_python(block)
    assert [item["type"] for item in block["content"]] == ["text", "search_result", "search_result"]


@pytest.mark.adapters
def test_a_langchain_tool_returns_content_and_artifact(tool: LookupTool) -> None:
    """Built from the definition; the framework lets arguments through as the model wrote them."""
    pytest.importorskip("langchain_core", reason="the adapters group is not installed: langchain-core")
    from langchain_core.tools import StructuredTool

    def function(**arguments: Any) -> tuple[str, Any]:
        return langchain.output(tool.lookup(arguments, key=langchain.call_key(CONFIG, CALLS, "b"), principal="local"))

    made = StructuredTool(**langchain.definition(), func=function, response_format="content_and_artifact")
    message = made.invoke({"type": "tool_call", "name": "lookup", "args": {"query": "leave"}, "id": "b"})
    assert message.content.startswith("2 passages")
    assert message.artifact["generation"] == "000018"
    refused = made.invoke({"type": "tool_call", "name": "lookup", "args": {"query": "x", "limit": 99}, "id": "b"})
    assert refused.content.startswith("invalid_argument")


@pytest.mark.adapters
def test_a_pydantic_ai_agent_counts_parallel_calls_apart_and_a_resume_once(tool: LookupTool, tmp_path: Path) -> None:
    """Two calls in one response; the run is then repeated from the same history."""
    pytest.importorskip("pydantic_ai", reason="the adapters group is not installed: pydantic-ai-slim")
    from pydantic_ai import Agent, RunContext, Tool, ToolReturn
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if any(isinstance(message, ModelResponse) for message in messages):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("lookup", {"query": query}) for query in ("leave", "holidays")])

    def function(context: RunContext[str], **arguments: Any) -> ToolReturn:
        key = pydantic_ai.call_key(context.deps, context)
        text, metadata = pydantic_ai.output(tool.lookup(arguments, key=key, principal="local"))
        return ToolReturn(return_value=text, metadata=metadata)

    made = Tool.from_schema(function, **pydantic_ai.definition(), takes_ctx=True)
    agent = Agent(FunctionModel(model), deps_type=str, tools=[made])
    for _ in range(2):
        assert asyncio.run(agent.run("How much leave?", deps="req-9")).output == "done"
    audit = Audit(tmp_path / "audit", create=False)
    assert [str(event.key) for event in audit.tail()] == ["req-9:1.0", "req-9:1.1"]
    assert audit.usage_report().units_total == 2
    audit.close()


@pytest.mark.adapters
def test_openai_agents_hand_over_a_context_with_the_id_of_the_call() -> None:
    """Its ToolContext has what the resolver reads."""
    pytest.importorskip("agents", reason="the adapters group is not installed: openai-agents")
    from agents.tool_context import ToolContext

    context = ToolContext(
        context={"request_id": "req-9"}, tool_name="lookup", tool_call_id="call_1", tool_arguments="{}"
    )
    assert openai.agents_meta(context.context["request_id"], context)[STEP_META] == "call_1"


@pytest.mark.adapters
@pytest.mark.slow
@pytest.mark.invariant("I7")
@pytest.mark.parametrize(("durability", "dies_at"), [("sync", 2), ("exit", 3)])
def test_a_langgraph_agent_killed_in_a_lookup_and_resumed_is_counted_exactly(
    durability: str, dies_at: int, tmp_path: Path
) -> None:
    """Three lookups, two of them parallel: three events and three units, wherever it was killed.

    With "exit" nothing of the run was saved, and the model writes new ids for its calls.
    """
    pytest.importorskip("langgraph.checkpoint.sqlite", reason="the adapters group is not installed: langgraph")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "LANGSMITH_TRACING": "false"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            str(Path(__file__).with_name("langgraph_agent.py")),
            str(tmp_path),
            durability,
            *words,
        ]
        return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=240, check=False)

    assert run(str(dies_at)).returncode == -signal.SIGKILL
    ended = run()
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == ["human", "ai", "tool", "tool", "ai", "tool", "ai"]
    audit = Audit(tmp_path / "audit", create=False)
    keys = [str(event.key) for event in audit.tail()]
    assert len(keys) == len(set(keys)) == 3
    assert all(key.startswith("req-71:") for key in keys)
    assert audit.usage_report().units_total == 3
    assert audit.verify().problems == ()
    audit.close()

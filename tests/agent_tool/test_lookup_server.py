"""The MCP server through the SDK's own client, in memory, in both protocol eras."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from agent_tool import contract
from agent_tool.admission import FloodMeter
from agent_tool.contract import CALL_META, ERROR_META, REQUEST_META, STEP_META
from agent_tool.server import make_server
from agent_tool.tool import LookupTool
from audit import Audit
from search.errors import IndexMissing, IndexUnavailable, ModelMismatch
from tests.agent_tool.doubles import CannedSearcher, found, key, passage

ERAS = ["auto", "legacy"]
LEAKS = ("/srv", "/work", "/tmp", "Traceback", "Error(", "SELECT", ".py", "pydantic", "sqlite", "http")


class Served:
    """A server in this process, and the calls of one client to it."""

    def __init__(self, folder: Path) -> None:
        self.audit = Audit(folder, durable=False, busy_timeout_s=2)
        self.searcher = CannedSearcher()
        self.tool = LookupTool(self.searcher, self.audit, meter=FloodMeter(per_second=1e9, burst=10**6))
        self.warmed = 0

    def with_client(
        self, era: str, use: Callable[[Client], Awaitable[Any]], *, require_key: bool = False
    ) -> Any:  # whatever the use returns
        """Run ``use`` with a connected client."""

        def warm_up() -> None:
            self.warmed += 1

        server = make_server(self.tool, warm_up=warm_up, principal_of=lambda _: "local", require_key=require_key)

        async def main() -> Any:  # as above
            async with Client(server, mode=era) as client:
                return await use(client)

        return asyncio.run(main())

    def refusal(self, era: str, name: str, arguments: dict[str, Any], meta: Any = None, **kwargs: Any) -> MCPError:
        """One call that ends in a protocol error."""

        async def use(client: Client) -> MCPError:
            # Caught here: outside, the client's task group would wrap it.
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, arguments, meta=meta)
            return caught.value

        refused: MCPError = self.with_client(era, use, **kwargs)
        return refused

    def call(self, era: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        """One call of the tool; the SDK's client validates what comes back against the listed schema."""
        return self.with_client(era, lambda client: client.call_tool("lookup", arguments, meta=meta), **kwargs)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A served tool."""
    made = Served(tmp_path / "audit")
    yield made
    made.tool.close()


@pytest.mark.parametrize("era", ERAS)
def test_there_is_one_tool_and_no_other_capability(served: Served, era: str) -> None:
    """The same entry for everyone: schemas, sentences, all four hints."""

    async def look(client: Client) -> tuple[Any, Any, Any]:
        return await client.list_tools(), client.server_capabilities, client.instructions

    listed, capabilities, instructions = served.with_client(era, look)
    (tool,) = listed.tools
    assert (tool.name, tool.title, tool.description) == ("lookup", contract.TITLE, contract.DESCRIPTION)
    assert tool.input_schema == contract.INPUT_SCHEMA
    assert tool.output_schema == contract.OUTPUT_SCHEMA
    assert tool.annotations.model_dump(by_alias=True, exclude_none=True) == dict(contract.ANNOTATIONS)
    offered = {name for name, value in capabilities.model_dump(exclude_none=True).items() if value}
    assert offered <= {"tools"}
    assert instructions is None


def test_the_list_may_be_kept_for_five_minutes(served: Served) -> None:
    """Privately; and asking for it starts the loading, not before."""
    assert served.warmed == 0

    async def look(client: Client) -> Any:  # the SDK's result
        listed = await client.list_tools()
        await asyncio.sleep(0)
        while not served.warmed:
            await asyncio.sleep(0.01)
        return listed

    listed = served.with_client("auto", look)
    assert (listed.ttl_ms, listed.cache_scope) == (300_000, "private")


@pytest.mark.parametrize("era", ERAS)
def test_an_answer_comes_in_both_channels(served: Served, era: str) -> None:
    """Valid by the schema that was listed, with the call's own numbers in _meta."""
    result = served.call(era, {"query": "leave"}, {REQUEST_META: "r7", STEP_META: 2})
    assert not result.is_error
    Draft202012Validator(dict(contract.OUTPUT_SCHEMA)).validate(result.structured_content)
    assert "five days" in result.content[0].text
    assert result.meta[CALL_META] == {"repeat": False, "attempt": 1, "keySource": "meta"}
    assert str(served.audit.tail()[0].key) == "r7:2"


@pytest.mark.parametrize("era", ERAS)
def test_two_eras_share_one_key(served: Served, era: str) -> None:
    """A key belongs to the call, not to a connection."""
    other = next(name for name in ERAS if name != era)
    meta = {REQUEST_META: "r7", STEP_META: "4.0"}
    served.call(other, {"query": "leave"}, meta)
    assert served.call(era, {"query": "leave"}, meta).meta[CALL_META]["attempt"] == 2
    assert served.audit.usage_report().units_total == 1


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": "x", "limit": "7"},
        {"query": "x", "limit": True},
        {"query": "x", "y": "SECRET"},
        {"query": "a\x00b"},
    ],
)
def test_bad_arguments_are_an_error_the_model_can_read(served: Served, era: str, arguments: dict[str, Any]) -> None:
    """No coercion, no echo, no structured content."""
    result = served.call(era, arguments)
    assert result.is_error
    assert result.structured_content is None
    assert result.content[0].text.startswith("invalid_argument: ")
    assert "SECRET" not in result.content[0].text
    assert result.meta[ERROR_META]["code"] == "invalid_argument"
    assert served.audit.tail() == ()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "meta",
    [{REQUEST_META: "r"}, {STEP_META: "s"}, {REQUEST_META: "a:b", STEP_META: "s"}, {REQUEST_META: "r", STEP_META: 1.5}],
)
def test_a_bad_key_is_a_protocol_error(served: Served, era: str, meta: dict[str, Any]) -> None:
    """It is the orchestrator's mistake, and nothing a model could mend."""
    refused = served.refusal(era, "lookup", {"query": "leave"}, meta)
    assert refused.code == -32602
    assert not [leak for leak in LEAKS if leak in str(refused)]
    assert served.audit.tail() == ()


@pytest.mark.parametrize("era", ERAS)
def test_a_required_key_and_an_unknown_tool_are_protocol_errors(served: Served, era: str) -> None:
    """Neither reaches the tool."""
    assert "missing" in str(served.refusal(era, "lookup", {"query": "leave"}, require_key=True))
    assert "Unknown tool" in str(served.refusal(era, "delete", {}))
    assert served.searcher.asked == []


@pytest.mark.parametrize("era", ERAS)
def test_without_a_key_every_call_is_its_own(served: Served, era: str) -> None:
    """Generated, marked so, never deduplicated."""
    for _ in range(2):
        result = served.call(era, {"query": "leave"})
        assert result.meta[CALL_META] == {"repeat": False, "attempt": 1, "keySource": "generated"}
    assert served.audit.usage_report().units_total == 2


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "error",
    [
        IndexMissing("index /srv/docs/.grounded: not there"),
        IndexUnavailable("/srv/x.py: SELECT"),
        ModelMismatch("/srv/model.onnx"),
        RuntimeError("/srv/secret.py: Traceback"),
        RecursionError("SELECT 1"),
        ValueError("pydantic"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_failure_tells_more_than_its_sentence(served: Served, era: str, error: Exception) -> None:
    """No path, no SQL, no class name, in either era; and the next call works."""

    def fail() -> None:
        raise error

    served.searcher.before = fail
    result = served.call(era, {"query": "leave"})
    assert result.is_error
    reply = json.dumps(
        result.model_dump(mode="json", by_alias=True, exclude={"meta": {"io.modelcontextprotocol/serverInfo"}})
    )
    assert not [leak for leak in LEAKS if leak in reply.replace(ERROR_META, "").replace(CALL_META, "")]
    served.searcher.before = None
    assert not served.call(era, {"query": "leave"}).is_error


@pytest.mark.parametrize("era", ERAS)
def test_no_match_is_a_success_with_the_same_shape(served: Served, era: str) -> None:
    """An agent cannot take an outage for an empty shelf, nor the other way round."""
    served.searcher.result = found()
    result = served.call(era, {"query": "leave"})
    assert not result.is_error
    assert result.structured_content["status"] == "no_match"
    assert result.content[0].text.startswith("no_match")


@pytest.mark.parametrize("era", ERAS)
def test_the_client_sees_the_passages_that_were_recorded(served: Served, era: str) -> None:
    """Generation and chunk ids of the attempt are those of the answer."""
    served.searcher.result = found(passage(1), passage(2, "Second."))
    result = served.call(era, {"query": "leave"}, {REQUEST_META: "req-1", STEP_META: "4.0"})
    (attempt,) = served.audit.show(key().step).attempts
    kept = json.loads(attempt.body)
    assert kept["chunk_ids"] == [item["chunk_id"] for item in result.structured_content["passages"]]
    assert kept["generation"] == result.structured_content["generation"] == "000018"


def test_a_call_is_told_apart_by_trace_and_client_and_nothing_else(served: Served) -> None:
    """They are noted in the event; they decide nothing."""
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    served.call("auto", {"query": "leave"}, {REQUEST_META: "r", STEP_META: "1", "traceparent": trace})
    event = served.audit.tail()[0]
    assert event.fields["trace_id"] == "a" * 32
    assert event.fields["client"] == "mcp"

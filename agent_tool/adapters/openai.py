"""OpenAI function calling (Responses and Chat Completions), and the key for OpenAI Agents over MCP.

Strict mode wants every argument required, optional ones nullable, and knows no length, pattern or default: those leave
the schema here, and stay rules of ``lookup``. Source: OpenAI API reference, function calling and structured outputs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

from agent_tool.call_keys import meta_of, planned
from agent_tool.contract import DESCRIPTION, NAME, VENDOR_SCHEMA
from agent_tool.tool import LookupResult
from audit import CallKey, JsonValue, StepKey

__all__ = ["agents_meta", "call_key", "chat_definition", "chat_output", "definition", "output"]

# Of what our schema uses, strict mode takes these; ``minimum`` and ``maximum`` of numbers too.
_KEPT: Final = frozenset({"type", "description", "minimum", "maximum"})


class AgentsContext(Protocol):
    """What is read of a ``ToolContext`` of OpenAI Agents."""

    @property
    def tool_call_id(self) -> str:
        """The id of the call; keeps over a resume only if the turn was saved before."""


def definition() -> dict[str, Any]:
    """Return the tool for ``client.responses.create(tools=[...])``, strict."""
    return {"type": "function", "name": NAME, "description": DESCRIPTION, "parameters": _strict(), "strict": True}


def chat_definition() -> dict[str, Any]:
    """Return the tool for ``client.chat.completions.create(tools=[...])``, strict."""
    flat = definition()
    del flat["type"]
    return {"type": "function", "function": flat}


def call_key(run_id: str, turn: int, index: int) -> CallKey:
    """Return the key: your own run id (not ``response.id``, which is new per attempt), turn, place among its calls.

    Raises ``BadKey``.
    """
    return planned(run_id, turn, index)


def output(result: LookupResult, call_id: str) -> dict[str, str]:
    """Return the input item that answers a ``function_call`` of the Responses API."""
    return {"type": "function_call_output", "call_id": call_id, "output": result.text}


def chat_output(result: LookupResult, call_id: str) -> dict[str, str]:
    """Return the message that answers a tool call of Chat Completions."""
    return {"role": "tool", "tool_call_id": call_id, "content": result.text}


def agents_meta(request_id: str, context: AgentsContext) -> dict[str, str]:
    """Return ``_meta`` of a call that OpenAI Agents sends to the MCP server; for its ``tool_meta_resolver``.

    ``request_id`` is yours, from ``run_context.context``. The call's id is its step, so save the turn before its tools
    run. Raises ``BadKey``.
    """
    return meta_of(CallKey(StepKey(request_id, context.tool_call_id), "meta"))


def _strict() -> dict[str, JsonValue]:
    properties = cast("Mapping[str, Mapping[str, JsonValue]]", VENDOR_SCHEMA["properties"])
    required = cast("Sequence[str]", VENDOR_SCHEMA["required"])
    strict: dict[str, JsonValue] = {}
    for name, rules in properties.items():
        kept = {rule: value for rule, value in rules.items() if rule in _KEPT}
        strict[name] = kept if name in required else {**kept, "type": [kept["type"], "null"]}
    return {"type": "object", "properties": strict, "required": list(strict), "additionalProperties": False}

"""PydanticAI: the parts of a tool, and the key from a run's context.

    Tool.from_schema(function, **pydantic_ai.definition(), takes_ctx=True)

``run_id`` is new for every run and ``run_step`` starts again with a given ``message_history``, so both would merge or
split calls on a resume (measured, pydantic-ai 2.68.0); the number of responses in the conversation does neither.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from agent_tool.call_keys import planned
from agent_tool.contract import DESCRIPTION, NAME, VENDOR_SCHEMA
from agent_tool.tool import LookupResult
from audit import BadKey, CallKey

__all__ = ["RunContext", "call_key", "definition", "output"]


class RunContext(Protocol):
    """What is read of a ``RunContext``: its messages, and which of the last response's calls this is."""

    @property
    def messages(self) -> Sequence[Any]:
        """The conversation so far; ``kind`` tells requests from responses."""

    @property
    def tool_call_id(self) -> str | None:
        """The id of this call."""


def definition() -> dict[str, Any]:
    """Return name, description and schema of the tool, as ``Tool.from_schema`` takes them."""
    return {"name": NAME, "description": DESCRIPTION, "json_schema": dict(VENDOR_SCHEMA)}


def call_key(request_id: str, context: RunContext) -> CallKey:
    """Return the key: your own request id (``ctx.deps``), responses so far, place among the last response's calls.

    Raises ``BadKey``.
    """
    responses = [message for message in context.messages if message.kind == "response"]
    calls = [part for part in responses[-1].parts if part.part_kind == "tool-call"] if responses else []
    places = [place for place, part in enumerate(calls) if part.tool_call_id == context.tool_call_id]
    if len(places) != 1:
        raise BadKey("key: the call is none of the last response; give the context of a running tool")
    return planned(request_id, len(responses), places[0])


def output(result: LookupResult) -> tuple[str, dict[str, Any]]:
    """Return the text for the model, and the structured answer as metadata for the program.

    ``ToolReturn(return_value=text, metadata=metadata)`` holds both.
    """
    return result.text, {} if result.structured is None else dict(result.structured)

"""LangChain and LangGraph: the parts of a tool, and the key from a run's config.

    StructuredTool(**langchain.definition(), func=..., response_format="content_and_artifact")

A key made from the turn alone would merge the parallel calls of one message, and the ids of tasks and calls are new
when a run is resumed (measured, langgraph 1.2.24, ``durability="exit"``); the step number and the place of a call among
those of its message are not.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_tool.call_keys import planned
from agent_tool.contract import DESCRIPTION, NAME, VENDOR_SCHEMA
from agent_tool.tool import LookupResult
from audit import BadKey, CallKey

__all__ = ["call_key", "definition", "output"]


def definition() -> dict[str, Any]:
    """Return name, description and arguments of the tool, as ``StructuredTool`` takes them."""
    return {
        "name": NAME,
        "description": DESCRIPTION,
        "args_schema": {**VENDOR_SCHEMA, "title": NAME},
    }


def call_key(config: Mapping[str, Any], calls: Sequence[Mapping[str, Any]], call_id: str) -> CallKey:
    """Return the key of a call: request from the config, LangGraph's step number, place among ``calls``.

    ``config`` is the ``RunnableConfig`` of the node; the request is ``configurable["request_id"]``, else the thread's
    id. ``calls`` are the ``tool_calls`` of the message that holds ``call_id``. Raises ``BadKey``.
    """
    own = config.get("configurable", {})
    request = own.get("request_id") or own.get("thread_id")
    step = config.get("metadata", {}).get("langgraph_step")
    places = [place for place, call in enumerate(calls) if call.get("id") == call_id]
    if not isinstance(request, str) or not isinstance(step, int) or len(places) != 1:
        raise BadKey("key: needs configurable request_id or thread_id, langgraph_step, and a call of the message")
    return planned(request, step, places[0])


def output(result: LookupResult) -> tuple[str, dict[str, Any] | None]:
    """Return content and artifact of the ``ToolMessage``: text for the model, the structured answer for the program."""
    return result.text, None if result.structured is None else dict(result.structured)

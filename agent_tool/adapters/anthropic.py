"""Anthropic tool use: passages as ``search_result`` blocks, which the model can cite by itself.

Citations are on for every block, since the API takes all or none. Source: Anthropic API reference, search results.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from agent_tool.call_keys import planned
from agent_tool.contract import DESCRIPTION, NAME, VENDOR_SCHEMA
from agent_tool.tool import LookupResult
from audit import CallKey, JsonValue

__all__ = ["call_key", "definition", "output"]

_BLANK_LINES: Final = re.compile(r"\n[ \t]*\n\s*")


def definition() -> dict[str, Any]:
    """Return the tool for ``client.messages.create(tools=[...])``."""
    return {"name": NAME, "description": DESCRIPTION, "input_schema": dict(VENDOR_SCHEMA)}


def call_key(run_id: str, turn: int, index: int) -> CallKey:
    """Return the key: your own run id, turn, place of the ``tool_use`` block among those of its message.

    Raises ``BadKey``.
    """
    return planned(run_id, turn, index)


def output(result: LookupResult, tool_use_id: str) -> dict[str, Any]:
    """Return the ``tool_result`` block that answers a ``tool_use``: the notice, then one block per passage.

    A passage is split at blank lines, so that a citation points at a paragraph. Without passages it is the text.
    """
    passages = cast("Sequence[Mapping[str, JsonValue]]", (result.structured or {}).get("passages", ()))
    content = (
        [{"type": "text", "text": str((result.structured or {})["notice"])}, *map(_search_result, passages)]
        if passages
        else [{"type": "text", "text": result.text}]
    )
    return {
        "type": "tool_result",
        "tool_use_id": tool_use_id,
        "content": content,
        "is_error": result.error is not None,
    }


def _search_result(passage: Mapping[str, JsonValue]) -> dict[str, Any]:
    citation = cast("Mapping[str, JsonValue]", passage["citation"])
    headings = cast("Sequence[str]", citation.get("heading_path", ()))
    parts = [part for part in _BLANK_LINES.split(str(passage["text"])) if part.strip()]
    return {
        "type": "search_result",
        "source": citation["uri"],
        "title": " > ".join([f"[{passage['ref']}] {citation['path']}", *headings]),
        # The API refuses an empty block; a passage of white space alone stays as it is.
        "content": [{"type": "text", "text": part} for part in parts or [str(passage["text"]) or " "]],
        "citations": {"enabled": True},
    }

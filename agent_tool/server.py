"""The MCP server: one tool, both protocol eras, built on the SDK's low-level ``Server``.

Translates and decides nothing: arguments, keys and failures are judged by ``tool``, ``arguments`` and ``call_keys``. No
resources, prompts, sampling, elicitation, tasks, no state of a connection, no ``instructions``. ``tools/list`` is a
constant, the same for everyone, so that it is answered before any model is loaded. Who calls is decided by the
transport; ``clientInfo`` and ``_meta`` never are identity. Source: MCP 2026-07-28, and 2024-11-05 to 2025-11-25;
measured with mcp 2.3.0: the high-level server drops unknown arguments and turns "7" into 7, so it is not used.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from audit import BadKey
from search.version import VERSION

from .call_keys import REQUEST_HEADER, STEP_HEADER, Origin, read_key, read_origin
from .contract import ANNOTATIONS, DESCRIPTION, INPUT_SCHEMA, NAME, OUTPUT_SCHEMA, TITLE
from .tool import LookupResult, LookupTool

__all__ = ["Context", "definition", "make_server"]

# What the SDK hands to a handler: no lifespan state of ours, and a Starlette request where there is one.
Context: TypeAlias = ServerRequestContext[dict[str, Any], Any]

SERVER_NAME: Final = "grounded-ingest"
# The list never changes while a server runs; ``private``, since a proxy has nothing to gain from it.
_CACHE: Final = CacheHint(ttl_ms=300_000, scope="private")
# After the list has been asked for: late enough for the reply to be gone, early enough for the first call.
_WARM_UP_AFTER_S: Final = 0.05


def definition() -> types.Tool:
    """Return the one tool as ``tools/list`` shows it."""
    return types.Tool(
        name=NAME,
        title=TITLE,
        description=DESCRIPTION,
        input_schema=dict(INPUT_SCHEMA),
        output_schema=dict(OUTPUT_SCHEMA),
        annotations=types.ToolAnnotations(
            read_only_hint=ANNOTATIONS["readOnlyHint"],
            destructive_hint=ANNOTATIONS["destructiveHint"],
            idempotent_hint=ANNOTATIONS["idempotentHint"],
            open_world_hint=ANNOTATIONS["openWorldHint"],
        ),
    )


def make_server(
    tool: LookupTool,
    *,
    warm_up: Callable[[], None],
    principal_of: Callable[[Context], str],
    require_key: bool,
) -> Server[dict[str, Any]]:
    """Return the server.

    ``warm_up`` begins to load the index and returns at once; it is called when the tool has been listed.
    ``principal_of`` names the authenticated caller of a request.
    """
    listed = types.ListToolsResult(tools=[definition()])

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        asyncio.get_running_loop().call_later(_WARM_UP_AFTER_S, warm_up)
        return listed

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name != NAME:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool; the only one is {NAME}")
        meta: Mapping[str, object] = dict(context.meta or {})
        try:
            key = read_key(meta, _headers(context), required=require_key)
        except BadKey as error:
            # Its messages name the part and its type or length, never its value.
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        result = await tool.alookup(
            params.arguments or {}, key=key, principal=principal_of(context), origin=_origin(context, meta)
        )
        return as_mcp(result)

    return Server(
        SERVER_NAME,
        version=VERSION,
        title="Grounded documents",
        cache_hints={"tools/list": _CACHE, "server/discover": _CACHE},
        get_tool_input_schema=lambda name: INPUT_SCHEMA if name == NAME else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def as_mcp(result: LookupResult) -> types.CallToolResult:
    """Return a result in the protocol's shape; an error has no structured content, which would hide its sentence."""
    return types.CallToolResult(
        content=[types.TextContent(text=result.text)],
        structured_content=None if result.structured is None else dict(result.structured),
        is_error=result.error is not None,
        _meta=result.meta(),
    )


def _headers(context: Context) -> dict[str, Sequence[str]]:
    request = context.request
    if not isinstance(request, Request):
        return {}
    return {name: request.headers.getlist(name) for name in (REQUEST_HEADER, STEP_HEADER)}


def _origin(context: Context, meta: Mapping[str, object]) -> Origin:
    client = context.session.client_params
    request = context.request
    header = request.headers.get("traceparent") if isinstance(request, Request) else None
    return read_origin(meta.get("traceparent") or header, client.client_info.name if client else None)

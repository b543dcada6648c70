"""MCP over stdin and stdout, one client, until its end of file or SIGTERM.

Nothing but protocol goes to stdout: the SDK moves it away and leads fd 1 to stderr, so that a stray print of a library
is harmless. It gives fd 1 back at the end, when such a print may still stand in Python's buffer; so fd 1 is then led to
stderr for good. Calls in flight end their rows before the process ends.
"""

import asyncio
import contextlib
import logging
import os
import signal
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from .tool import LookupTool

__all__ = ["serve_stdio"]


def serve_stdio(server: Server[dict[str, Any]], tool: LookupTool) -> None:
    """Serve one client to its end, then close the tool."""
    try:
        asyncio.run(_serve(server, tool))
    finally:
        with contextlib.suppress(OSError):  # a client may have closed stderr
            os.dup2(2, 1)
        tool.close()


async def _serve(server: Server[dict[str, Any]], tool: LookupTool) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _end, tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _end(tool: LookupTool) -> None:
    """End the process as the end of file would.

    A thread of the SDK stands in a read of stdin that nothing can wake, so the interpreter could not end by itself.
    """
    tool.close()
    logging.shutdown()
    os._exit(0)

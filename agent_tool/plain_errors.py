"""Keeps what a library says about a malformed request out of the reply.

The SDK's handshake transport puts the validator's text into the error of a body that is no JSON-RPC message: class
names, and the input echoed (mcp 2.3.0, ``StreamableHTTPServerTransport._handle_post_request``). The sentence of such a
reply is replaced; its status, code and id stay. Every other reply passes unchanged.
"""

import json
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["PlainErrors"]

_FOREIGN: Final = "Validation error:"
_PLAIN: Final = "Body must be a single JSON-RPC request or notification object"


class PlainErrors:
    """ASGI middleware; it holds back replies of status 400 until it has read them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; replace the sentence of its reply where it is the validator's."""
        held: Message | None = None
        parts: list[bytes] = []

        async def look(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and message["status"] == 400:
                held = message
            elif held is None:
                await send(message)
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    body = _plain(b"".join(parts))
                    MutableHeaders(raw=held["headers"])["content-length"] = str(len(body))
                    await send(held)
                    await send({"type": "http.response.body", "body": body})

        await self._app(scope, receive, look)


def _plain(body: bytes) -> bytes:
    try:
        reply = json.loads(body)
        if reply["error"]["message"].startswith(_FOREIGN):
            reply["error"]["message"] = _PLAIN
            return json.dumps(reply).encode()
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # not a reply of JSON-RPC, so not the one that is looked for
    return body

"""MCP over streamable HTTP, stateless, one JSON reply per request; and the rules of who may reach it.

Refuses to start on an address beyond this machine without tokens and allowed hosts. Host and Origin are always checked
against explicit lists, which is what stops a web page from reaching a local server by DNS rebinding. TLS and limits per
address belong to a proxy. OAuth: a resource server only, tokens are checked and never passed on.
"""

import ipaddress
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import anyio
import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import TokenVerifier, principal_components
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from search.errors import UsageError

from .plain_errors import PlainErrors
from .server import Context
from .tokens import SCOPE, Tokens

__all__ = ["Access", "bind", "http_app", "principal_in", "serve_http"]

logger = logging.getLogger(__name__)

PATH: Final = "/mcp"
# A query of 4,000 bytes fits many times; nothing larger has a use here.
BODY_BYTES: Final = 64 * 1024
CONNECTIONS: Final = 64
LOCAL: Final = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may call. ``verifier`` None lets everyone on this machine in, as ``local``.

    With ``issuer`` and ``resource`` (URLs) the server is an OAuth resource server: its metadata is served, and only
    tokens that the verifier says were issued for ``resource`` pass. ``hosts`` and ``origins`` are allowed besides those
    of this machine; a host may end in ``:*`` for any port.
    """

    verifier: TokenVerifier | None = None
    issuer: str | None = None
    resource: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


def bind(host: str, port: int, access: Access) -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises ``UsageError`` for an address beyond this machine without tokens and allowed hosts, and for one that is
    taken.
    """
    if not _is_loopback(host) and (access.verifier is None or not access.hosts):
        raise UsageError(
            f"http {host}: reachable from other machines; set GROUNDED_TOKEN or --token-file, and --allowed-host, "
            "or bind to 127.0.0.1"
        )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(f"http {host}:{port}: cannot be bound ({error.strerror}); choose another") from error


def http_app(server: Server[dict[str, Any]], access: Access, *, port: int, ready: Callable[[], bool]) -> Starlette:
    """Return the ASGI application: ``POST /mcp``; ``GET /healthz`` is 204 when a lookup would be answered, else 503."""

    async def healthz(_: Request) -> Response:
        return Response(status_code=204 if await anyio.to_thread.run_sync(ready) else 503)

    names = [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=BODY_BYTES,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[*names, *access.hosts],
            allowed_origins=[*(f"http://{name}" for name in names), *access.origins],
        ),
        # Both or neither: ``auth`` alone serves everyone, the verifier alone refuses everyone (mcp 2.3.0).
        auth=None if access.verifier is None else _settings(access, port),
        token_verifier=access.verifier,
        custom_starlette_routes=[Route("/healthz", healthz, methods=["GET"])],
    )
    app.add_middleware(PlainErrors)
    return app


def principal_in(opaque: Callable[[str], str]) -> Callable[[Context], str]:
    """Return what names the caller of a request: the token's principal, by ``opaque`` where an issuer vouches for it.

    ``opaque`` makes a valid, pseudonymous key part of any text (``Audit.opaque``).
    """

    def principal_of(context: Context) -> str:
        request = context.request
        user = request.scope.get("user") if isinstance(request, Request) else None
        if not isinstance(user, AuthenticatedUser):
            return LOCAL
        client, issuer, subject = principal_components(user.access_token)
        return client if issuer is None else opaque(f"{issuer}\n{subject or client}")

    return principal_of


def serve_http(app: Starlette, listening: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C; requests in flight are answered first."""
    config = uvicorn.Config(
        app, limit_concurrency=CONNECTIONS, access_log=False, log_config=None, server_header=False, lifespan="on"
    )
    uvicorn.Server(config).run(sockets=[listening])


def _settings(access: Access, port: int) -> AuthSettings:
    if access.resource is None:
        # Tokens of our own: there is no issuer to name, and without a resource nothing names it to a client.
        own = AnyHttpUrl(f"http://127.0.0.1:{port}")
        return AuthSettings(issuer_url=own, resource_server_url=None, required_scopes=[SCOPE])
    if access.issuer is None or isinstance(access.verifier, Tokens):
        raise UsageError("http: an OAuth resource needs its issuer, and a verifier of the issuer's tokens")
    return AuthSettings(
        issuer_url=AnyHttpUrl(access.issuer),
        resource_server_url=AnyHttpUrl(access.resource),
        required_scopes=[SCOPE],
        validate_token_resource=True,
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

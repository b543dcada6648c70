"""Who may call over HTTP, and what stands before the tool. The application runs in this process, without a socket."""

import asyncio
import hashlib
import json
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken

from agent_tool.admission import FloodMeter
from agent_tool.contract import CALL_META, ERROR_META, REQUEST_META, STEP_META
from agent_tool.http_server import Access, bind, http_app, principal_in
from agent_tool.server import make_server
from agent_tool.tokens import Tokens, read_tokens
from agent_tool.tool import LookupTool
from audit import Audit
from search.errors import UsageError
from tests.agent_tool.doubles import CannedSearcher

PORT = 8946
URL = f"http://127.0.0.1:{PORT}"
RESOURCE = "https://docs.example.org/mcp"


def digest(token: str) -> str:
    """What a token file holds."""
    return hashlib.sha256(token.encode()).hexdigest()


TOKENS = Tokens([("ann", digest("secret-a")), ("bob", digest("secret-b"))])


class Served:
    """The application over a canned searcher."""

    def __init__(self, folder: Path) -> None:
        self.audit = Audit(folder, durable=False, busy_timeout_s=2)
        self.tool = LookupTool(CannedSearcher(), self.audit, meter=FloodMeter(per_second=1e9, burst=10**6))
        self.ready = True

    def use(self, access: Access, use: Callable[[httpx2.AsyncClient], Awaitable[Any]], **headers: str) -> Any:
        """Run ``use`` with a client of the running application."""
        server = make_server(
            self.tool, warm_up=lambda: None, principal_of=principal_in(self.audit.opaque), require_key=False
        )
        app = http_app(server, access, port=PORT, ready=lambda: self.ready)

        async def main() -> Any:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(app.router.lifespan_context(app))
                transport = httpx2.ASGITransport(app=app)
                client = httpx2.AsyncClient(transport=transport, base_url=URL, headers=headers)
                return await use(await stack.enter_async_context(client))

        return asyncio.run(main())

    def post(self, access: Access, query: str = "leave", meta: Any = None, **headers: str) -> httpx2.Response:
        """One call of the handshake era, as plain HTTP."""
        params: dict[str, Any] = {"name": "lookup", "arguments": {"query": query}}
        if meta is not None:
            params["_meta"] = meta
        body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
        sent = {"accept": "application/json, text/event-stream", **headers}
        response: httpx2.Response = self.use(access, lambda client: client.post("/mcp", json=body, headers=sent))
        return response


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A served tool."""
    made = Served(tmp_path / "audit")
    yield made
    made.tool.close()


def test_on_this_machine_no_token_is_needed(served: Served) -> None:
    """The caller is counted as local."""
    assert served.post(Access()).status_code == 200
    assert [row.name for row in served.audit.usage_report().rows] == ["local"]


@pytest.mark.parametrize(
    "given", [None, "Bearer wrong", "Bearer ", "Basic c2VjcmV0LWE=", "secret-a", "Bearer secret-a x"]
)
def test_without_a_right_token_nobody_is_served(served: Served, given: str | None) -> None:
    """401, and nothing is recorded."""
    response = served.post(Access(verifier=TOKENS), **({"authorization": given} if given else {}))
    assert response.status_code == 401
    assert served.audit.tail() == ()


def test_the_token_alone_says_who_calls(served: Served) -> None:
    """Equal keys of two principals are two calls; what a caller says about itself shifts nothing."""
    key = {REQUEST_META: "r1", STEP_META: "1"}
    claims = {**key, "principal": "ann", "io.modelcontextprotocol/clientInfo": {"name": "ann", "version": "1"}}
    for token in ("secret-a", "secret-a", "secret-b"):
        response = served.post(Access(verifier=TOKENS), meta=claims, authorization=f"Bearer {token}")
        assert response.status_code == 200
    assert {row.name: row.units for row in served.audit.usage_report().rows} == {"ann": 1, "bob": 1}


def test_no_token_is_kept(served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the store nor in the log."""
    caplog.set_level("DEBUG")
    served.post(Access(verifier=TOKENS), authorization="Bearer secret-a")
    served.post(Access(verifier=TOKENS), authorization="Bearer secret-wrong")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "audit").iterdir())
    assert b"secret-" not in kept
    assert "secret-" not in caplog.text


class Issuer:
    """A verifier of an issuer's tokens, as a host brings one."""

    def __init__(self, **fields: Any) -> None:
        self.fields = {"scopes": ["lookup"], "resource": RESOURCE, "subject": "ann", **fields}

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="app", claims={"iss": "https://id.example.org"}, **self.fields)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 200),
        ({"resource": "https://other.example.org/mcp"}, 401),
        ({"resource": None}, 401),
        ({"expires_at": int(time.time()) - 60}, 401),
        ({"scopes": ["read"]}, 403),
        ({"scopes": []}, 403),
    ],
)
def test_a_token_of_an_issuer_must_be_for_us(served: Served, fields: dict[str, Any], status: int) -> None:
    """Audience, expiry and scope; the caller is counted under a pseudonym."""
    access = Access(verifier=Issuer(**fields), issuer="https://id.example.org", resource=RESOURCE)
    assert served.post(access, authorization="Bearer t").status_code == status
    names = [row.name for row in served.audit.usage_report().rows]
    assert all(name.startswith("id_") for name in names)
    assert len(names) == (status == 200)


def test_a_resource_without_its_issuer_is_refused(served: Served) -> None:
    """Tokens of our own belong to no issuer."""
    with pytest.raises(UsageError, match="issuer"):
        served.post(Access(verifier=Issuer(), resource=RESOURCE))
    with pytest.raises(UsageError, match="issuer"):
        served.post(Access(verifier=TOKENS, issuer="https://id.example.org", resource=RESOURCE))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": f"localhost:{PORT}"}, 200),
        ({"host": f"[::1]:{PORT}"}, 200),
        ({"host": "evil.example.org"}, 421),
        ({"host": f"127.0.0.1.evil.org:{PORT}"}, 421),
        ({"host": "127.0.0.1:9999"}, 421),
        ({"origin": f"http://localhost:{PORT}"}, 200),
        ({"origin": "https://evil.example.org"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_host_and_origin_are_checked_against_lists(served: Served, headers: dict[str, str], status: int) -> None:
    """A web page cannot reach a local server by a name that it made point here."""
    assert served.post(Access(), **headers).status_code == status


def test_hosts_and_origins_can_be_allowed(served: Served) -> None:
    """Those of this machine stay allowed."""
    access = Access(hosts=("docs.example.org",), origins=("https://app.example.org",))
    allowed = {"host": "docs.example.org", "origin": "https://app.example.org"}
    assert served.post(access, **allowed).status_code == 200
    assert served.post(access).status_code == 200


@pytest.mark.parametrize("access", [Access(), Access(verifier=TOKENS), Access(hosts=("docs.example.org",))])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "docs.example.org"])
def test_an_open_address_needs_tokens_and_hosts(access: Access, host: str) -> None:
    """One of the two is not enough; it refuses to start."""
    with pytest.raises(UsageError, match="reachable from other machines"):
        bind(host, 0, access)


def test_an_open_address_with_both_is_bound_and_a_taken_port_refused() -> None:
    """So is this machine's own without either."""
    with bind("0.0.0.0", 0, Access(verifier=TOKENS, hosts=("docs.example.org",))) as listening:
        assert listening.getsockname()[1] > 0
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="cannot be bound"):
        bind("127.0.0.1", taken.getsockname()[1], Access())


def test_a_huge_body_is_refused(served: Served) -> None:
    """64 KiB, before anything reads it."""
    assert served.post(Access(), query="x" * 70_000).status_code == 413
    assert served.audit.tail() == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 30_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        b"\xff\xfe",
        b"NaN",
        b'{"a": "SECRET"}',
    ],
)
@pytest.mark.parametrize("version", [None, "2026-07-28"])
def test_garbage_is_answered_without_internals_and_the_next_call_works(
    served: Served, body: bytes, version: str | None
) -> None:
    """Both eras."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if version:
        headers["mcp-protocol-version"] = version
    response = served.use(Access(), lambda client: client.post("/mcp", content=body, headers=headers))
    assert 400 <= response.status_code < 500 or "error" in response.json()
    for leak in ("Traceback", "/work", "site-packages", "pydantic", "SECRET", "JSONRPC"):
        assert leak not in response.text
    assert served.post(Access()).status_code == 200


def test_a_lone_surrogate_in_a_query_is_refused_without_an_echo(served: Served) -> None:
    """JSON can write one; it cannot be sent back."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lookup","arguments":{"query":"a\\ud800"}}}'
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    response = served.use(Access(), lambda client: client.post("/mcp", content=body, headers=headers))
    assert response.status_code in {200, 400}
    assert "ud800" not in response.text
    assert served.post(Access()).status_code == 200


def test_keys_can_come_in_headers(served: Served) -> None:
    """For clients that cannot set _meta; half a pair is a protocol error."""
    sent = {"grounded-request-id": "r1", "grounded-step": "4.0"}
    for attempt in (1, 2):
        call = served.post(Access(), **sent).json()["result"]["_meta"][CALL_META]
        assert call == {"repeat": attempt == 2, "attempt": attempt, "keySource": "header"}
    assert served.post(Access(), **{"grounded-step": "1"}).json()["error"]["code"] == -32602


def test_other_names_of_requests_are_no_keys(served: Served) -> None:
    """X-Request-Id is new for every attempt, a JSON-RPC id the same for every client."""
    for _ in range(2):
        reply = served.post(
            Access(), **{"x-request-id": "r1", "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}
        )
        assert reply.json()["result"]["_meta"][CALL_META]["keySource"] == "generated"


def test_health_tells_ready_from_not_and_nothing_else(served: Served) -> None:
    """No token, no body."""
    for ready, status in ((True, 204), (False, 503)):
        served.ready = ready
        response = served.use(Access(verifier=TOKENS), lambda client: client.get("/healthz"))
        assert (response.status_code, response.content) == (status, b"")


def test_two_clients_of_two_eras_are_served_at_once(served: Served) -> None:
    """One application, no session."""

    async def both(http: httpx2.AsyncClient) -> list[Any]:
        async def one(era: str, step: str) -> Any:
            async with Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=era) as client:
                await client.list_tools()
                return await client.call_tool("lookup", {"query": "leave"}, meta={REQUEST_META: "r", STEP_META: step})

        return await asyncio.gather(one("auto", "1"), one("legacy", "2"), one("auto", "3"), one("legacy", "1"))

    results = served.use(Access(verifier=TOKENS), both, authorization="Bearer secret-a")
    assert [result.is_error for result in results] == [False] * 4
    assert served.audit.usage_report().units_total == 3


def test_a_flood_is_limited_per_principal(served: Served) -> None:
    """The reply says how long to wait."""
    slow = LookupTool(CannedSearcher(), served.audit, meter=FloodMeter(per_second=0.01, burst=1))
    served.tool, kept = slow, served.tool
    first, second = (served.post(Access(verifier=TOKENS), authorization="Bearer secret-a") for _ in range(2))
    other = served.post(Access(verifier=TOKENS), authorization="Bearer secret-b")
    assert [reply.json()["result"]["isError"] for reply in (first, second, other)] == [False, True, False]
    error = second.json()["result"]["_meta"][ERROR_META]
    assert error["code"] == "rate_limited"
    assert error["retry_after_ms"] > 1000
    served.tool = kept


def test_a_token_file_names_principals_by_digest(tmp_path: Path) -> None:
    """Comments and empty lines do not count; the environment's token stands beside it."""
    file = tmp_path / "tokens"
    file.write_text(f"# agents\n\nann:{digest('a')}\nbob: {digest('b').upper()}\n", encoding="utf-8")
    tokens = read_tokens("one", file)
    assert tokens is not None

    async def who(token: str) -> str | None:
        found = await tokens.verify_token(token)
        return found.client_id if found else None

    assert [asyncio.run(who(token)) for token in ("a", "b", "one", "c", "")] == ["ann", "bob", "http", None, None]
    assert read_tokens(None, None) is None


@pytest.mark.parametrize(
    "line", ["ann", "ann:short", ":" + "0" * 64, "a b:" + "0" * 64, "~x:" + "0" * 64, "ann:" + "g" * 64]
)
def test_a_token_file_with_a_wrong_line_is_refused(tmp_path: Path, line: str) -> None:
    """The message names the line's number, never its content."""
    file = tmp_path / "tokens"
    file.write_text(f"ann:{digest('a')}\n{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 2") as caught:
        read_tokens(None, file)
    assert line not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"", b"# none\n", b"\xff"])
def test_a_token_file_without_tokens_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """A server that was told to ask for tokens never starts without."""
    file = tmp_path / "tokens"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match="token file"):
        read_tokens(None, file)


def test_a_reply_is_json_in_one_piece(served: Served) -> None:
    """No stream is held open."""
    response = served.post(Access())
    assert response.headers["content-type"] == "application/json"
    assert json.loads(response.content)["id"] == 3
    assert "mcp-session-id" not in response.headers

"""Examples that run.

A refund mailer over a loopback mail server, and an HTTP handler with an Idempotency-Key header.
"""

import http.client
import json
import smtplib
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from audit import Audit, Call, Found, NotFound, Tool


class MailServer(socketserver.ThreadingTCPServer):
    """Speaks just enough SMTP to take a message.

    Drops the connection after taking the first one, as a lost reply does.
    """

    allow_reuse_address = True
    daemon_threads = True
    lose_replies = 1
    mails: list[str]


class MailHandler(socketserver.StreamRequestHandler):
    """One SMTP session."""

    server: MailServer

    def handle(self) -> None:
        """Greet, accept everything, keep the message."""
        self.wfile.write(b"220 loopback\r\n")
        while (line := self.rfile.readline()) and not line.upper().startswith(b"QUIT"):
            if not line.upper().startswith(b"DATA"):
                self.wfile.write(b"250 ok\r\n")
                continue
            self.wfile.write(b"354 go on\r\n")
            body = b""
            while (part := self.rfile.readline()) not in (b".\r\n", b""):
                body += part
            self.server.mails.append(body.decode("utf-8"))
            if len(self.server.mails) <= self.server.lose_replies:
                return
            self.wfile.write(b"250 queued\r\n")


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    """Serve in a thread; the port."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.socket.getsockname()[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def post() -> Iterator[MailServer]:
    """A mail server that loses the reply to the first message."""
    server = MailServer(("127.0.0.1", 0), MailHandler)
    server.mails = []
    with serving(server):
        yield server


def mailer(server: MailServer, *, with_lookup: bool) -> Tool:
    """A refund mailer: recipient, order and purpose say which mail it is; subject and text are wording."""

    def send(call: Call) -> object:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = (
            "desk@shop.test",
            str(call.args["to"]),
            str(call.args["subject"]),
        )
        message["X-Action"] = call.downstream_key
        message.set_content(str(call.args["text"]))
        with smtplib.SMTP("127.0.0.1", server.socket.getsockname()[1], timeout=10) as client:
            client.send_message(message)
        return "sent"

    def find(call: Call) -> Found | NotFound:
        return Found("sent") if any(call.downstream_key in mail for mail in server.mails) else NotFound()

    return Tool(
        name="mail",
        tool_class="dangerous",
        run=send,
        identity=("to", "order", "purpose"),
        intent="purpose",
        once_per="scope",
        lookup=find if with_lookup else None,
    )


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("with_lookup", [False, True])
def test_a_refund_mail_whose_reply_is_lost_is_sent_once(folder: Path, post: MailServer, with_lookup: bool) -> None:
    """The model rewords the subject and sends again at its next step: one mail.

    With a sent list also a clear answer.
    """
    audit = Audit(folder, durable=False)
    audit.ledger.open_run("req-71", scope="shop", agent="desk", resume_within=timedelta(days=7))
    tool = mailer(post, with_lookup=with_lookup)
    mail = {"to": audit.opaque("jane@example.org"), "order": "R-1", "purpose": "refund", "text": "It is on its way."}
    first = audit.ledger.call(tool, {**mail, "subject": "Your refund"}, workflow="req-71", step="4.0")
    first.ack("ok" if first.kind == "done" else "error")
    second = audit.ledger.call(tool, {**mail, "subject": "Refund for order R-1"}, workflow="req-71", step="5.0")
    assert len(post.mails) == 1
    assert [first.kind, second.kind] == (["done", "done"] if with_lookup else ["in_doubt", "in_doubt"])
    audit.close()


def charging(audit: Audit, charge: Callable[[Call], object]) -> type[BaseHTTPRequestHandler]:
    """An HTTP handler in front of a dangerous tool: the Idempotency-Key header is the step of the caller's run."""
    tool = Tool(name="charge", tool_class="dangerous", run=charge, identity=("order", "amount"))
    statuses = {"done": 200, "failed": 422, "conflict": 422, "running": 409, "in_doubt": 202, "needs_approval": 202}

    class Handler(BaseHTTPRequestHandler):
        """POST /charges."""

        def do_POST(self) -> None:
            """Charge once per key."""
            key = self.headers.get("Idempotency-Key")
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if key is None:
                self.answer(400, "Idempotency-Key is missing")
                return
            outcome = audit.ledger.call(tool, body, workflow="api", step=audit.opaque(key))
            self.answer(statuses.get(outcome.kind, 503), outcome.model_text)

        def answer(self, status: int, text: str) -> None:
            """One JSON body."""
            data = json.dumps({"message": text}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Keep the output clean."""

    return Handler


@pytest.mark.invariant("I8")
def test_an_http_handler_charges_once_per_idempotency_key(folder: Path) -> None:
    """The same key again is the first answer, with another amount it is refused, and without a key nothing happens."""
    audit = Audit(folder, durable=False)
    audit.ledger.open_run("api", scope="shop", agent="api", resume_within=timedelta(days=7))
    charged: list[object] = []

    def charge(call: Call) -> object:
        charged.append(call.args["amount"])
        return f"charge {len(charged)}"

    def post(port: int, key: str | None, amount: int) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        headers = {} if key is None else {"Idempotency-Key": key}
        connection.request("POST", "/charges", json.dumps({"order": "R-1", "amount": amount}), headers)
        response = connection.getresponse()
        found = response.status, json.loads(response.read())["message"]
        connection.close()
        return found

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), charging(audit, charge))) as port:
        assert post(port, "k 1", 500) == (200, "charge 1")
        assert post(port, "k 1", 500) == (200, "charge 1")
        assert post(port, "k 1", 900)[0] == 422
        assert post(port, None, 500)[0] == 400
    assert charged == [500]
    audit.close()

"""The real ``agent-tool`` as a child process, spoken to line by line."""

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_tool.contract import REQUEST_META, STEP_META
from tests.harness import IndexUnderTest

__all__ = ["PATIENCE_S", "StdioAgent", "stdio_agent"]

# Bounds every wait; a start takes three seconds on a quiet machine.
PATIENCE_S = 240
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class StdioAgent:
    """A client of one server over its pipes. ``lines`` are all that came out, so that none can hide."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._next = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._queue.put(line)
        self._queue.put(None)

    def send(self, line: str) -> None:
        """Write one raw line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def begin(self, method: str, params: dict[str, Any] | None = None, meta: dict[str, Any] | None = None) -> int:
        """Send a request of the stateless era; returns its id."""
        self._next += 1
        envelope = {**ENVELOPE, **(meta or {})}
        body = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": {**(params or {}), "_meta": envelope}}
        self.send(json.dumps(body))
        return self._next

    def reply(self) -> dict[str, Any]:
        """The next message of the server. Fails where none comes, and where it is no JSON."""
        line = self._queue.get(timeout=PATIENCE_S)
        assert line is not None, "the server has closed its stdout"
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(
        self, method: str, params: dict[str, Any] | None = None, meta: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request and return its reply."""
        number = self.begin(method, params, meta)
        message = self.reply()
        assert message["id"] == number
        return message

    def lookup(self, query: str, step: str | None = None, **more: Any) -> dict[str, Any]:
        """The result of one call."""
        meta = {} if step is None else {REQUEST_META: "req-1", STEP_META: step}
        reply = self.ask("tools/call", {"name": "lookup", "arguments": {"query": query, **more}}, meta)
        result: dict[str, Any] = reply["result"]
        return result

    def wait_for_noise(self, file: Path, text: str) -> None:
        """Wait until the process has said something on stderr."""
        end = time.monotonic() + PATIENCE_S
        while text not in file.read_text(encoding="utf-8"):
            assert time.monotonic() < end, f"{text!r} was never said"
            assert self.process.poll() is None, "the process has ended"
            threading.Event().wait(0.05)

    def close(self) -> None:
        """Let go of the pipes of a process that has ended."""
        self._reader.join(PATIENCE_S)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def leave(self) -> int:
        """Close its stdin; return its exit code. ``lines`` is complete then."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code


@contextlib.contextmanager
def stdio_agent(index: IndexUnderTest, *words: str, code: str | None = None) -> Iterator[StdioAgent]:
    """Start ``agent-tool`` over an index; ``code`` runs before its main, in its process."""
    program = f"{code or ''}\nfrom agent_tool.cli import main\nmain()"
    with (index.folder / "stderr.txt").open("w", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *words, "--index", str(index.home)],
            env=index.environment(PYTHONDONTWRITEBYTECODE="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
            cwd=index.folder,
        )
    agent = StdioAgent(process)
    try:
        yield agent
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        agent.close()

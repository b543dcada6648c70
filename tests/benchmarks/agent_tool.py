"""Speed of the agent tool: what one call's bookkeeping costs, alone and beside readers, and how soon stdio answers.

    python -m tests.benchmarks.agent_tool

Not tests: nothing is asserted. The searcher is a stand-in that answers at once, so what is measured is bookkeeping. The
start is that of the real program over an index that does not exist: the model is never loaded there.
"""

import json
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent_tool.admission import FloodMeter
from agent_tool.tool import LookupTool
from audit import Audit, CallKey, StepKey
from search.identity import chunk_id, document_id
from search.records import Citation, Completeness, Passage, SearchResult

__all__ = ["main"]

CALLS = 500
READERS = 8
STARTS = 5


class AtOnce:
    """A searcher that answers at once."""

    def __init__(self) -> None:
        text = "Carry-over is capped at five days."
        place = Citation(root="handbook", path="leave.md", document_id=document_id(b"leave"))
        passage = Passage(ref=1, chunk_id=chunk_id("", text), text=text, score=0.9, citation=place)
        self._result = SearchResult(
            query="leave", generation="000001", passages=(passage,), completeness=Completeness()
        )

    def search(self, query: str, *, limit: int | None, path: str | None, until: float) -> SearchResult:
        """See ``Searcher``."""
        return self._result

    def close(self) -> None:
        """See ``Searcher``."""


def main() -> dict[str, object]:
    """Measure, print one JSON object, return it. Times in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        result: dict[str, object] = {
            "benchmark": "agent_tool",
            "machine": platform.machine(),
            "python": platform.python_version(),
            "begin_and_end_ms": bookkeeping(Path(folder) / "one"),
            f"begin_and_end_of_{READERS}_threads_ms": concurrent_bookkeeping(Path(folder) / "many"),
            "whole_call_without_search_ms": whole_call(Path(folder) / "call"),
            "stdio_first_reply_ms": first_reply(Path(folder)),
        }
    print(json.dumps(result))
    return result


def bookkeeping(folder: Path) -> dict[str, float]:
    """Begin and end of one call, two commits at ``synchronous=NORMAL``, one caller."""
    audit = Audit(folder, durable=False, busy_timeout_s=2)
    times = [timed(lambda n=n: begin_and_end(audit, str(n))) for n in range(CALLS)]  # type: ignore[misc]  # default of a lambda
    audit.close()
    return spread(times)


def concurrent_bookkeeping(folder: Path) -> dict[str, float]:
    """The same by threads that begin together; ``per_call`` is the whole time over the calls."""
    audit = Audit(folder, durable=False, busy_timeout_s=30)
    start = threading.Barrier(READERS)

    def reader(name: int) -> list[float]:
        start.wait()
        return [timed(lambda n=n: begin_and_end(audit, f"{name}.{n}")) for n in range(CALLS // READERS)]  # type: ignore[misc]  # as above

    began = time.perf_counter()
    with ThreadPoolExecutor(READERS) as threads:
        times = [one for many in threads.map(reader, range(READERS)) for one in many]
    whole_ms = (time.perf_counter() - began) * 1000
    audit.close()
    return {**spread(times), "per_call": round(whole_ms / len(times), 3)}


def whole_call(folder: Path) -> dict[str, float]:
    """One call through the whole tool, but for the search: rules, bookkeeping, schema check, rendering."""
    tool = LookupTool(AtOnce(), Audit(folder, durable=False), meter=FloodMeter(per_second=1e9, burst=10**6))

    def call(n: int) -> None:
        tool.lookup({"query": "leave"}, key=CallKey(StepKey("bench", str(n)), "meta"), principal="local")

    times = [timed(lambda n=n: call(n)) for n in range(CALLS)]  # type: ignore[misc]  # as above
    tool.close()
    return spread(times)


def first_reply(folder: Path) -> dict[str, float]:
    """From the start of the process to the list of tools."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}

    def start() -> None:
        with subprocess.Popen(
            [sys.executable, "-m", "agent_tool", "--index", str(folder / "none")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["result"]["tools"]
            times.append((time.perf_counter() - began) * 1000)
            process.stdin.close()

    times: list[float] = []
    for _ in range(STARTS):
        began = time.perf_counter()
        start()
    return spread(times)


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def begin_and_end(audit: Audit, step: str) -> None:
    """The two transactions around a call."""
    begun = audit.begin(
        StepKey("bench", step), kind="lookup", scope="local", subject="local", meter="lookup", args={"query": step}
    )
    audit.end(begun, outcome="ok", body={"generation": "000001", "chunk_ids": [step]})


def timed(call: Callable[[], None]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def spread(times: list[float]) -> dict[str, float]:
    """Median and spread."""
    parts = statistics.quantiles(times, n=20)
    return {"p50": round(statistics.median(times), 3), "p95": round(parts[-1], 3), "n": len(times)}


if __name__ == "__main__":
    main()

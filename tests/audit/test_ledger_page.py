"""docs/ledger.md is true to the code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from audit.cli import audit as audit_group

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.invariant("I8")
def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    """A fresh interpreter in an empty folder; about thirty lines."""
    (code,) = blocks("python")
    assert len(code.splitlines()) <= 35
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == blocks("text")[0]


def test_every_module_and_file_that_the_page_names_is_there() -> None:
    """Seven rules, each with its home."""
    named = re.findall(r"`((?:audit|tests)/[\w/]+\.py)`", PAGE)
    assert len(set(named)) > 10
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE) == list("1234567")


def test_every_command_that_the_page_names_is_there() -> None:
    """`ingest audit ...`."""
    named = set(re.findall(r"`ingest audit (\w+)", PAGE))
    assert {"attention", "drill", "resolve", "sweep"} <= named
    assert named <= set(audit_group.commands)


def test_the_drill_prints_what_the_page_says(tmp_path: Path) -> None:
    """Its table, line by line."""

    class Context:
        audit_folder = tmp_path

    result = CliRunner().invoke(audit_group, ["drill", "tests.audit.example_drill:mailer"], obj=Context())
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == blocks("text")[-1].splitlines()


def test_every_public_name_that_the_page_uses_is_public() -> None:
    """What stands before a bracket or alone in code is importable from `audit` or its fault kit."""
    audit = __import__("audit")
    faults = __import__("audit.faults", fromlist=["faults"])
    used = {
        "Gate", "embedding_similarity", "tfidf_similarity", "seal_file", "OutcomeNotRecorded", "LostLease",
        "crash_after_success", "lost_reply", "fake_error", "duplicate_delivery", "slow_reply", "run_child", "Target",
        "counting", "FakeClock",
    }  # fmt: skip
    assert all(name in PAGE for name in used)
    assert {name for name in used if name not in audit.__all__ and name not in faults.__all__} == set()

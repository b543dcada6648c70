"""What README and help say about the commands is true, and nothing is left out: compared both ways."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from ingest.cli.commands import COMMANDS, ingest
from search.errors import ExitCode
from search.settings import OTHER_NAMES, PREFIX, Settings

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(path for path in (REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")) if path.is_file())


@cache
def readme() -> str:
    """The text of the README."""
    return (REPOSITORY / "README.md").read_text(encoding="utf-8")


@cache
def command(name: str) -> click.Command:
    """A command, loaded as the command line loads it."""
    found = ingest.get_command(click.Context(ingest), name)
    assert found is not None, name
    return found


def options_of(found: click.Command) -> Iterator[str]:
    """All option names of a command and of the commands below it."""
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            yield from parameter.opts
    for below in found.commands.values() if isinstance(found, click.Group) else ():
        yield from options_of(below)


@cache
def all_options() -> frozenset[str]:
    """Every option of every command, and the two that the program itself has."""
    return frozenset({"--help", "--version"}.union(*(options_of(command(name)) for name in COMMANDS)))


def help_of(found: click.Command, name: str) -> str:
    """What ``--help`` prints, as wide as it likes."""
    return found.get_help(click.Context(found, info_name=name, terminal_width=200))


def test_the_table_of_exit_codes_is_the_enum() -> None:
    """In the README row by row, in the help of the program line by line: numbers and words, no more and no less."""
    rows = dict(re.findall(r"^\| (\d+) \| (.+?) \|$", readme(), re.MULTILINE))
    assert rows == {str(int(code)): code.description for code in ExitCode}
    listed = dict(re.findall(r"^ +(\d+)  (.+)$", help_of(ingest, "ingest").split("Exit codes:")[1], re.MULTILINE))
    assert listed == rows


def test_the_table_of_commands_is_the_list_of_commands() -> None:
    """Each command has its row in the README, each row its command, and the help lists the same."""
    rows = set(re.findall(r"^\| `ingest \[?([a-z]+)", readme(), re.MULTILINE))
    assert rows == set(COMMANDS)
    listed = help_of(ingest, "ingest").split("Commands:")[1].split("Exit codes:")[0]
    assert set(re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)) == set(COMMANDS)


def test_the_commands_of_audit_are_all_named() -> None:
    """The README's row lists those that the group has."""
    (row,) = re.findall(r"^\| `ingest audit \.\.\.` \|(.+)\|$", readme(), re.MULTILINE)
    group = command("audit")
    assert isinstance(group, click.Group)
    assert set(re.findall(r"`([a-z]+)`", row)) == set(group.commands)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_option_that_a_page_names_is_there(path: Path) -> None:
    """An option of ``ingest`` that was renamed must not live on in a page."""
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if "ingest" in line and "agent-tool" not in line
    ]
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(lines)))
    assert named <= all_options()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_variable_that_a_page_names_is_there(path: Path) -> None:
    """A ``GROUNDED_`` name in a page is a setting, or one of the few other names."""
    known = {field.upper() for field in Settings.__dataclass_fields__} | OTHER_NAMES
    named = set(re.findall(rf"{PREFIX}([A-Z_]+[A-Z])", path.read_text(encoding="utf-8")))
    assert named <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_a_page_names_is_there(path: Path) -> None:
    """A path of this repository in back quotes leads somewhere."""
    named = re.findall(
        r"`((?:ingest|search|agent_tool|audit|data|tests|docs)/[\w./-]+)`", path.read_text(encoding="utf-8")
    )
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_every_option_explains_itself(name: str) -> None:
    """A sentence for the command, a sentence for each option; the common ones mean the same everywhere."""
    found = command(name)
    assert found.help
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name}"
    if name != "audit":
        assert {"--index", "--config", "--json", "--quiet", "--verbose"} <= set(options_of(found))


def test_what_run_takes_is_what_was_asked_for() -> None:
    """The options of the main command are a contract with scripts: none may go."""
    wanted = (
        "--index --dry-run --json --quiet --include --exclude --hidden --follow-symlinks --rehash --workers --model "
        "--rebuild --allow-removals --wait"
    )
    assert set(wanted.split()) <= set(options_of(command("run")))
    assert {"--limit", "--path", "--json"} <= set(options_of(command("search")))
    assert "--full" in set(options_of(command("verify")))


def test_the_readme_names_the_make_targets_that_there_are() -> None:
    """Both ways for those that a newcomer needs: setup, demo and test."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"^ *make ([a-z]+)", readme(), re.MULTILINE)) <= targets
    assert {"demo", "test"} <= set(re.findall(r"make ([a-z]+)", readme()))
    assert (
        set(re.findall(r"^make ([a-z]+)", (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE))
        <= targets
    )

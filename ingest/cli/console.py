"""Output for people: tables on stdout, notes and progress on stderr. Colours only on a terminal."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # rich costs 0.1 s, and scripts that take JSON need none of it
    from rich.table import Table

__all__ = ["note", "print_json", "table", "write_table"]


# A pipe has as many columns as a line needs; rich wants a number.
PIPE_COLUMNS = 1000


def print_json(value: Mapping[str, object]) -> None:
    """Print one JSON object on one line to stdout."""
    click.echo(json.dumps(value, ensure_ascii=False))


def table(*columns: str, rows: Iterable[Sequence[object]], title: str | None = None) -> "Table":
    """Return a table; what cells hold is text, never markup."""
    from rich.table import Table
    from rich.text import Text

    named = any(columns)
    made = Table(*columns, title=title, box=None, pad_edge=False, show_header=named, header_style="bold")
    for row in rows:
        made.add_row(*(Text(str(cell)) for cell in row))
    return made


def write_table(made: "Table") -> None:
    """Print a table to stdout: as wide as the terminal, as wide as it likes and without padding when piped."""
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(made)
        return
    console = Console(highlight=False, width=PIPE_COLUMNS)
    with console.capture() as written:
        console.print(made)
    for line in written.get().rstrip("\n").split("\n"):
        click.echo(line.rstrip())


def note(text: str) -> None:
    """Print a note to stderr."""
    click.echo(text, err=True)

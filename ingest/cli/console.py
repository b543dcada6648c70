"""Output for people: tables on stdout, notes and progress on stderr. Colours only on a terminal."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence

import click

__all__ = ["note", "print_json", "write_table"]

# Between the columns of a table.
GAP = "  "


def print_json(value: Mapping[str, object]) -> None:
    """Print one JSON object on one line to stdout."""
    click.echo(json.dumps(value, ensure_ascii=False))


def write_table(*columns: str, rows: Iterable[Sequence[object]]) -> None:
    """Print a table to stdout: fitted to a terminal, and in a pipe as wide as it is, without padding at line ends.

    What cells hold is text, never markup. Without any named column no heads are printed.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    heads = [list(columns)] if any(columns) else []
    if sys.stdout.isatty():
        _fit_to_terminal(heads, cells)
        return
    lines = heads + cells
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo(GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _fit_to_terminal(heads: list[list[str]], cells: list[list[str]]) -> None:
    """Print a table that folds long cells; only here rich is loaded, which costs 0.1 s."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(*(heads[0] if heads else ()), box=None, pad_edge=False, show_header=bool(heads), header_style="bold")
    for row in cells:
        made.add_row(*map(Text, row))
    Console(file=sys.stdout, highlight=False).print(made)


def note(text: str) -> None:
    """Print a note to stderr."""
    click.echo(text, err=True)

"""``ingest audit``: the commands of the audit package, with the options by which all of ours find the index."""

from pathlib import Path

import click

from audit.cli import audit as commands
from search.generation import IndexLayout
from search.settings import find_home

__all__ = ["audit"]


class AuditFolder:
    """The context object that the audit commands ask for their folder."""

    def __init__(self, audit_folder: Path) -> None:
        self.audit_folder = audit_folder


@click.group(commands=commands.commands, help=commands.help, params=list(commands.params))
@click.option("--index", metavar="DIR", help="The .grounded folder; else $GROUNDED_INDEX, else the nearest.")
@click.pass_context
def audit(context: click.Context, /, index: str | None, **options: object) -> None:
    """Find the audit folder of the index, then go on as the audit package does."""
    context.obj = AuditFolder(IndexLayout(find_home(index)[0]).audit)
    if commands.callback is not None:
        commands.callback(**options)

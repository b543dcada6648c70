"""The commands by name. Each module is imported when its command is called, so that ``ingest --help`` stays light."""

import importlib
from types import MappingProxyType

import click

from search.errors import ExitCode
from search.version import VERSION

__all__ = ["COMMANDS", "ingest"]

# name -> module of this package, attribute, one line for --help
COMMANDS = MappingProxyType(
    {
        "run": (".run", "run", "Bring the index in line with folders (the default command)."),
        "search": (".search", "search", "Look something up: passages with citations."),
        "status": (".state", "status", "Show the index, its sources and all settings."),
        "verify": (".state", "verify", "Check what the index claims against what is there."),
        "repair": (".state", "repair", "Rebuild the generation from the catalog; embeds nothing."),
        "export": (".state", "export", "Write the state as sorted JSON lines."),
        "runs": (".state", "runs", "List the runs of this index."),
        "audit": (".audit", "audit", "Read, prove and export the audit events and usage counts."),
    }
)

EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {int(code):>3}  {code.description}" for code in ExitCode)


class Commands(click.Group):
    """Loads commands when they are needed; what names no command is taken as the arguments of ``run``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # as above
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module, __package__), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # as above
        """List the commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``run`` in front of arguments that begin with a folder or an option of ``run``."""
        if args and args[0] not in COMMANDS and args[0] not in {"--help", "--version"}:
            args = ["run", *args]
        elif args and args[0] == "audit":
            args = _hoist(args)
        return super().parse_args(ctx, args)


def _hoist(args: list[str]) -> list[str]:
    """Move ``--index`` of an audit command in front of its name, where its group takes it."""
    front, rest, waiting = [args[0]], [], False
    for word in args[1:]:
        if waiting or word.startswith("--index=") or word == "--index":
            front.append(word)
            waiting = not waiting and word == "--index"
        else:
            rest.append(word)
    return front + rest


@click.group(cls=Commands, no_args_is_help=True, epilog=EXIT_CODES)
@click.version_option(VERSION, prog_name="ingest")
def ingest() -> None:
    """Ingest folders of documents, any number of times, with the effect of once.

    `ingest ./docs` brings the index up to date; `ingest search "..."` answers from it. A folder that is called like a
    command is written with its path: `ingest ./search`.
    """

"""``agent-tool``: options, the order of a start, and the boundary where errors become exit codes.

Light: ``mcp`` is imported when the options are known, and the index is loaded by a thread when the client has its first
reply. Logs go to stderr; stdout belongs to the protocol.
"""

import logging
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from audit import Audit, AuditError, Limit
from search import settings as settings_module
from search.errors import ExitCode, GroundedError
from search.generation import IndexLayout
from search.version import VERSION

from .contract import NAME, Budgets

if TYPE_CHECKING:
    from .reading import Index
    from .tool import LookupTool

__all__ = ["agent_tool", "main"]

logger = logging.getLogger(__name__)

# Of one principal over HTTP; a person's agent stays far below it, a loop does not.
HOURLY_LIMIT = 600
PORT = 8946


class _StdioFirst(click.Group):
    """A group whose first command may be left out: ``agent-tool --index DIR`` is ``agent-tool stdio --index DIR``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``stdio`` before options that are not the group's own."""
        if not args or (args[0].startswith("-") and args[0] not in {"--help", "--version"}):
            args = ["stdio", *args]
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True)
class _Bound:
    """The tool over one index, and what a server needs besides."""

    tool: "LookupTool"
    index: "Index"
    audit: Audit


def _common(command: Any) -> Any:  # a decorator over click's own untyped ones
    for option in (
        click.option("--verbose", is_flag=True, help="Log what happens to stderr."),
        click.option("--strict", is_flag=True, help="Deny this process every other write, by the kernel (Linux)."),
        click.option("--config", metavar="FILE", help="Config file; default: config.toml in the .grounded folder."),
        click.option("--index", metavar="DIR", help="The .grounded folder; else $GROUNDED_INDEX, else the nearest."),
    ):
        command = option(command)
    return command


@click.group(cls=_StdioFirst)
@click.version_option(VERSION, prog_name="agent-tool")
def agent_tool() -> None:
    """Give agents one read-only tool, `lookup`, over an index, by MCP. Without a command: stdio."""


@agent_tool.command()
@_common
@click.option("--require-key", is_flag=True, help="Refuse calls without request and step.")
def stdio(index: str | None, config: str | None, *, strict: bool, verbose: bool, require_key: bool) -> None:
    """Serve one client over stdin and stdout."""
    bound = _bind(index, config, strict=strict, verbose=verbose, limits=())
    from .server import make_server
    from .stdio_server import serve_stdio

    server = make_server(bound.tool, warm_up=bound.index.start, principal_of=lambda _: "local", require_key=require_key)
    serve_stdio(server, bound.tool)


@agent_tool.command()
@_common
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--token-file", metavar="FILE", help="Lines of principal:sha256(token); besides $GROUNDED_TOKEN.")
@click.option("--allowed-host", multiple=True, metavar="HOST", help="A Host header to accept besides this machine's.")
@click.option("--allowed-origin", multiple=True, metavar="URL", help="An Origin header to accept likewise.")
@click.option("--hourly-limit", default=HOURLY_LIMIT, show_default=True, type=click.IntRange(0), help="Per principal.")
@click.option(
    "--require-key/--no-require-key", default=True, show_default=True, help="Refuse calls without request and step."
)
def http(
    index: str | None,
    config: str | None,
    *,
    strict: bool,
    verbose: bool,
    host: str,
    port: int,
    token_file: str | None,
    allowed_host: tuple[str, ...],
    allowed_origin: tuple[str, ...],
    hourly_limit: int,
    require_key: bool,
) -> None:
    """Serve many clients over streamable HTTP at /mcp."""
    limits = (Limit(NAME, hourly_limit, timedelta(hours=1)),)
    bound = _bind(index, config, strict=strict, verbose=verbose, limits=limits)
    from .http_server import Access, bind, http_app, principal_in, serve_http
    from .server import make_server
    from .tokens import read_tokens

    tokens = read_tokens(settings_module.secret("TOKEN"), Path(token_file) if token_file else None)
    access = Access(verifier=tokens, hosts=allowed_host, origins=allowed_origin)
    listening = bind(host, port, access)
    server = make_server(
        bound.tool,
        warm_up=bound.index.start,
        principal_of=principal_in(bound.audit.opaque),
        require_key=require_key,
    )
    taken = listening.getsockname()[1]
    app = http_app(server, access, port=taken, ready=bound.index.ready)
    bound.index.start()
    click.echo(f"agent-tool: listening on http://{f'[{host}]' if ':' in host else host}:{taken}/mcp", err=True)
    try:
        serve_http(app, listening)
    finally:
        bound.tool.close()


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command line and exit with its code."""
    signal.signal(signal.SIGTERM, _leave)
    sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(words: list[str]) -> int:
    try:
        code = agent_tool.main(words, prog_name="agent-tool", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (GroundedError, AuditError) as error:
        click.echo(f"agent-tool: {error}", err=True)
        return int(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except Exception as error:
        logger.exception("command.failed")
        click.echo(f"agent-tool: an error that is ours ({type(error).__name__})", err=True)
        return ExitCode.FAILED
    return code if isinstance(code, int) else ExitCode.DONE


def _bind(index: str | None, config: str | None, *, strict: bool, verbose: bool, limits: Sequence[Limit]) -> _Bound:
    """Return the tool of an index. In strict mode this process gives up its rights first, before any thread exists."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(levelname)s %(name)s %(message)s",
        force=True,
    )
    settings = settings_module.load({}, index=index, config=config)
    folder = IndexLayout(settings.home).audit
    cache, reader = settings_module.cache_folder(), None
    if strict:
        from .strict import confine

        confined = confine(folder)
        cache, reader = confined.cache, confined.reader
    audit = Audit(folder, durable=False, busy_timeout_s=2, limits=limits)
    from .reading import open_index
    from .tool import LookupTool

    opened = open_index(settings, cache, reader)
    return _Bound(LookupTool(opened, audit, budgets=Budgets.of(settings)), opened, audit)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """Before a server runs there is nothing to finish."""
    sys.exit(ExitCode.DONE)

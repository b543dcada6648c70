"""Where every command ends: results become exit codes, errors one message on stderr. Imports no command."""

import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import click

from audit.errors import AuditError
from search.errors import ExitCode, GroundedError, Interrupted, UsageError

from .commands import ingest

__all__ = ["main"]

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(_run(words))


def _run(words: list[str]) -> int:
    as_json = "--json" in words
    try:
        code = ingest.main(words, prog_name="ingest", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        if as_json:
            return _fail(UsageError(error.format_message()), as_json=True)
        error.show()
        return ExitCode.USAGE
    except (GroundedError, AuditError) as error:
        return _fail(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        message = "interrupted; what was done is kept. Run the same command again to go on"
        return _fail(Interrupted(message), as_json=as_json)
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except Exception as error:
        log.exception("command.failed")
        return _fail(GroundedError(f"ingest: an error that is ours ({type(error).__name__}: {error})"), as_json=as_json)
    return code if isinstance(code, int) else ExitCode.DONE


def _fail(error: GroundedError | AuditError, *, as_json: bool) -> int:
    code = int(error.exit_code)
    if as_json:
        kind = error.kind if isinstance(error, GroundedError) else type(error).__name__
        retryable = isinstance(error, GroundedError) and error.retryable
        failure = {"message_type": "error", "code": code, "kind": kind, "message": str(error), "retryable": retryable}
        click.echo(json.dumps(failure, ensure_ascii=False), err=True)
    else:
        click.echo(f"ingest: {error}", err=True)
    return code


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Treat SIGTERM as Ctrl-C."""
    raise KeyboardInterrupt

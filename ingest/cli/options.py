"""Options that mean the same in every command, and the settings that come out of them."""

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from search import settings as settings_module
from search.settings import Settings

__all__ = ["Common", "common_options"]

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Common:
    """What every command gets: where the index is, and how to speak."""

    index: str | None
    config: str | None
    json: bool
    quiet: bool

    def settings(self, flags: Mapping[str, object] | None = None) -> Settings:
        """Resolve the settings with the flags of this command. Raises ``UsageError``."""
        return settings_module.load(flags or {}, index=self.index, config=self.config)


def common_options(command: F) -> Callable[..., object]:
    """Add ``--index --config --json --quiet --verbose``; the command gets them as one ``common``."""

    @click.option("--index", metavar="DIR", help="The .grounded folder; else $GROUNDED_INDEX, else the nearest.")
    @click.option("--config", metavar="FILE", help="Config file; default: config.toml in the .grounded folder.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout, errors as JSON to stderr.")
    @click.option("--quiet", is_flag=True, help="No progress, no notes.")
    @click.option("--verbose", is_flag=True, help="Log what happens to stderr.")
    @wraps(command)
    def wrapped(
        *args: Any, index: str | None, config: str | None, as_json: bool, quiet: bool, verbose: bool, **kwargs: Any
    ) -> object:
        _configure_logging(verbose=verbose)
        return command(*args, common=Common(index, config, as_json, quiet), **kwargs)

    return wrapped


def _configure_logging(*, verbose: bool) -> None:
    """Send log lines to stderr: all of ours with ``--verbose``, else warnings."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(levelname)s %(name)s %(message)s",
        force=True,
    )

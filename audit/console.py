"""What the commands of `audit` share: the folder they were given, keys from a file, tables and JSON lines.

Owns: opening the audit file of one command line, never creating it. Refuses to decide anything.
"""

import json
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console
from rich.table import Table

from .audit import Audit
from .errors import AuditError
from .keys import ChainKey, JsonValue

__all__ = ["AuditContext", "Opened", "json_option", "line", "print_table", "table"]


class AuditContext(Protocol):
    """What the group needs of its context object."""

    @property
    def audit_folder(self) -> Path:
        """The folder that holds `audit.db`; it need not exist."""


class Opened:
    """The folder and keys of one command line, opened at first need and never created."""

    def __init__(self, folder: Path, keys: Path | None) -> None:
        self._folder = folder
        self._keys = keys

    def audit(self, retention: timedelta = timedelta(days=30)) -> Audit:
        """Open the audit file, closed with the command. Raises AuditMissing; never makes one."""
        id_key, chain_key = _read_keys(self._keys) if self._keys is not None else (None, None)
        opened = Audit(self._folder, create=False, id_key=id_key, chain_key=chain_key, retention=retention)
        click.get_current_context().call_on_close(opened.close)
        return opened


def _read_keys(path: Path) -> tuple[bytes | None, ChainKey | None]:
    """Keys that live outside the file: {"id_key": hex, "chain": [{"key_id": name, "secret".

    Hex}, ...]}, the newest chain key first.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        chain = [ChainKey(str(item["key_id"]), bytes.fromhex(item["secret"])) for item in value.get("chain", [])]
        id_key = bytes.fromhex(value["id_key"]) if "id_key" in value else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise AuditError(
            f'keys {path}: not readable; give {{"id_key": hex, "chain": [{{"key_id", "secret"}}]}}'
        ) from error
    return id_key, ChainKey(chain[0].key_id, chain[0].secret, tuple(chain[1:])) if chain else None


json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table for people; long cells fold."""
    made = Table(box=None, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def print_table(shown: Table, footer: str = "") -> None:
    """Print a table if it has rows, then its footer."""
    if shown.row_count:
        Console(soft_wrap=False).print(shown)
    if footer:
        click.echo(footer)


def line(value: JsonValue) -> None:
    """Print one JSON line."""
    click.echo(json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=str))

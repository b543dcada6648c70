"""`ingest audit ...`: reading, proving, exporting and pruning the audit file.

Owns: commands, their tables for people and their JSON for scripts. Refuses to create an audit file, and to decide:
every command is one call of the public API. The group needs a context object with `audit_folder`; errors rise to the
command boundary, which knows exit codes.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Protocol, cast, get_args

import click
from rich.console import Console
from rich.table import Table

from .audit import Audit
from .errors import AuditError
from .events import Event, Seal
from .export import ExportFormat, read_seals, seal_line, timestamp
from .keys import ChainKey, JsonValue, StepKey
from .reports import UsageBy

__all__ = ["AuditContext", "audit"]

# What the whole program uses for "verify found problems".
EXIT_PROBLEMS = 4


class AuditContext(Protocol):
    """What the group needs of its context object."""

    @property
    def audit_folder(self) -> Path:
        """The folder that holds `audit.db`; it need not exist."""


class _Opened:
    """The folder and keys of one command line, opened at first need and never created."""

    def __init__(self, folder: Path, keys: Path | None) -> None:
        self._folder = folder
        self._keys = keys

    def audit(self, retention: timedelta = timedelta(days=30)) -> Audit:
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


@click.group()
@click.option(
    "--keys", type=click.Path(dir_okay=False, path_type=Path), help="File of keys that live outside the audit file."
)
@click.pass_context
def audit(context: click.Context, keys: Path | None) -> None:
    """What happened, once: events, usage, proof, export."""
    folder = cast(
        "AuditContext", context.obj
    ).audit_folder  # click types its object as Any; the Protocol is the contract
    context.obj = _Opened(folder, keys)


@audit.command()
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many of the newest events."
)
@json_option
@click.pass_obj
def tail(opened: _Opened, limit: int, as_json: bool) -> None:
    """Show the newest events."""
    events = opened.audit().tail(limit=limit)
    if as_json:
        for event in events:
            _line(event_json(event))
        return
    table = _table("at", "principal", "key", "kind", "part")
    for event in events:
        table.add_row(timestamp(event.at_ms), event.principal, event.key, event.kind, event.part)
    _print(table, "no events yet" if not events else "")


@audit.command()
@click.argument("key")
@json_option
@click.pass_obj
def show(opened: _Opened, key: str, as_json: bool) -> None:
    """Show everything about KEY, a request:step."""
    view = opened.audit().show(StepKey.parse(key))
    if as_json:
        _line(
            {
                "message_type": "audit_key",
                "key": view.key,
                "events": [event_json(event) for event in view.events],
                "attempts": [asdict(attempt) for attempt in view.attempts],
                "usage": [asdict(row) for row in view.usage],
            }
        )
        return
    if not (view.events or view.attempts or view.usage):
        click.echo(f"{key}: nothing is known of it")
        return
    events = _table("at", "principal", "kind", "part", "body", title="events")
    for event in view.events:
        events.add_row(timestamp(event.at_ms), event.principal, event.kind, event.part, event.body)
    attempts = _table("principal", "kind", "attempt", "started", "ended", "outcome", title="attempts")
    for attempt in view.attempts:
        ended = "" if attempt.ended_ms is None else timestamp(attempt.ended_ms)
        attempts.add_row(
            attempt.scope, attempt.kind, str(attempt.number), timestamp(attempt.started_ms), ended, attempt.outcome
        )
    usage_table = _table("subject", "meter", "units", "state", "counted", "attempts", title="usage")
    for row in view.usage:
        usage_table.add_row(
            row.subject, row.meter, str(row.units), row.state, timestamp(row.counted_ms), str(row.attempts)
        )
    for table in (events, attempts, usage_table):
        if table.row_count:
            _print(table)


@audit.command()
@click.option("--by", type=click.Choice(get_args(UsageBy)), default="principal", show_default=True)
@json_option
@click.pass_obj
def usage(opened: _Opened, by: UsageBy, as_json: bool) -> None:
    """Sum the units that were counted."""
    report = opened.audit().usage_report(by=by)
    if as_json:
        rows: list[JsonValue] = []
        for row in report.rows:
            where: dict[str, JsonValue] = (
                {"day": row.name} if by == "day" else {"principal": row.name, "scope": row.scope}
            )
            rows.append({**where, "meter": row.meter, "units": row.units, "keys": row.keys, "attempts": row.attempts})
        _line({"message_type": "usage_report", "by": by, "units_total": report.units_total, "rows": rows})
        return
    table = _table(by, "meter", "units", "calls", "attempts")
    for row in report.rows:
        table.add_row(row.name, row.meter, str(row.units), str(row.keys), str(row.attempts))
    _print(table, f"{report.units_total} units")


@audit.command()
@click.option("--scope", help="Only this scope.")
@click.option(
    "--heads", type=click.Path(dir_okay=False, path_type=Path), help="Seals exported earlier; they show a tail cut off."
)
@json_option
@click.pass_context
def verify(context: click.Context, scope: str | None, heads: Path | None, as_json: bool) -> None:
    """Check the chain; exit 4 when it is broken. Changes nothing."""
    opened = context.find_object(_Opened)
    if opened is None:
        raise AuditError("audit: no folder given; this is an error of the program")
    report = opened.audit().verify(scope=scope, heads=read_seals(heads) if heads is not None else ())
    if as_json:
        _line(
            {
                "message_type": "audit_verify",
                "ok": not report.problems,
                "events": report.events,
                "scopes": report.scopes,
                "problems": [asdict(problem) for problem in report.problems],
            }
        )
    else:
        for problem in report.problems:
            click.echo(f"{problem.scope} {problem.seq}: {problem.name}: {problem.detail}")
        click.echo(f"{report.events} events in {report.scopes} scopes, {len(report.problems)} problems")
    if report.problems:
        context.exit(EXIT_PROBLEMS)


@audit.command()
@click.option("--scope", help="Only this scope.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Append to this file instead of stdout."
)
@json_option
@click.pass_obj
def seal(opened: _Opened, scope: str | None, output: Path | None, as_json: bool) -> None:
    """Write the head of every scope somewhere safe, as one JSON line each."""

    def emit(seals: Sequence[Seal]) -> str:
        if output is None:
            for item in seals:
                click.echo(seal_line(item))
            sys.stdout.flush()
            return "stdout"
        with output.open("a", encoding="utf-8") as file:
            file.writelines(seal_line(item) + "\n" for item in seals)
            file.flush()
            os.fsync(file.fileno())
        return str(output)

    seals = opened.audit().seal(emit, scope=scope)
    if output is not None:
        if as_json:
            _line({"message_type": "audit_sealed", "seals": len(seals), "output": str(output)})
        else:
            click.echo(f"{len(seals)} seals added to {output}")


@audit.command()
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="New file, or one to continue."
)
@click.option("--format", "fmt", type=click.Choice(get_args(ExportFormat)), default="jsonl", show_default=True)
@click.option("--scope", help="Only this scope.")
@json_option
@click.pass_obj
def export(opened: _Opened, output: Path, fmt: ExportFormat, scope: str | None, as_json: bool) -> None:
    """Add every event to a file that it does not hold yet."""
    report = opened.audit().export(output, fmt, scope=scope)
    if as_json:
        _line(
            {
                "message_type": "audit_export",
                "events": report.events,
                "seals": len(report.seals),
                "output": str(output),
                "format": fmt,
            }
        )
    else:
        click.echo(f"{report.events} events added to {output}")


@audit.command()
@click.option(
    "--retention-days", type=click.IntRange(min=1), default=30, show_default=True, help="Keep what is younger."
)
@click.option("--dry-run", is_flag=True, help="Only count.")
@json_option
@click.pass_obj
def prune(opened: _Opened, retention_days: int, dry_run: bool, as_json: bool) -> None:
    """Remove old usage, and old events below an exported seal."""
    pruned = opened.audit(timedelta(days=retention_days)).prune(dry_run=dry_run)
    if as_json:
        _line({"message_type": "audit_prune", **asdict(pruned)})
    else:
        verb = "would be removed" if dry_run else "removed"
        click.echo(f"{pruned.events} events, {pruned.usage} usage rows, {pruned.attempts} attempts {verb}")


@audit.command()
@click.option("--accept", is_flag=True, help="Take the wall clock as it is now.")
@json_option
@click.pass_obj
def clock(opened: _Opened, accept: bool, as_json: bool) -> None:
    """Show the store's time and whether the wall clock jumped away from it."""
    store = opened.audit().store
    if accept:
        store.accept_clock()
    tick = store.tick()
    if as_json:
        _line({"message_type": "audit_clock", "at": timestamp(tick.now_ms), "jump_ms": tick.jump_ms})
    else:
        click.echo(
            f"{timestamp(tick.now_ms)}" + (f", wall clock off by {tick.jump_ms / 1000:.0f} s" if tick.jump_ms else "")
        )


def event_json(event: Event) -> dict[str, JsonValue]:
    """One event for scripts; fields may be added, never removed."""
    return {
        "message_type": "audit_event",
        "key": event.key,
        "kind": event.kind,
        "principal": event.principal,
        "at": timestamp(event.at_ms),
        "scope": event.scope,
        "seq": event.seq,
        "part": event.part,
        "body": event.fields,
    }


def _table(*columns: str, title: str | None = None) -> Table:
    table = Table(box=None, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _print(table: Table, footer: str = "") -> None:
    console = Console(soft_wrap=False)
    if table.row_count:
        console.print(table)
    if footer:
        click.echo(footer)


def _line(value: JsonValue) -> None:
    click.echo(json.dumps(value, ensure_ascii=True, separators=(",", ":")))

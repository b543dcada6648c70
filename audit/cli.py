"""`ingest audit ...`: reading, proving, exporting and pruning the audit file.

Owns: commands, their tables for people and their JSON for scripts. Refuses to create an audit file, and to decide:
every command is one call of the public API. The group needs a context object with `audit_folder`; errors rise to the
command boundary, which knows exit codes.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import cast, get_args

import click

from .action_cli import COMMANDS, action_json, history_json
from .console import AuditContext, Opened, json_option, line, print_table, table
from .errors import AuditError
from .events import Event, Seal
from .export import ExportFormat, read_seals, seal_file, seal_line, timestamp
from .keys import ActionKey, JsonValue, StepKey
from .reports import UsageBy

__all__ = ["AuditContext", "audit"]

# What the whole program uses for "verify found problems".
EXIT_PROBLEMS = 4


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
    context.obj = Opened(folder, keys)


@audit.command()
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many of the newest events."
)
@json_option
@click.pass_obj
def tail(opened: Opened, limit: int, as_json: bool) -> None:
    """Show the newest events."""
    events = opened.audit().tail(limit=limit)
    if as_json:
        for event in events:
            line(event_json(event))
        return
    shown = table("at", "principal", "key", "kind", "part")
    for event in events:
        shown.add_row(timestamp(event.at_ms), event.principal, event.key, event.kind, event.part)
    print_table(shown, "no events yet" if not events else "")


@audit.command()
@click.argument("key")
@json_option
@click.pass_obj
def show(opened: Opened, key: str, as_json: bool) -> None:
    """Show everything about KEY: a request:step, or the workflow:step:tool of an action."""
    if key.count(":") == 2:
        _show_action(opened, ActionKey.parse(key), as_json)
        return
    found = opened.audit()
    step = StepKey.parse(key)
    view = found.show(step)
    actions = found.ledger.views.of_step(step.request, step.step)
    if as_json:
        line(
            {
                "message_type": "audit_key",
                "key": view.key,
                "events": [event_json(event) for event in view.events],
                "attempts": [asdict(attempt) for attempt in view.attempts],
                "usage": [asdict(row) for row in view.usage],
                "actions": [action_json(action) for action in actions],
            }
        )
        return
    if not (view.events or view.attempts or view.usage or actions):
        click.echo(f"{key}: nothing is known of it")
        return
    events = table("at", "principal", "kind", "part", "body", title="events")
    for event in view.events:
        events.add_row(timestamp(event.at_ms), event.principal, event.kind, event.part, event.body)
    attempts = table("principal", "kind", "attempt", "started", "ended", "outcome", title="attempts")
    for attempt in view.attempts:
        ended = "" if attempt.ended_ms is None else timestamp(attempt.ended_ms)
        started = timestamp(attempt.started_ms)
        attempts.add_row(attempt.scope, attempt.kind, str(attempt.number), started, ended, attempt.outcome)
    counted = table("subject", "meter", "units", "state", "counted", "attempts", title="usage")
    for row in view.usage:
        counted.add_row(row.subject, row.meter, str(row.units), row.state, timestamp(row.counted_ms), str(row.attempts))
    done = table("action", "phase", "effect", "attempts", title="actions")
    for action in actions:
        done.add_row(action.key, action.phase, action.effect, str(action.attempts))
    for shown in (events, attempts, counted, done):
        if shown.row_count:
            print_table(shown)


def _show_action(opened: Opened, key: ActionKey, as_json: bool) -> None:
    views = opened.audit().ledger.views
    action = views.action(str(key))
    if action is None:
        if as_json:
            line({"message_type": "audit_action", "key": str(key), "known": False})
        else:
            click.echo(f"{key}: nothing is known of it")
        return
    events = views.history(action.key)
    if as_json:
        history: list[JsonValue] = [history_json(event) for event in events]
        line({**action_json(action), "message_type": "audit_action", "known": True, "history": history})
        return
    shown = table("at", "fence", "what", "actor", "body", title=f"{action.key}: {action.phase}, effect {action.effect}")
    for event in events:
        shown.add_row(timestamp(event.at_ms), str(event.fence), event.what, event.actor, event.body or "")
    print_table(shown)


@audit.command()
@click.option("--by", type=click.Choice(get_args(UsageBy)), default="principal", show_default=True)
@json_option
@click.pass_obj
def usage(opened: Opened, by: UsageBy, as_json: bool) -> None:
    """Sum the units that were counted."""
    report = opened.audit().usage_report(by=by)
    if as_json:
        rows: list[JsonValue] = []
        for row in report.rows:
            where: dict[str, JsonValue] = (
                {"day": row.name} if by == "day" else {"principal": row.name, "scope": row.scope}
            )
            rows.append({**where, "meter": row.meter, "units": row.units, "keys": row.keys, "attempts": row.attempts})
        line({"message_type": "usage_report", "by": by, "units_total": report.units_total, "rows": rows})
        return
    shown = table(by, "meter", "units", "calls", "attempts")
    for row in report.rows:
        shown.add_row(row.name, row.meter, str(row.units), str(row.keys), str(row.attempts))
    print_table(shown, f"{report.units_total} units")


@audit.command()
@click.option("--scope", help="Only this scope.")
@click.option(
    "--heads", type=click.Path(dir_okay=False, path_type=Path), help="Seals exported earlier; they show a tail cut off."
)
@json_option
@click.pass_context
def verify(context: click.Context, scope: str | None, heads: Path | None, as_json: bool) -> None:
    """Check the chain; exit 4 when it is broken. Changes nothing."""
    opened = context.find_object(Opened)
    if opened is None:
        raise AuditError("audit: no folder given; this is an error of the program")
    report = opened.audit().verify(scope=scope, heads=read_seals(heads) if heads is not None else ())
    if as_json:
        line(
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
def seal(opened: Opened, scope: str | None, output: Path | None, as_json: bool) -> None:
    """Write the head of every scope somewhere safe, as one JSON line each."""

    def show(seals: Sequence[Seal]) -> str:
        for item in seals:
            click.echo(seal_line(item))
        sys.stdout.flush()
        return "stdout"

    seals = opened.audit().seal(show if output is None else seal_file(output), scope=scope)
    if output is not None:
        if as_json:
            line({"message_type": "audit_sealed", "seals": len(seals), "output": str(output)})
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
def export(opened: Opened, output: Path, fmt: ExportFormat, scope: str | None, as_json: bool) -> None:
    """Add every event to a file that it does not hold yet."""
    report = opened.audit().export(output, fmt, scope=scope)
    if as_json:
        line(
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
def prune(opened: Opened, retention_days: int, dry_run: bool, as_json: bool) -> None:
    """Remove old usage and actions, and old events below an exported seal."""
    found = opened.audit(timedelta(days=retention_days))
    pruned, actions = found.prune(dry_run=dry_run), found.ledger.prune(dry_run=dry_run)
    if as_json:
        line({"message_type": "audit_prune", **asdict(actions), **asdict(pruned)})
        return
    verb = "would be removed" if dry_run else "removed"
    rows = f"{pruned.events} events, {pruned.usage} usage rows, {pruned.attempts} attempts"
    click.echo(f"{rows}, {actions.actions} actions, {actions.tombstones} tombstones {verb}")


@audit.command()
@click.option("--accept", is_flag=True, help="Take the wall clock as it is now.")
@json_option
@click.pass_obj
def clock(opened: Opened, accept: bool, as_json: bool) -> None:
    """Show the store's time and whether the wall clock jumped away from it."""
    store = opened.audit().store
    if accept:
        store.accept_clock()
    tick = store.tick()
    if as_json:
        line({"message_type": "audit_clock", "at": timestamp(tick.now_ms), "jump_ms": tick.jump_ms})
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


for command in COMMANDS:
    audit.add_command(command)

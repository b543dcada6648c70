"""`ingest audit actions, attention, resolve, approve, deny, sweep, drill`: the ledger's commands.

Owns: what a person sees of actions and decides on them. A decision names who decided (`--by`) and shows the same hash
or fence that the person was shown. Refuses to run tools: the only command that does, `drill`, is given them by name,
with a count of their effects.
"""

import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TypeVar, get_args

import click

from .console import Opened, json_option, line, print_table, table
from .drills import Drill, drill
from .errors import AuditError
from .export import timestamp
from .keys import ActionKey, JsonValue
from .ledger import ActionEvent, ActionView, Tool
from .ledger.ledger import Verdict
from .ledger.slots import PHASES

__all__ = ["COMMANDS", "action_json", "history_json"]

T = TypeVar("T")

by_option = click.option("--by", required=True, help="Who decides; kept in the record.")
note_option = click.option("--note", default="", help="Why; kept in the record.")


@click.command()
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many of the newest.")
@click.option("--phase", type=click.Choice(sorted(PHASES)), help="Only in this phase.")
@json_option
@click.pass_obj
def actions(opened: Opened, limit: int, phase: str | None, as_json: bool) -> None:
    """List the newest actions."""
    found = opened.audit().ledger.views.actions(limit=limit, phase=phase)
    if as_json:
        for view in found:
            line(action_json(view))
        return
    _show(found, "no actions yet" if not found else "")


@click.command()
@json_option
@click.pass_obj
def attention(opened: Opened, as_json: bool) -> None:
    """List what waits for a person: approvals, doubts, lapsed holders."""
    found = opened.audit().ledger.attention()
    if as_json:
        for view in found:
            line(action_json(view))
        return
    for view in found:
        click.echo(f"{view.key}: {view.why}")
        if view.args is not None:
            click.echo(f"  {json.dumps(view.args, default=str)}")
        if view.approval_id is not None:
            until = "" if view.expires_ms is None else f"  (until {timestamp(view.expires_ms)})"
            click.echo(f"  ingest audit approve {view.approval_id} --args-hash {view.args_hash} --by YOU{until}")
        if view.phase == "in_doubt":
            click.echo(f"  ingest audit resolve {view.key} --fence {view.fence} --happened|--did-not|--void --by YOU")
    if not found:
        click.echo("nothing waits for a person")


@click.command()
@click.argument("key")
@click.option("--happened", "verdict", flag_value="happened", help="It was done; give its --result.")
@click.option("--did-not", "verdict", flag_value="did_not_happen", help="It was not done; it may run again.")
@click.option("--void", "verdict", flag_value="void", help="Close it without knowing; needs a --note.")
@click.option("--fence", type=int, required=True, help="The fence that `attention` showed.")
@click.option("--result", help="JSON: what the tool would have returned.")
@by_option
@note_option
@json_option
@click.pass_obj
def resolve(
    opened: Opened, key: str, verdict: str | None, fence: int, result: str | None, by: str, note: str, as_json: bool
) -> None:
    """End the doubt about the action KEY, by a person's word."""
    word: Verdict | None = next((known for known in get_args(Verdict) if known == verdict), None)
    if word is None:
        raise click.UsageError("say --happened, --did-not or --void")
    try:
        value = None if result is None else json.loads(result)
    except ValueError as error:
        raise click.UsageError(f"--result: not JSON: {error}") from error
    outcome = opened.audit().ledger.resolve(
        ActionKey.parse(key), fence=fence, verdict=word, by=by, note=note, result=value
    )
    _say(as_json, {"message_type": "action_resolved", "key": key, "verdict": word, "outcome": outcome.kind})


@click.command()
@click.argument("approval_id")
@click.option("--args-hash", required=True, help="The hash of the arguments that were shown.")
@by_option
@note_option
@json_option
@click.pass_obj
def approve(opened: Opened, approval_id: str, args_hash: str, by: str, note: str, as_json: bool) -> None:
    """Say yes to exactly the arguments that were shown."""
    opened.audit().ledger.approve(approval_id, args_hash=args_hash, by=by, note=note)
    _say(as_json, {"message_type": "approval", "approval_id": approval_id, "decision": "approved"})


@click.command()
@click.argument("approval_id")
@by_option
@note_option
@json_option
@click.pass_obj
def deny(opened: Opened, approval_id: str, by: str, note: str, as_json: bool) -> None:
    """Say no."""
    opened.audit().ledger.deny(approval_id, by=by, note=note)
    _say(as_json, {"message_type": "approval", "approval_id": approval_id, "decision": "denied"})


@click.command()
@click.option("--tool", "tools", multiple=True, metavar="MODULE:TOOL", help="A tool whose target may be asked.")
@json_option
@click.pass_obj
def sweep(opened: Opened, tools: Sequence[str], as_json: bool) -> None:
    """Close what ran out, and ask the targets of the tools given about what is in doubt."""
    ledger = opened.audit().ledger
    ledger.register(*(_loaded(name, Tool) for name in tools))
    report = asdict(ledger.sweep())
    if as_json:
        line({"message_type": "audit_sweep", **report})
    else:
        click.echo(", ".join(f"{count} {name}" for name, count in report.items()))


@click.command("drill")
@click.argument("name", metavar="MODULE:DRILL")
@json_option
@click.pass_context
def drill_command(context: click.Context, name: str, as_json: bool) -> None:
    """Put a tool through lost replies, crashes and repeats, and count its effects. Use a test system: it acts."""
    rows = drill(_loaded(name, Drill))
    held = all(row.held for row in rows)
    if as_json:
        line({"message_type": "audit_drill", "held": held, "rows": [asdict(row) for row in rows]})
    else:
        shown = table("fault", "effects", "outcome", "held")
        for row in rows:
            shown.add_row(row.fault, str(row.effects), row.outcome, "yes" if row.held else "NO")
        print_table(shown)
    context.exit(0 if held else 1)


def action_json(view: ActionView) -> dict[str, JsonValue]:
    """One action for scripts; fields may be added, never removed."""
    whole = asdict(view)
    times = {"created": timestamp(whole.pop("created_ms")), "updated": timestamp(whole.pop("updated_ms"))}
    expires_ms = whole.pop("expires_ms")
    return {
        "message_type": "action",
        **{name: value for name, value in whole.items() if value not in (None, "")},
        **times,
        **({} if expires_ms is None else {"expires": timestamp(expires_ms)}),
    }


def history_json(event: ActionEvent) -> dict[str, JsonValue]:
    """One transition for scripts."""
    body = json.loads(event.body) if event.body else {}
    return {"at": timestamp(event.at_ms), "fence": event.fence, "what": event.what, "actor": event.actor, "body": body}


def _show(views: Sequence[ActionView], footer: str) -> None:
    shown = table("updated", "action", "phase", "effect", "attempts")
    for view in views:
        shown.add_row(timestamp(view.updated_ms), view.key, view.phase, view.effect, str(view.attempts))
    print_table(shown, footer)


def _say(as_json: bool, said: dict[str, JsonValue]) -> None:
    if as_json:
        line(said)
    else:
        click.echo(", ".join(str(value) for name, value in said.items() if name != "message_type"))


def _loaded(name: str, kind: type[T]) -> T:
    """What MODULE:NAME holds. The module must be importable, as for any other program."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise AuditError(f"{name}: cannot be loaded ({error}); give MODULE:NAME of something importable") from error
    if not isinstance(found, kind):
        raise AuditError(f"{name}: a {type(found).__name__}; give the name of a {kind.__name__}")
    return found


COMMANDS = (actions, approve, attention, deny, drill_command, resolve, sweep)

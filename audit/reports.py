"""What the audit file says: tail, one key, usage by principal or day. Everything here only reads.

Owns: the read-side queries and their shapes. Refuses to create or change anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .chain import Event, select_events
from .keys import StepKey
from .store import Store

__all__ = ["Attempt", "KeyView", "UsageBy", "UsageReport", "UsageRow", "UsageTotal"]

UsageBy: TypeAlias = Literal["principal", "day"]

_ATTEMPTS = (
    "SELECT scope, kind, n, args_hash, started_at, ended_at, outcome, body FROM audit_attempts"
    " WHERE request_id = ? AND step_id = ? ORDER BY scope, kind, n"
)
_USAGE = (
    "SELECT scope, subject, meter, state, units, counted_at, attempts FROM usage"
    " WHERE request_id = ? AND step_id = ? ORDER BY scope, meter"
)
_BY: Mapping[UsageBy, str] = {
    "principal": "SELECT subject, scope, meter, sum(units), count(*), sum(attempts) FROM usage WHERE state <> 'void'"
    " GROUP BY subject, scope, meter ORDER BY sum(units) DESC, subject, scope, meter",
    "day": "SELECT date(counted_at / 1000, 'unixepoch') AS day, '', meter, sum(units), count(*), sum(attempts)"
    " FROM usage WHERE state <> 'void' GROUP BY day, meter ORDER BY day, meter",
}


@dataclass(frozen=True)
class Attempt:
    """One try of a key: `started` and never ended means that it was killed, or is running.

    Times in milliseconds, UTC.
    """

    scope: str
    kind: str
    number: int
    args_hash: str
    started_ms: int
    ended_ms: int | None
    outcome: str
    body: str | None


@dataclass(frozen=True)
class UsageRow:
    """The units of one key and meter, counted once."""

    scope: str
    subject: str
    meter: str
    state: str
    units: int
    counted_ms: int
    attempts: int


@dataclass(frozen=True)
class KeyView:
    """Everything known about one request:step, over all principals, oldest first."""

    key: str
    events: tuple[Event, ...]
    attempts: tuple[Attempt, ...]
    usage: tuple[UsageRow, ...]


@dataclass(frozen=True)
class UsageTotal:
    """Units of a meter for one principal (scope and subject) or one UTC day (scope and subject are empty)."""

    name: str
    scope: str
    meter: str
    units: int
    keys: int
    attempts: int


@dataclass(frozen=True)
class UsageReport:
    """Totals, largest first by principal, in order by day; `units_total` is their sum over all meters."""

    by: UsageBy
    units_total: int
    rows: tuple[UsageTotal, ...]


def tail(store: Store, *, limit: int = 20) -> tuple[Event, ...]:
    """The newest events of all scopes, oldest of them first."""
    with store.read() as conn:
        rows = conn.execute(select_events("ORDER BY at DESC, rowid DESC LIMIT ?"), (max(limit, 0),)).fetchall()
    return tuple(Event(*row) for row in reversed(rows))


def show(store: Store, step: StepKey) -> KeyView:
    """Everything about one key; empty parts where nothing is known."""
    pair = (step.request, step.step)
    with store.read() as conn:
        events = conn.execute(select_events("WHERE request_id = ? AND step_id = ? ORDER BY at, rowid"), pair).fetchall()
        attempts = conn.execute(_ATTEMPTS, pair).fetchall()
        usage = conn.execute(_USAGE, pair).fetchall()
    return KeyView(
        str(step),
        tuple(Event(*row) for row in events),
        tuple(Attempt(*row) for row in attempts),
        tuple(UsageRow(*row) for row in usage),
    )


def usage_report(store: Store, *, by: UsageBy = "principal") -> UsageReport:
    """Units that count (void ones do not), by principal or by UTC day of counting."""
    with store.read() as conn:
        rows = conn.execute(_BY[by]).fetchall()
    totals = tuple(UsageTotal(*row) for row in rows)
    return UsageReport(by, sum(total.units for total in totals), totals)

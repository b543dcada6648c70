"""Units of use, counted once per request:step:meter, and exact sliding windows over them.

Owns: the usage and attempt rows, limits, the attempts cap. Everything happens in the caller's transaction, so that a
unit, its event and its attempt are never one without the others. Known key first: a repeat adds an attempt, but no
unit, and a full window never refuses it. Refuses estimates: the window is the exact sum of units with `counted_at > now
- window`, and a limited call leaves no row, so that it burns no key. A repeat saves units, not load; load is limited
before `audit`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from .errors import BadDeclaration
from .keys import JsonValue, StepKey, canonical, check_name, check_part
from .store import Transaction

__all__ = ["ATTEMPTS_CAP", "Count", "Limit", "Usage", "UsageState"]

# Honest layers (client 3, orchestrator 3, model 2) multiply to 18.
ATTEMPTS_CAP = 20

_USED = (
    "SELECT coalesce(sum(units), 0) FROM usage"
    " WHERE scope = ? AND subject = ? AND meter = ? AND counted_at > ? AND state <> 'void'"
)
_IN_WINDOW = (
    "SELECT counted_at, units FROM usage"
    " WHERE scope = ? AND subject = ? AND meter = ? AND counted_at > ? AND state <> 'void' ORDER BY counted_at"
)

UsageState: TypeAlias = Literal["reserved", "settled"]


@dataclass(frozen=True)
class Limit:
    """At most `units` of a meter in any window, for each subject.

    One with a subject replaces the general ones for it.
    """

    meter: str
    units: int
    window: timedelta
    subject: str | None = None

    def __post_init__(self) -> None:
        """Refuse a limit that could never mean anything."""
        check_name(self.meter, "meter")
        if self.units < 0 or self.window <= timedelta(0):
            raise BadDeclaration(
                f"limit {self.meter}: negative units or no window; give units >= 0 and a positive window"
            )

    @property
    def window_ms(self) -> int:
        """The window in milliseconds."""
        return self.window // timedelta(milliseconds=1)


@dataclass(frozen=True)
class Count:
    """What counting did. `state`: `new` (one more unit), `repeat` (counted before), or a refusal that left no trace."""

    state: Literal["new", "repeat", "limited", "too_many_attempts"]
    args_changed: bool = False
    retry_after_ms: int | None = None


class Usage:
    """Counts units under limits."""

    def __init__(self, limits: Sequence[Limit] = (), *, attempts_cap: int = ATTEMPTS_CAP) -> None:
        """No limits: everything is counted, nothing is refused but by the attempts cap."""
        self._limits = tuple(limits)
        self._attempts_cap = attempts_cap

    def count(
        self,
        tx: Transaction,
        *,
        scope: str,
        step: StepKey,
        meter: str,
        subject: str,
        fingerprint: str,
        units: int = 1,
        state: UsageState = "settled",
    ) -> Count:
        """Count one call: a repeat of a known key, or a new unit if the window has room. Refusals write nothing."""
        check_part(scope, "scope", ours=True)
        check_part(subject, "subject", ours=True)
        check_name(meter, "meter")
        if units < 0:
            raise BadDeclaration(f"usage {meter}: {units} units; give 0 or more")
        row = (scope, step.request, step.step, meter)
        known = tx.conn.execute(
            "SELECT state, fingerprint, attempts FROM usage WHERE scope = ? AND request_id = ? AND step_id = ? AND"
            " meter = ?",
            row,
        ).fetchone()
        if known is not None and known[2] >= self._attempts_cap:
            return Count("too_many_attempts", known[1] != fingerprint)
        if known is not None and known[0] != "void":
            tx.conn.execute(
                "UPDATE usage SET attempts = attempts + 1, last_at = ? WHERE scope = ? AND request_id = ? AND"
                " step_id = ? AND meter = ?",
                (tx.now_ms, *row),
            )
            return Count("repeat", known[1] != fingerprint)
        full, retry_after_ms = self._full(tx, scope, subject, meter, units)
        if full:
            return Count("limited", False, retry_after_ms)
        tx.conn.execute(
            "INSERT INTO usage(scope, request_id, step_id, meter, subject, state, units, fingerprint, counted_at,"
            " last_at)"
            " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET subject = excluded.subject, state ="
            " excluded.state,"
            " units = excluded.units, fingerprint = excluded.fingerprint, counted_at = excluded.counted_at,"
            " last_at = excluded.last_at,"
            " attempts = attempts + 1",
            (*row, subject, state, units, fingerprint, tx.now_ms, tx.now_ms),
        )
        return Count("new", known is not None and known[1] != fingerprint)

    def settle(self, tx: Transaction, *, scope: str, step: StepKey, meter: str, units: int | None = None) -> bool:
        """Turn a reservation into what was really used (None: the estimate stands). `counted_at` stays.

        True if it was reserved.
        """
        return (
            tx.conn.execute(
                "UPDATE usage SET state = 'settled', units = coalesce(?, units)"
                " WHERE scope = ? AND request_id = ? AND step_id = ? AND meter = ? AND state = 'reserved'",
                (units, scope, step.request, step.step, meter),
            ).rowcount
            == 1
        )

    def void(self, tx: Transaction, *, scope: str, step: StepKey, meter: str) -> bool:
        """Give the units back, because certainly nothing happened. True if they were counted."""
        return (
            tx.conn.execute(
                "UPDATE usage SET state = 'void' WHERE scope = ? AND request_id = ? AND step_id = ? AND meter = ?"
                " AND state <> 'void'",
                (scope, step.request, step.step, meter),
            ).rowcount
            == 1
        )

    def _full(self, tx: Transaction, scope: str, subject: str, meter: str, units: int) -> tuple[bool, int | None]:
        """(True, wait) when a limit has no room now.

        Wait is None when it never will, the units being more than the limit.
        """
        of_meter = [limit for limit in self._limits if limit.meter == meter]
        own = [limit for limit in of_meter if limit.subject == subject]
        waits: list[int | None] = []
        for limit in own or [limit for limit in of_meter if limit.subject is None]:
            window = (scope, subject, meter, tx.now_ms - limit.window_ms)
            (used,) = tx.conn.execute(
                _USED,
                window,
            ).fetchone()
            if used + units > limit.units:
                rows = tx.conn.execute(
                    _IN_WINDOW,
                    window,
                )
                waits.append(_wait(rows, used + units - limit.units, tx.now_ms, limit.window_ms))
        known = [wait for wait in waits if wait is not None]
        return bool(waits), max(known) if len(known) == len(waits) and known else None


def _wait(rows: Iterable[tuple[int, int]], excess: int, now_ms: int, window_ms: int) -> int | None:
    """Milliseconds until enough of the oldest units have left the window."""
    for counted_at, units in rows:
        excess -= units
        if excess <= 0:
            return counted_at + window_ms - now_ms
    return None


def start_attempt(tx: Transaction, *, scope: str, step: StepKey, kind: str, args_hash: str) -> int:
    """Note one more attempt of a key and kind as `started`; returns its number, from 1."""
    row = (scope, step.request, step.step, kind)
    (number,) = tx.conn.execute(
        "SELECT coalesce(max(n), 0) + 1 FROM audit_attempts WHERE scope = ? AND request_id = ? AND step_id = ? AND"
        " kind = ?",
        row,
    ).fetchone()
    tx.conn.execute(
        "INSERT INTO audit_attempts(scope, request_id, step_id, kind, n, args_hash, started_at) VALUES(?, ?, ?, ?,"
        " ?, ?, ?)",
        (*row, number, args_hash, tx.now_ms),
    )
    return int(number)


def end_attempt(
    tx: Transaction, *, scope: str, step: StepKey, kind: str, number: int, outcome: str, body: Mapping[str, JsonValue]
) -> bool:
    """Note how an attempt ended, once; True if it was still open."""
    return (
        tx.conn.execute(
            "UPDATE audit_attempts SET ended_at = ?, outcome = ?, body = ?"
            " WHERE scope = ? AND request_id = ? AND step_id = ? AND kind = ? AND n = ? AND ended_at IS NULL",
            (tx.now_ms, outcome, canonical(dict(body)), scope, step.request, step.step, kind, number),
        ).rowcount
        == 1
    )

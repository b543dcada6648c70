"""Removing what is old enough, and only that.

Owns: the age rules of events, usage and attempts. Events go in whole ranges at or below an exported seal, so that the
chain stays provable; usage goes by its last use, because a key may repeat as long as its request can resume. Refuses
while the clock's jump is not accepted: a wrong clock would make everything old.
"""

from dataclasses import dataclass
from datetime import timedelta

from .errors import ClockJumped
from .events import Events
from .store import Store

__all__ = ["Pruned", "prune"]


@dataclass(frozen=True)
class Pruned:
    """How many rows were removed, or would be, when `dry_run`."""

    events: int
    usage: int
    attempts: int
    dry_run: bool


def prune(store: Store, events: Events, retention: timedelta, *, dry_run: bool = False) -> Pruned:
    """Remove events below an exported seal, usage and attempts, all older than the retention, in one transaction.

    Raises ClockJumped while a jump of the wall clock waits for a person.
    """
    with store.write() as tx:
        if tx.tick.jump_ms:
            raise ClockJumped(
                "prune: the wall clock jumped and nobody accepted it; mend it, or run `ingest audit clock --accept`"
            )
        before_ms = tx.now_ms - retention // timedelta(milliseconds=1)
        old_events = 0
        for scope, seq in events.removable(tx.conn, before_ms).items():
            if dry_run:
                (found,) = tx.conn.execute(
                    "SELECT count(*) FROM audit_events WHERE scope = ? AND seq <= ?", (scope, seq)
                ).fetchone()
                old_events += found
            else:
                old_events += events.remove(tx, scope, seq)
        (old_usage,) = tx.conn.execute(
            "SELECT count(*) FROM usage WHERE last_at < ? AND state <> 'reserved'", (before_ms,)
        ).fetchone()
        (old_attempts,) = tx.conn.execute(
            "SELECT count(*) FROM audit_attempts WHERE started_at < ?", (before_ms,)
        ).fetchone()
        if not dry_run:
            tx.conn.execute("DELETE FROM usage WHERE last_at < ? AND state <> 'reserved'", (before_ms,))
            tx.conn.execute("DELETE FROM audit_attempts WHERE started_at < ?", (before_ms,))
    return Pruned(old_events, old_usage, old_attempts, dry_run)

"""Time for the store: wall milliseconds that never run backwards, and a rule for clocks that jump.

Owns: the `clock` row. Wall time serves windows, retention and display, never leases, which use monotonic time. Within
one boot, wall time more than an hour away from the last known time plus the time elapsed since is a jump: until it
returns, or a person accepts it, the store runs on elapsed time. Refuses to guess across a reboot: only time that went
backwards is a jump there.
Source: Linux `clock_gettime(2)` (CLOCK_BOOTTIME counts suspend), `random(4)` for the boot id.
"""

import functools
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

__all__ = ["Clock", "SystemClock", "Tick"]

# Larger than any step of NTP, summer time included (wall time is UTC); smaller than what would distort a retention of
# days.
JUMP_MS = 3_600_000


class Clock(Protocol):
    """What the store asks of time.

    MUST give integers; monotonic and boot time MUST be shared by all processes of one boot.
    """

    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC, as the machine believes."""

    def mono_ms(self) -> int:
        """Milliseconds that never run backwards within a boot."""

    def boottime_ms(self) -> int:
        """Milliseconds since boot, suspend included."""

    def boot_id(self) -> str:
        """Equal within one boot, other in the next."""


class SystemClock:
    """The clocks of this machine."""

    def wall_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        """See Clock."""
        return time.monotonic_ns() // 1_000_000

    def boottime_ms(self) -> int:
        """See Clock; where the system has no such clock, the monotonic one."""
        return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000

    def boot_id(self) -> str:
        """See Clock; where the system has none, a constant.

        Then only a boot time that went backwards shows a reboot.
        """
        return _boot_id()


@functools.cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


@dataclass(frozen=True)
class Tick:
    """The time of one transaction.

    `jump_ms`: wall minus store time while a jump is open, else 0; `new_jump`: it began just now.
    """

    now_ms: int
    jump_ms: int = 0
    new_jump: bool = False


def _judge(row: tuple[int, str, int, int] | None, clock: Clock) -> Tick:
    """What time it is, given the last known row (last_ms, boot_id, boottime_ms, jump_ms)."""
    wall = clock.wall_ms()
    if row is None:
        return Tick(wall)
    last_ms, boot_id, boottime_ms, jump_ms = row
    elapsed = clock.boottime_ms() - boottime_ms
    same_boot = boot_id == clock.boot_id() and elapsed >= 0
    expected = last_ms + elapsed if same_boot else last_ms
    off = wall - expected
    if off < -JUMP_MS or (same_boot and off > JUMP_MS):
        return Tick(expected, off, jump_ms == 0)
    return Tick(max(wall, last_ms))


_READ = "SELECT last_ms, boot_id, boottime_ms, jump_ms FROM clock WHERE id = 1"


def peek(conn: sqlite3.Connection, clock: Clock) -> Tick:
    """The time, without moving the row. Does not write."""
    return _judge(conn.execute(_READ).fetchone(), clock)


def tick(conn: sqlite3.Connection, clock: Clock) -> Tick:
    """The time of the open write transaction; moves the row, so that no later transaction is earlier."""
    result = peek(conn, clock)
    conn.execute(
        "INSERT INTO clock(id, last_ms, boot_id, boottime_ms, jump_ms) VALUES(1, ?, ?, ?, ?) ON CONFLICT(id) DO"
        " UPDATE SET"
        " last_ms = excluded.last_ms, boot_id = excluded.boot_id, boottime_ms = excluded.boottime_ms, jump_ms ="
        " excluded.jump_ms",
        (result.now_ms, clock.boot_id(), clock.boottime_ms(), result.jump_ms),
    )
    return result


def accept(conn: sqlite3.Connection, clock: Clock) -> Tick:
    """Take the wall time as it is, in either direction.

    A person's decision: windows and ages are measured anew from here.
    """
    conn.execute(
        "UPDATE clock SET last_ms = ?, boot_id = ?, boottime_ms = ?, jump_ms = 0 WHERE id = 1",
        (clock.wall_ms(), clock.boot_id(), clock.boottime_ms()),
    )
    return Tick(clock.wall_ms())

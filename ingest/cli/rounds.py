"""What ``ingest run --watch`` shows: the first run as any run, then a line for each that published or met a problem."""

from collections.abc import Callable
from datetime import datetime

import click

from ingest.report import RunReport
from ingest.watch import Rounds, WakeUp
from search.errors import GroundedError

from .console import note, print_json
from .options import Common

__all__ = ["tell"]

# Failures named beside a round; all of them are in `ingest status`.
SHOWN = 5


def tell(rounds: Rounds, alarm: WakeUp, common: Common, *, show: Callable[[RunReport], None]) -> None:
    """Tell of every round until the watch ends; with ``--json`` one object a line and nothing else on stdout.

    Ctrl-C while a round is told is one between two runs, too, and a good end.
    """
    teller = _Teller(alarm, common, show)
    try:
        for outcome in rounds:
            if isinstance(outcome, GroundedError):
                note(f"{_now()}  {outcome}; will try again")
            elif common.json:
                print_json(outcome.to_json())
            else:
                teller.run(outcome)
            teller.ability()
    except KeyboardInterrupt:
        if rounds.in_run:
            raise


class _Teller:
    """Remembers what was told, since what stays as it is need not be told again."""

    def __init__(self, alarm: WakeUp, common: Common, show: Callable[[RunReport], None]) -> None:
        self._alarm = alarm
        self._common = common
        self._show = show
        self._last: RunReport | None = None
        self._told: str | None = None

    def run(self, report: RunReport) -> None:
        """Show a run: whole the first time, afterwards what is new in it."""
        last, self._last = self._last, report
        if last is None:
            self._show(report)
            return
        if report.published:
            click.echo(f"{_now()}  generation {report.generation}: {_changes(report)}")
        known = set(last.failures)
        failures = [failure for failure in report.failures if failure not in known]
        for failure in failures[:SHOWN]:
            click.echo(f"{_now()}  {failure.status} {failure.source}: {failure.reason}")
        if len(failures) > SHOWN:
            click.echo(f"{_now()}  ... and {len(failures) - SHOWN} more; `ingest status` lists all")
        if not self._common.quiet:
            for message in report.messages:
                if message not in last.messages:
                    note(f"{_now()}  {message}")

    def ability(self) -> None:
        """Say once that the folders are watched, or why they cannot be."""
        blind = self._alarm.blind
        text = "watching; Ctrl-C ends it"
        if blind is not None:
            text = f"not every change is told of ({blind}): the folders are looked at by the clock, too; Ctrl-C ends it"
        if text != self._told and not self._common.quiet:
            note(text)
        self._told = text


def _changes(report: RunReport) -> str:
    sources, chunks = report.sources, report.chunks
    counts = [
        *((getattr(sources, name), name) for name in ("added", "changed", "renamed", "removed", "failed")),
        (chunks.written, "chunk written" if chunks.written == 1 else "chunks written"),
        (chunks.relocated, "relocated"),
        (chunks.removed, "chunk removed" if chunks.removed == 1 else "chunks removed"),
    ]
    return ", ".join(f"{count} {name}" for count, name in counts if count)


def _now() -> str:
    return datetime.now().astimezone().strftime("%H:%M:%S")

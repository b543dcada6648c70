"""``ingest run --watch``: plain runs, one after another, each begun by a change or by the clock.

A round is ``pipeline.run`` with the same settings and options, nothing else: so watching can do nothing that a plain
run would not, and whatever an alarm misses or invents costs time, never truth. What confirms or forces something once
(removals, a rebuild) is no option of a watch, since it would hold for every round.
"""

import logging
import time
from collections.abc import Callable, Generator
from typing import Protocol

from search.errors import GroundedError, UsageError
from search.settings import Settings

from .alarm import Alarm
from .observation import Observer, RunOptions
from .report import RunReport
from .sources import scan

__all__ = ["Round", "Rounds", "WakeUp", "alarm_of", "check"]

log = logging.getLogger(__name__)

# How often the roots themselves are looked at, and the clock.
TICK_S = 1.0
# How often a run begins where no folder can be watched, if `watch_interval_s` is not longer.
BLIND_S = 60.0

Round = RunReport | GroundedError


class WakeUp(Protocol):
    """What a watch waits for; ``blind`` says why it cannot tell of changes."""

    blind: str | None

    def arm(self) -> None:
        """From now on, notice changes."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for a change to settle; False after the timeout without one."""

    def close(self) -> None:
        """Stop noticing."""


class Rounds:
    """The rounds of a watch, at the pace of the settings. ``in_run``: one is at work, or was interrupted."""

    def __init__(
        self,
        run: Callable[[], RunReport],
        alarm: WakeUp,
        *,
        interval_s: float,
        sweep_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._alarm = alarm
        self._interval_s = interval_s
        self._sweep_s = max(sweep_s, interval_s)
        self._clock = clock
        self.in_run = False

    def __iter__(self) -> Generator[Round, None, None]:
        """Yield how each run ended, without end. Ctrl-C between two runs ends it; within one it ends that, too.

        An error after which trying again may help is a round of its own; every other one is raised.
        """
        try:
            while True:
                self._alarm.arm()
                outcome = self._round()
                yield outcome
                self._wait(outcome)
        except KeyboardInterrupt:
            if self.in_run:
                raise
        finally:
            self._alarm.close()

    def _round(self) -> Round:
        self.in_run = True
        outcome: Round
        try:
            outcome = self._run()
        except GroundedError as error:
            if not error.retryable:
                raise
            outcome = error
        self.in_run = False
        return outcome

    def _wait(self, outcome: Round) -> None:
        """Wait until a run is due: after a change, though not too soon after a publish, or by the clock."""
        ended = self._clock()
        earliest = ended + (self._interval_s if isinstance(outcome, RunReport) and outcome.published else 0)
        latest = ended + self._longest(outcome)
        changed = False
        while (now := self._clock()) < latest and not (changed and now >= earliest):
            changed = self._alarm.wait(TICK_S) or changed
        log.info("watch.wake changed=%s", changed)

    def _longest(self, outcome: Round) -> float:
        """Return after how many seconds a run begins though nothing was told."""
        if isinstance(outcome, GroundedError) or any(item.status == "unstable" for item in outcome.failures):
            return self._interval_s
        if self._alarm.blind is not None:
            return min(self._sweep_s, max(self._interval_s, BLIND_S))
        return self._sweep_s


def check(options: RunOptions, *, dry_run: bool) -> None:
    """Raise ``UsageError`` for what may be asked of one run only."""
    once = {
        "--dry-run": dry_run,
        "--rebuild": options.rebuild,
        "--rehash": options.rehash,
        "--retry-quarantined": options.retry_quarantined,
        "--allow-removals": options.allow_removals is not None,
    }
    for flag, given in once.items():
        if given:
            raise UsageError(f"{flag}: is for one run, and --watch makes many; do it in a run of its own first")


def alarm_of(settings: Settings, options: RunOptions) -> Alarm:
    """Return an alarm for just the folders that a run lists."""
    rules = Observer(settings, options).rules
    return Alarm(
        lambda: scan(options.roots, rules=rules, known_roots=(), now_ns=time.time_ns()).folders,
        options.roots,
        hidden=rules.hidden,
        settle_s=settings.watch_settle_s,
        patience_s=max(settings.watch_settle_s, settings.watch_interval_s),
    )

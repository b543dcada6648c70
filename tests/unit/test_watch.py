"""When the rounds of a watch begin: by a change, by the clock, never too soon, and how they end."""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from ingest.alarm import Alarm
from ingest.cli.options import Common
from ingest.cli.rounds import tell
from ingest.observation import RunOptions
from ingest.report import FailedSource, RunReport
from ingest.watch import Rounds, alarm_of, check
from search.errors import IndexDamaged, IndexLocked, UsageError
from search.identity import new_run_id
from search.settings import Settings

INTERVAL_S, SWEEP_S = 10.0, 600.0
# Bounds every wait for the system to tell of a change.
PATIENCE_S = 60.0


class Clock:
    """A clock that only the alarm below moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Changes:
    """An alarm that rings at given times; it notes when it was armed."""

    def __init__(self, clock: Clock, *times: float, blind: str | None = None) -> None:
        self.clock, self.times, self.blind = clock, list(times), blind
        self.armed: list[float] = []
        self.closed = False

    def arm(self) -> None:
        self.armed.append(self.clock.now)

    def wait(self, timeout_s: float) -> bool:
        until = self.clock.now + timeout_s
        if self.times and self.times[0] <= until:
            self.clock.now = max(self.clock.now, self.times.pop(0))
            return True
        self.clock.now = until
        return False

    def close(self) -> None:
        self.closed = True


def report(*, published: bool = False, statuses: tuple[str, ...] = ()) -> RunReport:
    """A run's report."""
    failures = [FailedSource("a", status, "why", "when") for status in statuses]
    return RunReport(run_id=new_run_id(), published=published, failures=failures)


def begun(alarm: Changes, clock: Clock, run: Callable[[], RunReport], count: int) -> list[float]:
    """When the first ``count`` runs began."""
    times: list[float] = []

    def noting() -> RunReport:
        times.append(clock.now)
        return run()

    rounds = iter(Rounds(noting, alarm, interval_s=INTERVAL_S, sweep_s=SWEEP_S, clock=clock))
    for _ in range(count):
        next(rounds)
    rounds.close()
    return times


def test_a_run_begins_at_once_and_after_each_change() -> None:
    """Runs that published nothing hold nothing up."""
    clock = Clock()
    assert begun(Changes(clock, 3.5, 4.2, 100.0), clock, report, 4) == [0.0, 3.5, 4.2, 100.0]


def test_after_a_publish_the_next_run_waits_for_the_interval() -> None:
    """However many changes there are, it publishes at most once in so many seconds, and forgets none."""
    clock = Clock()
    changes = Changes(clock, *(0.5 * number for number in range(1, 80)))
    times = begun(changes, clock, lambda: report(published=True), 4)
    assert [later - earlier >= INTERVAL_S for earlier, later in pairwise(times)] == [True] * 3
    assert times[-1] <= 3 * (INTERVAL_S + 1)


def test_a_run_begins_by_the_clock_where_no_change_was_told() -> None:
    """A change that the system did not tell of waits no longer than the sweep."""
    clock = Clock()
    assert begun(Changes(clock), clock, report, 3) == [0.0, SWEEP_S, 2 * SWEEP_S]


@pytest.mark.parametrize(
    ("blind", "statuses", "due"),
    [("no watches left", (), 60.0), (None, ("unstable",), INTERVAL_S), (None, ("damaged", "unreadable"), SWEEP_S)],
)
def test_what_needs_another_look_gets_it_sooner(blind: str | None, statuses: tuple[str, ...], due: float) -> None:
    """A file that changed while it was read, or a folder that cannot be watched, is not left until the sweep."""
    clock = Clock()
    assert begun(Changes(clock, blind=blind), clock, lambda: report(statuses=statuses), 2) == [0.0, due]


def test_the_alarm_is_armed_before_each_run() -> None:
    """What changes while a run reads is told after it."""
    clock = Clock()
    alarm = Changes(clock, 5.0)
    armed: list[int] = []

    def run() -> RunReport:
        armed.append(len(alarm.armed))
        return report()

    begun(alarm, clock, run, 2)
    assert armed == [1, 2]
    assert alarm.closed


def test_an_error_that_may_pass_is_a_round_and_any_other_ends_the_watch() -> None:
    """Another run in the way is tried again after the interval; a damaged index is for a person."""
    clock = Clock()
    alarm = Changes(clock)
    ends: Iterator[Exception | None] = iter([IndexLocked("held"), None, IndexDamaged("broken")])

    def run() -> RunReport:
        error = next(ends)
        if error is not None:
            raise error
        return report()

    rounds = iter(Rounds(run, alarm, interval_s=INTERVAL_S, sweep_s=SWEEP_S, clock=clock))
    assert isinstance(next(rounds), IndexLocked)
    assert isinstance(next(rounds), RunReport)
    assert alarm.armed == [0.0, INTERVAL_S]
    with pytest.raises(IndexDamaged):
        next(rounds)
    assert alarm.closed


def test_an_interrupt_between_runs_ends_a_watch_and_within_one_it_goes_through() -> None:
    """Ctrl-C is how a watch ends; a run that it meets has to say that it was interrupted."""

    class Interrupted(Changes):
        def wait(self, timeout_s: float) -> bool:
            raise KeyboardInterrupt

    clock = Clock()
    alarm = Interrupted(clock)
    assert len(list(Rounds(report, alarm, interval_s=INTERVAL_S, sweep_s=SWEEP_S, clock=clock))) == 1
    assert alarm.closed

    def interrupted() -> RunReport:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Rounds(interrupted, Changes(clock), interval_s=INTERVAL_S, sweep_s=SWEEP_S, clock=clock))


def test_an_interrupt_while_the_folders_are_listed_or_a_run_is_told_is_one_between_runs() -> None:
    """Nothing is at work then; what was published stands, so there is nothing to warn of."""

    class Second(Changes):
        def arm(self) -> None:
            super().arm()
            if len(self.armed) == 2:
                raise KeyboardInterrupt

    clock = Clock()
    alarm = Second(clock, 1.0)
    assert len(list(Rounds(report, alarm, interval_s=INTERVAL_S, sweep_s=SWEEP_S, clock=clock))) == 1
    assert alarm.closed

    def show(_: RunReport) -> None:
        raise KeyboardInterrupt

    rounds = Rounds(report, Changes(clock), interval_s=INTERVAL_S, sweep_s=SWEEP_S, clock=clock)
    tell(rounds, Changes(clock), Common(None, None, json=False, quiet=False), show=show)

    def interrupted() -> RunReport:
        raise KeyboardInterrupt

    rounds = Rounds(interrupted, Changes(clock), interval_s=INTERVAL_S, sweep_s=SWEEP_S, clock=clock)
    with pytest.raises(KeyboardInterrupt):
        tell(rounds, Changes(clock), Common(None, None, json=False, quiet=False), show=show)


@pytest.mark.parametrize("once", ["rebuild", "rehash", "retry_quarantined", "allow_removals"])
def test_what_is_meant_for_one_run_is_refused(tmp_path: Path, once: str) -> None:
    """A confirmation must not hold for every round of a watch."""
    options = RunOptions(roots=(tmp_path,), **{once: 3 if once == "allow_removals" else True})  # type: ignore[arg-type]  # by name
    with pytest.raises(UsageError, match=f"--{once.replace('_', '-')}: is for one run"):
        check(options, dry_run=False)
    with pytest.raises(UsageError, match="--dry-run"):
        check(RunOptions(roots=(tmp_path,)), dry_run=True)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a document, a link to all of the disk, and folders that a run does not list."""
    docs = tmp_path / "docs"
    for folder in ("inner/deep", "node_modules/x", ".hidden", "ignored"):
        (docs / folder).mkdir(parents=True)
    (docs / "a.md").write_text("first")
    (docs / ".gitignore").write_text("ignored/\n")
    (docs / "everything").symlink_to("/")
    return docs


@pytest.fixture
def alarm(docs: Path, tmp_path: Path) -> Iterator[Alarm]:
    """An armed alarm over the folder; it waits for no quiet, so that every change rings."""
    settings = Settings(home=tmp_path / ".grounded", watch_settle_s=0, watch_interval_s=0)
    made = alarm_of(settings, RunOptions(roots=(docs,)))
    made.arm()
    yield made
    made.close()


def test_an_alarm_watches_just_what_a_run_lists(alarm: Alarm, docs: Path) -> None:
    """Neither a link nor a folder that a rule leaves out costs a watch."""
    assert alarm.blind is None
    due = len([docs, docs / "inner", docs / "inner/deep"])
    assert any(watches() == due for _ in range(2_000))  # those of an earlier test go a moment after it


def watches() -> int:
    """How many folders this process watches."""
    opened = Path("/proc/self/fdinfo")
    found = 0
    for number in list(opened.iterdir()):
        try:
            found += number.read_text().count("inotify wd:")
        except FileNotFoundError:  # the folder's own, listed a moment ago
            continue
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda docs: (docs / "a.md").write_text("second"),
        lambda docs: (docs / "a.md").unlink(),
        lambda docs: (docs / "a.md").rename(docs / "b.md"),
        lambda docs: (docs / "inner/deep/new.txt").write_text("new"),
        lambda docs: (docs / "more").mkdir(),
        lambda docs: (docs / ".gitignore").write_text(""),
        lambda docs: (docs / "a.md").chmod(0o600),
        lambda docs: docs.rename(docs.parent / "moved"),
        lambda docs: Path(os.fsdecode(os.fsencode(docs) + b"/\xff.txt")).write_text("odd"),
    ],
    ids=["edit", "remove", "rename", "deep", "folder", "rules", "mode", "root", "odd-name"],
)
def test_an_alarm_tells_of_every_change_that_a_run_could_see(
    alarm: Alarm, docs: Path, change: Callable[[Path], object]
) -> None:
    """One change, whatever it is, and the wait is over."""
    change(docs)
    assert alarm.wait(PATIENCE_S)


def test_an_alarm_is_silent_about_what_a_run_does_not_see(alarm: Alarm, docs: Path) -> None:
    """Swap files, dependencies, ignored folders and plain reading wake nobody."""
    (docs / ".a.md.swp").write_text("x")
    (docs / "~$a.docx").write_text("x")
    (docs / "node_modules/x/readme.md").write_text("x")
    (docs / "ignored/build.log").write_text("x")
    (docs / ".hidden/x").write_text("x")
    (docs / "a.md").read_text()
    assert not alarm.wait(0.5)


def test_a_hidden_file_that_is_itself_a_root_rings(docs: Path, tmp_path: Path) -> None:
    """A run reads it, since it was named; those beside it were not."""
    hidden, beside = docs / ".notes.md", docs / ".beside.md"
    for path in (hidden, beside):
        path.write_text("first")
    settings = Settings(home=tmp_path / ".grounded", watch_settle_s=0, watch_interval_s=0)
    alarm = alarm_of(settings, RunOptions(roots=(hidden,)))
    alarm.arm()
    beside.write_text("second")
    assert not alarm.wait(0.5)
    hidden.write_text("second")
    assert alarm.wait(PATIENCE_S)
    alarm.close()


def test_a_root_that_vanished_rings_when_it_comes_back(alarm: Alarm, docs: Path) -> None:
    """There is nothing to watch meanwhile, so the alarm looks for it."""
    gone = docs.rename(docs.parent / "gone")
    assert alarm.wait(PATIENCE_S)
    alarm.arm()
    assert alarm.blind is None
    assert not alarm.wait(0.2)
    gone.rename(docs)
    assert alarm.wait(PATIENCE_S)


def test_a_folder_that_cannot_be_watched_costs_no_other_its_watch(alarm: Alarm, docs: Path) -> None:
    """Its own changes wait for the clock, which goes faster then; all others ring as before."""
    Path(os.fsdecode(os.fsencode(docs) + b"/\xff")).mkdir()
    assert alarm.wait(PATIENCE_S)
    alarm.arm()
    assert alarm.blind == "folders whose names are not UTF-8: 1"
    (docs / "inner" / "new.md").write_text("new")
    assert alarm.wait(PATIENCE_S)


def test_an_alarm_that_cannot_watch_says_why(tmp_path: Path) -> None:
    """No watch for a name that the system's watcher cannot take; the rounds go by the clock."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    odd.mkdir()
    alarm = alarm_of(Settings(home=tmp_path / ".grounded"), RunOptions(roots=(odd,)))
    alarm.arm()
    assert alarm.blind is not None
    assert not alarm.wait(0.1)
    alarm.close()

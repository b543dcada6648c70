"""The writer lock between real processes: one run at a time, and no lock outlives its holder (step 1 of a run)."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ending

from .processes import WORKER, child, end, stop, until, waits_for_a_lock
from .scene import BEFORE, FRUGAL, Scene

pytestmark = pytest.mark.model


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A folder that was never ingested."""
    made = Scene(tmp_path)
    made.write(BEFORE)
    return made


@pytest.fixture
def holder(scene: Scene) -> Iterator[subprocess.Popen[str]]:
    """A run that holds the lock and stands still."""
    with ending(scene.index.start("run", str(scene.docs), "--json", **FRUGAL)) as process:
        until(lambda: written_by(scene), process)
        stop(process.pid)
        yield process
        process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("command", [("run",), ("run", "--rebuild"), ("repair",)])
@pytest.mark.invariant("I1")
def test_a_second_writer_is_told_who_holds_the_index(
    command: tuple[str, ...], scene: Scene, holder: subprocess.Popen[str]
) -> None:
    """It ends with code 11 at once, names pid and start of the holder, and says what to do."""
    roots = [str(scene.docs)] if command[0] == "run" else []
    # A catalog must be there for repair to begin; the holder may have been stopped before it made one.
    scene.layout.catalog.touch()
    ended = scene.index.call(*command, *roots, "--json", **FRUGAL)
    failure = json.loads(ended.stderr)
    started = datetime.fromtimestamp(written_by(scene)["started_ms"] / 1000, tz=UTC).astimezone()
    assert (ended.exit_code, failure["code"], failure["kind"], failure["retryable"]) == (11, 11, "index_locked", True)
    assert f"pid {holder.pid}" in failure["message"]
    assert started.isoformat(timespec="seconds") in failure["message"]
    assert "--wait" in failure["message"]


def test_a_second_run_that_waits_goes_on_when_the_first_has_ended(scene: Scene, holder: subprocess.Popen[str]) -> None:
    """With ``--wait`` both runs end well, and the second finds nothing left to do."""
    with ending(scene.index.start("run", str(scene.docs), "--json", "--wait", **FRUGAL)) as second:
        until(lambda: waits_for_a_lock(second.pid), second)
        holder.send_signal(signal.SIGCONT)
        reports = [end(process) for process in (holder, second)]
    assert [report.exit_code for report in reports] == [0, 0]
    assert [report.json["published"] for report in reports] == [True, False]
    assert scene.problems() == []


def test_reading_commands_do_not_wait_for_a_run(scene: Scene) -> None:
    """Search, status and runs answer while a run holds the lock; it is stopped in the middle of its work."""
    scene.run()
    scene.write({**BEFORE, "more.md": "# More\n\nOne page more.\n"})
    with ending(scene.index.start("run", str(scene.docs), **FRUGAL)) as process:
        until(child(process, WORKER), process)  # it waits for the parser, and no transaction of its own is open
        stop(process.pid)
        ended = [
            scene.index.call(*words, "--json", **FRUGAL)
            for words in (("search", "where do visitors park"), ("status",), ("runs",))
        ]
    assert [one.exit_code for one in ended] == [0, 0, 0]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_of_a_dead_run_does_not_block(
    number: signal.Signals, scene: Scene, holder: subprocess.Popen[str]
) -> None:
    """Whatever the file still says, the lock went with its holder."""
    holder.send_signal(number)
    holder.send_signal(signal.SIGCONT)
    ended = end(holder)
    assert ended.exit_code == (-9 if number == signal.SIGKILL else 130)
    assert written_by(scene)["pid"] == holder.pid
    assert scene.run()["published"]


def test_a_lock_file_that_names_a_living_process_is_only_a_text(scene: Scene) -> None:
    """The kernel's lock decides; a file that was left behind, or copied with an index, never does."""
    scene.layout.lock.parent.mkdir(parents=True)
    scene.layout.lock.write_text(json.dumps({"pid": os.getpid(), "started_ms": 0}), encoding="ascii")
    assert scene.run()["published"]


def written_by(scene: Scene) -> dict[str, Any]:
    """Return what the holder wrote into the lock file; nothing while it is not there."""
    try:
        found: dict[str, Any] = json.loads(scene.layout.lock.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return {}
    return found

"""One process of a run is killed alone, or survives its run: worker and builder (I1, I5)."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass

import pytest

from tests.harness import ending

from .processes import (
    BUILDER,
    WORKER,
    child,
    end,
    frozen_builder,
    go_on,
    has_all_its_input,
    has_ended,
    has_read,
    has_work_to_do,
    until,
    waits_for_a_lock,
)
from .scene import AFTER, BEFORE, FRUGAL, Scene

pytestmark = [pytest.mark.model, pytest.mark.slow]

# More than a worker reads of its own modules, and takes its reader a second or two; it comes to one chunk.
SLOW_BYTES = 6_000_000
SLOW_TO_READ = {"slow.txt": "A sentence before a great silence.\n" + " \n" * (SLOW_BYTES // 2)}


@dataclass(frozen=True)
class Published:
    """An index of the first state of the folder; its export, and the export after an undisturbed edit."""

    scene: Scene
    old: str
    new: str


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Ingest the first state, keep it, and then the second."""
    scene = Scene(tmp_path_factory.mktemp("orphans"))
    scene.write(BEFORE)
    scene.run()
    scene.save()
    old = scene.export()
    scene.write(AFTER)
    scene.run()
    return Published(scene, old, scene.export())


@pytest.fixture
def edited(published: Published) -> Scene:
    """The index of the first state, the folder in its second."""
    published.scene.put_back()
    published.scene.write(AFTER)
    return published.scene


@pytest.fixture
def slow(published: Published) -> Scene:
    """The index of the first state; beside it now a document that takes its worker a while."""
    published.scene.put_back()
    published.scene.write({**BEFORE, **SLOW_TO_READ})
    return published.scene


@pytest.mark.invariant("I5")
def test_a_worker_that_is_killed_does_not_change_the_result(slow: Scene) -> None:
    """Its document is read once more, by the same reader, in another worker; the run ends well."""
    with ending(begin(slow)) as process:
        worker = until(child(process, WORKER), process)
        until(has_read(worker, SLOW_BYTES), process)
        os.kill(worker, signal.SIGKILL)
        ended = end(process)
    assert (ended.exit_code, ended.json["failures"]) == (0, []), ended.stderr
    assert slow.problems() == []
    undisturbed = Scene(slow.index.folder, "undisturbed")
    undisturbed.run()
    assert slow.export() == undisturbed.export()


def test_a_document_whose_worker_is_killed_twice_is_one_failure_of_the_run(slow: Scene) -> None:
    """All else is ingested, code 3; the document is tried again when it is asked for, and then it is like any other."""
    with ending(begin(slow)) as process:
        killed: list[int] = []
        while len(killed) < 2:
            worker = until(child(process, WORKER, but=killed), process)
            until(has_read(worker, SLOW_BYTES), process)
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)
        ended = end(process)
    assert ended.exit_code == 3, ended.stderr
    (failure,) = ended.json["failures"]
    assert (failure["source"], failure["status"]) == ("slow.txt", "quarantined")
    assert "SIGKILL" in failure["reason"]
    assert ended.json["published"]
    assert slow.index.run(slow.docs, **FRUGAL).exit_code == 3
    healed = slow.run("--retry-quarantined")
    assert healed["failures"] == []
    assert slow.problems() == []


@pytest.mark.invariant("I1")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_builder_that_is_killed_is_one_error_and_changes_nothing(
    number: signal.Signals, edited: Scene, published: Published
) -> None:
    """The run ends with one clear error, the old generation answers, and the next run makes it good."""
    files, answer = edited.index.generations(), edited.answer()
    with ending(begin(edited)) as process:
        builder = frozen_builder(process)
        until(lambda: has_work_to_do(builder), process)
        os.kill(builder, number)
        go_on(builder)
        ended = end(process)
    failure = json.loads(ended.stderr.splitlines()[-1])
    assert (ended.exit_code, failure["kind"]) == (1, "publish_failed")
    assert number.name in failure["message"]
    assert edited.index.generations() == files
    assert edited.answer() == answer
    assert edited.export() == published.old
    edited.run()
    assert edited.export() == published.new
    assert edited.problems() == []


def test_a_builder_that_dies_of_sigbus_met_a_full_disk(edited: Scene) -> None:
    """So the kernel ends a process whose mapped file finds no room; the error says what to do about it."""
    with ending(begin(edited)) as process:
        builder = frozen_builder(process)
        until(lambda: has_work_to_do(builder), process)
        os.kill(builder, signal.SIGBUS)
        go_on(builder)
        ended = end(process)
    failure = json.loads(ended.stderr.splitlines()[-1])
    assert (ended.exit_code, failure["kind"]) == (1, "not_enough_space")
    assert "Free some space and run again" in failure["message"]


@pytest.mark.invariant("I5")
def test_a_builder_that_outlives_its_run_does_not_disturb_the_next(edited: Scene, published: Published) -> None:
    """A run is killed when its builder has all it needs to go on alone; the next run begins before that one is done."""
    with ending(begin(edited)) as process:
        orphan = frozen_builder(process)
        until(lambda: has_all_its_input(orphan, process.pid), process)
        process.kill()
    with ending(begin(edited)) as process:
        # It waits for the orphan; if it did not, it would have a builder of its own that does the same work beside it.
        until(lambda: child(process, BUILDER)() or waits_for_a_lock(process.pid), process)
        if child(process, BUILDER)():
            builder = frozen_builder(process)
            until(lambda: has_work_to_do(builder), process)
            go_on(orphan)
            until(lambda: has_ended(orphan), process)
            go_on(builder)
        go_on(orphan)
        ended = end(process)
    assert ended.exit_code == 0, ended.stderr
    assert edited.export() == published.new
    assert edited.problems() == []


def begin(scene: Scene) -> subprocess.Popen[str]:
    """Start a run."""
    return scene.index.start("run", str(scene.docs), "--json", **FRUGAL)

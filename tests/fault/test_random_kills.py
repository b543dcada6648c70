"""Kill -9 at random moments of first runs and edits, then run again (I5).

``KILLS`` in the environment says how many moments; they are the same in every test run. A moment is an amount of work
(``processes.Work``), drawn from what an undisturbed run does, so that all of a run is equally likely to be hit: also
what no failpoint names, such as an import or the middle of a write.
"""

import os
import random
import subprocess
from dataclasses import dataclass

import pytest

from tests.harness import ending

from .processes import BUILDER, WORKER, Work, child, until
from .scene import AFTER, BEFORE, FRUGAL, Scene

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.invariant("I5")]

KILLS = int(os.environ.get("KILLS", "12"))
# Whom the moment hits: mostly the run itself, now and then one of its children.
VICTIMS = ("run", "run", "run", BUILDER, WORKER)


@dataclass(frozen=True)
class Course:
    """A kind of run: the folder it finds, whether there is an index, how much it does, and what it comes to."""

    files: dict[str, str]
    is_first: bool
    work: int
    export: str


@pytest.fixture(scope="module")
def courses(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scene, tuple[Course, Course]]:
    """Do both kinds of run without a fault."""
    scene = Scene(tmp_path_factory.mktemp("random"))
    scene.write(BEFORE)
    first = Course(dict(BEFORE), True, run_to_its_end(scene), scene.export())
    scene.save()
    scene.write(AFTER)
    edit = Course(dict(AFTER), False, run_to_its_end(scene), scene.export())
    return scene, (first, edit)


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_run_killed_at_any_moment_is_made_good_by_the_next(
    seed: int, courses: tuple[Scene, tuple[Course, Course]]
) -> None:
    """Whoever of the run's processes is hit, and whenever: the next run ends as if nothing had happened."""
    scene = courses[0]
    chance = random.Random(seed)
    course = courses[1][seed % 2]
    moment = int(course.work * chance.random())
    victim = chance.choice(VICTIMS)
    scene.write(course.files)
    scene.clear() if course.is_first else scene.put_back()

    with ending(start(scene)) as process:
        work = Work(process)
        until(lambda: work.done() >= moment or process.poll() is not None, process)
        pid = process.pid if victim == "run" else child(process, victim)()
        if pid is not None and process.poll() is None:
            os.kill(pid, 9)
        process.communicate()
    scene.run()
    assert scene.export() == course.export
    assert scene.problems() == []


def start(scene: Scene) -> subprocess.Popen[str]:
    """Start a run."""
    return scene.index.start("run", str(scene.docs), "--json", **FRUGAL)


def run_to_its_end(scene: Scene) -> int:
    """Run without a fault, and return how much work it was."""
    with ending(start(scene)) as process:
        work, done = Work(process), 0
        while process.poll() is None:
            done = work.done()
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    return done

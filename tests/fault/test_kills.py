"""Kill -9 at every named point of a run, on a first run and on an edit, then run again (I1, I4, I5).

Each point costs two runs, which happen once, in a fixture; the tests look at what came of them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingest.failpoints import POINTS
from ingest.verify import Check
from tests.harness import Ended

from .scene import AFTER, BEFORE, FRUGAL, Answer, Scene, computed, long_text

pytestmark = [pytest.mark.slow, pytest.mark.model]

BUILDER = tuple(f"publish.{step}" for step in ("clone", "apply", "flush", "settle", "manifest", "rename"))
# A first run has no older generation that it could collect.
FIRST = tuple(point for point in POINTS if point != "publish.collect")
# Of these pairs a run that was killed at the first reaches the second.
TWICE = (
    ("chunk", "saved"),
    ("embed", "publish.apply"),
    ("publish.settle", "publish.rename"),
    ("publish.rename", "publish.commit"),
    ("publish.committed", "recover"),
    ("publish.pointed", "report"),
)


@dataclass(frozen=True)
class State:
    """What an undisturbed run came to: export, answers of readers, and the vectors it computed."""

    export: str
    answer: Answer
    computed: int


@dataclass(frozen=True)
class Stage:
    """The scene; ``old`` is what was published before the edit, ``new`` what an edit without a fault makes of it."""

    scene: Scene
    old: State
    new: State

    def unpublished(self) -> Scene:
        """Have no index, and the folder in its first state."""
        self.scene.write(BEFORE)
        self.scene.clear()
        return self.scene

    def edited(self) -> Scene:
        """Have an index of the first state, and the folder in its second."""
        self.scene.write(AFTER)
        self.scene.put_back()
        return self.scene


@dataclass(frozen=True)
class Killed:
    """A run that was killed at ``point``, what stood then, and the run after it."""

    point: str
    ended: Ended
    vectors_saved: int
    export_between: str
    answer_between: Answer | None
    generations_between: Mapping[str, str]
    again: Mapping[str, Any]
    export: str
    problems: list[Check]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Two published generations, so that the edit has one to collect."""
    scene = Scene(tmp_path_factory.mktemp("kills"))
    scene.write({**BEFORE, "early.md": "# Early\n\nA page of the very first day.\n"})
    scene.run()
    scene.write(BEFORE)
    scene.run()
    scene.save()

    aside = Scene(scene.index.folder, "undisturbed")
    first = aside.run()
    old = State(aside.export(), aside.answer(), computed(first))
    assert scene.export() == old.export

    scene.write(AFTER)
    edited = scene.run()
    assert scene.problems() == []
    return Stage(scene, old, State(scene.export(), scene.answer(), computed(edited)))


@pytest.fixture(scope="module", params=FIRST)
def first_run(request: pytest.FixtureRequest, stage: Stage) -> Killed:
    """A first run, killed."""
    return kill_and_run_again(stage.unpublished(), request.param)


@pytest.fixture(scope="module", params=POINTS)
def edit(request: pytest.FixtureRequest, stage: Stage) -> Killed:
    """An edit, killed."""
    return kill_and_run_again(stage.edited(), request.param)


@pytest.mark.invariant("I5")
def test_a_first_run_after_a_kill_reaches_the_undisturbed_state(first_run: Killed, stage: Stage) -> None:
    """Wherever a first run is killed, the next one ends as if nothing had happened."""
    assert first_run.export == stage.old.export
    assert first_run.problems == []


@pytest.mark.invariant("I5")
def test_a_first_run_computes_no_vector_that_was_saved_before_the_kill(first_run: Killed, stage: Stage) -> None:
    """From the moment that vectors are saved they are all there, and no later run computes them."""
    was_saved = is_at_or_after(first_run.point, "saved")
    assert first_run.vectors_saved == (stage.old.computed if was_saved else 0)
    assert computed(first_run.again) == stage.old.computed - first_run.vectors_saved


@pytest.mark.invariant("I5")
def test_an_edit_after_a_kill_reaches_the_undisturbed_state(edit: Killed, stage: Stage) -> None:
    """Wherever an edit is killed, the next run ends as if nothing had happened."""
    assert edit.export == stage.new.export
    assert edit.problems == []


@pytest.mark.invariant("I5")
def test_an_edit_computes_no_vector_that_was_saved_before_the_kill(edit: Killed, stage: Stage) -> None:
    """From the moment that vectors are saved, no later run computes them."""
    was_saved = is_at_or_after(edit.point, "saved")
    assert computed(edit.again) == (0 if was_saved else stage.new.computed)


@pytest.mark.invariant("I4")
def test_readers_answer_from_one_whole_generation_after_a_kill(edit: Killed, stage: Stage) -> None:
    """Before anybody runs again, a reader gets all of the old state or all of the new, never an error."""
    told = is_at_or_after(edit.point, "publish.pointed")
    assert edit.answer_between == (stage.new.answer if told else stage.old.answer)


@pytest.mark.invariant("I1")
def test_the_catalog_changes_in_one_step(edit: Killed, stage: Stage) -> None:
    """A kill before the commit leaves the old state in the catalog, one after it the new."""
    committed = is_at_or_after(edit.point, "publish.committed")
    assert edit.export_between == (stage.new.export if committed else stage.old.export)


@pytest.mark.invariant("I1")
@pytest.mark.parametrize("edit", BUILDER, indirect=True)
def test_a_dying_builder_is_one_clear_error_of_the_run(edit: Killed) -> None:
    """The builder's death ends the run with one message; the old generation is not touched."""
    failure = json.loads(edit.ended.stderr.splitlines()[-1])
    assert (failure["code"], failure["kind"], failure["retryable"]) == (1, "publish_failed", True)
    assert "SIGKILL" in failure["message"]
    assert "the old generation stands" in failure["message"]


@pytest.mark.invariant("I1")
def test_a_published_generation_never_changes(edit: Killed) -> None:
    """Neither a kill nor the run that makes it good changes a byte of a generation that keeps its name."""
    after = {name: digest for name, digest in edit.again["files"].items() if name in edit.generations_between}
    assert after
    assert edit.generations_between.items() >= after.items()


@pytest.mark.invariant("I5")
@pytest.mark.parametrize(("first", "second"), TWICE)
def test_a_run_killed_twice_still_reaches_the_undisturbed_state(first: str, second: str, stage: Stage) -> None:
    """A second kill, at another point, while the first is being made good, changes nothing."""
    scene = stage.edited()
    for point in (first, second):
        assert_reached(scene.index.run(scene.docs, GROUNDED_FAILPOINT=point, **FRUGAL), point)
    scene.run()
    assert scene.export() == stage.new.export
    assert scene.problems() == []


@pytest.mark.invariant("I5")
def test_a_kill_loses_at_most_one_batch_of_vectors(tmp_path: Path) -> None:
    """Of two batches, the one that was saved before the kill is not computed again."""
    scene = Scene(tmp_path)
    scene.write({"log.md": long_text(150)})
    small = {"GROUNDED_CHUNK_TOKENS": "32"}
    assert_reached(scene.index.run(scene.docs, GROUNDED_FAILPOINT="embed:2", **FRUGAL, **small), "embed")
    saved = scene.count("vectors")
    again = scene.run(**small)
    assert saved == 128
    assert computed(again) == again["chunks"]["total"] - saved > 0


def test_a_run_says_what_became_of_the_run_that_was_killed(stage: Stage) -> None:
    """The row of a killed run is closed by the next one."""
    scene = stage.unpublished()
    assert_reached(scene.index.run(scene.docs, GROUNDED_FAILPOINT="plan", **FRUGAL), "plan")
    scene.run()
    assert [row["outcome"] for row in scene.index.call("runs", "--json").json["runs"]] == ["done", "killed"]


def kill_and_run_again(scene: Scene, point: str) -> Killed:
    """Run with the failpoint armed, look, run again, look again."""
    ended = scene.index.run(scene.docs, GROUNDED_FAILPOINT=point, **FRUGAL)
    assert_reached(ended, point)
    published = scene.layout.pointer.exists()
    vectors_saved = scene.count("vectors")
    between = scene.export() if scene.count("settings") else ""
    answer = scene.answer() if published else None
    generations = scene.published_files()
    again = scene.run()
    return Killed(
        point=point,
        ended=ended,
        vectors_saved=vectors_saved,
        export_between=between,
        answer_between=answer,
        generations_between=generations,
        again={**again, "files": scene.published_files()},
        export=scene.export(),
        problems=scene.problems(),
    )


def assert_reached(ended: Ended, point: str) -> None:
    """Make sure that the point was reached: by the run, which is then dead, or by its builder."""
    assert ended.exit_code == (1 if point in BUILDER else -9), (point, ended)


def is_at_or_after(point: str, other: str) -> bool:
    """Tell whether a run reaches ``other`` no later than ``point``."""
    return POINTS.index(point) >= POINTS.index(other)

"""A changed recipe is refused until ``--rebuild``, and a rebuild is seen by readers only when it is complete."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from search.bundled import bundled_files
from tests.harness import ending

from .processes import frozen_builder, go_on, until
from .scene import BEFORE, FRUGAL, Scene, computed

pytestmark = [pytest.mark.model, pytest.mark.slow]

SMALL = ("--chunk-tokens", "32")


@dataclass(frozen=True)
class Recipes:
    """An index of the usual recipe, and what an index of the other one exports."""

    scene: Scene
    usual: str
    small: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Recipes:
    """Ingest one folder twice, by either recipe."""
    scene = Scene(tmp_path_factory.mktemp("rebuild"))
    long = "\n\n".join(BEFORE[name] for name in sorted(BEFORE)) * 3
    scene.write({**BEFORE, "long.md": f"# All of it\n\n{long}"})
    scene.run()
    scene.save()
    small = Scene(scene.index.folder, "small")
    small.run(*SMALL)
    return Recipes(scene, scene.export(), small.export())


@pytest.fixture
def recipes(made: Recipes) -> Recipes:
    """The index as it was ingested."""
    made.scene.put_back()
    return made


@pytest.fixture(scope="module")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a model folder: the bundled files under another name, with one entry of the tokenizer changed."""
    folder = tmp_path_factory.mktemp("models") / "harbour-model"
    folder.mkdir()
    files = bundled_files()
    shutil.copyfile(files["model.onnx"], folder / "model.onnx")
    tokenizer = json.loads(files["tokenizer.json"].read_text(encoding="utf-8"))
    tokenizer["model"]["max_input_chars_per_word"] = 99
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


@pytest.fixture(params=["chunk size", "model", "language"])
def change(
    request: pytest.FixtureRequest, other_model: Path
) -> tuple[tuple[str, ...], dict[str, str], tuple[str, str]]:
    """Options and environment that ask for another recipe, and the two names that the refusal must give."""
    return {
        "chunk size": (SMALL, {}, ("chunk", "32")),
        "model": (("--model", str(other_model)), {}, ("all-MiniLM-L6-v2-int8", "harbour-model")),
        "language": ((), {"GROUNDED_LANGUAGE": "german"}, ("english", "german")),
    }[request.param]


def test_a_run_by_another_recipe_is_refused_and_writes_nothing(
    change: tuple[tuple[str, ...], dict[str, str], tuple[str, str]], recipes: Recipes
) -> None:
    """It ends with code 12 and names both sides and the way out; no byte of the index has changed."""
    options, environment, names = change
    scene = recipes.scene
    before = (scene.index.generations(), scene.layout.pointer.read_bytes(), scene.count("runs"), scene.export())
    ended = scene.index.run(scene.docs, options=options, **FRUGAL, **environment)
    failure = json.loads(ended.stderr.splitlines()[-1])
    assert (ended.exit_code, failure["code"], failure["kind"]) == (12, 12, "recipe_mismatch")
    for name in (*names, "--rebuild"):
        assert name in failure["message"]
    after = (scene.index.generations(), scene.layout.pointer.read_bytes(), scene.count("runs"), scene.export())
    assert after == before


def test_a_rebuild_reaches_the_state_of_a_fresh_index(recipes: Recipes) -> None:
    """The new recipe's index is the one that a first run by it makes, and later runs keep to it without being told."""
    scene = recipes.scene
    report = scene.run(*SMALL, "--rebuild")
    assert computed(report) > 0
    assert scene.export() == recipes.small
    assert scene.problems() == []
    again = scene.run()
    assert (again["published"], computed(again)) == (False, 0)


def test_a_rebuild_by_the_same_recipe_embeds_nothing(recipes: Recipes) -> None:
    """It reads everything again and finds all of its vectors in the catalog."""
    report = recipes.scene.run("--rebuild")
    assert (report["published"], computed(report)) == (True, 0)
    assert recipes.scene.export() == recipes.usual
    assert recipes.scene.problems() == []


def test_a_rebuild_by_another_model_makes_its_vectors_anew(recipes: Recipes, other_model: Path) -> None:
    """Every chunk is embedded by the new model, and a search finds that model by its folder."""
    scene = recipes.scene
    report = scene.run("--rebuild", "--model", str(other_model))
    assert computed(report) == report["chunks"]["total"]
    ended = scene.index.call("search", "where do visitors park", "--json", GROUNDED_MODEL=str(other_model))
    assert ended.exit_code == 0, ended.stderr
    assert ended.json["passages"][0]["citation"]["path"] == "parking.md"


def test_an_index_of_a_model_folder_asks_for_the_folder(recipes: Recipes, other_model: Path) -> None:
    """Its recipe holds the model's name and hashes, not its place: who gives it by a flag is told how to keep it."""
    scene = recipes.scene
    told = scene.index.call("run", str(scene.docs), "--rebuild", "--model", str(other_model), **FRUGAL)
    line = f'model = "{other_model}"'
    assert f"{line} in {scene.index.home / 'config.toml'}" in told.stderr
    ended = scene.index.run(scene.docs, **FRUGAL)
    assert (ended.exit_code, json.loads(ended.stderr.splitlines()[-1])["kind"]) == (12, "model_mismatch")
    for words in ("harbour-model", "--model DIR", 'model = "DIR"'):
        assert words in json.loads(ended.stderr.splitlines()[-1])["message"]
    (scene.index.home / "config.toml").write_text(line + "\n", encoding="utf-8")
    assert scene.run()["published"] is False
    assert scene.index.call("search", "where do visitors park").exit_code == 0
    (scene.index.home / "config.toml").unlink()
    again = scene.run("--model", str(other_model))
    assert (again["published"], computed(again)) == (False, 0)


@pytest.mark.invariant("I4")
def test_readers_keep_the_old_generation_until_the_new_one_is_published(recipes: Recipes) -> None:
    """A reader that asks all through a rebuild gets all of the old state, and then all of the new."""
    scene = recipes.scene
    old, answers = scene.answer(), []
    with ending(scene.index.start("run", str(scene.docs), *SMALL, "--rebuild", "--json", **FRUGAL)) as process:
        builder = frozen_builder(process)
        # All but the building is done by now, and stands ready in the catalog.
        until(lambda: scene.count("vectors") > recipes.usual.count('"message_type":"chunk"'), process)
        assert scene.answer() == old
        go_on(builder)
        while process.poll() is None:
            answers.append(scene.answer())
        assert process.returncode == 0
    new = scene.answer()
    assert new != old
    assert answers == [old] * answers.count(old) + [new] * answers.count(new)


@pytest.mark.invariant("I5")
@pytest.mark.parametrize(
    "point", ["chunk", "saved", "publish.begin", "publish.apply", "publish.rename", "publish.commit"]
)
def test_a_killed_rebuild_leaves_the_old_index_as_it_was(point: str, recipes: Recipes) -> None:
    """A run by the old recipe goes on with nothing to do; a second rebuild ends as if nothing had happened."""
    scene = recipes.scene
    scene.index.run(scene.docs, options=(*SMALL, "--rebuild"), GROUNDED_FAILPOINT=point, **FRUGAL)
    usual = scene.run()
    assert (usual["published"], computed(usual)) == (False, 0)
    assert scene.export() == recipes.usual
    assert scene.problems() == []
    scene.run(*SMALL, "--rebuild")
    assert scene.export() == recipes.small
    assert scene.problems() == []

"""Four readers ask while a writer publishes thirty edits: every answer is of one whole generation (I4)."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import PATIENCE_S, ending

from .editor import MARKER, write_edition
from .scene import Scene

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.invariant("I4")]

HERE = Path(__file__).parent
READERS = 4
EDITS = 30
WHERE_IS_IT = "where does the marker stand"
WHICH_EDITION = "which edition of the page is this"


@dataclass(frozen=True)
class Seen:
    """One answer: its generation, its question, and path and text of each passage."""

    generation: str
    question: str
    passages: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Watched:
    """What each reader saw while the edits went on; ``published`` says what each generation holds."""

    scene: Scene
    published: Mapping[str, tuple[int, str]]
    answers: Sequence[Sequence[Seen]]

    @property
    def all_answers(self) -> list[Seen]:
        """The answers of all readers."""
        return [seen for answers in self.answers for seen in answers]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """Start the readers, wait until each has answered, edit thirty times, and let each answer once more."""
    folder = tmp_path_factory.mktemp("readers")
    scene = Scene(folder)
    scene.write({"other.md": "# Other\n\nA page that no edit touches.\n"})
    first = write_edition(scene.docs, 0)
    published = {str(scene.run()["generation"]): (0, first)}
    files = [folder / f"answers-{number}.jsonl" for number in range(READERS)]
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(ending(start_reader(scene, file))) for file in files]
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "answering\n"
        editor = [sys.executable, str(HERE / "editor.py"), str(scene.index.home), str(scene.docs), str(EDITS)]
        done = subprocess.run(
            editor, env=scene.index.environment(), capture_output=True, encoding="utf-8", timeout=2 * PATIENCE_S
        )
        assert done.returncode == 0, done.stderr
        for reader in readers:
            _, errors = reader.communicate(timeout=PATIENCE_S)
            assert (reader.returncode, errors) == (0, "")
    for line in done.stdout.splitlines():
        generation, edition, page = json.loads(line)
        published[generation] = (edition, page)
    return Watched(scene, published, [read(file) for file in files])


def test_the_marker_is_always_found_in_exactly_one_page(watched: Watched) -> None:
    """It moves with every edit; nobody ever sees it in both pages, or in neither."""
    for seen in watched.all_answers:
        if seen.question == WHERE_IS_IT:
            holders = [path for path, text in seen.passages if MARKER in text]
            assert holders == [watched.published[seen.generation][1]], seen


def test_every_answer_is_of_the_edition_of_its_generation(watched: Watched) -> None:
    """Both pages are found, and both are of the edition that was published as this generation."""
    for seen in watched.all_answers:
        if seen.question == WHICH_EDITION:
            edition, _ = watched.published[seen.generation]
            pages = {path: text for path, text in seen.passages if "This is edition" in text}
            assert len(pages) == 2, seen
            assert all(f"This is edition {edition} of" in text for text in pages.values()), seen


def test_generations_never_go_backwards_for_a_reader(watched: Watched) -> None:
    """A reader that has answered from one generation never again answers from an older one."""
    for answers in watched.answers:
        generations = [seen.generation for seen in answers]
        assert generations == sorted(generations)


def test_every_reader_follows_to_the_last_generation(watched: Watched) -> None:
    """Each began with the first, met several, and ended with the last; nobody had to be started again."""
    for answers in watched.answers:
        assert answers[0].generation == min(watched.published)
        assert answers[-1].generation == max(watched.published)
        assert len({seen.generation for seen in answers}) > 2


def test_old_generations_go_while_they_are_read(watched: Watched) -> None:
    """Thirty-one generations were published; the newest two are left, and nothing waits in the trash."""
    assert len(watched.published) == EDITS + 1
    kept = sorted(folder.name for folder in watched.scene.layout.generations.iterdir())
    assert kept == sorted(watched.published)[-2:]
    assert not list(watched.scene.layout.trash.iterdir())


def start_reader(scene: Scene, output: Path) -> subprocess.Popen[str]:
    """Start one reader over the index of the scene."""
    return subprocess.Popen(
        [sys.executable, str(HERE / "reader.py"), str(scene.index.home), str(output), WHERE_IS_IT, WHICH_EDITION],
        env=scene.index.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def read(file: Path) -> list[Seen]:
    """Return the answers that a reader wrote down, in their order."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [
        Seen(generation, question, [(path, text) for path, text in passages])
        for generation, question, passages in map(json.loads, lines)
    ]

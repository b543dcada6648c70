"""Whatever happens to a folder between runs, the index ends as one that saw only the last state (I2, I3, I5, I6)."""

import contextlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ingest import pipeline
from ingest.catalog.database import Catalog
from ingest.export import export
from ingest.observation import Observer, RunOptions
from ingest.progress import Silent
from ingest.report import RunReport
from ingest.verify import verify
from search.generation import IndexLayout
from search.recipe import EmbeddingSpec
from search.settings import Settings, load
from tests.cli.prose import note
from tests.fakes import FAKE_SPEC, FakeEmbedder

NAMES = ("a.md", "b.md", "c.txt", "in/a.md", "in/b.txt")
CONTENTS = (
    note(1), note(2), note(1) + "\n" + note(2), note(3), "", "\x7fELF\x00\x00binary", "# Note 1\n\nOne short line.\n",
)  # fmt: skip


@dataclass(frozen=True)
class Write:
    """Write a file, new or over an old one."""

    name: str
    content: int

    def act(self, docs: Path) -> None:
        """Carry it out."""
        path = docs / self.name
        path.parent.mkdir(exist_ok=True)
        path.write_text(CONTENTS[self.content], encoding="utf-8")


@dataclass(frozen=True)
class Move:
    """Rename a file over another name; nothing where it is not there."""

    name: str
    other: str

    def act(self, docs: Path) -> None:
        """Carry it out."""
        if (docs / self.name).is_file():
            (docs / self.other).parent.mkdir(exist_ok=True)
            (docs / self.name).replace(docs / self.other)


@dataclass(frozen=True)
class Copy:
    """Copy a file over another name; nothing where it is not there."""

    name: str
    other: str

    def act(self, docs: Path) -> None:
        """Carry it out."""
        if (docs / self.name).is_file() and self.name != self.other:
            (docs / self.other).parent.mkdir(exist_ok=True)
            shutil.copyfile(docs / self.name, docs / self.other)


@dataclass(frozen=True)
class Delete:
    """Delete a file; nothing where it is not there."""

    name: str

    def act(self, docs: Path) -> None:
        """Carry it out."""
        (docs / self.name).unlink(missing_ok=True)


Step = Write | Move | Copy | Delete
names = st.sampled_from(NAMES)
steps = st.one_of(
    st.builds(Write, names, st.integers(0, len(CONTENTS) - 1)),
    st.builds(Move, names, names),
    st.builds(Copy, names, names),
    st.builds(Delete, names),
)
# Several steps happen between two runs.
histories = st.lists(st.lists(steps, min_size=1, max_size=4), min_size=1, max_size=4)


@pytest.fixture
def embedders(monkeypatch: pytest.MonkeyPatch) -> list[FakeEmbedder]:
    """The embedders that runs were given: fakes that count what they embedded."""
    made: list[FakeEmbedder] = []

    def fake_embedder(model: str, **_: object) -> FakeEmbedder:
        made.append(FakeEmbedder())
        return made[-1]

    def fake_spec(model: str, **_: object) -> EmbeddingSpec:
        return FAKE_SPEC

    monkeypatch.setattr("search.embedding.load_embedder", fake_embedder)
    monkeypatch.setattr("ingest.recipes.spec_of", fake_spec)
    monkeypatch.setenv("GROUNDED_WORKERS", "1")
    return made


def ingest(home: Path, docs: Path) -> RunReport:
    """Run once, all removals confirmed: the guard has tests of its own."""
    return pipeline.run(given_settings(home), RunOptions(roots=(docs,), allow_removals=1_000), Silent())


def given_settings(home: Path) -> Settings:
    """The settings of an index."""
    return load({}, index=str(home))


def state_of(home: Path) -> list[str]:
    """The export of an index."""
    with contextlib.closing(Catalog.open_read_only(IndexLayout(home).catalog)) as catalog:
        return list(export(catalog))


@pytest.mark.slow
@pytest.mark.invariant("I2")
@pytest.mark.invariant("I3")
@pytest.mark.invariant("I6")
@settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(history=[[Write("a.md", 0), Write("b.md", 1)], [Move("a.md", "in/a.md"), Move("b.md", "a.md")]])
@example(history=[[Write("c.txt", 0)], [Copy("c.txt", "a.md")], [Delete("c.txt")]])
@given(history=histories)
def test_any_history_ends_in_the_state_of_a_fresh_index(
    history: list[list[Step]], embedders: list[FakeEmbedder], tmp_path: Path
) -> None:
    """Runs between changes leave no trace: the export is that of the last state; one more run writes nothing.

    And the generation holds exactly the chunks of that state.
    """
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    docs = folder / "docs"
    docs.mkdir()
    (docs / "anchor.md").write_text(note(9), encoding="utf-8")  # so that the root is never empty
    kept, fresh = folder / "kept", folder / "fresh"
    for changes in history:
        for change in changes:
            change.act(docs)
        ingest(kept, docs)
    state = state_of(kept)

    embedded = sum(embedder.passages_embedded for embedder in embedders)
    again = ingest(kept, docs)
    assert (again.published, again.chunks.written, again.computed) == (False, 0, 0)
    assert sum(embedder.passages_embedded for embedder in embedders) == embedded
    assert state_of(kept) == state

    ingest(fresh, docs)
    assert state == state_of(fresh)
    report = verify(given_settings(kept), Observer(given_settings(kept), RunOptions(roots=())), full=False)
    assert [check.message for check in report.checks if not check.ok] == []
    shutil.rmtree(folder)

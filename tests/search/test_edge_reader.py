"""The reader follows CURRENT, never changes what it reads, and tells damage from emptiness."""

import ast
import json
import multiprocessing
import shutil
from pathlib import Path

import pytest
from qdrant_edge import EdgeShard

from ingest.shard import PointRecord
from search import edge
from search.edge import EdgeReader
from search.errors import (
    GroundedError,
    IndexDamaged,
    IndexMissing,
    IndexUnavailable,
    NotEnoughSpace,
    SchemaMismatch,
)
from search.generation import MANIFEST, IndexLayout
from search.lookup import Lookup
from search.store import Where
from tests.fakes import FakeEmbedder, Place, point, point_at, publish_generation, tree_bytes

EMBEDDER = FakeEmbedder()
# What a reader may call of a shard, and what it must not.
READING = {"load", "query_batch", "retrieve", "count", "close"}
WRITING = {"create", "flush", "optimize", "update", "update_from_snapshot", "unpack_snapshot"}


def passages(marker: str, count: int = 30) -> list[PointRecord]:
    """Points that name the generation they belong to."""
    return [
        point(EMBEDDER, f"Passage {n} of the {marker} generation.", Place(f"{marker}/{n}.md")) for n in range(count)
    ]


def ask(reader: EdgeReader, question: str = "passage of the generation") -> tuple[str, set[str]]:
    """The generation that answers, and the markers of all its passages."""
    result = Lookup(reader, lambda _: EMBEDDER, floor=0.0).lookup(question, limit=20)
    return result.generation, {passage.text.split()[4] for passage in result.passages}


def test_a_new_generation_is_followed_and_a_held_one_goes_on(tmp_path: Path) -> None:
    """The swap happens between lookups: who holds the old one keeps a complete old one (I4)."""
    layout = publish_generation(tmp_path, passages("first"))
    reader = EdgeReader(layout)
    held = reader.snapshot()
    assert reader.snapshot() is held
    publish_generation(tmp_path, passages("second"), revision=2)
    assert ask(reader) == ("000002", {"second"})
    dense, _ = held.query(EMBEDDER.embed_query("passage"), passages("first", 1)[0].sparse, depth=50, where=Where())
    assert len(dense) == 30
    assert held.generation == "000001"


def test_a_generation_made_anew_under_its_name_is_followed(tmp_path: Path) -> None:
    """A repair may build the same revision again."""
    layout = publish_generation(tmp_path, passages("broken"))
    reader = EdgeReader(layout)
    assert ask(reader) == ("000001", {"broken"})
    shutil.rmtree(layout.generation("000001"))
    publish_generation(tmp_path, passages("mended"))
    assert ask(reader) == ("000001", {"mended"})


def test_a_generation_that_cannot_be_loaded_leaves_the_held_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The old one stays in use, with one warning; the next good one is followed."""
    layout = publish_generation(tmp_path, passages("first"))
    reader = EdgeReader(layout)
    reader.snapshot()
    point_at(layout, "000009")
    with caplog.at_level("WARNING"):
        assert [ask(reader)[0] for _ in range(3)] == ["000001"] * 3
    assert len(caplog.records) == 1
    publish_generation(tmp_path, passages("third"), revision=3)
    assert ask(reader) == ("000003", {"third"})


def test_nothing_published_is_a_missing_index(tmp_path: Path) -> None:
    """An index folder without CURRENT is a first run that did not finish."""
    (tmp_path / "index").mkdir()
    with pytest.raises(IndexMissing, match="nothing was published"):
        EdgeReader(IndexLayout(tmp_path)).snapshot()


def test_an_index_that_is_removed_is_missing_also_for_who_holds_it(tmp_path: Path) -> None:
    """Answers come from an index that is there."""
    reader = EdgeReader(publish_generation(tmp_path / "home", passages("first", 2)))
    reader.snapshot()
    shutil.rmtree(tmp_path / "home")
    with pytest.raises(IndexMissing):
        reader.snapshot()


def shard_files(layout: IndexLayout) -> list[Path]:
    """Every file of the first generation that holds something."""
    return [path for path in sorted(layout.generation("000001").rglob("*")) if path.is_file() and path.stat().st_size]


@pytest.mark.parametrize("fault", ["missing", "shorter"])
def test_every_file_that_is_missing_or_shorter_is_damage(tmp_path: Path, fault: str) -> None:
    """Never an empty answer, although the engine itself loads some of them with no points."""
    layout = publish_generation(tmp_path, passages("first", 3))
    for path in shard_files(layout):
        content = path.read_bytes()
        if fault == "missing":
            path.unlink()
        else:
            path.write_bytes(content[:-1])
        with pytest.raises(GroundedError) as caught:
            EdgeReader(layout).snapshot()
        assert isinstance(caught.value, IndexDamaged | SchemaMismatch), path
        path.write_bytes(content)
    assert ask(EdgeReader(layout))[0] == "000001"


def test_a_shard_with_fewer_points_than_its_manifest_is_damage(tmp_path: Path) -> None:
    """The exact count is compared, for files that have the right size and load with less."""
    layout = publish_generation(tmp_path, passages("first", 3))
    manifest = layout.generation("000001") / MANIFEST
    values = json.loads(manifest.read_text())
    values["counts"]["chunks"] = 4
    manifest.write_text(json.dumps(values))
    with pytest.raises(IndexDamaged, match="3 points, should have 4"):
        EdgeReader(layout).snapshot()


def test_mappings_full_of_zeros_are_damage(tmp_path: Path) -> None:
    """The right size does not help: the engine's own error becomes ours."""
    layout = publish_generation(tmp_path, passages("first", 3))
    mappings = next(path for path in shard_files(layout) if path.name == "mutable_id_tracker.mappings")
    mappings.write_bytes(bytes(mappings.stat().st_size))
    with pytest.raises(IndexDamaged):
        EdgeReader(layout).snapshot()


def test_a_panic_of_the_engine_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Rust panic is no Exception; unmapped it would end the agent's process."""

    class Panic(BaseException):
        pass

    class Panicking:
        @staticmethod
        def load(path: str) -> None:
            raise Panic("index out of bounds")

    layout = publish_generation(tmp_path, passages("first", 1))
    monkeypatch.setattr(edge, "EdgeShard", Panicking)
    with pytest.raises(IndexDamaged, match="index out of bounds"):
        EdgeReader(layout).snapshot()


@pytest.mark.parametrize(
    ("told", "error", "words"),
    [
        ("No space left on device (os error 28)", NotEnoughSpace, "the disk is full"),
        ("service error: Read-only file system (os error 30)", IndexUnavailable, "may not write"),
        ("Input/output error (os error 5)", IndexDamaged, "os error 5"),
    ],
)
def test_what_the_system_refused_to_the_engine_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, error: type[GroundedError], words: str
) -> None:
    """Loading writes a little; a full or read-only disk must not send anybody to repair a sound index."""

    class Refused:
        @staticmethod
        def load(path: str) -> None:
            raise RuntimeError(told)

    layout = publish_generation(tmp_path, passages("first", 1))
    monkeypatch.setattr(edge, "EdgeShard", Refused)
    with pytest.raises(error, match=words):
        EdgeReader(layout).snapshot()


def test_reading_leaves_every_byte_as_it_is(tmp_path: Path) -> None:
    """Many loads and lookups: same files, same content (times may move, they prove nothing)."""
    layout = publish_generation(tmp_path, passages("first"))
    before = tree_bytes(tmp_path)
    for n in range(20):
        reader = EdgeReader(layout)
        assert ask(reader, f"passage {n}")[0] == "000001"
        assert Lookup(reader, lambda _: EMBEDDER).lookup("x", where=Where(path="first")).generation == "000001"
        reader.close()
    assert tree_bytes(tmp_path) == before


def _load_often(home: str) -> None:
    for _ in range(5):
        assert ask(EdgeReader(IndexLayout(Path(home)))) == ("000001", {"first"})


def test_processes_may_read_one_generation_at_once(tmp_path: Path) -> None:
    """An editor's agent and a terminal's agent do not disturb each other, nor the files."""
    publish_generation(tmp_path, passages("first"))
    before = tree_bytes(tmp_path)
    spawn = multiprocessing.get_context("spawn")
    readers = [spawn.Process(target=_load_often, args=(str(tmp_path),)) for _ in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(timeout=120)
    assert [reader.exitcode for reader in readers] == [0, 0]
    assert tree_bytes(tmp_path) == before


def test_the_package_calls_nothing_of_a_shard_that_writes() -> None:
    """Read from the source: whatever the package calls on a shard, and whatever it imports from the engine."""
    assert {name for name in dir(EdgeShard) if not name.startswith("_")} >= READING | WRITING
    for path in sorted(Path(edge.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "qdrant_edge"
            for alias in node.names
        }
        assert not imported & {"UpdateOperation", "Point", "EdgeConfig", "PointVectors"}, path
        assert ("EdgeShard" in imported) == (path.name == "edge.py"), path
        attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        called = {node.attr for node in attributes if ast.unparse(node.value) in {"EdgeShard", "shard", "self._shard"}}
        assert called == (READING if path.name == "edge.py" else set()), path
        if path.name == "edge.py":
            assert not {node.attr for node in attributes} & WRITING

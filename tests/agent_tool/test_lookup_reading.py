"""The tool over real generations, with the fake embedder: damage, absence, swaps, and a loading that takes its time."""

import ast
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tool.admission import FloodMeter
from agent_tool.reading import Index
from agent_tool.tool import LookupResult, LookupTool
from audit import Audit
from search.edge import EdgeReader
from search.errors import IndexUnavailable
from search.generation import IndexLayout
from search.lookup import Lookup
from search.view import ViewReader
from tests.agent_tool.doubles import key
from tests.fakes import FakeEmbedder, Place, point, publish_generation, tree_bytes
from tests.harness import REPOSITORY

EMBEDDER = FakeEmbedder()
LEAVE = point(EMBEDDER, "Carry-over of leave is capped at five days.", Place("hr/leave.md"))
BOATS = point(EMBEDDER, "The booking page for the rowing boats opens at eight.", Place("club/boats.md"))
OPEN = FloodMeter(per_second=1e9, burst=10**6)


def index_over(home: Path) -> Index:
    """An index as the command opens it, but for the model."""
    return Index(lambda: Lookup(EdgeReader(IndexLayout(home)), lambda _: EMBEDDER, floor=0.25))


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[Audit]:
    """A store."""
    store = Audit(tmp_path / "audit", durable=False)
    yield store
    store.close()


def ask(tool: LookupTool, query: str = "leave carry-over", step: str = "1", **more: object) -> LookupResult:
    """One call."""
    return tool.lookup({"query": query, **more}, key=key(step=step), principal="local")


def test_found_not_found_and_not_under_a_path_are_answers(tmp_path: Path, audit: Audit) -> None:
    """A path that does not exist answers as one without a match, byte for byte."""
    publish_generation(tmp_path / "g", [LEAVE, BOATS])
    tool = LookupTool(index_over(tmp_path / "g"), audit)
    found = ask(tool)
    assert found.structured["passages"][0]["citation"]["path"] == "hr/leave.md"
    assert found.structured["gaps"]["failed"] == 1
    assert ask(tool, "zebra xylophone quasar", "2").status == "no_match"
    texts = {ask(tool, "leave carry-over", step, path=path).text for step, path in (("3", "nowhere"), ("4", "hr/x"))}
    texts.add(ask(tool, "zebra xylophone quasar", "5", path="hr").text)
    assert len(texts) == 1
    assert texts.pop().startswith("no_match")
    assert ask(tool, "leave carry-over", "6", path="hr/").status == "ok"
    tool.close()


def test_an_empty_index_is_no_match_and_none_is_missing(tmp_path: Path, audit: Audit) -> None:
    """The first was looked at; the second could not be. It appears without a restart."""
    publish_generation(tmp_path / "empty", [])
    tool = LookupTool(index_over(tmp_path / "empty"), audit)
    assert ask(tool).status == "no_match"
    later = LookupTool(index_over(tmp_path / "later"), audit)
    assert ask(later, step="2").error.code == "index_missing"
    publish_generation(tmp_path / "later", [LEAVE])
    assert ask(later, step="2").status == "ok"
    tool.close()
    later.close()


@pytest.mark.parametrize("name", ["mutable_id_tracker.mappings", "mutable_id_tracker.versions", "segment.json"])
@pytest.mark.parametrize("damage", ["missing", "short"])
def test_a_damaged_generation_is_never_an_empty_answer(tmp_path: Path, audit: Audit, name: str, damage: str) -> None:
    """It could load with no points, and would look like nothing found."""
    layout = publish_generation(tmp_path / "g", [LEAVE])
    (victim,) = layout.generation("000001").rglob(name)
    if damage == "missing":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-1])
    tool = LookupTool(index_over(tmp_path / "g"), audit)
    result = ask(tool)
    assert result.error.code == "index_unavailable"
    assert str(tmp_path) not in result.text
    tool.close()


@pytest.mark.invariant("I4")
def test_every_answer_under_swaps_is_of_one_generation(tmp_path: Path, audit: Audit) -> None:
    """Each names one and holds only its chunks; the last one is served without a restart."""
    home = tmp_path / "g"
    notes = [point(EMBEDDER, f"Leave carry-over in edition {n}.", Place("leave.md")) for n in range(1, 6)]
    publish_generation(home, notes[:1], revision=1)
    tool = LookupTool(index_over(home), audit, meter=OPEN)
    done = threading.Event()
    seen: list[tuple[str, list[str]]] = []

    def agent(name: str) -> None:
        n = 0
        while not done.is_set() or n == 0:
            result = ask(tool, step=f"{name}.{n}")
            assert result.status == "ok", result.text
            generation = result.structured["generation"]
            seen.append((generation, [item["text"] for item in result.structured["passages"]]))
            n += 1

    threads = [threading.Thread(target=agent, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for revision in range(2, 6):
        publish_generation(home, notes[revision - 1 : revision], revision=revision)
        shutil.rmtree(IndexLayout(home).generation(f"{revision - 1:06d}"), ignore_errors=True)
    done.set()
    for thread in threads:
        thread.join(60)
    assert all(texts == [f"Leave carry-over in edition {int(generation)}."] for generation, texts in seen)
    assert ask(tool, step="last").structured["generation"] == "000005"
    tool.close()


def test_an_index_that_never_loads_ends_a_call_at_its_deadline(tmp_path: Path, audit: Audit) -> None:
    """It is counted, and says that trying again may help."""
    never = threading.Event()

    def opener() -> Lookup:
        never.wait(60)
        raise IndexUnavailable("never")

    # By the tool's clock no time passes; by that of the waiting the deadline has.
    tool = LookupTool(Index(opener), audit, deadline_s=0.0, clock=lambda: 0.0)
    assert ask(tool).error.code == "index_unavailable"
    assert [attempt.outcome for attempt in audit.show(key(step="1").step).attempts] == ["index_unavailable"]
    never.set()
    tool.close()


def test_closing_ends_the_calls_that_wait_for_the_index(tmp_path: Path, audit: Audit) -> None:
    """Their rows end too; a process need not wait for a model to be able to leave."""
    never, waiting = threading.Event(), threading.Event()
    loaded: list[bool] = []

    def opener() -> Lookup:
        waiting.set()
        loaded.append(never.wait(60))
        raise IndexUnavailable("never")

    tool = LookupTool(Index(opener), audit, deadline_s=600)
    results: list[LookupResult] = []
    caller = threading.Thread(target=lambda: results.append(ask(tool)))
    caller.start()
    assert waiting.wait(60)
    tool.close()
    caller.join(60)
    assert loaded == [], "closing has waited for the loading"
    never.set()
    assert results[0].error.code == "index_unavailable"
    assert [attempt.outcome for attempt in audit.show(key(step="1").step).attempts] == ["index_unavailable"]


def test_ready_means_that_a_lookup_would_be_answered(tmp_path: Path) -> None:
    """Not before it is loaded, not without a generation, not after the end."""
    publish_generation(tmp_path / "g", [LEAVE])
    index, none = index_over(tmp_path / "g"), index_over(tmp_path / "none")
    assert not index.ready()
    for opened in (index, none):
        opened.start()
        opened.start()
    index.search("leave", limit=1, path=None, until=time.monotonic() + 60)
    assert index.ready()
    none.close()
    assert not none.ready()
    index.close()
    assert not index.ready()


def view_files(folder: Path) -> list[str]:
    """Names of the generations in a view."""
    return sorted(path.name for path in (folder / "index" / "generations").iterdir())


def test_a_view_reads_copies_follows_the_index_and_leaves_it_alone(tmp_path: Path) -> None:
    """Equal answers, one copy at a time, not a byte nor a time of the index changed."""
    home, folder = tmp_path / "g", tmp_path / "view"
    layout = publish_generation(home, [LEAVE, BOATS])
    before = tree_bytes(layout.index)
    times = {path: path.stat().st_mtime_ns for path in layout.index.rglob("*")}
    viewed = Lookup(ViewReader(layout, folder), lambda _: EMBEDDER)
    plain = viewed.lookup("leave carry-over")
    assert plain.passages[0].chunk_id == LEAVE.chunk_id
    assert tree_bytes(layout.index) == before
    assert {path: path.stat().st_mtime_ns for path in layout.index.rglob("*")} == times
    assert tree_bytes(folder / "index" / "generations" / "000001").items() >= {
        (name, sha) for name, sha in tree_bytes(layout.generation("000001")).items() if name.endswith(".mappings")
    }
    publish_generation(home, [BOATS], revision=2)
    assert viewed.lookup("rowing boats").generation == "000002"
    assert view_files(folder) == ["000002"]
    viewed.close()


def test_a_view_copies_holes_as_holes(tmp_path: Path) -> None:
    """A generation is mostly holes, and would fill the disk without."""
    layout = publish_generation(tmp_path / "g", [LEAVE])
    viewed = Lookup(ViewReader(layout, tmp_path / "view"), lambda _: EMBEDDER)
    viewed.lookup("leave")

    def blocks(folder: Path) -> int:
        return sum(path.stat().st_blocks for path in folder.rglob("*") if path.is_file())

    assert blocks(tmp_path / "view") <= 2 * blocks(layout.generation("000001"))
    viewed.close()


def test_the_agent_tool_imports_search_and_audit_alone() -> None:
    """Every import, nested ones too; no writer can be reached."""
    ours = {"agent_tool", "search", "audit", "ingest", "tests", "data"}
    for path in (REPOSITORY / "agent_tool").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [str(node.module)]
            packages = {name.partition(".")[0] for name in names} & ours
            assert packages <= {"agent_tool", "search", "audit"}, path


def test_the_reader_calls_nothing_of_a_shard_that_writes() -> None:
    """Load, query, read, count, close; no other method of the engine is named in what the agent's process imports."""
    called = set()
    tree = ast.parse((REPOSITORY / "search" / "edge.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name in {"EdgeShard", "shard", "_shard"}:
                called.add(node.attr)
    assert called <= {"load", "query", "query_batch", "retrieve", "count", "close"}
    assert {"load", "query_batch", "close"} <= called

"""Damage, planted one at a time: ``verify`` names it and the command that mends it, and that command does mend it.

Every case is a change that no run would make; the index and the folder are put back for each. What stands beside a case
is what verify says of it, and what the remedy leaves behind: always the state before the damage, or the state of the
folder where that is what changed.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.shard import PointRecord, Shard, settle
from ingest.verify import Check
from search.errors import IndexDamaged
from search.generation import MANIFEST, FileEntry, Manifest
from search.identity import ChunkId, chunk_id, sparse_sha256
from search.records import SparseVector
from search.sparse_copy import copy_folder

from .scene import BEFORE, FRUGAL, Scene

pytestmark = [pytest.mark.model, pytest.mark.slow]

VECTORS = "segments/*/vector_storage-dense/vectors/chunk_0.mmap"
STORED_TEXTS = "segments/*/payload_storage/page_0.dat"
SEGMENT = "segments/*/segment.json"
VERSION = "segments/*/version.info"

RUN = "ingest run FOLDER"
REPAIR = "ingest repair"
REBUILD = "ingest run --rebuild FOLDER"
RECOMPUTE = "ingest repair --recompute"

REHASH = "ingest run --rehash FOLDER"
# Files are taken for settled two seconds after they were written; a run takes about half a second.
RUNS_UNTIL_IT_IS_QUIET = 4

Change = Callable[[Scene], object]
Statement = str


@dataclass(frozen=True)
class Damage:
    """A change, the check that finds it, the command that mends it, and whether a lookup must refuse to answer."""

    name: str
    plant: Change
    check: str
    remedy: str
    unanswerable: bool = False


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scene, str]:
    """Two generations of one folder, and the export of the second; runs have found since that nothing changed."""
    scene = Scene(tmp_path_factory.mktemp("damage"))
    scene.write({**BEFORE, "early.md": "# Early\n\nA page of the very first day.\n"})
    scene.run()
    scene.write(BEFORE)
    scene.run()
    # A run that has nothing to do may leave a note of that, which no remedy may be taken in by.
    for _ in range(RUNS_UNTIL_IT_IS_QUIET):
        scene.run()
    scene.save()
    return scene, scene.export()


@pytest.fixture
def scene(ingested: tuple[Scene, str]) -> Iterator[Scene]:
    """The index undamaged, over the folder as it was ingested."""
    made, _ = ingested
    made.put_back()
    yield made
    for name, text in BEFORE.items():
        path = made.docs / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def generation(scene: Scene) -> Path:
    """Return the folder of the current generation."""
    return scene.layout.generation(scene.layout.current() or "")


def flip_bit(pattern: str) -> Change:
    """Flip one bit in the middle of the data of a file of the generation."""

    def plant(scene: Scene) -> None:
        path = next(iter(sorted(generation(scene).glob(pattern))))
        content = bytearray(path.read_bytes())
        place = next(place for place, byte in enumerate(content) if byte)
        content[place] ^= 0x10
        path.write_bytes(content)

    return plant


def remove(pattern: str) -> Change:
    """Delete one file of the generation."""
    return lambda scene: next(iter(sorted(generation(scene).glob(pattern)))).unlink()


def truncate(pattern: str) -> Change:
    """Cut a file of the generation in half."""

    def plant(scene: Scene) -> None:
        path = next(iter(sorted(generation(scene).glob(pattern))))
        os.truncate(path, path.stat().st_size // 2)

    return plant


def point_at(text: str) -> Change:
    """Write something else into ``CURRENT``."""
    return lambda scene: scene.layout.pointer.write_text(text, encoding="ascii")


def execute(*statements: Statement) -> Change:
    """Change rows of the catalog behind its back."""

    def change(connection: sqlite3.Connection) -> None:
        for statement in statements:
            assert connection.execute(statement).rowcount == 1, statement

    return lambda scene: scene.change_catalog(change)


def extra_point(scene: Scene) -> None:
    """Have the generation hold one point more than the catalog, in a shard that is sound by itself."""
    text = "Nobody ever wrote this."
    vector = np.zeros(384, dtype=np.float32)
    vector[0] = 1.0
    record = PointRecord(chunk_id("", text), vector, SparseVector((1,), (1.0,)), {"text": text, "context": ""})
    rewrite(scene, upserts=[record], deletes=[], chunks=+1)


def missing_point(scene: Scene) -> None:
    """Have the generation lack one point of the catalog, in a shard that is sound by itself."""
    rewrite(scene, upserts=[], deletes=[some_chunk(scene)], chunks=-1)


def rewrite(scene: Scene, *, upserts: list[PointRecord], deletes: list[ChunkId], chunks: int) -> None:
    """Put another shard in the place of the generation; its files are those of its manifest, its count is not."""
    folder = generation(scene)
    manifest = Manifest.read(folder)
    made = folder.with_name("made")
    copy_folder(folder, made)
    (made / MANIFEST).unlink()
    with Shard.open(made, manifest.recipe.embedding) as shard:
        shard.apply(upserts, [], deletes)
        shard.optimize()
    settle(made, manifest.chunks + chunks)
    files = {
        str(path.relative_to(made)): FileEntry(path.stat().st_size, sparse_sha256(path))
        for path in made.rglob("*")
        if path.is_file()
    }
    (made / MANIFEST).write_text(json.dumps(replace(manifest, files=files).to_json()), encoding="utf-8")
    shutil.rmtree(folder)
    made.rename(folder)


def some_chunk(scene: Scene) -> ChunkId:
    """Return the id of one chunk."""
    found: list[str] = []
    scene.change_catalog(lambda db: found.extend(db.execute("SELECT min(chunk_id) FROM points").fetchone()))
    return ChunkId(found[0])


def edit_source(scene: Scene) -> None:
    """Change a file after it was ingested."""
    scene.docs.joinpath("leave.md").write_text("# Annual leave\n\nThere is none.\n", encoding="utf-8")


ONE_LEAVE = "document_id = (SELECT document_id FROM sources WHERE shown = 'leave.md') AND ordinal = 0"
ONE_POINT = "chunk_id = (SELECT min(chunk_id) FROM points)"

GENERATION = (
    Damage("flipped bit in the vectors", flip_bit(VECTORS), "files", REPAIR),
    Damage("flipped bit in the stored texts", flip_bit(STORED_TEXTS), "files", REPAIR),
    Damage("missing segment file", remove(SEGMENT), "files", REPAIR, unanswerable=True),
    # The engine loads such a segment as an empty one, without a word.
    Damage("missing version of a segment", remove(VERSION), "files", REPAIR, unanswerable=True),
    Damage("half a file of vectors", truncate(VECTORS), "files", REPAIR, unanswerable=True),
    Damage("missing manifest", remove(MANIFEST), "manifest", REPAIR, unanswerable=True),
    Damage("extra point", extra_point, "points", REPAIR, unanswerable=True),
    Damage("missing point", missing_point, "points", REPAIR, unanswerable=True),
    Damage("pointer to an older generation", point_at("000001\n"), "pointer", REPAIR),
    Damage("pointer to nothing", point_at("000777\n"), "pointer", REPAIR, unanswerable=True),
    Damage("pointer that holds no name", point_at("../../etc\n"), "pointer", REPAIR, unanswerable=True),
    Damage("missing pointer", lambda scene: scene.layout.pointer.unlink(), "pointer", REPAIR),
    Damage("stale row of a point", execute(
        "INSERT INTO points VALUES ('00000000-0000-8000-8000-000000000000', 'x')"), "points", REPAIR),
    Damage("missing row of a point", execute(f"DELETE FROM points WHERE {ONE_POINT}"), "points", REPAIR),
    Damage("changed row of a point", execute(
        f"UPDATE points SET payload_hash = 'x' WHERE {ONE_POINT}"), "payloads", REPAIR),
)  # fmt: skip
CATALOG = (
    Damage("location outside its document", execute(
        f"UPDATE locations SET char_end = char_end + 100000 WHERE {ONE_LEAVE}"), "rows", REBUILD),
    Damage("location of other characters", execute(
        f"UPDATE locations SET char_start = char_start + 1 WHERE {ONE_LEAVE}"),
        "passages", REBUILD),
    Damage("missing row of a location", execute(
        f"DELETE FROM locations WHERE {ONE_LEAVE}"), "rows", REBUILD),
    Damage("changed text of a chunk", execute(
        "UPDATE chunks SET text = text || '!' WHERE chunk_id = (SELECT min(chunk_id) FROM points)"),
        "passages", REBUILD),
    Damage("source without its document", execute(
        "UPDATE sources SET document_id = NULL WHERE shown = 'leave.md'"), "rows", REBUILD),
    Damage("source of another document", execute(
        "UPDATE sources SET document_id = (SELECT document_id FROM sources WHERE shown = 'boats.md'), racy = 1 "
        "WHERE shown = 'leave.md'"), "sources", REHASH),
    Damage("missing vector", execute(
        f"DELETE FROM vectors WHERE {ONE_POINT}"), "vectors_saved", RECOMPUTE),
    Damage("vector of another text", execute(
        "UPDATE vectors SET dense = (SELECT dense FROM vectors WHERE chunk_id = (SELECT max(chunk_id) FROM points)) "
        f"WHERE {ONE_POINT}"), "vectors", RECOMPUTE),
    Damage("changed source", edit_source, "sources", RUN),
    Damage("source that is gone", lambda scene: scene.docs.joinpath("leave.md").unlink(),
        "sources", RUN),
)  # fmt: skip


def named(damages: tuple[Damage, ...]) -> list[Any]:
    """Return the cases with their names."""
    return [pytest.param(damage, id=damage.name.replace(" ", "-")) for damage in damages]


@pytest.mark.invariant("I2")
@pytest.mark.parametrize("damage", named(GENERATION))
def test_repair_heals_a_generation_without_embedding(damage: Damage, scene: Scene, ingested: tuple[Scene, str]) -> None:
    """The right check names the damage and ``ingest repair``, which computes nothing and leaves the state as it was."""
    damage.plant(scene)
    findings = scene.findings()
    assert findings[damage.check].remedy == damage.remedy
    assert_name_commands(findings)

    repaired = scene.index.call("repair", "--json")
    assert repaired.exit_code == 0, repaired.stderr
    assert repaired.json["embeddings"] == {"computed": 0}
    assert scene.problems() == []
    assert scene.export() == ingested[1]


@pytest.mark.parametrize("damage", named(CATALOG))
def test_the_command_that_verify_names_mends_the_damage(damage: Damage, scene: Scene) -> None:
    """The right check names the damage and a command; after it the state is that of a fresh index of the folder."""
    damage.plant(scene)
    findings = scene.findings()
    remedy = findings[damage.check].remedy
    assert remedy == damage.remedy
    assert_name_commands(findings)

    for command in remedy.split(", then "):
        words = [str(scene.docs) if word == "FOLDER" else word for word in command.split()[1:]]
        ended = scene.index.call(*words, **FRUGAL)
        assert ended.exit_code == 0, (command, ended.stderr)
    assert scene.problems() == []
    fresh = Scene(scene.index.folder, "fresh")
    fresh.clear()
    fresh.run()
    assert scene.export() == fresh.export()


@pytest.mark.invariant("I1")
@pytest.mark.parametrize("damage", named(tuple(damage for damage in GENERATION if damage.unanswerable)))
def test_a_lookup_on_damage_never_answers_with_nothing(damage: Damage, scene: Scene) -> None:
    """It says that the index is damaged, and names the command that mends it."""
    damage.plant(scene)
    with pytest.raises(IndexDamaged, match="ingest repair"):
        scene.answer()


def test_verify_and_search_on_damage_end_with_codes_of_their_own(scene: Scene) -> None:
    """Verify ends with 4 and its report, search with 1, ``index_damaged``, and nothing on stdout."""
    remove(SEGMENT)(scene)
    verified = scene.index.call("verify", "--json")
    assert (verified.exit_code, verified.json["ok"]) == (4, False)
    assert [check["name"] for check in verified.json["checks"] if not check["ok"]] == ["files"]
    searched = scene.index.call("search", "where do visitors park", "--json", **FRUGAL)
    failure = json.loads(searched.stderr.splitlines()[-1])
    assert (searched.exit_code, failure["code"], failure["kind"]) == (1, 1, "index_damaged")
    assert searched.stdout == ""


def test_verify_changes_nothing(scene: Scene) -> None:
    """Whatever it finds, the bytes of generation and pointer are as before."""
    flip_bit(VECTORS)(scene)
    before = (scene.index.generations(), scene.layout.pointer.read_bytes(), scene.export())
    assert "files" in scene.findings()
    assert (scene.index.generations(), scene.layout.pointer.read_bytes(), scene.export()) == before


def test_repair_of_a_sound_index_builds_nothing(scene: Scene) -> None:
    """A sound generation is only pointed to again."""
    before = scene.index.generations()
    report = scene.index.call("repair", "--json").json
    assert (report["generation_rebuilt"], report["pointer_rewritten"]) == (False, False)
    assert scene.index.generations() == before


def assert_name_commands(findings: Mapping[str, Check]) -> None:
    """Every finding ends with a command of ours, and shows an example or says all in its message."""
    for finding in findings.values():
        assert finding.remedy.startswith("ingest "), finding
        assert finding.message, finding

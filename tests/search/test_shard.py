"""The writer's side of a shard: what is applied is what is read back, and bad points never reach the engine."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest import shard as shard_module
from ingest.shard import PointRecord, Shard, iter_points, settle
from search.errors import IndexDamaged, PublishFailed
from search.records import SparseVector
from tests.fakes import FAKE_SPEC, FakeEmbedder, Place, ids, point, tree_bytes

EMBEDDER = FakeEmbedder()


def points(count: int) -> list[PointRecord]:
    """Points with texts of their own."""
    return [point(EMBEDDER, f"Passage number {n}.", Place(f"{n}.md")) for n in range(count)]


def build(folder: Path, records: list[PointRecord]) -> None:
    """A settled shard of ``records``."""
    with Shard.create(folder, FAKE_SPEC) as shard:
        shard.apply(records, [], [])
        shard.optimize()
    settle(folder, len(records))


def read(folder: Path) -> dict[str, Mapping[str, object]]:
    """Payloads by id."""
    return {stored.chunk_id: stored.payload for stored in iter_points(folder)}


def test_points_come_back_as_they_went_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several batches, in the order of ids, vectors within what 16 bits hold."""
    monkeypatch.setattr(shard_module, "BATCH", 8)
    records = points(30)
    build(tmp_path / "s", records)
    stored = list(iter_points(tmp_path / "s", with_dense=True))
    assert [one.chunk_id for one in stored] == sorted(ids(records))
    by_id = {record.chunk_id: record for record in records}
    for one in stored:
        assert one.payload == by_id[one.chunk_id].payload
        assert one.dense is not None
        assert float(one.dense @ by_id[one.chunk_id].dense) == pytest.approx(1.0, abs=1e-3)


def test_payloads_and_vectors_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    """Ids alone are cheap."""
    build(tmp_path / "s", points(2))
    assert all(not one.payload and one.dense is None for one in iter_points(tmp_path / "s", with_payload=False))


def test_a_difference_is_applied_to_an_open_shard(tmp_path: Path) -> None:
    """Deletes, inserts, replacements and payloads in one call; the count is exact."""
    records = points(20)
    build(tmp_path / "s", records)
    new = point(EMBEDDER, "A new passage.", Place("new.md"))
    moved = dict(records[5].payload) | {"sources": ["moved.md"]}
    with Shard.open(tmp_path / "s", FAKE_SPEC) as shard:
        shard.apply([new, records[4]], [(records[5].chunk_id, moved)], [record.chunk_id for record in records[:3]])
        shard.optimize()
    settle(tmp_path / "s", 18)
    found = read(tmp_path / "s")
    assert found.keys() == ids([*records[3:], new])
    assert found[records[5].chunk_id] == moved


def test_applying_twice_is_applying_once(tmp_path: Path) -> None:
    """Ids make a repeat harmless; unknown ids are no error."""
    records = points(5)
    difference = (records, [(records[0].chunk_id, records[0].payload)], [point(EMBEDDER, "x", Place("x")).chunk_id])
    with Shard.create(tmp_path / "s", FAKE_SPEC) as shard:
        shard.apply(*difference)
        shard.apply(*difference)
        shard.flush()
    settle(tmp_path / "s", 5)


def test_a_settled_shard_never_changes_again(tmp_path: Path) -> None:
    """Loaded and read many times, its bytes stay (I1)."""
    build(tmp_path / "s", points(40))
    before = tree_bytes(tmp_path / "s")
    for _ in range(5):
        assert len(list(iter_points(tmp_path / "s", with_dense=True))) == 40
        settle(tmp_path / "s", 40)
    assert tree_bytes(tmp_path / "s") == before


def test_a_wrong_count_is_not_settled(tmp_path: Path) -> None:
    """More or fewer points than the catalog has chunks: the generation is not published (I2)."""
    build(tmp_path / "s", points(3))
    for expected in (2, 4):
        with pytest.raises(PublishFailed, match="holds 3 points"):
            settle(tmp_path / "s", expected)


GOOD = points(1)[0]
ONE = EMBEDDER.embed_query("one")
BAD = {
    "not a number": replace(GOOD, dense=np.full_like(ONE, np.nan)),
    "zero": replace(GOOD, dense=np.zeros_like(ONE)),
    "not unit length": replace(GOOD, dense=ONE * np.float32(2)),
    "wrong dimension": replace(GOOD, dense=ONE[:-1]),
    "matrix": replace(GOOD, dense=ONE[np.newaxis]),
    "repeated index": replace(GOOD, sparse=SparseVector((1, 1), (1.0, 1.0))),
    "descending index": replace(GOOD, sparse=SparseVector((2, 1), (1.0, 1.0))),
    "unequal": replace(GOOD, sparse=SparseVector((1, 2), (1.0,))),
    "infinite weight": replace(GOOD, sparse=SparseVector((1,), (float("inf"),))),
    "bytes": replace(GOOD, payload={"text": b"x"}),
    "tuple": replace(GOOD, payload={"text": ("x",)}),
    "huge integer": replace(GOOD, payload={"text": 2**63}),
    "nan in a list": replace(GOOD, payload={"text": [[float("nan")]]}),
    "surrogate": replace(GOOD, payload={"text": {"x": ["caf\u00e9 \udcff"]}}),
    "surrogate key": replace(GOOD, payload={"text": {"\udcff": 1}}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_point_that_the_engine_would_spoil_is_refused_with_nothing_applied(tmp_path: Path, name: str) -> None:
    """It takes them silently, or leaves its batch half applied."""
    with Shard.create(tmp_path / "s", FAKE_SPEC) as shard:
        with pytest.raises(ValueError, match="chunk"):
            shard.apply([*points(3), BAD[name]], [], [])
        if not name.endswith(("length", "dimension", "zero", "number", "matrix", "index", "unequal", "weight")):
            with pytest.raises(ValueError, match="chunk"):
                shard.apply([], [(GOOD.chunk_id, BAD[name].payload)], [GOOD.chunk_id])
        shard.flush()
    settle(tmp_path / "s", 0)


def test_what_json_can_say_is_stored(tmp_path: Path) -> None:
    """Nesting, null, the largest integers, astral letters and an empty word vector."""
    payload = {"text": "𝔘ñ\x00\n", "n": [None, True, -(2**63), 2**63 - 1, 0.5], "m": {"": {"k": []}}}
    build(tmp_path / "s", [replace(GOOD, payload=payload, sparse=SparseVector((), ()))])
    assert read(tmp_path / "s") == {GOOD.chunk_id: payload}


def test_what_is_no_shard_is_an_error_of_ours(tmp_path: Path) -> None:
    """The engine's own errors do not get through."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(PublishFailed, match="the engine failed"):
        Shard.open(tmp_path / "empty", FAKE_SPEC)
    with pytest.raises(PublishFailed, match="the engine failed"):
        settle(tmp_path / "empty", 0)
    with pytest.raises(IndexDamaged, match="the engine failed"):
        list(iter_points(tmp_path / "empty"))


def test_a_second_create_in_one_folder_is_refused(tmp_path: Path) -> None:
    """A generation is never made on top of another."""
    build(tmp_path / "s", points(1))
    with pytest.raises(PublishFailed):
        Shard.create(tmp_path / "s", FAKE_SPEC)

"""Every vector reader keeps the protocol. Edge is the first; a server's reader joins by one more maker."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ingest.shard import PointRecord
from search.edge import EdgeReader
from search.errors import IndexMissing
from search.generation import IndexLayout
from search.records import SparseVector
from search.sparse import SparseEncoder, sparse_spec
from search.store import Snapshot, VectorReader, Where
from tests.fakes import FakeEmbedder, Place, fake_recipe, ids, point, publish_generation

Maker = Callable[[Path, Sequence[PointRecord]], VectorReader]

EMBEDDER = FakeEmbedder()
ENCODER = SparseEncoder(sparse_spec("english"))
LEAVE = point(EMBEDDER, "Leave: at most five days are carried over.", Place("hr/leave.md"), Place("old/hr/leave.md"))
PARKING = point(EMBEDDER, "Parking is free behind the mill.", Place("hr/leave.md/parking.md"), context="Handbook")
PRICES = point(EMBEDDER, "A share costs 900 euros.", Place("hr-prices.pdf", root="shop", media_type="application/pdf"))
POINTS = [LEAVE, PARKING, PRICES]
ALL = Where()


def edge(home: Path, points: Sequence[PointRecord]) -> VectorReader:
    """A reader over an Edge generation of ``points``."""
    return EdgeReader(publish_generation(home, points))


@pytest.fixture(params=[edge], ids=["edge"])
def make(request: pytest.FixtureRequest) -> Maker:
    """Each implementation's maker in turn."""
    maker: Maker = request.param
    return maker


@pytest.fixture
def snapshot(make: Maker, tmp_path: Path) -> Snapshot:
    """The three points, published."""
    return make(tmp_path, POINTS).snapshot()


def search(snapshot: Snapshot, text: str, where: Where = ALL, depth: int = 10) -> tuple[list[str], list[str]]:
    """Ids of both lists, best first."""
    dense, sparse = snapshot.query(EMBEDDER.embed_query(text), ENCODER.encode_query(text), depth=depth, where=where)
    return [hit.chunk_id for hit in dense], [hit.chunk_id for hit in sparse]


def test_a_snapshot_says_what_it_is(snapshot: Snapshot) -> None:
    """Generation, recipe and what the index lacks come from the generation itself."""
    assert snapshot.generation == "000001"
    assert snapshot.recipe == fake_recipe()
    assert snapshot.completeness.sources_failed == 1


def test_dense_hits_are_all_points_nearest_first(snapshot: Snapshot) -> None:
    """A nearest neighbour always exists: depth alone bounds the list."""
    dense, _ = search(snapshot, "days of leave carried over")
    assert dense[0] == LEAVE.chunk_id
    assert set(dense) == ids(POINTS)
    assert len(search(snapshot, "days of leave carried over", depth=2)[0]) == 2


def test_sparse_hits_share_a_word_with_the_question(snapshot: Snapshot) -> None:
    """Words are matched by stem, in the context too; a word that stands nowhere finds nothing."""
    assert search(snapshot, "carrying over")[1] == [LEAVE.chunk_id]
    assert search(snapshot, "handbooks")[1] == [PARKING.chunk_id]
    assert search(snapshot, "xylophone")[1] == []


def test_a_question_without_words_has_no_sparse_hits(snapshot: Snapshot) -> None:
    """An empty sparse vector is no error."""
    dense, sparse = snapshot.query(EMBEDDER.embed_query("?"), SparseVector((), ()), depth=3, where=ALL)
    assert len(dense) == 3
    assert sparse == []


def test_scores_descend_and_a_cosine_is_one_for_the_same_text(snapshot: Snapshot) -> None:
    """The dense score is the cosine, within what 16 bits hold."""
    dense, _ = snapshot.query(LEAVE.dense, LEAVE.sparse, depth=3, where=ALL)
    assert dense[0].score == pytest.approx(1.0, abs=1e-3)
    assert [hit.score for hit in dense] == sorted((hit.score for hit in dense), reverse=True)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (Where(path="hr/leave.md"), [LEAVE, PARKING]),
        (Where(path="hr/leave.md/"), [LEAVE, PARKING]),
        (Where(path="hr"), [LEAVE, PARKING]),
        (Where(path="hr/leave"), []),
        (Where(path="HR"), []),
        (Where(path="old/hr"), [LEAVE]),
        (Where(path="hr-prices.pdf"), [PRICES]),
        (Where(root="shop"), [PRICES]),
        (Where(media_type="application/pdf"), [PRICES]),
        (Where(media_type="application/pdf", root="docs"), []),
        (Where(path="nowhere"), []),
        (Where(path="h*"), []),
    ],
)
def test_a_filter_restricts_both_searches(snapshot: Snapshot, where: Where, found: list[PointRecord]) -> None:
    """A path means what stands at or under it, on a boundary; root and media type are exact."""
    dense, sparse = search(snapshot, "leave parking share", where)
    assert set(dense) == set(sparse) == ids(found)


def test_fetch_returns_payloads_by_id_and_leaves_out_the_unknown(snapshot: Snapshot) -> None:
    """What the publisher wrote comes back as it was."""
    unknown = point(EMBEDDER, "never published", Place("x"))
    found = snapshot.fetch([PRICES.chunk_id, unknown.chunk_id, LEAVE.chunk_id])
    assert found == {PRICES.chunk_id: PRICES.payload, LEAVE.chunk_id: LEAVE.payload}
    assert snapshot.fetch([]) == {}


def test_ties_are_broken_by_id_also_at_the_end_of_the_list(make: Maker, tmp_path: Path) -> None:
    """Of fifty passages with one score, the first ids are returned, whatever the engine's order."""
    points = [point(EMBEDDER, "Equal words", Place(f"{n}.md"), context=f"{'the ' * (n + 1)}") for n in range(50)]
    snapshot = make(tmp_path, points).snapshot()
    for _ in range(3):
        _, sparse = search(snapshot, "equal", depth=7)
        assert sparse == sorted(ids(points))[:7]


def test_an_empty_generation_answers_with_nothing(make: Maker, tmp_path: Path) -> None:
    """No points is a state, not a fault."""
    snapshot = make(tmp_path, []).snapshot()
    assert search(snapshot, "anything") == ([], [])


def test_a_missing_index_is_an_error_and_stays_missing(tmp_path: Path) -> None:
    """A reader creates nothing."""
    home = tmp_path / ".grounded"
    with pytest.raises(IndexMissing):
        EdgeReader(IndexLayout(home)).snapshot()
    assert not home.exists()


def test_close_may_be_called_twice(make: Maker, tmp_path: Path) -> None:
    """A snapshot that is still held goes on answering."""
    reader = make(tmp_path, POINTS)
    snapshot = reader.snapshot()
    reader.close()
    reader.close()
    assert search(snapshot, "leave")[0]

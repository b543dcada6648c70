"""Fusion is deterministic, keeps every hit once, and respects both lists."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from search.fusion import COSINE_SHARE, fuse, relevance
from search.identity import ChunkId
from search.store import Hit

names = st.integers(0, 30).map(lambda number: ChunkId(f"{number:03d}"))
cosines = st.dictionaries(names, st.floats(-1, 1, width=32), max_size=20)
weights = st.dictionaries(names, st.floats(0, 60, width=32), max_size=20)


def hits(scores: dict[ChunkId, float]) -> list[Hit]:
    """Hits in the order of ``scores``."""
    return [Hit(chunk_id, score) for chunk_id, score in scores.items()]


@settings(derandomize=True, deadline=None)
@given(cosines, weights, st.integers())
def test_fusion_keeps_every_hit_once_in_one_order(
    dense: dict[ChunkId, float], sparse: dict[ChunkId, float], seed: int
) -> None:
    """The order of the lists that come in does not matter; ties go by id."""
    fused = fuse(hits(dense), hits(sparse))
    assert sorted(candidate.chunk_id for candidate in fused) == sorted(dense.keys() | sparse.keys())
    assert fused == sorted(fused, key=lambda candidate: (-candidate.fused, candidate.chunk_id))
    shuffled = [hits(dense), hits(sparse)]
    for items in shuffled:
        random.Random(seed).shuffle(items)
    assert fuse(*shuffled) == fused


@settings(derandomize=True, deadline=None)
@given(cosines, weights)
def test_fused_scores_lie_between_nothing_and_one(dense: dict[ChunkId, float], sparse: dict[ChunkId, float]) -> None:
    """Both signals are shares, so is their sum."""
    for candidate in fuse(hits(dense), hits(sparse)):
        assert 0.0 <= candidate.fused <= 1.0 + 1e-9
        assert 0.0 <= candidate.cosine <= 1.0


@settings(derandomize=True, deadline=None)
@given(cosines, weights)
def test_a_hit_that_both_lists_put_first_comes_first(dense: dict[ChunkId, float], sparse: dict[ChunkId, float]) -> None:
    """Agreement is never overruled."""
    best = ChunkId("best")
    fused = fuse([*hits(dense), Hit(best, 1.0)], [*hits(sparse), Hit(best, 61.0)])
    assert fused[0].fused == 1.0
    assert best in {candidate.chunk_id for candidate in fused if candidate.fused == 1.0}


def test_one_empty_list_leaves_the_order_of_the_other() -> None:
    """A question without words, or an index without near vectors, is answered by what there is."""
    listed = {ChunkId("a"): 0.9, ChunkId("b"): 0.5, ChunkId("c"): 0.1}
    assert [candidate.chunk_id for candidate in fuse(hits(listed), [])] == ["a", "b", "c"]
    assert [candidate.chunk_id for candidate in fuse([], hits(listed))] == ["a", "b", "c"]
    assert fuse([], []) == []


def test_a_hit_by_words_alone_counts_as_the_weakest_neighbour() -> None:
    """Its cosine is unknown, but no larger than that of the last neighbour."""
    fused = {candidate.chunk_id: candidate for candidate in fuse([Hit(ChunkId("a"), 0.8)], [Hit(ChunkId("b"), 7.0)])}
    assert fused[ChunkId("b")].cosine == 0.8
    assert fused[ChunkId("b")].fused > fused[ChunkId("a")].fused == COSINE_SHARE * 0.8


def test_relevance_is_a_share() -> None:
    """Nothing in common is 0, the same text with all words is 1, also when rounding went beyond."""
    assert relevance(0.0, 0.0) == 0.0
    assert relevance(1.0 + 1e-7, 1.0) == 1.0
    assert relevance(0.5, 0.5) == 0.5

"""Every embedder keeps the protocol: the deterministic fake, and fastembed with the bundled model."""

from collections.abc import Callable

import numpy as np
import pytest

from search.embedding import Embedder, load_embedder
from search.settings import DEFAULT_MODEL
from tests.fakes import FakeEmbedder

TEXTS = [
    "Carry-over of leave is capped at five days.",
    "",
    "Łódź — naïve café, 東京, 👩‍🔬",
    "word " * 400,
    "a lone surrogate \ud800 in a file's text",
    "Carry-over of leave is capped at five days.",
    "x",
]


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    """The bundled model, loaded once."""
    return load_embedder(DEFAULT_MODEL, threads=2, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(params=["fake", pytest.param("bundled", marks=pytest.mark.model)])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    """Each implementation in turn."""
    makers: dict[str, Callable[[], Embedder]] = {
        "fake": FakeEmbedder,
        "bundled": lambda: request.getfixturevalue("bundled"),
    }
    return makers[request.param]()


def test_passages_give_one_unit_vector_each(embedder: Embedder) -> None:
    """Shape, type and length are those of the protocol, also for odd texts."""
    vectors = embedder.embed_passages(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.spec.dim)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_no_passages_give_no_vectors(embedder: Embedder) -> None:
    """An empty batch has shape (0, dim)."""
    assert embedder.embed_passages([]).shape == (0, embedder.spec.dim)


@pytest.mark.invariant("I3")
def test_a_vector_does_not_depend_on_its_batch(embedder: Embedder) -> None:
    """Alone, among others, in another order: the same bytes."""
    together = embedder.embed_passages(TEXTS)
    backwards = embedder.embed_passages(TEXTS[::-1])[::-1]
    alone = np.stack([embedder.embed_passages([text])[0] for text in TEXTS])
    assert np.array_equal(together, backwards)
    assert np.array_equal(together, alone)


def test_a_question_has_shape_dim(embedder: Embedder) -> None:
    """One vector, unit length, the same each time."""
    one, two = (embedder.embed_query("how much leave may be carried over?") for _ in range(2))
    assert one.shape == (embedder.spec.dim,)
    assert np.linalg.norm(one) == pytest.approx(1.0, abs=1e-6)
    assert np.array_equal(one, two)


def test_a_question_is_nearest_to_its_answer(embedder: Embedder) -> None:
    """Vectors mean something: the passage with the answer is nearer than the others."""
    passages = ["The office dog is called Bruno.", "Leave: at most five days may be carried over.", "Parking is free."]
    scores = embedder.embed_passages(passages) @ embedder.embed_query("how many days of leave may be carried over")
    assert int(np.argmax(scores)) == 1


@pytest.mark.parametrize("text", TEXTS)
def test_token_ends_are_offsets_of_the_text(embedder: Embedder, text: str) -> None:
    """They ascend and stay inside the text, in code points, however long it is."""
    ends = embedder.token_ends(text)
    assert ends.dtype == np.int32
    assert np.all(np.diff(ends) >= 0)
    assert not len(ends) or 0 < ends[0] <= ends[-1] <= len(text)


def test_token_ends_are_neither_cut_nor_padded(embedder: Embedder) -> None:
    """A text far beyond what the model takes is still measured to its end."""
    assert len(embedder.token_ends("word " * 1000)) == 1000
    assert len(embedder.token_ends("word")) == 1

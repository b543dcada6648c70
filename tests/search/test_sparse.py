"""BM25 vectors: sorted, repeatable, and by words rather than letters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search.errors import UsageError
from search.sparse import LANGUAGES, SparseEncoder, sparse_spec

ENCODER = SparseEncoder(sparse_spec("english"))


@settings(derandomize=True, deadline=None)
@given(st.text(st.characters(codec=None), max_size=200))
def test_indices_are_unique_and_ascending(text: str) -> None:
    """Whatever the text, lone surrogates included; every weight is positive."""
    for vector in (ENCODER.encode_passage(text), ENCODER.encode_query(text)):
        assert list(vector.indices) == sorted(set(vector.indices))
        assert len(vector.values) == len(vector.indices)
        assert all(value > 0 for value in vector.values)
    assert ENCODER.encode_passage(text) == ENCODER.encode_passage(text)


def test_words_meet_by_stem_and_case() -> None:
    """A question and a passage share the index of a word in another form; stop words have none."""
    passage = ENCODER.encode_passage("The mooring lines were carried over.")
    assert set(ENCODER.encode_query("CARRY the Line").indices) <= set(passage.indices)
    assert ENCODER.encode_query("the of and").indices == ()


def test_a_word_of_over_forty_letters_is_left_out() -> None:
    """Encoded data would fill the index with words that nobody asks for."""
    assert ENCODER.encode_passage("a" * 41).indices == ()
    assert len(ENCODER.encode_passage("a" * 40).indices) == 1


def test_a_repeated_word_weighs_more_and_a_longer_passage_less() -> None:
    """Frequency saturates, length is discounted (BM25)."""
    weights = {text: ENCODER.encode_passage(text).values for text in ("mill", "mill mill", "mill mill mill")}
    once, twice, thrice = (values[0] for values in weights.values())
    assert once < twice < thrice
    assert thrice - twice < twice - once
    among_others = ENCODER.encode_passage("mill " + " ".join(f"word{n}" for n in range(100)))
    assert min(among_others.values) < once


def test_a_question_weighs_each_of_its_words_once() -> None:
    """Saying it twice does not make it more important."""
    assert set(ENCODER.encode_query("mill mill stone").values) == {1.0}


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_that_is_offered_works(language: str) -> None:
    """The list is that of the engine."""
    assert SparseEncoder(sparse_spec(language)).encode_query("2024").indices


def test_another_language_is_refused() -> None:
    """Before anything is parsed."""
    with pytest.raises(UsageError, match="klingon"):
        sparse_spec("klingon")

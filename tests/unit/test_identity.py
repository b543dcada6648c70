"""Ids and hashes: the same content has the same id on every machine, and nothing else has it (I3)."""

import hashlib
import io
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search import identity

pairs = st.tuples(st.text(max_size=20), st.text(max_size=20))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_ids_are_those_of_the_format() -> None:
    """Known values: an index made yesterday must find its chunks tomorrow."""
    assert identity.document_id(b"") == hashlib.sha256(b"").hexdigest()
    assert identity.chunk_id("Title", "A passage.") == "1c41be21-3e7c-8ece-8b0a-f6f8c2cdb146"
    assert identity.text_hash("Title", "A passage.") == "74a35b7aa2823c8e4975bca9ea450f67"


def test_a_chunk_id_is_a_uuid_of_our_own_making() -> None:
    """Version 8 and the variant of RFC 9562, so that every engine takes it as a point id."""
    made = uuid.UUID(identity.chunk_id("", ""))
    assert (made.version, made.variant) == (8, uuid.RFC_4122)


@pytest.mark.invariant("I3")
@settings(derandomize=True, deadline=None, max_examples=200)
@given(one=pairs, other=pairs)
def test_equal_ids_mean_equal_context_and_text(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Also where context and text glued together are equal."""
    assert (identity.chunk_id(*one) == identity.chunk_id(*other)) == (one == other)
    assert (identity.text_hash(*one) == identity.text_hash(*other)) == (one == other)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(text=st.text(min_size=1, max_size=20), cut=st.integers(0, 20))
def test_where_the_context_ends_is_part_of_the_id(text: str, cut: int) -> None:
    """The same characters, parted elsewhere, are another passage."""
    cut %= len(text)
    assert identity.chunk_id(text[:cut], text[cut:]) != identity.chunk_id(text, "")


def test_lone_surrogates_have_ids() -> None:
    """A text with half a character, as broken files hold, is content like any other."""
    assert identity.chunk_id("", "\ud800") != identity.chunk_id("", "\udc00")
    assert len(identity.text_hash("\ud800", "")) == 32


def test_a_stream_a_file_and_bytes_have_one_hash(tmp_path: Path) -> None:
    """Whatever the size of the pieces; the stream is read from where it stands."""
    content = bytes(range(256)) * (identity.READ_BYTES // 256 + 3)
    (tmp_path / "file").write_bytes(content)
    stream = io.BytesIO(b"skipped" + content)
    stream.seek(7)
    expected = identity.document_id(content)
    assert identity.stream_sha256(stream) == identity.file_sha256(tmp_path / "file") == expected


@settings(derandomize=True, deadline=None, max_examples=100)
@given(value=st.dictionaries(st.text(max_size=3), json_values, max_size=4))
def test_the_order_of_keys_leaves_no_trace(value: dict[str, object]) -> None:
    """Equal values have equal text, and so equal hashes of payloads and recipes."""
    turned = dict(reversed(value.items()))
    assert identity.canonical_json(value) == identity.canonical_json(turned)
    assert identity.recipe_id(value) == identity.recipe_id(turned)
    assert identity.payload_hash(value) == identity.payload_hash(turned)


def test_a_number_that_json_has_not_is_refused() -> None:
    """Infinity would be read by one program and refused by the next."""
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            identity.canonical_json({"score": number})


def test_a_digest_does_not_glue_its_parts() -> None:
    """Each part is preceded by its length."""
    assert identity.digest([b"ab", b"c"]) != identity.digest([b"a", b"bc"]) != identity.digest([b"abc"])


def test_every_run_has_an_id_of_its_own() -> None:
    """Runs are events, not contents."""
    assert len({identity.new_run_id() for _ in range(100)}) == 100

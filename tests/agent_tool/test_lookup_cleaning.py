"""The table of code points: what passes, in which direction, one for one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tool.cleaning import clean_label, clean_text, has_refused, has_refused_in_path

BAD_EVERYWHERE = [
    *range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), 0x200B, *range(0x2060, 0x2065), 0xFEFF,
    *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE0000, 0xE0041, 0xE007F, 0xE01EF,
]  # fmt: skip
LINE_ENDS = [0x09, 0x0A, 0x2028, 0x2029]
KEPT = [0x20, 0x41, 0xA0, 0xAD, 0x200C, 0x200D, 0x200E, 0x200F, 0xFE00, 0xFE0F, 0xFFFD, 0x1F600, 0xE01F0, 0x10FFFF]
ANY = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)


@pytest.mark.parametrize("point", BAD_EVERYWHERE, ids=hex)
def test_what_could_hide_or_reorder_is_replaced_going_out_and_refused_coming_in(point: int) -> None:
    """One U+FFFD for each, so that spans still fit."""
    text = f"a{chr(point)}b"
    assert clean_text(text) == clean_label(text) == "a\ufffdb"
    assert has_refused(text)
    assert has_refused_in_path(text)


@pytest.mark.parametrize("point", LINE_ENDS, ids=hex)
def test_line_ends_stay_in_texts_and_queries_only(point: int) -> None:
    """A header is one line, and a path is part of it."""
    text = f"a{chr(point)}b"
    assert clean_text(text) == text
    assert clean_label(text) == "a\ufffdb"
    assert not has_refused(text)
    assert has_refused_in_path(text)


def test_a_carriage_return_is_allowed_in_a_query_alone() -> None:
    """Browsers send it; going out it could overwrite a line of a terminal."""
    assert clean_text("a\rb") == clean_label("a\rb") == "a\ufffdb"
    assert not has_refused("a\rb")
    assert has_refused_in_path("a\rb")


@pytest.mark.parametrize("point", KEPT, ids=hex)
def test_what_scripts_and_emoji_need_is_kept(point: int) -> None:
    """Joiners, directional marks, variation selectors, and everything that is plain text."""
    text = f"a{chr(point)}b"
    assert clean_text(text) == clean_label(text) == text
    assert not has_refused(text)
    assert not has_refused_in_path(text)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(ANY)
def test_cleaning_keeps_the_length_can_be_encoded_and_repeated(text: str) -> None:
    """Whatever a document holds, the reply can be sent, and spans count the same characters."""
    for clean in (clean_text, clean_label):
        cleaned = clean(text)
        cleaned.encode()
        assert len(cleaned) == len(text)
        assert clean(cleaned) == cleaned
    assert "\n" not in clean_label(text)

"""The one normalisation."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.parsing.normalise import normalise


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("\x1b[31mERROR\x1b[0m at \x1b]0;title\x07noon", "ERROR at noon"),
        ("a\x0cb\x0bc\u2028d\u2029e\x85f", "a b c d e f"),
        ("no\x00thing\x07 \x9fleft", "nothing left"),
        ("\ufeffsoft\u00adhyphen zero\u200bwidth word\u2060joiner", "softhyphen zerowidth wordjoiner"),
        ("o\ufb03ce \ufb01re \ufb06", "office fire st"),
        ("e\u0301te\u0301", "\u00e9t\u00e9"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("\ufdd0non\uffffcharacters\U0001ffff", "noncharacters"),
        ("m\u00b2 \uff21\uff22 no\u00a0break", "m\u00b2 \uff21\uff22 no\u00a0break"),
        ("\u200dzwj \u200czwnj \u200elrm\ttab", "\u200dzwj \u200czwnj \u200elrm\ttab"),
    ],
)
def test_text_becomes_what_can_be_stored_and_shown(given_text: str, expected: str) -> None:
    """Each rule of the normalisation by one example; what people see stays as it was."""
    assert normalise(given_text) == (expected, 0)


def test_deceptive_characters_are_removed_and_counted() -> None:
    """Text that shows a person something else than a program reads loses what makes it so."""
    assert normalise("pay \u202e001\u202c \u2066now\u2069 \U000e0041hidden") == ("pay 001 now hidden", 5)


def test_long_padding_becomes_one_blank_and_indentation_stays() -> None:
    """64 blanks stay, 65 are padding; lines are never joined."""
    assert normalise(" " * 64 + "a" + " \t" * 40 + "b\n" + " " * 65 + "\nc")[0] == " " * 64 + "a b\n \nc"


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.text(st.characters(exclude_categories=()), max_size=60))
@example("\x1b\x1b[0m[31m")
@example("\r\x00\n")
@example(" " * 40 + "\u200b" + " " * 40)
def test_normalising_twice_changes_nothing(text: str) -> None:
    """The result is a fixed point, free of controls and surrogates, with as many lines as an editor shows."""
    once, _ = normalise(text)
    assert normalise(once) == (once, 0)
    assert unicodedata.is_normalized("NFC", once)
    assert not any(unicodedata.category(char) in ("Cc", "Cs") and char not in "\t\n" for char in once)
    assert once.count("\n") == text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def test_a_letter_has_no_more_marks_than_can_be_seen() -> None:
    """Six million on one letter would take hours to put in order; what a person or a script writes stays."""
    assert len(normalise("a" + "\u0301\u0323" * 3_000_000)[0]) == 100
    assert normalise("e\u0301" + "o\u0308\u0304" * 90)[0] == "é" + "ȫ" * 90
    assert normalise("x" + "\u0300" * 60)[0] == "x" + "\u0300" * 60

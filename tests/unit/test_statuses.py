"""Gaps in words, and rules in words."""

import pytest

from ingest.rules import Rules, name_rule
from ingest.statuses import gap_entries, gap_phrases, skip_reason


@pytest.mark.parametrize(
    ("kind", "gaps", "phrases"),
    [
        ("pdf", [(4, "no_text"), (5, "no_text"), (6, "no_text")], ["pages 4-6: no text"]),
        ("pdf", [(1, "garbled")], ["page 1: garbled text"]),
        ("pdf", [(1, "no_text"), (2, "garbled"), (3, "no_text")], ["pages 1, 3: no text", "page 2: garbled text"]),
        ("pptx", [(2, "no_text")], ["slide 2: no text"]),
        ("epub", [(7, "unread"), (8, "unread")], ["chapters 7-8: could not be read"]),
        ("eml", [(1, "unread")], ["part 1: could not be read"]),
        (None, [], []),
    ],
)
def test_gaps_are_told_as_ranges(kind: str | None, gaps: list[tuple[int, str]], phrases: list[str]) -> None:
    """By what such parts are called and why they are missing, in the order of their first parts."""
    assert gap_phrases(gap_entries(kind, gaps)) == phrases


def test_a_phrase_of_many_ranges_ends_with_how_many_more() -> None:
    """Every second page of a scan is not written out."""
    (phrase,) = gap_phrases(gap_entries("pdf", [(page, "no_text") for page in range(1, 201, 2)]))
    assert phrase == "pages 1, 3, 5, 7, 9, 11, 13, 15 and 92 more: no text"


@pytest.mark.parametrize("name", [".hidden", ".git", "~$a.docx"])
def test_a_rule_is_told_in_words(name: str) -> None:
    """What the scan calls a rule, a person is told as a reason; a rule without words stands for itself."""
    rule = name_rule(name, False, Rules().hidden)
    assert rule is not None
    assert skip_reason(rule) not in ("", rule)
    assert skip_reason("some-new-rule") == "some-new-rule"

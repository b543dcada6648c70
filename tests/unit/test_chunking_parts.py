"""The parts of chunking one by one: sentences, anchors, gaps, long words, the token scale."""

import re
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from ingest.chunking.anchors import anchors, priority
from ingest.chunking.gaps import split
from ingest.chunking.scale import WINDOW_CHARS, TokenScale, clip
from ingest.chunking.sentences import ends_sentence, sentence_starts
from ingest.chunking.words import inner_cuts


def sentences(text: str) -> list[str]:
    """Return ``text`` in pieces, cut where sentences start."""
    bounds = [0, *sorted(set(sentence_starts(text, 0, len(text)))), len(text)]
    return [text[start:end].strip() for start, end in pairwise(bounds)]


@pytest.mark.parametrize(
    "pieces",
    [
        ["One.", "Two!", "Three?", "4 more."],
        ['He said "stop."', "Then he went.", "(Really.)", '"Yes."'],
        ["开门。", "关门！", "再开。"],
        ["Вода кипит.", "Пар идёт."],
        ["هل تعمل؟", "نعم."],
        ["It ends here…", "Another:", "More;", "Last."],
        ["See **this.**", "Then it was called.", "`fs.close()` is next."],
    ],
)
def test_a_sentence_ends_at_a_stop_before_a_capital_digit_or_caseless_letter(pieces: list[str]) -> None:
    """Closing quotes and opening brackets belong to their sentence; code may begin one in lower case."""
    assert sentences(("" if pieces[0].startswith("开") else " ").join(pieces)) == pieces
    assert all(ends_sentence(piece, 0, len(piece)) for piece in pieces)


@pytest.mark.parametrize(
    "text",
    [
        "see e.g. Paris",
        "Dr. Smith met J. Doe",
        "shown in Fig. 3 and in No. 4",
        "version 3.11 of the file",
        "1. Open the valve",
        "it ends. but goes on",
        "ratio 3 : four",
    ],
)
def test_a_dot_inside_a_sentence_is_no_end(text: str) -> None:
    """Initials, abbreviations, numbers and list numbers keep what they belong to."""
    assert sentences(text) == [text]


def test_a_line_after_a_stop_begins_something_new() -> None:
    """Also where it goes on in lower case, as unmarked lists do; a line after plain text does not."""
    assert sentences("as follows:\nopen it\nand close it.\ndone") == ["as follows:", "open it\nand close it.", "done"]


def test_priorities_do_not_see_white_space() -> None:
    """Re-wrapped text keeps its cuts."""
    one = "alpha beta gamma delta. Epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon"
    wrapped = one.replace(" ", "\n   ")
    at, at_wrapped = one.index("Epsilon"), wrapped.index("Epsilon")
    assert priority(one, 0, len(one), at, 1) == priority(wrapped, 0, len(wrapped), at_wrapped, 1)


def test_priorities_depend_on_near_text_only() -> None:
    """What stands more than 32 visible characters before, or 48 behind, does not matter; the level always wins."""
    near = "x" * 32 + " " + "y" * 48
    alone = priority(near, 0, len(near), 33, 1)
    far = "other text " + near + " more text"
    assert priority(far, 0, len(far), 11 + 33, 1) == alone
    assert priority("a b", 0, 3, 2, 2) > priority("c d", 0, 3, 2, 1)
    changed = "x" * 31 + "z " + "y" * 48
    assert priority(changed, 0, len(changed), 33, 1) != alone


def anchors_by_definition(positions: list[int], priorities: list[int], window: int, total: int) -> list[int]:
    """Return the anchors by comparing every pair."""
    found = []
    for index, (position, rank) in enumerate(zip(positions, priorities, strict=True)):
        near = [other for other, at in enumerate(positions) if abs(at - position) < window and other != index]
        wins = all(rank > priorities[other] or (rank == priorities[other] and index < other) for other in near)
        if wins and window <= position <= total - window:
            found.append(index)
    return found


def test_anchors_are_the_local_maxima_of_their_definition() -> None:
    """The linear passes agree with the comparison of every pair, equal priorities and crowded places included."""
    generator = np.random.default_rng(7)
    for _ in range(200):
        total = int(generator.integers(1, 200))
        positions = sorted(generator.integers(0, total + 1, size=int(generator.integers(0, 40))).tolist())
        priorities = generator.integers(0, 8, size=len(positions)).tolist()
        window = int(generator.integers(1, 20))
        assert anchors(positions, priorities, window, total) == anchors_by_definition(
            positions, priorities, window, total
        )


def test_a_gap_is_split_where_it_costs_least() -> None:
    """Equal pieces if places are alike; a paragraph rather than a sentence if sizes allow."""
    assert split([0, 40, 50, 60, 100], [0, 2, 2, 2, 0], 70, 50, 20) == [2]
    assert split([0, 40, 50, 60, 100], [0, 4, 2, 2, 0], 70, 50, 20) == [1]
    # Twice 15 above the target costs more than three pieces somewhat below it, with a cut more.
    assert split([0, 43, 65, 86, 130], [0, 4, 4, 4, 0], 70, 50, 20) == [1, 3]


def test_a_gap_without_a_fitting_split_says_so() -> None:
    """No piece is made longer than allowed or shorter than the floor."""
    assert split([0, 10, 100], [0, 4, 0], 70, 50, 20) is None
    assert split([0, 10, 80], [0, 4, 0], 70, 50, 20) is None
    assert split([0, 10, 80], [0, 4, 0], 70, 50, 0) == [1]


def test_places_in_a_long_word_are_16_to_128_characters_apart() -> None:
    """And an insertion moves only the places near it."""
    generator = np.random.default_rng(3)
    word = "".join(map(chr, generator.integers(97, 123, size=20_000)))
    cuts = inner_cuts(word)
    steps = np.diff([0, *cuts, len(word)])
    assert steps.min() >= 16
    assert steps[:-1].max() <= 128
    moved = {cut - 3 for cut in inner_cuts(word[:100] + "new" + word[100:])}
    assert len(set(cuts) - moved) <= 4


def test_a_periodic_word_is_cut_at_the_greatest_distance() -> None:
    """Where no content tells places apart, distance does."""
    assert inner_cuts("a" * 1000)[:3] in ([128, 256, 384], [16, 32, 48])


def test_marks_are_not_parted_from_their_letter() -> None:
    """A letter with hundreds of combining marks is one visible character, left whole."""
    assert inner_cuts("e" + "\u0301" * 600) == []
    word = "".join(chr(97 + number * 7 % 26) + "\u0301" for number in range(3000))
    cuts = inner_cuts(word)
    assert len(cuts) > 40
    assert all(cut % 2 == 0 for cut in cuts)


class OneTokenPerWord:
    def token_ends(self, text: str) -> NDArray[np.int32]:
        ends = [index for index in range(1, len(text) + 1) if text[index - 1 : index + 1].strip() == text[index - 1]]
        return np.array([end for end in ends if not text[end - 1].isspace()], dtype=np.int32)


def test_a_token_of_over_20_characters_counts_as_half_its_characters() -> None:
    """The white space before a token is not counted with it."""
    text = "ab " + " " * 40 + "x" * 20 + " " + "y" * 101
    scale = TokenScale(text, [(0, len(text))], OneTokenPerWord())
    assert scale.size(0, 63) == 2
    assert scale.size(63, len(text)) == 50
    assert scale.size(64, 64 + 51) == 25


def test_a_scale_may_begin_anywhere() -> None:
    """A region far down in the text is measured as if it stood alone."""
    text = "x" * 100 + " " + "word " * 3
    scale = TokenScale(text, [(101, len(text))], OneTokenPerWord())
    assert scale.at(101) == 0
    assert scale.at(len(text)) == 3


class MeasuringTokenizer:
    """A token a word, and how much it was given at once."""

    def __init__(self) -> None:
        self.longest = 0

    def token_ends(self, text: str) -> NDArray[np.int32]:
        self.longest = max(self.longest, len(text))
        return np.array([match.end() for match in re.finditer(r"\S+", text)], dtype=np.int32)


@pytest.mark.parametrize("text", ["tide and\nquay " * 200_000, "x" * 2_500_000, ""])
def test_a_scale_never_gives_a_tokenizer_a_whole_book(text: str) -> None:
    """A tokenizer takes a thousand times what it is given; the parts are measured as the whole is."""
    tokenizer = MeasuringTokenizer()
    scale = TokenScale(text, [(0, len(text))], tokenizer)
    assert tokenizer.longest <= WINDOW_CHARS
    assert scale.at(len(text)) == sum(max(1, len(word) // 2) if len(word) > 20 else 1 for word in text.split())
    assert scale.at(len("tide and\nquay")) == (3 if " " in text else len("tide and\nquay") // 2 if text else 0)


def test_a_line_of_a_context_is_measured_no_further_than_it_can_be_shown() -> None:
    """A header row may have a million columns; the first of them are its line."""
    tokenizer = MeasuringTokenizer()
    assert clip("berth " * 1_000_000, 4, tokenizer) == ("berth berth berth berth", 4)
    assert clip("berth and price", 4, tokenizer) == ("berth and price", 3)
    assert clip("x" * 1_000_000, 4, tokenizer) == ("x" * 8, 4)
    assert tokenizer.longest <= 2_000

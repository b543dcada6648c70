"""The rules for the text of PDF pages, each by itself: broken words, running lines, columns, quality, outline."""

import pytest

from ingest.parsing.pdf_columns import Box, read_columns
from ingest.parsing.pdf_engine import OutlineEntry
from ingest.parsing.pdf_lines import drop_running_lines, ends_sentence, join_broken_words, join_soft_hyphens
from ingest.parsing.pdf_outline import headings
from ingest.parsing.pdf_quality import GARBAGE, garbage_score, is_suspect

NOBODY = [None] * 20


@pytest.mark.parametrize(
    ("page", "joined"),
    [
        ("the infor-\nmation desk", "the information\ndesk"),
        ("a well-\nknown pier, well-known", "a well-known\npier, well-known"),
        ("under-\nstand, understand", "understand,\nunderstand"),
        ("half-\nlife of half and life", "half-life\nof half and life"),
        ("the up-\nhill way up the hill", "the uphill\nway up the hill"),
        ("Smith-\nJones office", "Smith-Jones\noffice"),
        ("ISO-\n9001 audit", "ISO-9001\naudit"),
        ("a dash -\nand more", "a dash -\nand more"),
        ("pages 3-\n5 only", "pages 3-\n5 only"),
        ("super-\ncali-\nfragil", "supercalifragil"),
        ("end of infor-\nmation.", "end of information."),
        ("no-\n  indented rest", "noindented\nrest"),
    ],
)
def test_a_word_broken_at_a_line_end_is_made_whole(page: str, joined: str) -> None:
    """The document itself says whether the hyphen belongs to the word; the line then ends after the word."""
    assert join_broken_words([page]) == [joined]


def test_a_word_broken_between_pages_goes_to_the_first() -> None:
    """A quoted word is found whole, on the page where it begins; before a capital nothing moves."""
    assert join_broken_words(["the obser-", "vation post", "x"]) == ["the observation", "post", "x"]
    assert join_broken_words(["the obser-", "Vation"]) == ["the obser-", "Vation"]
    assert join_broken_words(["-", "vation"]) == ["-", "vation"]


def test_a_soft_hyphen_at_a_line_end_always_joins() -> None:
    """It says itself that it is no part of the word."""
    assert join_soft_hyphens("well\u00ad\n known") == "wellknown"


def test_long_runs_of_letters_take_linear_time() -> None:
    """A page of one word of a million letters, and one of as many hyphens, end."""
    assert join_broken_words(["x" * 1_000_000 + "-\ny", "-\n" * 100_000])[0].endswith("xy")


def test_running_lines_are_left_out_and_kept_once() -> None:
    """Running titles and page numbers go, also roman ones; the text between stays."""
    labels = ["i", "ii", *map(str, range(1, 7))]
    texts = [
        f"{word} text here\nand more {word}"
        for word in ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    ]
    pages = [f"Handbook\n{text}\nPage {label}" for text, label in zip(texts, labels, strict=True)]
    kept, running = drop_running_lines(pages, labels)
    assert kept == texts
    assert running == ["Handbook", "Page i"]


def test_a_line_that_differs_by_more_than_the_page_number_stays() -> None:
    """Invoice numbers, dates and marks are what people look for."""
    pages = [f"Total {number * 37}\ntext {number}x\nother y{number}\nMark CM{number:04}" for number in range(1, 9)]
    assert drop_running_lines(pages, NOBODY[:8]) == (pages, [])


def test_a_running_line_stays_where_it_is_all_that_a_page_has() -> None:
    """No page loses its only text, and documents of five pages lose nothing."""
    pages = ["Title\nwords a", "Title", "Title\nwords b", "Title\nwords c", "Title\nwords d", "Title\nwords e"]
    kept, _ = drop_running_lines(pages, NOBODY[:6])
    assert kept == ["words a", "Title", "words b", "words c", "words d", "words e"]
    assert drop_running_lines(pages[:5], NOBODY[:5]) == (pages[:5], [])


@pytest.mark.parametrize(
    ("text", "ends"),
    [("It ends.", True), ('He said "no."', True), ("ja。", True), ("and then", False), ("No. 5", False)],
)
def test_a_page_ends_a_sentence_or_not(text: str, *, ends: bool) -> None:
    """What decides whether the next page begins a paragraph."""
    assert ends_sentence(text) is ends


LEFT = [
    "the tide table hangs in",
    "small letters by the crane",
    "and is changed each week by",
    "the keeper of the lock",
]
RIGHT = [
    "Nobody may leave a boat",
    "at the stone wall for more",
    "than two nights since the",
    "ferry turns there early",
]


def boxes(left: list[str], right: list[str]) -> dict[Box, str]:
    """Return two columns as boxes with their text, line by line from the top."""
    found: dict[Box, str] = {}
    for row, (one, other) in enumerate(zip(left, right, strict=True)):
        top = 300.0 - 14 * row
        found[Box(40, top - 9, 200, top)] = one
        found[Box(220, top - 9, 380, top)] = other
    return found


def across(left: list[str], right: list[str]) -> str:
    """Return the text as an engine reads it that does not see the columns."""
    return "\n".join(f"{one} {other}" for one, other in zip(left, right, strict=True))


def test_columns_of_prose_that_are_read_across_are_read_down() -> None:
    """Sentences come out whole."""
    layout = boxes(LEFT, RIGHT)
    assert read_columns(across(LEFT, RIGHT), list(layout), layout.__getitem__) == "\n".join(LEFT + RIGHT)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (LEFT[:3], RIGHT[:3]),
        (["Berth one", "Berth two", "Berth three", "Berth four"], RIGHT),
        (LEFT, ["1200 300 400 500", "17 18 19 20 21", "4 5 6 7 8 9 10", "11 12 13 14 15"]),
        ([line.capitalize() for line in LEFT], RIGHT),
    ],
)
def test_tables_and_forms_keep_their_rows(left: list[str], right: list[str]) -> None:
    """Too few lines, short entries, numbers, or lines that begin anew: no columns of prose."""
    layout = boxes(left, right)
    assert read_columns(across(left, right), list(layout), layout.__getitem__) == across(left, right)


def test_columns_that_are_read_down_already_stay() -> None:
    """The rule only mends what the engine reads across."""
    layout = boxes(LEFT, RIGHT)
    text = "\n".join(LEFT + RIGHT)
    assert read_columns(text, list(layout), layout.__getitem__) == text


@pytest.mark.parametrize(
    "text",
    [
        "/g12 /g13 /g14 /g15 /g16 /g17 words here",
        "(cid:12)(cid:13)(cid:14)(cid:15) and some words here",
        "\ue001\ue002\ue003 private letters in a row here",
        "¤¥¦§¨© «¬®¯°±²³ words between the signs",
        "w o r d s s e t w i d e a p a r t l i k e t h i s",
        "".join(chr(ord(letter) << 8) for letter in "Multicolor black on paper"),
        "wordswithoutanyblankbetweenthem" * 4,
    ],
)
def test_garbage_is_recognised(text: str) -> None:
    """Glyph names, private letters, symbols, letters apart, words run together."""
    assert garbage_score(text) >= GARBAGE


@pytest.mark.parametrize(
    "text",
    [
        "The lamp at the pier head burns all night.",
        "Größe, Übermut: £14 für das Boot №5 – ½ Preis!",
        "仓库三号机组每周检查一次压力表并记录读数仓库三号机组每周检查一次压力表",
        "Ремонт насоса номер двенадцать завершён в четверг",
        "12.5 13.7 14.9 | 4711 a b c | 2024-01-01 17:30",
        "/g12",
        "Donaudampfschifffahrtsgesellschaftskapitän",
    ],
)
def test_text_of_any_language_is_no_garbage(text: str) -> None:
    """Signs, long words and tables of numbers are ordinary."""
    assert garbage_score(text) < GARBAGE


def test_a_shifted_alphabet_is_suspect_and_prose_is_not() -> None:
    """Sixty words without one of the words that every text has."""
    prose = "the keeper of the lock counts the boats and writes them into the book of the harbour " * 4
    shifted = "".join(chr(ord(char) + 1) if char.isalpha() else char for char in prose)
    assert is_suspect(shifted)
    assert not is_suspect(prose)
    assert not is_suspect(shifted[:200])


def test_outline_entries_are_headings_where_their_title_is_a_line() -> None:
    """Numbering and case aside, over several lines, in order; what is not on its page is none."""
    text = "Mooring lines\nsee Mooring\n1.2 MOORING\ntext\n4 Costs and\ncharges\nmore\nFuel"
    entries = [
        OutlineEntry("1.2. Mooring", 2, 0),
        OutlineEntry("Costs and charges", 1, 0),
        OutlineEntry("Winter", 1, 0),
        OutlineEntry("Fuel", 9, 1),
        OutlineEntry("", 1, 0),
    ]
    starts, ends = [0, text.index("Fuel")], [text.index("Fuel"), len(text)]
    found = list(headings(text, starts, ends, entries))
    assert [(block.level, block.heading) for block in found] == [
        (2, "1.2 MOORING"),
        (1, "4 Costs and charges"),
        (6, "Fuel"),
    ]
    assert [text[block.start : block.end] for block in found] == ["1.2 MOORING", "4 Costs and\ncharges", "Fuel"]

"""Markdown: the blocks of the file, line for line."""

from collections.abc import Sequence

import pytest

from ingest.parsing.document import Document
from ingest.parsing.reading import read_document


def parsed(text: str) -> Document:
    """Return the document of a Markdown text."""
    found = read_document(text.encode(), "markdown", "page.md")
    assert isinstance(found, Document), found
    return found


def blocks(text: str) -> list[tuple[str, str]]:
    """Return kind and text of each block."""
    document = parsed(text)
    return [(block.kind, document.text[block.start : block.end]) for block in document.blocks]


def headings(text: str) -> list[tuple[int, str | None]]:
    """Return level and text of each heading."""
    return [(block.level, block.heading) for block in parsed(text).blocks if block.kind == "heading"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo\n\nthree", [("paragraph", "one\ntwo"), ("paragraph", "three")]),
        ("# Head\ntext", [("heading", "# Head"), ("paragraph", "text")]),
        ("Head\n====\ntext", [("heading", "Head\n===="), ("paragraph", "text")]),
        ("- a\n- b\n  more\n\n  still b\n", [
            ("list_item", "- a"), ("list_item", "- b\n  more"), ("list_item", "  still b"),
        ]),
        ("1. a\n   - b", [("list_item", "1. a"), ("list_item", "   - b")]),
        ("> one\n> two\n\nafter", [("quote", "> one\n> two"), ("paragraph", "after")]),
        ("```py\n# no heading\n\nx = 1\n```", [("code", "```py\n# no heading\n\nx = 1\n```")]),
        ("    indented code", [("code", "    indented code")]),
        ("```\nnever closed\n# x", [("code", "```\nnever closed\n# x")]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", [("table_row", "| a | b |\n|---|---|"), ("table_row", "| 1 | 2 |")]),
        ("<div>\nbox\n</div>", [("paragraph", "<div>\nbox\n</div>")]),
        ("<!-- secret -->\n\ntext", [("paragraph", "text")]),
        ("[^1]: the note", [("footnote", "[^1]: the note")]),
        ("[a]: http://b.example", [("paragraph", "[a]: http://b.example")]),
        ("a\n\n***\n\nb", [("paragraph", "a"), ("paragraph", "b")]),
        ("import X from 'x'\n\n<X>\n\ntext\n\n</X>", [
            ("paragraph", "import X from 'x'"), ("paragraph", "<X>"), ("paragraph", "text"), ("paragraph", "</X>"),
        ]),
    ],
)  # fmt: skip
def test_each_block_is_whole_lines_of_the_file(text: str, expected: Sequence[tuple[str, str]]) -> None:
    """What an author wrote is quoted as it was written, marks included."""
    assert blocks(text) == expected


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("## **Bold** and `code` ##", "Bold and code"),
        ("## [Link](http://x.example) here", "Link here"),
        ("## ![logo](a.png) Name {#name}", "logo Name"),
        ("## snake_case and C# 2*3", "snake_case and C# 2*3"),
        ("##   many\tblanks", "many blanks"),
    ],
)
def test_a_heading_is_its_text_without_marks(line: str, heading: str) -> None:
    """The context of a passage holds words, not markup."""
    assert headings(line) == [(2, heading)]


def test_what_only_looks_like_a_heading_is_none() -> None:
    """A heading in a quote or list, an over-long one, one without a word: paragraphs of their kind."""
    assert headings("> # quoted\n\n- # in a list\n\n# " + "x" * 201 + "\n\n# .\n\n#hashtag") == []


def test_the_title_is_the_front_matter_s_else_the_first_heading_of_level_one() -> None:
    """A title comes from the content alone; a page that begins with a lesser heading has none."""
    assert parsed("---\ntitle: From data\n---\n# From text").title == "From data"
    assert parsed("Badge line\n\n# From text\n\n# Second").title == "From text"
    assert parsed("## Minor\n\n# Major").title is None
    assert parsed("words").title is None


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("---\ntitle: Plain words # comment\ntags:\n- a\n  - b\n---\n", "Plain words"),
        ("---\r\nTitle: 'It''s here'\r\n---\r\n", "It's here"),
        ('---\ntitle: "A \\"q\\" \\\\"\n...\n', 'A "q" \\'),
        ("---\ntitle: >-\n  folded\n  lines\nx: 1\n---\n", "folded lines"),
        ("---\ndate: 2024\n---\n", None),
        ("---\ntitle: [a, b]\n---\n", None),
        ('+++\ntitle = "Toml"\n[extra]\na = 1\n+++\n', "Toml"),
    ],
)
def test_front_matter_is_a_block_that_is_not_read_as_text(front: str, title: str | None) -> None:
    """Its lines stay in the text, so line numbers hold; only its title is used."""
    document = parsed(front + "Body text")
    assert document.title == title
    assert [block.kind for block in document.blocks] == ["front_matter", "paragraph"]
    assert document.text[document.blocks[1].start :] == "Body text"


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nJust a rule\n\n---\n\nText",
        "---\nA sentence. With no colon\n---\n",
        "+++\nnot = toml = at all\n+++\n",
        "---\ntitle: open\n",
    ],
)
def test_a_rule_at_the_top_is_not_front_matter(text: str) -> None:
    """A document that begins with a rule loses nothing."""
    assert "front_matter" not in [kind for kind, _ in blocks(text + "x")]


def test_front_matter_with_an_endless_number_is_text() -> None:
    """TOML allows it and Python refuses it: not as damage of the whole page."""
    found = parsed(f"+++\nn = {'9' * 5000}\n+++\n\n# Words\n")
    assert [block.kind for block in found.blocks] == ["paragraph", "heading"]


def test_front_matter_alone_is_an_empty_document() -> None:
    """There is nothing to find in it."""
    found = read_document(b"---\ntitle: x\n---\n", "markdown")
    assert not isinstance(found, Document)
    assert found.status == "empty"


def test_lines_are_those_of_the_file() -> None:
    """A form feed or U+2028 begins no line, as in an editor."""
    document = parsed("one\x0cone\u2028one\r\n\r\ntwo")
    assert document.lines
    assert document.text == "one one one\n\ntwo"


@pytest.mark.parametrize("unit", [">", "- ", "1. ", "[a](", "<!--", "|a", "```\n", "* a\n", "#", "\\", "<div>\n"])
def test_hostile_nesting_ends(unit: str) -> None:
    """Ten thousand of anything are read, or are empty; nothing recurses and no letter is lost."""
    found = read_document((unit * 10_000 + "tail").encode(), "markdown")
    assert isinstance(found, Document)
    assert found.text[found.blocks[-1].start : found.blocks[-1].end].endswith("tail")


def test_text_that_is_nested_too_deep_for_the_parser_is_still_read() -> None:
    """What has no block of its own is a paragraph, in its place between the others."""
    found = blocks("before\n\n" + "> " * 60 + "deep\n\nafter")
    assert [text.removeprefix("> " * 60) for _, text in found] == ["before", "deep", "after"]

"""What passages are made of: blocks, headings, tables, walls, contexts and locations."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ingest.chunking.chunker import chunk
from ingest.chunking.sizes import Sizes
from ingest.parsing.document import Block, BlockKind, Document, Part
from search.embedding import passage_text
from search.errors import UsageError
from search.identity import chunk_id
from search.records import Chunk, Location

# A model of 114 tokens leaves 64 for a passage: target 36, floor and window 21.
SIZES = Sizes.for_limit(114)


class WordTokenizer:
    """One token per word: sizes in these tests can be counted by eye."""

    def token_ends(self, text: str) -> NDArray[np.int32]:
        ends, offset = [], 0
        for word in text.split():
            offset = text.index(word, offset) + len(word)
            ends.append(offset)
        return np.array(ends, dtype=np.int32)


class CharacterTokenizer:
    """One token per visible character, as models count Chinese."""

    def token_ends(self, text: str) -> NDArray[np.int32]:
        return np.array([index + 1 for index, letter in enumerate(text) if not letter.isspace()], dtype=np.int32)


KINDS: dict[str, BlockKind] = {"#": "heading", "-": "list_item", "|": "table_row", "`": "code"}


def build(*pieces: str, title: str | None = None, parts: Sequence[Part] = (), between: str = "\n\n") -> Document:
    """Return a document of one block per piece; its first character tells the kind, as in Markdown."""
    blocks, text = [], ""
    for piece in pieces:
        if text:
            text += between
        kind = KINDS.get(piece[0], "paragraph")
        level = len(piece) - len(piece.lstrip("#")) if kind == "heading" else 0
        heading = piece.lstrip("# ") if kind == "heading" else None
        blocks.append(Block(kind, len(text), len(text) + len(piece), level, heading))
        text += piece
    return Document("markdown", "test", text, tuple(blocks), tuple(parts), title, lines=True)


def sentence(name: str, words: int) -> str:
    """Return a sentence of ``words`` different words."""
    return " ".join([name.capitalize(), *(f"{name}{number}" for number in range(1, words))]) + "."


def run(document: Document, sizes: Sizes = SIZES) -> list[tuple[Chunk, Location]]:
    """Chunk by words."""
    return chunk(document, WordTokenizer(), sizes)


def texts(document: Document, sizes: Sizes = SIZES) -> list[str]:
    """Return the texts of the passages."""
    return [passage.text for passage, _ in run(document, sizes)]


def test_a_short_document_is_one_passage() -> None:
    """What fits is not cut; the id is made of the context and the text."""
    document = build("# Pumps", "Oil the valve.")
    ((passage, location),) = run(document)
    assert passage.text == "# Pumps\n\nOil the valve."
    assert passage.chunk_id == chunk_id("", passage.text)
    assert document.text[location.char_start : location.char_end] == passage.text


@pytest.mark.parametrize("text", ["", "   \n\n  ", "---\n\n***\n\n!!!"])
def test_a_document_without_a_letter_or_digit_has_no_passages(text: str) -> None:
    """Nothing that cannot be found is embedded."""
    blocks = (Block("paragraph", 0, len(text)),) if text else ()
    assert run(Document("text", "test", text, blocks)) == []


def test_runs_of_stops_and_marks_come_to_an_end() -> None:
    """Leader dots and piled-up marks take linear time; a quadratic rule would run for hours here."""
    assert texts(build("." * 300_000)) == []
    marks = "e" + "\u0301" * 100_000
    assert len(chunk(build(marks), CharacterTokenizer(), SIZES)) == 1


def test_front_matter_is_not_chunked() -> None:
    """Its text is in no passage, although it stands in the document text."""
    text = "---\nauthor: somebody\n---\nBody text."
    document = Document("markdown", "test", text, (Block("front_matter", 0, 24), Block("paragraph", 25, len(text))))
    assert texts(document) == ["Body text."]


def test_long_text_that_no_block_covers_enters_no_passage() -> None:
    """What a reader left out stays out, even where passages are slices of the whole text."""
    unread = "hidden text that the reader left out on purpose " * 40
    text = f"Before.\n\n{unread}\n\nAfter."
    blocks = (Block("paragraph", 0, 7), Block("paragraph", len(text) - 6, len(text)))
    assert texts(Document("markdown", "test", text, blocks)) == ["Before.", "After."]


def test_a_passage_may_carry_short_text_that_no_block_covers() -> None:
    """A comment below a heading does not cut the heading off from its text."""
    text = "# Pumps\n<!-- reviewed in May, see the minutes -->\nOil the valve."
    blocks = (Block("heading", 0, 7, 1, "Pumps"), Block("paragraph", text.index("Oil"), len(text)))
    assert texts(Document("markdown", "test", text, blocks)) == [text]


def test_no_passage_crosses_a_run_of_blank_characters() -> None:
    """More than 256 blanks are a wall, also inside a block; fewer are not."""
    wall, blanks = "left" + " " * 257 + "right", "left" + " " * 256 + "right"
    assert texts(build(wall)) == ["left", "right"]
    assert texts(build(blanks)) == [blanks]


def test_no_passage_crosses_the_start_of_a_sheet() -> None:
    """Two sheets have no thought in common, however short they are."""
    document = build("# North", "a: 1", "# South", "b: 2")
    south = document.text.index("# South")
    parts = (Part("sheet", 1, "North", 0), Part("sheet", 2, "South", south))
    document = Document("xlsx", "test", document.text, document.blocks, parts)
    assert texts(document) == ["# North\n\na: 1", "# South\n\nb: 2"]


def test_a_heading_is_never_parted_from_what_follows_it() -> None:
    """Whatever the sizes around it, no passage ends with a heading."""
    for words in range(5, 70, 3):
        pieces = [piece for name in "abcd" for piece in (f"## {name}", sentence(name, words), sentence(name * 2, 20))]
        for text in texts(build(*pieces)):
            assert not text.rsplit("\n", 1)[-1].startswith("#")
    # The cut before this heading would leave less than the floor; the one behind it would be just right.
    assert not texts(build(sentence("a", 20), "## Long heading", sentence("b", 60)))[0].endswith("heading")


def test_headings_in_a_row_stay_together() -> None:
    """A chapter heading goes with the section heading below it, and both with the text."""
    found = texts(build(sentence("x", 60), "# One", "## Two", "### Three", sentence("y", 40)))
    assert [text.split()[0] for text in found] == ["X", "#"]


def test_a_document_of_headings_only_is_split_between_them() -> None:
    """A run of headings longer than a passage has no text to stay with; every heading is kept whole."""
    document = build(*(f"# heading {number} here" for number in range(100)))
    found = texts(document)
    assert len(found) > 5
    assert all(line.startswith("#") or not line for text in found for line in text.split("\n"))


def test_a_word_is_cut_off_a_heading_only_far_behind_it() -> None:
    """In an over-long sentence the heading keeps at least a quarter of a passage of its text."""
    for before in range(10, 40):
        document = build(sentence("a", before), "# Long", " ".join(f"word{number}" for number in range(300)))
        for text in texts(document):
            if "# Long" in text:
                assert len(text[text.index("# Long") :].split()) > SIZES.max // 4


def test_sections_are_cut_at_their_headings() -> None:
    """The best place is a heading, the next best a paragraph, then a sentence."""
    document = build("# A", sentence("a", 50), "# B", sentence("b", 50), "# C", sentence("c", 50))
    assert [text.split("\n")[0] for text in texts(document)] == ["# A", "# B", "# C"]


def test_list_items_and_code_lines_are_kept_whole() -> None:
    """A list or a listing that must be cut is cut between items or lines, never next to a fence."""
    items = [f"- {sentence(f'i{number}', 12)}" for number in range(12)]
    assert all(text.startswith("- ") for text in texts(build(*items, between="\n")))
    lines = "\n".join(f"call {number} with value and more words" for number in range(30))
    pieces = texts(build(f"```python\n{lines}\n```"))
    assert len(pieces) > 2
    assert all(text.startswith(("call", "```python\ncall")) for text in pieces)
    assert pieces[-1].count("\n") > 1


def test_a_code_block_is_cut_at_a_blank_line_rather_than_elsewhere() -> None:
    """A blank line parts thoughts in code as well."""
    body = "\n".join(f"line {number} of the function here" for number in range(6))
    pieces = texts(build(f"`\n{body}\n\ndef other with some more\n{body}"))
    assert pieces[1].startswith("def other")


def table(rows: int) -> list[str]:
    """Return the rows of a Markdown table, the line of dashes with the header."""
    return [
        "| Part | Price of it |\n|---|---|",
        *(f"| part{number} with five words | {number} |" for number in range(rows)),
    ]


def test_a_header_row_is_the_heading_of_its_rows() -> None:
    """A passage from the middle of a table says what its columns mean; the first one says so itself."""
    passages = [passage for passage, _ in run(build("# Prices", *table(30), between="\n"))]
    assert len(passages) > 2
    assert passages[0].context == ""
    assert {passage.context for passage in passages[1:]} == {"Prices\nPart | Price of it"}


def test_a_header_row_is_not_parted_from_its_first_row() -> None:
    """Whatever stands before, the names of the columns go with a row of values."""
    for words in range(20, 64, 4):
        for text in texts(build(sentence("before", words), *table(9), between="\n")):
            assert "|---|---|" not in text or "part0" in text


def test_a_reader_may_name_the_header_row() -> None:
    """Formats without a line of dashes give the row a heading."""
    text = "Part Price\n" + "\n".join(f"part{number} has five words {number}" for number in range(30))
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:index]) for index in range(len(lines))]
    blocks = [Block("table_row", start, start + len(line)) for start, line in zip(starts, lines, strict=True)]
    blocks[0] = Block("table_row", 0, len(lines[0]), heading="Part | Price")
    contexts = {passage.context for passage, _ in run(Document("html", "test", text, tuple(blocks)))[1:]}
    assert contexts == {"Part | Price"}


def test_the_context_is_the_title_and_the_last_two_headings() -> None:
    """Outermost first, by lines; what the passage begins with is not said twice."""
    document = build("# A", "## B", "### C", sentence("x", 50), sentence("y", 50), title="Manual")
    first, second = (passage for passage, _ in run(document))
    assert first.context == "Manual"
    assert second.context == "Manual\nB\nC"


def test_the_context_does_not_repeat_the_title() -> None:
    """A heading that is the title counts once, and not at all where the passage begins with it."""
    document = build("# Manual", sentence("x", 60), sentence("y", 60), title="Manual")
    assert [passage.context for passage, _ in run(document)] == ["", "Manual"]


def test_the_context_does_not_name_the_heading_that_the_text_begins_with() -> None:
    """Also where a heading above has the same name."""
    document = build("# Notes", sentence("x", 60), "## Notes", sentence("y", 60))
    assert [passage.context for passage, _ in run(document)] == ["", ""]


def test_a_line_of_the_context_is_clipped_at_a_word() -> None:
    """A long title takes 16 tokens and no more."""
    title = " ".join(f"title{number}" for number in range(40))
    ((passage, _),) = run(build("Text.", title=title))
    assert passage.context == " ".join(f"title{number}" for number in range(16))


def test_a_renamed_heading_renews_its_section_alone() -> None:
    """Context is part of the id, since it shapes the vector; other sections are not touched."""
    body = [sentence("a", 55), sentence("b", 55), "# Other", sentence("c", 55), sentence("d", 55)]
    before = [passage.chunk_id for passage, _ in run(build("# Old", *body))]
    after = [passage.chunk_id for passage, _ in run(build("# New", *body))]
    assert len(before) == len(after) == 4
    assert before[2:] == after[2:]
    assert not set(before[:2]) & set(after[:2])


def test_a_passage_that_occurs_twice_has_one_id_and_two_locations() -> None:
    """Equal text under equal headings is one chunk."""
    body = ["# Notice", sentence("same", 40)]
    pairs = run(build(*body, *body))
    assert len({passage.chunk_id for passage, _ in pairs}) == 1
    assert len({location.char_start for _, location in pairs}) == 2


def test_lines_count_from_one_and_both_ends_are_included() -> None:
    """As an editor shows them; form feeds and other separators are no lines."""
    document = build("# A\x0c", sentence("a", 50), "# B\u2028", sentence("b", 50))
    spans = [(location.line_start, location.line_end) for _, location in run(document)]
    assert spans == [(1, 3), (5, 7)]


def test_a_rendered_text_has_no_lines() -> None:
    """Line numbers that no editor shows are not given."""
    document = build("# A", "Text.")
    ((_, location),) = run(Document("html", "test", document.text, document.blocks))
    assert (location.line_start, location.line_end) == (None, None)


def test_a_passage_over_a_page_border_has_both_pages() -> None:
    """The label of the first page stands beside its number; each later page has its offset in the passage."""
    text = "First page ends here\nand goes on here. Third."
    parts = (
        Part("page", 1, "ii", 0), Part("page", 2, "iii", 21), Part("page", 3, None, 39), Part("page", 4, "1", 39),
    )  # fmt: skip
    document = Document("pdf", "test", text, (Block("paragraph", 0, len(text)),), parts)
    ((passage, location),) = run(document)
    assert (location.part_kind, location.part_first, location.part_last) == ("page", 1, 4)
    assert location.part_label == "ii"
    assert location.part_starts == ((21, 2), (39, 4))
    assert passage.text[21:].startswith("and goes on")


def test_a_page_that_begins_where_a_passage_ends_is_not_its_page() -> None:
    """Pages are those of the first and the last character, also where no white space parts them."""
    first, second = "泵" * 30 + "。", "阀" * 40 + "。"
    text = first + second
    parts = (Part("page", 1, None, 0), Part("page", 2, None, len(first)))
    pairs = chunk(
        Document("pdf", "test", text, (Block("paragraph", 0, len(text)),), parts), CharacterTokenizer(), SIZES
    )
    assert [(location.part_first, location.part_last) for _, location in pairs] == [(1, 1), (2, 2)]


def test_a_page_is_a_cut_only_where_the_page_before_ends_its_sentence() -> None:
    """A sentence that runs over the border is not torn for it."""
    first, second = sentence("a", 40), sentence("b", 40)
    for stop, expected in ((".", [first, second]), (",", None)):
        text = f"{first[:-1]}{stop}\n{second}"
        parts = (Part("page", 1, None, 0), Part("page", 2, None, len(first) + 1))
        found = texts(Document("pdf", "test", text, (Block("paragraph", 0, len(text)),), parts))
        assert (found == expected) is (stop == ".")


def test_a_slide_begins_a_passage_as_a_heading_does() -> None:
    """Also a slide without a title."""
    first, second = sentence("a", 40), sentence("b", 40)
    document = build(first, sentence("c", 12), second)
    start = document.text.index(second)
    parts = (Part("slide", 1, None, 0), Part("slide", 2, "hidden", start))
    pairs = run(Document("pptx", "test", document.text, document.blocks, parts))
    assert pairs[-1][0].text == second
    assert (pairs[-1][1].part_first, pairs[-1][1].part_label) == (2, "hidden")


def test_the_heading_path_names_the_section_of_the_passage() -> None:
    """Outermost first, the headings that the passage begins with included, at most six."""
    document = build(*("#" * level + f" h{level}" for level in range(1, 7)), sentence("x", 60), "## other", "Text.")
    paths = [location.headings for _, location in run(document)]
    assert paths[0] == ("h1", "h2", "h3", "h4", "h5", "h6")
    assert paths[-1] in (("h1", "other"), paths[0])


def test_the_cells_of_a_passage_are_the_range_of_its_rows() -> None:
    """Columns are ordered as sheets order them: Z before AA."""
    text = "a: 1\nb: 2"
    blocks = (Block("table_row", 0, 4, cells="B5:AA5"), Block("table_row", 5, 9, cells="A7:D7"))
    ((_, location),) = run(Document("xlsx", "test", text, blocks, (Part("sheet", 1, "S", 0),)))
    assert location.cells == "A5:AA7"
    assert location.part_label == "S"


def test_an_over_long_sentence_is_cut_between_words() -> None:
    """Nothing is longer than a passage, and no word is torn."""
    words = [f"word{number}" for number in range(500)]
    found = texts(build(" ".join(words)))
    assert [word for text in found for word in text.split()] == words
    assert all(SIZES.floor <= len(text.split()) <= SIZES.max for text in found)


def test_sentences_that_do_not_fit_the_sizes_are_cut_between_words() -> None:
    """The floor holds: a short sentence before an almost full passage is no passage of its own."""
    found = texts(build(f"{sentence('a', 5)} {sentence('b', 62)}"))
    assert len(found) == 2
    assert all(SIZES.floor <= len(text.split()) <= SIZES.max for text in found)


def test_a_very_long_word_is_cut_inside() -> None:
    """A line of base64 is one unknown token to a model; it counts as half its characters."""
    blob = "".join(chr(97 + number * number % 26) + str(number) for number in range(2000))
    found = texts(build(blob))
    assert "".join(found) == blob
    assert all(len(text) <= 2 * SIZES.max + 2 for text in found)


def test_chinese_is_cut_at_full_stops_without_spaces() -> None:
    """A full stop of Chinese needs no white space behind it."""
    text = "".join("泵的阀门要每月上油" + chr(0x4E00 + number) + "。" for number in range(60))
    passages = chunk(build(text), CharacterTokenizer(), SIZES)
    assert len(passages) > 5
    assert all(passage.text.endswith("。") for passage, _ in passages)


def test_a_joined_emoji_is_never_torn() -> None:
    """A family of four is one thing to a reader, seven code points to a machine."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\U0001f3fd\ufe0fa"
    passages = chunk(build("a" + family * 200), CharacterTokenizer(), SIZES)
    assert len(passages) > 10
    whole = len(family)
    assert all(
        location.char_start % whole in (0, 1) and location.char_end % whole in (0, 1) for _, location in passages
    )


class SplittingTokenizer(WordTokenizer):
    """Counts paragraphs together as twice what they count apart, as no good tokenizer would."""

    def token_ends(self, text: str) -> NDArray[np.int32]:
        ends = super().token_ends(text)
        return np.repeat(ends, 2) if "\n\n" in text.strip() else ends


def test_what_exceeds_the_limit_when_counted_whole_is_split_again() -> None:
    """The model's limit wins over the sizes, whatever the parts counted."""
    document = build(*(sentence(f"s{number}", 20) for number in range(12)), title=" ".join(["long", "title"] * 8))
    tokenizer = SplittingTokenizer()
    sizes = Sizes(limit=50, special=2, max=45, target=40, floor=15, window=39)
    pairs = chunk(document, tokenizer, sizes)
    for passage, _ in pairs:
        assert len(tokenizer.token_ends(passage_text(passage.context, passage.text))) <= sizes.limit - sizes.special
    assert "".join(passage.text for passage, _ in pairs).count(".") == 12


def test_sizes_follow_the_limit_of_the_model() -> None:
    """The numbers of the design for 512 and 256 tokens; a chunk size of the user's replaces the default."""
    wide, narrow = Sizes.for_limit(512), Sizes.for_limit(256)
    assert (wide.max, wide.target, wide.floor, wide.window) == (420, 239, 64, 113)
    assert (narrow.max, narrow.target, narrow.floor, narrow.window) == (206, 117, 64, 64)
    assert Sizes.for_limit(512, chunk_tokens=100).max == 100
    assert Sizes.for_limit(256, chunk_tokens=1000).max == 206
    assert Sizes.for_limit(512).to_json() == {
        "limit": 512, "special": 2, "max": 420, "target": 239, "floor": 64, "window": 113, "context_line": 16,
    }  # fmt: skip


def test_a_limit_without_room_for_a_passage_is_refused() -> None:
    """A usage error, before anything is chunked."""
    with pytest.raises(UsageError, match="at least 32"):
        Sizes.for_limit(64)


def test_rendered_records_cite_the_lines_of_the_file_that_their_reader_names() -> None:
    """A CSV record may span lines, and its text is rendered: line numbers come from the reader, not from the text."""
    rows = [f"| name: bolt {number} | stock: {number * 7}" for number in range(12)]
    document = replace(build(*rows, between="\n"), lines=False)
    spans = [[2 + 3 * number, 4 + 3 * number] for number in range(12)]
    placed = chunk(replace(document, meta={"lines": spans}), WordTokenizer(), SIZES)

    assert len(placed) > 1
    for passage, location in placed:
        inside = [span for row, span in zip(rows, spans, strict=True) if row in passage.text]
        assert (location.line_start, location.line_end) == (inside[0][0], inside[-1][1])
    assert all(location.line_start is None for _, location in chunk(document, WordTokenizer(), SIZES))

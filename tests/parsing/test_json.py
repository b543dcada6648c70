"""JSON, JSON Lines and notebooks: values beside their paths, records beside their lines, cells in order."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.parsing.document import Document
from ingest.parsing.failure import ParseFailure
from ingest.parsing.reading import read_document

CELLS = [
    {"cell_type": "markdown", "source": ["# Tides\n", "\n", "High water *today*."]},
    {
        "cell_type": "code",
        "source": "print(level)",
        "outputs": [
            {"output_type": "stream", "text": ["4.1\n", "3.9\n"]},
            {"output_type": "execute_result", "data": {"text/plain": ["'done'"], "text/html": "<b>done</b>"}},
            {"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": "iVBOR"}},
            {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["Traceback"]},
        ],
    },
    {"cell_type": "raw", "source": "raw words"},
]


def read(value: object, kind: str = "json") -> Document:
    """Return the document of a value, or of a text as it stands."""
    found = read_document((value if isinstance(value, str) else json.dumps(value)).encode(), kind)
    assert isinstance(found, Document), found
    return found


def pieces(found: Document) -> list[tuple[str, str]]:
    """Return (kind, text) of each block."""
    return [(block.kind, found.text[block.start : block.end]) for block in found.blocks]


def test_values_stand_beside_their_paths_under_two_levels_of_keys() -> None:
    """Plain values of an object are one block; keys that are no names are quoted."""
    found = read({"v": 1, "pump": {"on": True, "log": [{"at": "x", "k 1": None}]}})
    assert pieces(found) == [
        ("paragraph", "v: 1"),
        ("heading", "pump"),
        ("paragraph", "pump.on: true"),
        ("heading", "log"),
        ("paragraph", 'pump.log[0].at: x\npump.log[0]["k 1"]: null'),
    ]
    assert [block.level for block in found.blocks if block.kind == "heading"] == [1, 2]


def test_numbers_and_repeated_keys_stay_as_they_are_written() -> None:
    """A passage is evidence: 1.50 is not 1.5, and the second value of a key is not the only one."""
    assert read('{"a": 1.50, "a": 12345678901234567890123, "b": NaN}').text == (
        "a: 1.50\na: 12345678901234567890123\nb: NaN"
    )
    assert read('"only text"').text == "only text"


def test_what_is_no_json_is_read_as_the_text_that_it_is() -> None:
    """Settings with comments are common; the warning says where JSON ended."""
    found = read('{\n  // speed\n  "a": 1\n}')
    assert found.lines
    assert "// speed" in found.text
    assert found.warnings[0].startswith("not_json: line 2 column 3")


def test_json_lines_under_another_name_are_records() -> None:
    """Loggers write them into files named .json."""
    found = read('{"a": 1}\n{"a": 2}\n')
    assert pieces(found) == [("list_item", "a: 1"), ("list_item", "a: 2")]
    assert found.kind == "json"


def test_deep_nesting_is_damage_and_no_recursion_error() -> None:
    """Brackets in strings do not count; 200 levels are fine."""
    deep = "[" * 100_000 + "]" * 100_000
    found = read_document(deep.encode(), "json")
    assert isinstance(found, ParseFailure)
    assert (found.status, found.reason) == ("damaged", "nested deeper than 200")
    assert read("[" * 200 + "1" + "]" * 200).text.endswith(": 1")
    assert read(json.dumps(["[" * 1000 + '"'])).text.startswith("[0]: [[[")


def test_a_huge_key_before_many_values_is_no_document() -> None:
    """A MiB before each of a thousand values would be a text of a GiB; below the bound the key is shown as it is."""
    key = "k" * (1 << 20)
    found = read_document(json.dumps({key: [1] * 1000}).encode(), "json")
    assert found == ParseFailure("too_large", "1000 values under keys of 1048576 characters")
    assert read({key: 5}).text == f"{key}: 5"


def test_bad_lines_are_named_and_the_rest_is_kept() -> None:
    """One broken record never costs the others."""
    found = read('{"a": 1}\n\n{"a": }\n{"b": {"c": [2]}}\n', "jsonl")
    assert pieces(found) == [("list_item", "a: 1"), ("list_item", "b.c[0]: 2")]
    assert found.meta["lines"] == [[1, 1], [4, 4]]
    assert found.warnings == ("unread_lines: 1 lines are no JSON and are left out: 3",)
    assert read_document(b"no\nrecords\n", "jsonl").status == "damaged"  # type: ignore[union-attr]
    assert read('{"t": "%s"}\n{"t": "tail"}' % ("x" * 2_000_000), "jsonl").text.endswith("t: tail")
    long = read_document(b'{"a": "' + b"x" * (16 << 20) + b'"}', "jsonl")
    assert isinstance(long, ParseFailure)
    assert long.status == "too_large"


def test_a_notebook_is_its_cells_in_order() -> None:
    """Markdown with its headings, code, and text that the code printed; no images and no traces."""
    found = read({"nbformat": 4, "metadata": {}, "cells": CELLS}, "ipynb")
    assert pieces(found) == [
        ("heading", "# Tides"),
        ("paragraph", "High water *today*."),
        ("code", "print(level)"),
        ("code", "4.1\n3.9"),
        ("code", "'done'"),
        ("code", "KeyError: 'x'"),
        ("paragraph", "raw words"),
    ]
    assert found.title == "Tides"


def test_old_notebooks_and_long_outputs() -> None:
    """Version 3 keeps cells in worksheets; of an output 20 lines are read, and a warning says so."""
    output = {"output_type": "stream", "text": [f"step {number}\n" for number in range(50)]}
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Run"},
        {"cell_type": "code", "input": "go()", "outputs": [output]},
    ]
    found = read({"nbformat": 3, "worksheets": [{"cells": cells}]}, "ipynb")
    assert [block.level for block in found.blocks] == [2, 0, 0]
    assert found.text.endswith("step 19")
    assert found.warnings == ("outputs_cut: of 1 outputs only the first 20 lines are read",)


ODD_CELLS = [
    1, None, "x", [], {}, {"cell_type": 5, "source": 7}, {"cell_type": "code", "source": {"a": 1}, "outputs": None},
    {"cell_type": "code", "outputs": [None, 1, {"output_type": []}, {"output_type": "stream", "text": 5}]},
    {"cell_type": "code", "outputs": [{"output_type": "display_data", "data": [1]}]},
    {"cell_type": "code", "outputs": [{"output_type": "execute_result", "data": {"text/plain": {"a": 1}}}]},
    {"cell_type": "code", "outputs": [{"output_type": "error", "ename": 1, "evalue": None}]},
    {"cell_type": "heading", "level": 0, "source": "Deep"}, {"cell_type": "heading", "level": 2.5, "source": []},
    {"cell_type": "markdown", "source": [["x"], 1, "kept words"]},
]  # fmt: skip


@pytest.mark.parametrize("metadata", [None, [], {"title": ["x", 1]}, {"title": {}}])
def test_a_notebook_of_wrong_types_gives_what_it_says_in_words(metadata: object) -> None:
    """Nothing in it can be relied on, and numbers are words; a heading has a level that headings have."""
    notebook = {"nbformat": "4", "metadata": metadata, "cells": ODD_CELLS, "worksheets": [1, {"cells": 5}]}
    text = json.dumps(notebook).replace('"level": 0', f'"level": {"9" * 5000}')
    found = read(text, "ipynb")
    assert [text for _, text in pieces(found)] == ["7", "5", "1:", "Deep", "1kept words"]
    assert [block.level for block in found.blocks if block.kind == "heading"] == [1]


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "words"])
def test_what_is_no_notebook_is_damaged(text: str) -> None:
    """A wrong file under the name of a notebook is said to be one."""
    found = read_document(text.encode(), "ipynb")
    assert isinstance(found, ParseFailure)
    assert found.status == "damaged"


WORDS = st.text(st.characters(codec="ascii", categories=["Lu", "Ll", "Nd"]), min_size=1, max_size=5)
VALUES = st.recursive(
    WORDS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=3))
def test_every_plain_value_of_a_json_file_is_in_its_text(value: dict[str, object]) -> None:
    """As a line that ends with it, however it is nested; JSON Lines say the same."""

    def plain(inside: object) -> list[str]:
        if isinstance(inside, dict):
            return [text for child in inside.values() for text in plain(child)]
        if isinstance(inside, list):
            return [text for child in inside for text in plain(child)]
        return [inside if isinstance(inside, str) else json.dumps(inside)]

    for kind in ("json", "jsonl"):
        found = read_document(json.dumps(value).encode(), kind)
        lines = found.text.split("\n") if isinstance(found, Document) else []
        assert sorted(line.rpartition(": ")[2] for line in lines if ": " in line) == sorted(plain(value))

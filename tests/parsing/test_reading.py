"""What holds for every document that any reader returns, whatever bytes it was given."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.parsing import reading
from ingest.parsing.document import Block, Document
from ingest.parsing.failure import ParseFailure, Refused, shorten
from ingest.parsing.limits import Limits
from ingest.parsing.normalise import normalise
from ingest.parsing.reading import check_document, read_document
from ingest.parsing.registry import FORMATS, Format, ReaderInput

PAGES = {
    "markdown": "---\ntitle: x\n---\n# H\n\n[a](b)\n\n- 1\n  - two\n\n> q\n\n```\ncode\n```\n\n|a|b|\n|-|-|\n|1|2|\n",
    "text": "one\ntwo\n\n  three\x0cfour\r\n\r\nfive\u2028six",
    "asciidoc": "= T\n\n== S\n\n* a\n* b\n\n----\ncode\n----\n\n|===\n|a |b\n|===\n",
    "code": "// c\nclass A {\n  public f(x) {\n  }\n}\n\nfunction g() {}\n",
    "csv": 'a;b;c\n1;2;"x\ny"\n\n3;;4;5\n',
    "ipynb": '{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["# T\\n", "x"]},'
    ' {"cell_type": "code", "source": "y", "outputs": [{"output_type": "stream", "text": "z"}]}]}',
    "json": '{"a": [1, {"b": "x\\u00e9"}], "c": {"d": null, "d": "\\ud800"}}',
    "jsonl": '{"a": 1}\n\n[2]\n{"b": }\n',
    "python": "@d\nclass A:\n    def f(self):\n        return 1\n\nasync def g(): pass\n",
    "rst": "T\n=\n\nx::\n\n  code\n\n- a\n- b\n\n.. note:: c\n\nS\n-\n\n.. [1] n\n",
    "xml": "<?xml version='1.0' encoding='utf-8'?>\n<!DOCTYPE a [<!ENTITY b 'c'>]>\n<a>&b;</a>\n",
    "html": "<title>t</title><h1>H</h1><p><b>b</b><ul><li>a<li>b</ul><table><tr><td>1<td>2</table><pre>c\n d</pre>",
}
TEXT_KINDS = sorted(kind for kind, known in FORMATS.items() if known.is_text)
# Kinds whose text is that of the file, and not rendered from its values.
LINED_KINDS = ["asciidoc", "code", "markdown", "python", "rst", "text", "xml"]
PIECES = st.sampled_from(
    [
        "# ", "a", "b c", "\n", "\n\n", "    ", "- ", "> ", "```", "|", "-|-", "---\n", "<p>", "</p>", "<td>", "<li>",
        "<pre>", "<!--", "-->", "&lt;", "\t", "\u00ad", "\u202e", "\x1b[0m", "\x00", "é", "日本", "x: y", "***",
        "[^1]: ", "1. ",
    ]
)  # fmt: skip


def letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(char for char in text if char.isalnum())


def check(found: Document | ParseFailure, content: bytes, kind: str) -> None:
    """Assert what every result promises."""
    assert found == read_document(content, kind)
    if isinstance(found, ParseFailure):
        assert found.reason
        return
    check_document(found)
    # Normalised already: what is stored, shown and cited is what the offsets were taken from.
    assert normalise(found.text)[0] == found.text
    for block in found.blocks:
        assert found.text[block.start : block.end].strip()
        assert (block.kind == "heading") == (block.heading is not None)
    assert found.title is None or found.title == " ".join(found.title.split()) != ""


def uncovered(found: Document) -> str:
    """Return the letters of the text that stand in no block."""
    rest, end = "", 0
    for block in found.blocks:
        rest, end = rest + found.text[end : block.start], block.end
    return letters(rest + found.text[end:])


@pytest.mark.parametrize("kind", TEXT_KINDS)
@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_any_mixture_of_markup_gives_a_sound_document(kind: str, data: st.DataObject) -> None:
    """Blocks are in order, do not overlap and cover every letter; the same bytes give the same document."""
    text = "".join(data.draw(st.lists(PIECES, max_size=40)))
    content = text.encode()
    found = read_document(content, kind)
    check(found, content, kind)
    if isinstance(found, Document) and "<!--" not in text:
        assert uncovered(found) == ""


@pytest.mark.parametrize("kind", TEXT_KINDS)
@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_any_damage_to_a_text_ends_in_a_document_or_a_failure(kind: str, data: st.DataObject) -> None:
    """Cut anywhere, one bit flipped anywhere: a sound document, or a failure that says why."""
    content = bytearray(PAGES[kind].encode())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    cut = bytes(content[: data.draw(st.integers(1, len(content)))])
    check(read_document(cut, kind), cut, kind)


@pytest.mark.parametrize("kind", TEXT_KINDS)
@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.binary(min_size=1, max_size=300))
def test_any_bytes_end_in_a_document_or_a_failure(kind: str, content: bytes) -> None:
    """Also bytes that were never a text."""
    check(read_document(content, kind), content, kind)


@pytest.mark.parametrize("kind", LINED_KINDS)
def test_text_kinds_have_the_lines_of_the_file(kind: str) -> None:
    """So a line number means what an editor shows."""
    found = read_document(PAGES[kind].encode(), kind)
    assert isinstance(found, Document)
    assert found.lines
    assert found.text.count("\n") == PAGES[kind].count("\n")


def stub(read: object) -> Mapping[str, Format]:
    """Return a registry whose text reader is ``read``."""

    class Stub(Format):
        def load(self):  # type: ignore[no-untyped-def]
            return read

    return {"text": Stub("text", "stub", 1, "text/plain", ("txt",), True)}


UNEXPECTED = "the text reader stopped at something that it does not expect"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("page 3 is\n torn"), "the text reader stopped: page 3 is torn"),
        (OSError(), "the text reader stopped at something that it does not expect (OSError: )"),
        (KeyError("word/\x00x.xml"), "the text reader stopped at something that it does not expect (KeyError: "),
        (
            IndexError("pop from empty list"),
            "the text reader stopped at something that it does not expect (IndexError: ",
        ),
        (RecursionError("maximum depth"), "nested too deep for the text reader"),
        (RuntimeError("x" * 500), "the text reader stopped: xxx"),
    ],
)
def test_whatever_a_library_raises_is_damage_of_this_one_file(error: Exception, reason: str) -> None:
    """The reason names the reader and what it said, as a sentence on one line of bounded length."""

    def read(task: ReaderInput) -> Document:
        raise error

    found = read_document(b"x", "text", formats=stub(read))
    assert isinstance(found, ParseFailure)
    assert found.status == "damaged"
    assert found.reason.startswith(reason)
    assert found.reason.isprintable()
    assert len(found.reason) <= 200


def test_a_refusal_keeps_its_status() -> None:
    """A reader says itself what is the matter."""

    def read(task: ReaderInput) -> Document:
        raise Refused("needs_password", "locked")

    assert read_document(b"x", "text", formats=stub(read)) == ParseFailure("needs_password", "locked")


def test_running_out_of_memory_is_not_damage() -> None:
    """The worker that met it has to be replaced, so it goes on to whoever can do that."""

    def read(task: ReaderInput) -> Document:
        raise MemoryError

    with pytest.raises(MemoryError):
        read_document(b"x", "text", formats=stub(read))


@pytest.mark.parametrize(
    "blocks",
    [
        (Block("paragraph", 0, 9),),
        (Block("paragraph", 2, 1),),
        (Block("paragraph", 0, 3), Block("paragraph", 2, 4)),
        (Block("paragraph", -1, 3),),
    ],
)
def test_a_reader_that_breaks_the_rules_of_blocks_is_caught(blocks: tuple[Block, ...]) -> None:
    """Offsets outside of the text or over each other never reach the index."""

    def read(task: ReaderInput) -> Document:
        return Document("text", "r", "words", blocks)

    found = read_document(b"x", "text", formats=stub(read))
    assert isinstance(found, ParseFailure)
    assert found.status == "damaged"


def test_limits_make_failures_and_never_shorter_documents() -> None:
    """Over the limit of the file or of its text there is no document at all."""
    assert read_document(b"", "pdf") == ParseFailure("empty", "no bytes")
    assert read_document(b"long text", "text", limits=Limits(text_chars=5)).status == "too_large"  # type: ignore[union-attr]
    assert read_document(b"long text", "text", limits=Limits(text_file_bytes=5)).status == "too_large"  # type: ignore[union-attr]


def test_more_rows_than_a_run_can_hold_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker could hold them; what takes its answer has no limit of its own."""
    monkeypatch.setattr(reading, "MAX_BLOCKS", 3)
    assert isinstance(read_document(b"a\n\nb\n\nc", "text"), Document)
    assert read_document(b"a\n\nb\n\nc\n\nd", "text") == ParseFailure("too_large", "4 blocks, over 3; split it")


def test_reasons_are_one_printable_line() -> None:
    """They go to terminals, tables and JSON."""
    assert shorten("a\n\tb\x1b[31m  c") == "a b [31m c"
    assert shorten("x" * 300) == "x" * 199 + "…"

"""RST, AsciiDoc, source code and XML: the text of the file, line by line, with its headings found."""

import pytest

from ingest.parsing.document import Document
from ingest.parsing.reading import read_document

RST = """\
=====
Ropes
=====

A rope ends::

   splice me

Care
----

- wash it
- dry it
  well

.. hidden remark
   over two lines

.. code-block:: sh

   coil --left

.. note::

   Never step on it.

.. [1] A note.

Storage
-------
Coiled.
"""
ADOC = """\
= Ropes
:author: Ada

Intro line.

== Care

* wash it
* dry it

----
== no heading
----

////
hidden
////

=== Storage
Coiled.
|===
|Length |Use
|===
"""
PYTHON = '''\
"""Pumps."""
import os

@cache
class Pump(Base):
    """A pump."""

    async def start(
        self,
    ):
        def inner(): return 1
        return inner

def stop():
    pass
'''
TYPESCRIPT = """\
import x from "y";

// Opens the gate.
// Twice.
export async function open(gate) {
  if (gate) { return; }
}

export default class Gate {
  private static close(now: boolean) {
  }
}
const shut = (a) => a;
"""
C = """\
#include <x.h>
static int level(struct tank *t, int n)
{
    while (n) run(t);
    return n;
}
int later(void);
"""


def read(text: str, kind: str) -> Document:
    """Return the document of a text, which has the lines of its file."""
    found = read_document(text.encode(), kind)
    assert isinstance(found, Document), found
    assert found.lines
    assert found.text == text
    return found


def outline(found: Document) -> list[tuple[int, str | None]]:
    """Return (level, text) of the headings."""
    return [(block.level, block.heading) for block in found.blocks if block.kind == "heading"]


def of_kind(found: Document, kind: str) -> list[str]:
    """Return the texts of the blocks of a kind."""
    return [found.text[block.start : block.end] for block in found.blocks if block.kind == kind]


def test_restructured_text_has_its_titles_literals_and_lists() -> None:
    """Levels follow the order in which styles appear; comments are left out."""
    found = read(RST, "rst")
    assert found.title == "Ropes"
    assert outline(found) == [(1, "Ropes"), (2, "Care"), (2, "Storage")]
    assert of_kind(found, "code") == ["   splice me", ".. code-block:: sh\n\n   coil --left"]
    assert of_kind(found, "list_item") == ["- wash it", "- dry it\n  well"]
    assert of_kind(found, "footnote") == [".. [1] A note."]
    assert "   Never step on it." in of_kind(found, "paragraph")
    assert not any("hidden" in found.text[block.start : block.end] for block in found.blocks)


def test_a_transition_or_table_is_no_title() -> None:
    """A row of dashes between blank lines parts the text, and heads nothing."""
    assert outline(read("One.\n\n----\n\nTwo.\n", "rst")) == []
    assert outline(read("===  ===\na    b\n===  ===\n", "rst")) == []


def test_asciidoc_has_its_titles_listings_and_lists() -> None:
    """What stands in a listing is no title, and comments are left out."""
    found = read(ADOC, "asciidoc")
    assert found.title == "Ropes"
    assert outline(found) == [(1, "Ropes"), (2, "Care"), (3, "Storage")]
    assert of_kind(found, "list_item") == ["* wash it", "* dry it"]
    assert of_kind(found, "code") == ["----\n== no heading\n----"]
    assert of_kind(found, "table_row") == ["|Length |Use"]
    assert not any("hidden" in found.text[block.start : block.end] for block in found.blocks)


def test_python_has_its_classes_and_functions() -> None:
    """Decorators and the whole signature belong to the heading; what is nested is deeper."""
    found = read(PYTHON, "python")
    assert outline(found) == [(2, "class Pump"), (3, "def start"), (4, "def inner"), (2, "def stop")]
    assert of_kind(found, "heading")[:2] == ["@cache\nclass Pump(Base):", "    async def start(\n        self,\n    ):"]


@pytest.mark.parametrize("broken", ["print 'old'\n", "x = (\n"])
def test_python_that_does_not_parse_still_has_an_outline(broken: str) -> None:
    """Python 2 and half-written files are read by the words that begin a definition."""
    assert outline(read(PYTHON + broken, "python"))[0] == (2, "class Pump")


def test_python_that_its_own_parser_has_no_room_for_has_an_outline_too() -> None:
    """A hundred thousand ``elif`` overflow the stack of the parser, which says that memory is short."""
    found = read("def f():\n    if a:\n        b()\n" + "    elif a:\n        b()\n" * 100_000, "python")
    assert outline(found) == [(2, "def f")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TYPESCRIPT, [(2, "function open"), (2, "class Gate"), (3, "close"), (2, "shut")]),
        (C, [(2, "level")]),
        ("func (p *Pump) Start(n int) error {\n\treturn nil\n}\n", [(2, "func Start")]),
        ("impl Pump {\n    pub fn start(&self) {}\n}\n", [(2, "impl Pump"), (3, "fn start")]),
        ("CREATE TABLE pumps (\n  id int\n);\n", [(2, "TABLE pumps")]),
        ("x = [[\nfunction that returns nothing\nobject is here\n]]\n", []),
        ("local function go(a)\nend\n", [(2, "function go")]),
    ],
)
def test_other_languages_have_what_begins_like_a_definition(text: str, expected: list[tuple[int, str]]) -> None:
    """Calls, declarations and control flow are no definitions."""
    assert outline(read(text, "code")) == expected


def test_a_comment_above_a_definition_belongs_to_it() -> None:
    """So that no passage ends between the two."""
    assert of_kind(read(TYPESCRIPT, "code"), "heading")[0].startswith("// Opens the gate.\n// Twice.\nexport async")


def test_declared_encodings_of_xml_and_python_are_believed() -> None:
    """Where the bytes are no UTF-8 and fit; entities and tags stay as they are written."""
    xml = read_document('<?xml version="1.0" encoding="iso-8859-2"?>\n<a>Łódź &amp;</a>'.encode("iso-8859-2"), "xml")
    assert isinstance(xml, Document)
    assert "<a>Łódź &amp;</a>" in xml.text
    python = read_document("#!/usr/bin/python\n# -*- coding: koi8-r -*-\ns = 'вода'\n".encode("koi8-r"), "python")
    assert isinstance(python, Document)
    assert "вода" in python.text

"""The records that a lookup is made of: their JSON can be read back, and addresses are safe to follow."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search.identity import ChunkId, DocumentId
from search.records import Citation, Completeness, Passage, SearchResult

numbers = st.none() | st.integers(1, 9_999)
texts = st.none() | st.text(min_size=1, max_size=12)
citations = st.builds(
    Citation,
    root=st.text(min_size=1, max_size=8),
    path=st.text(min_size=1, max_size=20),
    document_id=st.just(DocumentId("0" * 64)),
    path_b64=texts,
    media_type=texts,
    title=texts,
    heading_path=st.lists(st.text(max_size=8), max_size=3).map(tuple),
    page_start=numbers,
    page_end=numbers,
    page_label=texts,
    slide=numbers,
    sheet=texts,
    cells=texts,
    line_start=numbers,
    line_end=numbers,
    char_start=numbers,
    char_end=numbers,
    part_starts=st.lists(st.tuples(st.integers(0, 99), st.integers(1, 9)), max_size=3).map(tuple),
)


def cited(**place: object) -> Citation:
    """A citation of one file, at a place."""
    return Citation(root="docs", path="a b/c#1.md", document_id=DocumentId("d"), **place)  # type: ignore[arg-type]  # any place


@settings(derandomize=True, deadline=None, max_examples=150)
@given(citation=citations)
def test_a_citation_is_read_back_as_it_was(citation: Citation) -> None:
    """From its JSON; what is not known is left out, and what a later version adds is ignored."""
    values = citation.to_json()
    assert Citation.from_json({**values, "of_a_later_version": 1}) == citation
    assert None not in values.values()


@settings(derandomize=True, deadline=None, max_examples=150)
@given(citation=citations)
def test_an_address_holds_the_path_and_is_never_a_file_address(citation: Citation) -> None:
    """Root and path are percent-encoded, so that no name of a file can end the path or begin a query."""
    uri = citation.uri
    assert uri.startswith("docs://")
    assert uri.isascii()
    parts = urlsplit(uri)
    assert parts.query == ""
    assert unquote(parts.path) == "/" + citation.path.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    ("place", "fragment"),
    [
        ({}, ""),
        ({"page_start": 3, "page_end": 4}, "page=3"),
        ({"slide": 2}, "slide=2"),
        ({"sheet": "Q1 & Q2"}, "sheet=Q1%20%26%20Q2"),
        ({"line_start": 7, "line_end": 7}, "L7"),
        ({"line_start": 7, "line_end": 9}, "L7-L9"),
    ],
)
def test_an_address_ends_in_the_place(place: dict[str, object], fragment: str) -> None:
    """Page before slide, sheet and lines."""
    assert cited(**place).uri == "docs://docs/a%20b/c%231.md" + (f"#{fragment}" if fragment else "")


def test_citations_are_ordered_by_root_path_and_position() -> None:
    """So that equal states show the same citation first."""
    places = [cited(char_start=9), cited(char_start=0), Citation(root="a", path="z", document_id=DocumentId("d"))]
    assert sorted(places, key=Citation.sort_key) == [places[2], places[1], places[0]]


def test_a_result_tells_nothing_found_from_could_not_look() -> None:
    """Without passages it says no_match, and beside it what the index lacks."""
    lacking = Completeness(sources_failed=2, removals_withheld=1)
    empty = SearchResult(query="q", generation="000001", passages=(), completeness=lacking)
    assert empty.to_json()["status"] == "no_match"
    assert empty.to_json()["index"] == {
        "sources_failed": 2, "sources_needing_ocr": 0, "removals_withheld": 1, "documents_with_gaps": 0,
    }  # fmt: skip
    passage = Passage(
        ref=1, chunk_id=ChunkId("c"), text="t", score=0.5, citation=cited(), also_at=(cited(char_start=1),)
    )
    found = SearchResult(query="q", generation="000001", passages=(passage,), completeness=Completeness())
    assert found.to_json()["status"] == "ok"
    assert passage.to_json()["also_at"] == [cited(char_start=1).to_json()]

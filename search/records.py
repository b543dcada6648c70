"""The records that pass between the parts: frozen, plain, and the same for embedded and server stores.

A *location* says where a chunk stands in one document; a *citation* is that location seen from outside, with the source
that holds it, checkable by anyone who has the file. ``Citation`` is also the form in which a point's payload keeps its
locations: a lookup needs nothing but the payload.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, cast
from urllib.parse import quote

from .identity import ChunkId, DocumentId

__all__ = ["Chunk", "Citation", "Completeness", "Location", "Passage", "SearchResult", "SparseVector"]

# Citation fields in the order of the contract of the agent tool; all but the first four may be unknown.
CITATION_FIELDS = (
    "uri", "root", "path", "document_id", "path_b64", "media_type", "title", "heading_path", "page_start", "page_end",
    "page_label", "slide", "slide_end", "sheet", "cells", "line_start", "line_end", "char_start", "char_end",
    "part_starts",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document. ``context`` is the title found in the content and the last two headings, by lines."""

    chunk_id: ChunkId
    context: str
    text: str
    n_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a chunk stands in one document; never part of an id.

    Characters are code points of the document text, 0-based and half-open: ``text[char_start:char_end]`` is the
    passage. Lines count from 1, both ends included, and are absent where the text is not the file's own. ``part_kind``
    is ``page``, ``slide`` or ``sheet``; ``part_first`` and ``part_last`` count parts from 1; ``part_label`` is what is
    printed on the first. ``part_starts`` holds (offset in the chunk, part number) for parts that begin inside it.
    """

    char_start: int
    char_end: int
    line_start: int | None = None
    line_end: int | None = None
    part_kind: str | None = None
    part_first: int | None = None
    part_last: int | None = None
    part_label: str | None = None
    part_starts: tuple[tuple[int, int], ...] = ()
    cells: str | None = None
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SparseVector:
    """A BM25 vector: unique ascending ``indices`` and as many ``values``; the engine applies the IDF."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Where a passage can be checked: root label, path below it, and the place in the document.

    ``path`` is what a person reads; ``path_b64`` stands beside a name that is not UTF-8 and is exact.
    """

    root: str
    path: str
    document_id: DocumentId
    path_b64: str | None = None
    media_type: str | None = None
    title: str | None = None
    heading_path: tuple[str, ...] = ()
    page_start: int | None = None
    page_end: int | None = None
    page_label: str | None = None
    slide: int | None = None
    slide_end: int | None = None
    sheet: str | None = None
    cells: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    char_start: int | None = None
    char_end: int | None = None
    part_starts: tuple[tuple[int, int], ...] = ()

    @property
    def uri(self) -> str:
        """``docs://<root>/<path>#<place>``, percent-encoded; never a ``file:`` address."""
        place = ""
        if self.page_start is not None:
            place = f"#page={self.page_start}"
        elif self.slide is not None:
            place = f"#slide={self.slide}"
        elif self.sheet is not None:
            place = f"#sheet={quote(self.sheet, safe='')}"
        elif self.line_start is not None:
            place = f"#L{self.line_start}"
            if self.line_end is not None and self.line_end != self.line_start:
                place += f"-L{self.line_end}"
        return f"docs://{quote(self.root, safe='', errors='replace')}/{quote(self.path, errors='replace')}{place}"

    def sort_key(self) -> tuple[str, str, int]:
        """Order of citations: root, path, position."""
        return (self.root, self.path, self.char_start or 0)

    def to_json(self) -> dict[str, object]:
        """Return the known fields in the order of the contract, the address first; unknown ones are left out."""
        values: dict[str, object] = {}
        for name in CITATION_FIELDS:
            value = getattr(self, name)
            if value is None or value == ():
                continue
            values[name] = (
                [list(item) if isinstance(item, tuple) else item for item in value]
                if isinstance(value, tuple)
                else value
            )
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Self:
        """Read what ``to_json`` wrote; fields of later versions are ignored."""
        known = {name: values[name] for name in CITATION_FIELDS if name != "uri" and name in values}
        if "heading_path" in known:
            known["heading_path"] = tuple(cast("list[str]", known["heading_path"]))
        if "part_starts" in known:
            pairs = cast("list[list[int]]", known["part_starts"])
            known["part_starts"] = tuple((offset, number) for offset, number in pairs)
        return cls(**known)  # type: ignore[arg-type]  # the keys are the field names, the values were written by to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """What the index lacks, so that "nothing found" is not read as "not there". Counts of sources and removals."""

    sources_failed: int = 0
    sources_needing_ocr: int = 0
    removals_withheld: int = 0
    documents_with_gaps: int = 0

    def to_json(self) -> dict[str, object]:
        """Return the counts by name."""
        return {
            "sources_failed": self.sources_failed,
            "sources_needing_ocr": self.sources_needing_ocr,
            "removals_withheld": self.removals_withheld,
            "documents_with_gaps": self.documents_with_gaps,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What a lookup returns: the text of a chunk and where to find it.

    ``also_at`` lists further citations: other locations of the chunk, and those of collapsed near-equal chunks (whose
    own ids are in ``collapsed``). ``score`` is in 0..1. ``truncated`` says that ``text`` is a prefix of the passage.
    """

    ref: int
    chunk_id: ChunkId
    text: str
    score: float
    citation: Citation
    also_at: tuple[Citation, ...] = ()
    more_locations: int = 0
    collapsed: tuple[ChunkId, ...] = ()
    truncated: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the passage with the field names of the agent tool's contract."""
        return {
            "ref": self.ref,
            "chunk_id": self.chunk_id,
            "text": self.text,
            "truncated": self.truncated,
            "score": self.score,
            "citation": self.citation.to_json(),
            "also_at": [citation.to_json() for citation in self.also_at],
            "more_locations": self.more_locations,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The answer to one query, from one generation (I4)."""

    query: str
    generation: str
    passages: tuple[Passage, ...]
    completeness: Completeness
    truncated: bool = False
    omitted: int = 0

    @property
    def status(self) -> str:
        """``ok``, or ``no_match``: looked, and nothing in the index answers."""
        return "ok" if self.passages else "no_match"

    def to_json(self) -> dict[str, object]:
        """Return the object that ``ingest search --json`` prints."""
        return {
            "message_type": "search_result",
            "query": self.query,
            "status": self.status,
            "generation": self.generation,
            "truncated": self.truncated,
            "omitted": self.omitted,
            "passages": [passage.to_json() for passage in self.passages],
            "index": self.completeness.to_json(),
        }

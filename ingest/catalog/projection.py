"""What the points of a generation must be, and how they differ from those of the current one (I2).

A payload is computed from the catalog alone, so that a diff, a rebuild and ``verify --full`` cannot disagree. The table
``points`` holds the ids and payload hashes of the current generation; it is changed in the publishing transaction.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias, cast

from search.identity import ChunkId, DocumentId, payload_hash
from search.records import Citation, Location

from .database import Catalog

__all__ = ["PointChange", "Projected", "Totals", "changed", "everything", "record", "replaced"]

# Chunks for which payloads are read and compared at a time; bounds memory, not results.
BATCH = 512
# The contract of the agent tool: titles and headings of at most 200 characters, at most 6 headings.
SHOWN_CHARS = 200
SHOWN_HEADINGS = 6

COLUMNS = """
  l.chunk_id, c.context, c.text, c.n_tokens, c.text_hash, l.document_id, d.media_type, d.title, r.name, s.shown,
  s.path_b64, l.char_start, l.char_end, l.line_start, l.line_end, l.part_kind, l.part_first, l.part_last, l.part_label,
  l.part_starts, l.cells, l.headings
"""
JOINS = """
  locations l JOIN chunks c ON c.chunk_id = l.chunk_id JOIN documents d ON d.document_id = l.document_id
  JOIN sources s ON s.document_id = l.document_id JOIN roots r ON r.root_id = s.root_id
"""

# The columns above from document_id and from char_start on.
SourceColumns: TypeAlias = tuple[str, str, str | None, str, str, str | None]
Number: TypeAlias = int | None
Text: TypeAlias = str | None
PlaceColumns: TypeAlias = tuple[int, int, Number, Number, Text, Number, Number, Text, Text, Text, str]


@dataclass(frozen=True, slots=True)
class Projected:
    """A point as it must be."""

    chunk_id: ChunkId
    payload: dict[str, object]
    hash: str


@dataclass(frozen=True, slots=True)
class PointChange:
    """How one point differs from the current generation; ``relocated`` changes the payload only."""

    kind: Literal["written", "relocated", "removed", "kept"]
    chunk_id: ChunkId
    point: Projected | None  # None for a removal


@dataclass(slots=True)
class Totals:
    """How many chunks a run wrote, moved (payload only) and removed."""

    written: int = 0
    relocated: int = 0
    removed: int = 0


def everything(catalog: Catalog) -> Iterator[list[Projected]]:
    """Yield all points of the catalog's state in batches, by ascending chunk_id. Does not write."""
    last = ""
    while True:
        rows = catalog.connection.execute(
            "SELECT DISTINCT chunk_id FROM locations WHERE chunk_id > ? ORDER BY chunk_id LIMIT ?", (last, BATCH)
        ).fetchall()
        if not rows:
            return
        ids = [ChunkId(row[0]) for row in rows]
        last = ids[-1]
        yield _project(catalog, ids)


def changed(catalog: Catalog) -> Iterator[list[PointChange]]:
    """Yield, in batches, how the points of ``temp.touched`` differ from the current generation. Does not write."""
    last = ""
    while True:
        rows = catalog.connection.execute(
            "SELECT chunk_id FROM temp.touched WHERE chunk_id > ? ORDER BY chunk_id LIMIT ?", (last, BATCH)
        ).fetchall()
        if not rows:
            return
        ids = [ChunkId(row[0]) for row in rows]
        last = ids[-1]
        batch = [change for change in _compare(catalog, ids, _project(catalog, ids)) if change.kind != "kept"]
        if batch:
            yield batch


def replaced(catalog: Catalog) -> Iterator[list[PointChange]]:
    """Yield, in batches, every point that must be and every one that must go, for a generation made from nothing.

    Does not write, but reads on while the caller records what it got.
    """
    for points in everything(catalog):
        yield _compare(catalog, [point.chunk_id for point in points], points)
    gone = catalog.connection.execute(
        "SELECT chunk_id FROM points p WHERE NOT EXISTS (SELECT 1 FROM locations l WHERE l.chunk_id = p.chunk_id)"
    ).fetchall()
    if gone:
        yield [PointChange("removed", ChunkId(row[0]), None) for row in gone]


def _compare(catalog: Catalog, ids: Sequence[ChunkId], points: Sequence[Projected]) -> list[PointChange]:
    rows = catalog.connection.execute(
        "SELECT chunk_id, payload_hash FROM points WHERE chunk_id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids),),
    )
    old: dict[str, str] = dict(rows.fetchall())
    now = {point.chunk_id: point for point in points}
    compared: list[PointChange] = []
    for chunk_id in ids:
        point, known = now.get(chunk_id), old.get(chunk_id)
        if point is None:
            if known is not None:
                compared.append(PointChange("removed", chunk_id, None))
        elif known is None:
            compared.append(PointChange("written", chunk_id, point))
        else:
            compared.append(PointChange("kept" if known == point.hash else "relocated", chunk_id, point))
    return compared


def record(catalog: Catalog, changes: Sequence[PointChange], totals: Totals) -> None:
    """Note the changes in ``points``, as part of the publishing transaction, and count them."""
    connection = catalog.connection
    connection.executemany(
        "DELETE FROM points WHERE chunk_id = ?", [(change.chunk_id,) for change in changes if change.point is None]
    )
    connection.executemany(
        "INSERT OR REPLACE INTO points(chunk_id, payload_hash) VALUES (?, ?)",
        [(change.chunk_id, change.point.hash) for change in changes if change.point is not None],
    )
    totals.written += sum(change.kind == "written" for change in changes)
    totals.relocated += sum(change.kind == "relocated" for change in changes)
    totals.removed += sum(change.kind == "removed" for change in changes)


def _project(catalog: Catalog, chunk_ids: Sequence[ChunkId]) -> list[Projected]:
    """Compute the points of these chunks; those without a location have none. Ascending by chunk_id."""
    cursor = catalog.connection.execute(
        f"SELECT {COLUMNS} FROM json_each(?) j CROSS JOIN {JOINS} WHERE l.chunk_id = j.value ORDER BY l.chunk_id",
        (json.dumps(sorted(chunk_ids)),),
    )
    return [_point(ChunkId(chunk_id), list(rows)) for chunk_id, rows in groupby(cursor, key=lambda row: row[0])]


def _point(chunk_id: ChunkId, rows: Sequence[tuple[object, ...]]) -> Projected:
    _, context, text, n_tokens, text_hash, *_ = rows[0]
    citations = sorted((_citation(row) for row in rows), key=Citation.sort_key)
    payload: dict[str, object] = {
        "text": text,
        "context": context,
        "n_tokens": n_tokens,
        "text_hash": text_hash,
        "media_type": sorted({citation.media_type or "" for citation in citations}),
        "roots": sorted({citation.root for citation in citations}),
        "sources": sorted({citation.path for citation in citations}),
        "documents": sorted({citation.document_id for citation in citations}),
        "locations": [_without_uri(citation) for citation in citations],
    }
    return Projected(chunk_id, payload, payload_hash(payload))


def _without_uri(citation: Citation) -> dict[str, object]:
    values = citation.to_json()
    del values["uri"]  # derived from the rest
    return values


def _citation(row: Sequence[object]) -> Citation:
    document_id, media_type, title, root, shown, path_b64 = cast("SourceColumns", tuple(row[5:11]))
    (
        char_start, char_end, line_start, line_end, part_kind, part_first, part_last, part_label, part_starts, cells,
        headings,
    ) = cast("PlaceColumns", tuple(row[11:22]))  # fmt: skip
    location = Location(
        char_start=char_start,
        char_end=char_end,
        line_start=line_start,
        line_end=line_end,
        part_kind=part_kind,
        part_first=part_first,
        part_last=part_last,
        part_label=part_label,
        part_starts=tuple((offset, number) for offset, number in json.loads(part_starts or "[]")),
        cells=cells,
        headings=tuple(json.loads(headings)),
    )
    return cite(
        location,
        root=root,
        path=shown,
        path_b64=path_b64,
        document_id=DocumentId(document_id),
        media_type=media_type,
        title=title,
    )


def cite(
    location: Location,
    *,
    root: str,
    path: str,
    path_b64: str | None,
    document_id: DocumentId,
    media_type: str,
    title: str | None,
) -> Citation:
    """Turn a location in a document into the citation of one of its sources."""
    paged = location.part_kind == "page"
    slides = location.part_kind == "slide"
    return Citation(
        root=root,
        path=path,
        path_b64=path_b64,
        document_id=document_id,
        media_type=media_type,
        title=title[:SHOWN_CHARS] if title else None,
        heading_path=tuple(heading[:SHOWN_CHARS] for heading in location.headings[:SHOWN_HEADINGS]),
        page_start=location.part_first if paged else None,
        page_end=location.part_last if paged else None,
        page_label=location.part_label if paged else None,
        slide=location.part_first if slides else None,
        slide_end=location.part_last if slides else None,
        sheet=location.part_label if location.part_kind == "sheet" else None,
        cells=location.cells,
        line_start=location.line_start,
        line_end=location.line_end,
        char_start=location.char_start,
        char_end=location.char_end,
        part_starts=location.part_starts,
    )

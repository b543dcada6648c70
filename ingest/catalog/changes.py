"""The changes of one run, applied to the catalog inside its publishing transaction (step 8), and the sweep after them.

Nothing here opens or commits a transaction. Chunks and vectors that no location refers to stay for one later published
run, since an undo is common, and are then swept; documents go with their last source.
"""

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from search.identity import ChunkId, DocumentId, RecipeId, text_hash
from search.records import Chunk, Location

from .database import Catalog

__all__ = [
    "CatalogChanges",
    "DocumentRow",
    "RootRow",
    "SourceRow",
    "apply",
    "pack_text",
    "refresh",
    "sweep",
    "unpack_text",
]

# zlib's level 6 halves a document's text at about 40 MB/s; higher levels gain 1 % and cost three times as much.
COMPRESSION = 6


@dataclass(frozen=True, slots=True)
class RootRow:
    """A root: its real path and its label."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A source as it is to stand in the catalog. ``problem`` is a status of its own: unreadable or unstable."""

    path: bytes
    root: Path
    shown: str
    path_b64: str | None
    size: int
    mtime_ns: int
    ctime_ns: int
    ino: int
    dev: int
    racy: bool
    document_id: DocumentId | None
    problem: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRow:
    """A document with its chunks in order, or the failure that stands for it (no text, no chunks).

    ``suggested`` is the kind that the names of its sources suggest, ``kind`` what the content turned out to be.
    ``text`` is packed (``pack_text``), ``chars`` its length; ``meta`` is a JSON text.
    """

    document_id: DocumentId
    suggested: str
    kind: str
    media_type: str
    fingerprint: str
    status: str
    failure_key: str | None = None
    reason: str | None = None
    title: str | None = None
    text: bytes = b""
    chars: int = 0
    meta: str = "{}"
    warnings: tuple[str, ...] = ()
    gaps: tuple[tuple[int, str], ...] = ()
    chunks: Sequence[tuple[Chunk, Location]] = ()


@dataclass(slots=True)
class CatalogChanges:
    """All that one run changes; sources are named by their real paths.

    ``roots`` are all roots known after the run. ``flagged`` sources are gone from the disk, but their removal is
    withheld; ``unflagged`` ones have come back.
    """

    roots: Sequence[RootRow] = ()
    sources: list[SourceRow] = field(default_factory=list)
    removed: list[bytes] = field(default_factory=list)
    documents: list[DocumentRow] = field(default_factory=list)
    flagged: list[bytes] = field(default_factory=list)
    unflagged: list[bytes] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """True when there is nothing to publish."""
        return not (self.sources or self.removed or self.documents or self.flagged or self.unflagged)


def pack_text(text: str) -> bytes:
    """Return the stored form of a document text."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), COMPRESSION)


def unpack_text(blob: bytes) -> str:
    """Return the document text of its stored form."""
    return zlib.decompress(blob).decode("utf-8", "surrogatepass") if blob else ""


def apply(catalog: Catalog, changes: CatalogChanges, *, now_ms: int) -> None:
    """Write the changes, and leave in ``temp.touched`` the ids of all chunks whose points may have to change."""
    connection = catalog.connection
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS touched(chunk_id TEXT PRIMARY KEY) WITHOUT ROWID")
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS affected(document_id TEXT PRIMARY KEY) WITHOUT ROWID")
    connection.execute("DELETE FROM temp.touched")
    connection.execute("DELETE FROM temp.affected")

    _note_affected(catalog, changes)
    _touch_chunks(catalog)
    _write_roots(catalog, changes.roots, now_ms)
    for document in changes.documents:
        _write_document(catalog, document)
    _write_sources(catalog, changes)
    _drop_roots(catalog, changes.roots)
    _write_flags(catalog, changes)
    connection.execute(
        "DELETE FROM documents WHERE document_id IN (SELECT document_id FROM temp.affected) "
        "AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.document_id = documents.document_id)"
    )
    _touch_chunks(catalog)


def refresh(catalog: Catalog, sources: Iterable[SourceRow]) -> None:
    """Store new stat tuples of sources whose content is what it was: no new revision, nothing that a reader sees."""
    catalog.connection.executemany(
        "UPDATE sources SET size = ?, mtime_ns = ?, ctime_ns = ?, ino = ?, dev = ?, racy = ? WHERE path = ?",
        [
            (row.size, row.mtime_ns, row.ctime_ns, _signed(row.ino), _signed(row.dev), row.racy, row.path)
            for row in sources
        ],
    )


def sweep(catalog: Catalog, *, revision: int, vector_recipe: RecipeId) -> None:
    """Remove what no location refers to and was already unreferenced at an earlier revision; mark what newly is.

    Only chunks in ``temp.touched`` can have gained or lost their last location. Vectors begin as unreferenced when they
    are saved, so those of a killed run that nobody took up go too. Vectors of another recipe are of no use once this
    revision is published, and go at once.
    """
    connection = catalog.connection
    published = catalog.recipe
    if published is not None and published.vector_recipe_id != vector_recipe:
        connection.execute("DELETE FROM vectors WHERE vector_recipe <> ?", (vector_recipe,))
    for table in ("chunks", "vectors"):
        touched = "chunk_id IN (SELECT chunk_id FROM temp.touched)"
        live = f"EXISTS (SELECT 1 FROM locations l WHERE l.chunk_id = {table}.chunk_id)"
        newly = f"{touched} AND unreferenced_since IS NULL AND NOT {live}"
        for statement in (
            f"UPDATE {table} SET unreferenced_since = NULL WHERE {touched} AND {live}",
            f"DELETE FROM {table} WHERE unreferenced_since < :revision AND NOT {live}",
            f"UPDATE {table} SET unreferenced_since = :revision WHERE {newly}",
        ):
            connection.execute(statement, {"revision": revision})


def _note_affected(catalog: Catalog, changes: CatalogChanges) -> None:
    """Collect the documents whose text, sources or names change."""
    connection = catalog.connection
    note = "INSERT OR IGNORE INTO temp.affected(document_id) "
    connection.executemany(note + "VALUES (?)", [(document.document_id,) for document in changes.documents])
    connection.executemany(
        note + "VALUES (?)", [(source.document_id,) for source in changes.sources if source.document_id]
    )
    paths = [(source.path,) for source in changes.sources] + [(path,) for path in changes.removed]
    connection.executemany(note + "SELECT document_id FROM sources WHERE path = ? AND document_id IS NOT NULL", paths)


def _touch_chunks(catalog: Catalog) -> None:
    catalog.connection.execute(
        "INSERT OR IGNORE INTO temp.touched(chunk_id) SELECT l.chunk_id FROM temp.affected a "
        "CROSS JOIN locations l ON l.document_id = a.document_id"
    )


def _write_roots(catalog: Catalog, roots: Iterable[RootRow], now_ms: int) -> None:
    catalog.connection.executemany(
        "INSERT INTO roots(path, name, added_ms) VALUES (?, ?, ?) ON CONFLICT(path) DO NOTHING",
        [(_path_bytes(root.path), root.name, now_ms) for root in roots],
    )


def _drop_roots(catalog: Catalog, known: Sequence[RootRow]) -> None:
    """Forget roots that went into an outer one; changes without any roots, as those of a repair, forget none."""
    stored = {row[0] for row in catalog.connection.execute("SELECT path FROM roots")} if known else set()
    catalog.connection.executemany(
        "DELETE FROM roots WHERE path = ? AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.root_id = roots.root_id)",
        [(path,) for path in stored - {_path_bytes(root.path) for root in known}],
    )


def _write_document(catalog: Catalog, document: DocumentRow) -> None:
    connection = catalog.connection
    connection.execute("DELETE FROM locations WHERE document_id = ?", (document.document_id,))
    connection.execute(
        "INSERT INTO documents(document_id, suggested, kind, media_type, title, fingerprint, failure_key, status, "
        "reason, text, chars, meta, warnings, gaps) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT(document_id) DO UPDATE SET suggested = excluded.suggested, kind = excluded.kind, "
        "media_type = excluded.media_type, title = excluded.title, fingerprint = excluded.fingerprint, "
        "failure_key = excluded.failure_key, status = excluded.status, reason = excluded.reason, text = excluded.text, "
        "chars = excluded.chars, meta = excluded.meta, warnings = excluded.warnings, gaps = excluded.gaps",
        (
            document.document_id, document.suggested, document.kind, document.media_type, document.title,
            document.fingerprint, document.failure_key, document.status, document.reason, document.text,
            document.chars, document.meta, json.dumps(document.warnings), json.dumps(document.gaps),
        ),
    )  # fmt: skip
    connection.executemany(
        "INSERT INTO chunks(chunk_id, context, text, n_tokens, text_hash) VALUES (?, ?, ?, ?, ?) "
        # One id means one text (I3), so that nothing is written here unless the row was damaged.
        "ON CONFLICT(chunk_id) DO UPDATE SET context = excluded.context, text = excluded.text, "
        "n_tokens = excluded.n_tokens, text_hash = excluded.text_hash WHERE (context, text, n_tokens, text_hash) "
        "<> (excluded.context, excluded.text, excluded.n_tokens, excluded.text_hash)",
        [
            (chunk.chunk_id, chunk.context, chunk.text, chunk.n_tokens, text_hash(chunk.context, chunk.text))
            for chunk, _ in document.chunks
        ],
    )
    connection.executemany(
        "INSERT INTO locations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            _location_values(document.document_id, ordinal, chunk.chunk_id, location)
            for ordinal, (chunk, location) in enumerate(document.chunks)
        ],
    )


def _location_values(
    document_id: DocumentId, ordinal: int, chunk_id: ChunkId, location: Location
) -> tuple[object, ...]:
    starts = json.dumps(location.part_starts) if location.part_starts else None
    return (
        document_id, ordinal, chunk_id, location.char_start, location.char_end, location.line_start, location.line_end,
        location.part_kind, location.part_first, location.part_last, location.part_label, starts, location.cells,
        json.dumps(location.headings, ensure_ascii=False),
    )  # fmt: skip


def _write_sources(catalog: Catalog, changes: CatalogChanges) -> None:
    connection = catalog.connection
    connection.executemany("DELETE FROM sources WHERE path = ?", [(path,) for path in changes.removed])
    root_ids = dict(connection.execute("SELECT path, root_id FROM roots").fetchall())
    connection.executemany(
        "INSERT OR REPLACE INTO sources(path, root_id, shown, path_b64, size, mtime_ns, ctime_ns, ino, dev, racy, "
        "document_id, problem, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                source.path, root_ids[_path_bytes(source.root)], source.shown, source.path_b64, source.size,
                source.mtime_ns, source.ctime_ns, _signed(source.ino), _signed(source.dev), source.racy,
                source.document_id, source.problem, source.reason,
            )
            for source in changes.sources
        ],
    )  # fmt: skip


def _write_flags(catalog: Catalog, changes: CatalogChanges) -> None:
    flags = [(True, path) for path in changes.flagged] + [(False, path) for path in changes.unflagged]
    catalog.connection.executemany("UPDATE sources SET withheld = ? WHERE path = ?", flags)


def _path_bytes(path: Path) -> bytes:
    return str(path).encode("utf-8", "surrogateescape")


def _signed(number: int) -> int:
    """Fold an unsigned 64-bit inode or device number into SQLite's signed range, one to one."""
    return number - (1 << 64) if number >= 1 << 63 else number

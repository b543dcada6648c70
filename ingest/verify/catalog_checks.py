"""Checks of the catalog by itself, and of a generation's points against it. Do not write."""

from collections.abc import Iterable, Iterator

from ingest.catalog.database import Catalog
from ingest.shard import StoredPoint
from search.identity import payload_hash

from .findings import Check, check

__all__ = ["integrity", "points", "rows"]

REPAIR = "ingest repair"
REBUILD = "ingest run --rebuild FOLDER"


def integrity(catalog: Catalog) -> Check:
    """Ask SQLite about its own file, and about references between tables."""
    connection = catalog.connection
    wrong = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    wrong += [
        f"{row[0]}: refers to a missing row of {row[2]}" for row in connection.execute("PRAGMA foreign_key_check")
    ]
    return check(
        "catalog",
        wrong,
        fine="the catalog's file is sound",
        wrong="faults in the catalog's file",
        remedy=f"move {catalog.path.parent} away and ingest again",
    )


def points(catalog: Catalog, stored: Iterable[StoredPoint], *, full: bool) -> Iterator[Check]:
    """Compare the points of the generation with those that the catalog calls for, both ways (I2)."""
    wanted: dict[str, str] = dict(catalog.connection.execute("SELECT chunk_id, payload_hash FROM points").fetchall())
    seen: set[str] = set()
    twice: list[str] = []
    extra: list[str] = []
    differing: list[str] = []
    for point in stored:
        if point.chunk_id in seen:
            twice.append(point.chunk_id)
        seen.add(point.chunk_id)
        if point.chunk_id not in wanted:
            extra.append(point.chunk_id)
        elif full and payload_hash(point.payload) != wanted[point.chunk_id]:
            differing.append(point.chunk_id)
    missing = sorted(wanted.keys() - seen)
    wrong = [f"{key}: not in the catalog" for key in extra] + [f"{key}: not in the generation" for key in missing]
    yield check(
        "points",
        wrong,
        fine=f"the generation holds exactly the {len(wanted)} chunks of the catalog",
        wrong="points differ between generation and catalog",
        remedy=REPAIR,
    )
    yield _duplicates(catalog, twice)
    if full:
        yield check(
            "payloads",
            differing,
            fine=f"{len(seen)} payloads are those of the catalog",
            wrong="payloads differ from the catalog",
            remedy=REPAIR,
        )


def rows(catalog: Catalog) -> Iterator[Check]:
    """Look for rows that contradict each other: stale, missing, out of range."""
    yield check(
        "rows",
        _contradictions(catalog),
        fine="the catalog's rows agree with each other",
        wrong="rows of the catalog contradict others",
        remedy=REBUILD,
    )
    lacking = catalog.connection.execute(
        "SELECT DISTINCT l.chunk_id FROM locations l WHERE NOT EXISTS "
        "(SELECT 1 FROM vectors v WHERE v.chunk_id = l.chunk_id AND v.vector_recipe = ?)",
        (catalog.recipe.vector_recipe_id if catalog.recipe else "",),
    )
    yield check(
        "vectors_saved",
        [row[0] for row in lacking],
        fine="every chunk has its vectors in the catalog",
        wrong="chunks without saved vectors",
        remedy=f"{REPAIR} --recompute",
    )


def _duplicates(catalog: Catalog, twice: list[str]) -> Check:
    same = catalog.connection.execute(
        "SELECT text_hash, min(chunk_id) FROM chunks c WHERE EXISTS "
        "(SELECT 1 FROM locations l WHERE l.chunk_id = c.chunk_id) GROUP BY text_hash HAVING count(*) > 1"
    )
    wrong = [f"{key}: twice in the generation" for key in twice]
    wrong += [f"{key}: its passage stands under another id as well" for _, key in same]
    return check("duplicates", wrong, fine="0 duplicate chunks", wrong="duplicate chunks", remedy=REBUILD)


def _contradictions(catalog: Catalog) -> Iterator[str]:
    for problem, query in CONTRADICTIONS.items():
        for (name,) in catalog.connection.execute(query):
            yield f"{name}: {problem}"


CONTRADICTIONS = {
    "a document without a source": """SELECT d.document_id FROM documents d
      WHERE NOT EXISTS (SELECT 1 FROM sources s WHERE s.document_id = d.document_id)""",
    "a document whose status and passages disagree": """SELECT d.document_id FROM documents d
      WHERE (d.status = 'indexed') <> EXISTS (SELECT 1 FROM locations l WHERE l.document_id = d.document_id)""",
    "a location outside its document": """SELECT l.document_id || '#' || l.ordinal
      FROM locations l JOIN documents d USING(document_id)
      WHERE l.char_start < 0 OR l.char_start >= l.char_end OR l.char_end > d.chars""",
    "a point whose chunk stands nowhere": """SELECT p.chunk_id FROM points p
      WHERE NOT EXISTS (SELECT 1 FROM locations l WHERE l.chunk_id = p.chunk_id)""",
    "a chunk without a point": """SELECT DISTINCT l.chunk_id FROM locations l
      WHERE NOT EXISTS (SELECT 1 FROM points p WHERE p.chunk_id = l.chunk_id)""",
    "a source without document or problem": """SELECT s.shown FROM sources s
      WHERE s.document_id IS NULL AND s.problem IS NULL""",
}

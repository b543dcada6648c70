"""``ingest repair``: makes the generation anew from the catalog. No parsing, and no embedding unless asked for."""

from dataclasses import dataclass

from search.embedding import embedder_of
from search.errors import IndexMissing
from search.generation import IndexLayout
from search.identity import ChunkId
from search.recipe import Recipe
from search.records import Chunk
from search.settings import Settings, cache_folder
from search.sparse import SparseEncoder

from . import lock
from .catalog.changes import CatalogChanges
from .catalog.database import Catalog
from .embedding import EmbeddingStage
from .failpoints import Failpoints
from .progress import Progress
from .publish.pointer import clear_leftovers, point, pointed, recover
from .publish.publisher import Publisher
from .space import naming_a_full_disk
from .verify.checks import generation

__all__ = ["RepairReport", "repair"]


# Points whose chunk stands nowhere, and chunks that stand somewhere without a point.
LOOSE = """SELECT
  (SELECT count(*) FROM points p WHERE NOT EXISTS (SELECT 1 FROM locations l WHERE l.chunk_id = p.chunk_id)) +
  (SELECT count(DISTINCT chunk_id) FROM locations l WHERE NOT EXISTS
    (SELECT 1 FROM points p WHERE p.chunk_id = l.chunk_id))"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What a repair did: ``pointer`` and ``generation`` say what was made anew; ``computed`` counts vectors."""

    revision: int
    generation: str
    pointer: bool
    rebuilt: bool
    computed: int
    chunks: int

    def to_json(self) -> dict[str, object]:
        """Return the object that ``ingest repair --json`` prints."""
        return {
            "message_type": "repair_report",
            "revision": self.revision,
            "generation": self.generation,
            "pointer_rewritten": self.pointer,
            "generation_rebuilt": self.rebuilt,
            "embeddings": {"computed": self.computed},
            "chunks": {"total": self.chunks},
        }


def repair(settings: Settings, progress: Progress, *, recompute: bool, wait: bool) -> RepairReport:
    """Bring generation and pointer back in line with the catalog; durable on return.

    A sound generation is only pointed to. ``recompute`` embeds every chunk again and rebuilds. Raises ``IndexMissing``
    where there is nothing to repair, ``IndexLocked``, ``IndexDamaged`` where vectors are missing and ``recompute`` was
    not asked for.
    """
    layout = IndexLayout(settings.home)
    if not layout.catalog.exists():
        raise IndexMissing(f"index {settings.home}: no catalog to repair from; make it with `ingest FOLDER`")
    with naming_a_full_disk(layout.home), lock.hold(layout.lock, wait=wait):
        catalog = Catalog.open(layout.catalog)
        try:
            recipe = catalog.recipe
            if recipe is None:
                raise IndexMissing(f"index {settings.home}: nothing was published yet; run `ingest FOLDER`")
            return _repair(settings, layout, catalog, recipe, progress, recompute=recompute)
        finally:
            catalog.close()


def _repair(
    settings: Settings, layout: IndexLayout, catalog: Catalog, recipe: Recipe, progress: Progress, *, recompute: bool
) -> RepairReport:
    failpoints = Failpoints()
    named = pointed(layout)
    sound = _is_sound(layout, catalog) and not recompute
    computed = 0
    clear_leftovers(layout)
    if sound:
        recover(layout, catalog.revision)
        point(layout, catalog.revision)
    else:
        if recompute:
            computed = _recompute(settings, catalog, recipe, failpoints, progress)
        progress.step("publish")
        publisher = Publisher(catalog, layout, failpoints, space_margin_bytes=settings.free_space_margin_bytes)
        try:
            publisher.publish(CatalogChanges(), recipe, from_scratch=True, new_points=_points(catalog))
        finally:
            publisher.close()
    return RepairReport(
        revision=catalog.revision,
        generation=catalog.generation or "",
        pointer=named != catalog.generation,
        rebuilt=not sound,
        computed=computed,
        chunks=_points(catalog),
    )


def _is_sound(layout: IndexLayout, catalog: Catalog) -> bool:
    """True when ``verify --full`` would find nothing wrong with the generation, nor a point too many or too few."""
    (loose,) = catalog.connection.execute(LOOSE).fetchone()
    checks = generation(layout.generation(catalog.generation or ""), catalog, full=True)
    return loose == 0 and all(check.ok for check in checks)


def _recompute(settings: Settings, catalog: Catalog, recipe: Recipe, failpoints: Failpoints, progress: Progress) -> int:
    """Forget all vectors of the recipe, and embed every chunk that stands somewhere."""
    # First the model, so that nothing is forgotten where it is not at hand.
    embedder = embedder_of(recipe.embedding, model=settings.model, threads=settings.embed_threads, cache=cache_folder())
    with catalog.transaction():
        catalog.connection.execute("DELETE FROM vectors WHERE vector_recipe = ?", (recipe.vector_recipe_id,))
    stage = EmbeddingStage(
        catalog, recipe.vector_recipe_id, embedder, SparseEncoder(recipe.sparse), failpoints, progress
    )
    progress.step("embed")
    rows = catalog.connection.execute(
        "SELECT chunk_id, context, text, n_tokens FROM chunks c "
        "WHERE EXISTS (SELECT 1 FROM locations l WHERE l.chunk_id = c.chunk_id) ORDER BY chunk_id"
    ).fetchall()
    stage.add(Chunk(ChunkId(key), context, text, n_tokens) for key, context, text, n_tokens in rows)
    stage.finish()
    return stage.computed


def _points(catalog: Catalog) -> int:
    (count,) = catalog.connection.execute("SELECT count(*) FROM points").fetchone()
    return int(count)

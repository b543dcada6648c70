"""Publishing one revision: catalog and generation move together, in one transaction (I1, I2, I5).

The transaction is opened first, and the catalog's changes are written into it; what the points must become is then read
from the very state that will be committed. Only after the builder has made the generation durable does the transaction
commit: that is the one visible change. ``CURRENT`` follows it, and recovery repeats that step if a crash prevented it.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ingest.catalog import changes as catalog_changes
from ingest.catalog import projection
from ingest.catalog.changes import CatalogChanges
from ingest.catalog.database import Catalog
from ingest.catalog.projection import PointChange, Projected, Totals
from ingest.failpoints import Failpoints
from ingest.space import free_bytes
from search.errors import IndexDamaged, NotEnoughSpace
from search.generation import IndexLayout, generation_name
from search.identity import RecipeId
from search.recipe import Recipe

from .clone import allocated_bytes
from .pointer import builder_lock, collect, next_revision, point
from .process import BuilderProcess, encode_upsert

__all__ = ["Published", "Publisher"]

log = logging.getLogger(__name__)

# What a new point takes on the disk before the engine has merged its segments (measured: 3-5 KB with 384 dimensions).
POINT_BYTES = 6 * 1024


@dataclass(frozen=True, slots=True)
class Published:
    """What a publish did: the new revision, its generation, the chunk counts, and all chunks it holds."""

    revision: int
    generation: str
    totals: Totals
    chunks: int


class Publisher:
    """Publishes revisions of one index. Holds the builder process from ``prepare`` on; ``close`` ends it."""

    def __init__(
        self, catalog: Catalog, layout: IndexLayout, failpoints: Failpoints, *, space_margin_bytes: int
    ) -> None:
        self._catalog = catalog
        self._layout = layout
        self._failpoints = failpoints
        self._margin = space_margin_bytes
        self._builder: BuilderProcess | None = None

    def prepare(self) -> None:
        """Start the builder process ahead of time; it waits for its work."""
        if self._builder is None:
            self._builder = BuilderProcess(builder_lock(self._layout))

    def wait_until_ready(self) -> None:
        """Wait until the builder process has started. Raises ``PublishFailed`` when it died."""
        self._running().wait_until_ready()

    def close(self) -> None:
        """End the builder process. May be called twice."""
        if self._builder is not None:
            self._builder.stop()
            self._builder = None

    def publish(
        self,
        changes: CatalogChanges,
        recipe: Recipe,
        *,
        from_scratch: bool,
        new_points: int,
        check: Callable[[], None] = lambda: None,
    ) -> Published:
        """Make the changes the new current state, all or nothing; durable on return.

        ``from_scratch`` builds the generation from an empty one (first run, rebuild, repair) instead of a clone.
        ``check`` is called with the changes applied and may still refuse them by raising. Raises ``NotEnoughSpace`` and
        ``PublishFailed``, with the old state untouched.
        """
        revision = next_revision(self._layout, self._catalog.revision)
        base = None if from_scratch or self._catalog.generation is None else self._catalog.generation
        self._layout.generations.mkdir(parents=True, exist_ok=True)
        self._check_space(base, new_points)
        self.prepare()
        try:
            published = self._publish(changes, recipe, revision, base, check)
        finally:
            self.close()
        self._failpoints.reach("publish.committed")
        point(self._layout, revision)
        self._failpoints.reach("publish.pointed")
        collect(self._layout, self._failpoints)
        log.info("publish.done generation=%s chunks=%d", published.generation, published.chunks)
        return published

    def _publish(
        self, changes: CatalogChanges, recipe: Recipe, revision: int, base: str | None, check: Callable[[], None]
    ) -> Published:
        catalog = self._catalog
        name = generation_name(revision)
        with catalog.transaction():
            catalog_changes.apply(catalog, changes, now_ms=time.time_ns() // 1_000_000)
            check()
            self._failpoints.reach("publish.begin")
            totals = self._build(recipe, name, base)
            catalog_changes.sweep(catalog, revision=revision, vector_recipe=recipe.vector_recipe_id)
            (chunks,) = catalog.connection.execute("SELECT count(*) FROM points").fetchone()
            self._running().finish(self._manifest_values(revision, chunks))
            catalog.set_setting("revision", revision)
            catalog.set_setting("recipe", recipe.to_json())
            self._failpoints.reach("publish.commit")
        return Published(revision, name, totals, chunks)

    def _build(self, recipe: Recipe, name: str, base: str | None) -> Totals:
        """Send the builder what has to change, and note it in the catalog's ``points``."""
        builder = self._running()
        builder.begin(
            folder=self._layout.generation(name),
            base=self._layout.generation(base) if base else None,
            recipe=recipe,
        )
        totals = Totals()
        for batch in projection.changed(self._catalog) if base else projection.replaced(self._catalog):
            self._send(builder, batch, recipe.vector_recipe_id, from_scratch=base is None)
            projection.record(self._catalog, batch, totals)
        return totals

    def _send(
        self, builder: BuilderProcess, batch: list[PointChange], vector_recipe: RecipeId, *, from_scratch: bool
    ) -> None:
        whole = {"written", "relocated", "kept"} if from_scratch else {"written"}
        points = [(change.kind, change.point) for change in batch if change.point is not None]
        builder.apply(
            upserts=list(self._upserts([point for kind, point in points if kind in whole], vector_recipe)),
            payloads=[(point.chunk_id, point.payload) for kind, point in points if kind not in whole],
            deletes=[] if from_scratch else [change.chunk_id for change in batch if change.kind == "removed"],
        )

    def _upserts(self, points: list[Projected], vector_recipe: RecipeId) -> Iterator[dict[str, object]]:
        vectors = self._catalog.vectors(vector_recipe, [item.chunk_id for item in points])
        for item in points:
            if item.chunk_id not in vectors:
                raise IndexDamaged(
                    f"catalog {self._catalog.path}: no vector for chunk {item.chunk_id}; "
                    "`ingest repair --recompute` makes it anew"
                )
            dense, sparse = vectors[item.chunk_id]
            yield encode_upsert(item.chunk_id, dense, sparse, item.payload)

    def _manifest_values(self, revision: int, chunks: int) -> dict[str, object]:
        connection = self._catalog.connection
        documents, gaps = connection.execute(
            "SELECT count(*), coalesce(sum(gaps <> '[]'), 0) FROM documents WHERE status = 'indexed'"
        ).fetchone()
        (withheld,) = connection.execute("SELECT count(*) FROM sources WHERE withheld").fetchone()
        statuses = connection.execute("SELECT status, count(*) FROM source_states GROUP BY status").fetchall()
        return {
            "revision": revision,
            "chunks": chunks,
            "documents": documents,
            "documents_with_gaps": gaps,
            "removals_withheld": withheld,
            "statuses": dict(statuses),
        }

    def _running(self) -> BuilderProcess:
        if self._builder is None:
            raise RuntimeError("the builder is started by publish()")
        return self._builder

    def _check_space(self, base: str | None, new_points: int) -> None:
        """Refuse, before anything is written, when twice the expected size and a margin are not free."""
        expected = new_points * POINT_BYTES
        if base is not None:
            expected += allocated_bytes(self._layout.generation(base))
        needed = 2 * expected + self._margin
        free = free_bytes(self._layout.generations)
        if free < needed:
            raise NotEnoughSpace(
                f"index {self._layout.home}: {free >> 20} MB free, the next generation may need {needed >> 20} MB; "
                "free some space and run again. Nothing was changed"
            )

"""The run, top to bottom: lock, recover, scan, plan, parse, chunk, embed, publish, report (architecture.md).

Every step may be repeated. Until the publish commits, nothing that a reader could see has changed; what a kill may lose
is said at each step. The order of the steps is the design: read ``Run.execute`` first.
"""

import gc
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from search.errors import UsageError
from search.generation import IndexLayout
from search.identity import DocumentId, new_run_id
from search.recipe import Recipe
from search.settings import Settings, cache_folder

from . import lock
from .catalog import state
from .catalog.changes import DocumentRow, refresh
from .catalog.database import Catalog
from .changeset import changes_of, fallen_sources, touched_rows
from .failpoints import Failpoints
from .observation import Observed, Observer, RunOptions
from .plan import CatalogState, IngestPlan
from .progress import Progress, Silent
from .publish.pointer import recover
from .publish.publisher import Published, Publisher
from .recipes import recipe_for
from .record import record_run
from .report import RunReport
from .reporting import count_chunks, count_sources, list_sources
from .sources import Failure
from .space import naming_a_full_disk
from .witness import Witness, keep, look, vouches

__all__ = ["dry_run", "roots_of", "run"]

log = logging.getLogger(__name__)

CHANGING = Failure("unstable", "changed or was not to be opened while it was read, twice")
# How often a run plans anew because files changed while they were read; after that they count as unstable.
ATTEMPTS = 2


def run(settings: Settings, options: RunOptions, progress: Progress) -> RunReport:
    """Bring the index in line with the folders; durable on return.

    Raises ``IndexLocked``, ``RecipeMismatch``, ``NotEnoughSpace``, ``PublishFailed``, ``ModelUnavailable``; what was
    published before stands. ``KeyboardInterrupt`` goes through after the run was recorded as interrupted.
    """
    layout = IndexLayout(settings.home)
    failpoints = Failpoints()
    with naming_a_full_disk(layout.home), lock.hold(layout.lock, wait=options.wait):  # step 1
        failpoints.reach("lock")
        catalog = Catalog.open(layout.catalog)
        try:
            return Run(settings, options, layout, catalog, failpoints, progress).execute()
        finally:
            catalog.close()


def dry_run(settings: Settings, options: RunOptions) -> IngestPlan:
    """Return what ``run`` would do. Takes no lock and writes nothing. Raises ``RecipeMismatch`` as ``run`` does."""
    layout = IndexLayout(settings.home)
    observer = Observer(settings, options)
    if not layout.catalog.exists():
        recipe = recipe_for(settings, None, rebuild=False)
        nothing = CatalogState(sources={}, documents={})
        return observer.plan(observer.observe([], nothing, now_ns=time.time_ns(), progress=Silent()), recipe.recipe_id)
    catalog = Catalog.open_read_only(layout.catalog)
    try:
        recipe = recipe_for(settings, catalog.recipe, rebuild=options.rebuild)
        known = state.known_roots(catalog)
        observed = observer.observe(known, state.load(catalog), now_ns=time.time_ns(), progress=Silent())
        return observer.plan(observed, recipe.recipe_id)
    finally:
        catalog.close()


def roots_of(layout: IndexLayout) -> tuple[Path, ...]:
    """Return the roots of earlier runs. Does not write."""
    catalog = Catalog.open_read_only(layout.catalog)
    try:
        return tuple(root.path for root in state.known_roots(catalog))
    finally:
        catalog.close()


class Run:
    """One run under the writer lock."""

    def __init__(
        self,
        settings: Settings,
        options: RunOptions,
        layout: IndexLayout,
        catalog: Catalog,
        failpoints: Failpoints,
        progress: Progress,
    ) -> None:
        self._settings = settings
        self._options = options
        self._layout = layout
        self._catalog = catalog
        self._failpoints = failpoints
        self._progress = progress
        self._observer = Observer(settings, options)
        self._report = RunReport(run_id=new_run_id())
        self._publisher = Publisher(catalog, layout, failpoints, space_margin_bytes=settings.free_space_margin_bytes)

    def execute(self) -> RunReport:
        """Do all steps; the run's row says how it ended."""
        with self._timed("recover"):
            recover(self._layout, self._catalog.revision)  # step 2
        self._failpoints.reach("recover")
        recipe = recipe_for(self._settings, self._catalog.recipe, rebuild=self._options.rebuild)
        self._catalog.begin_run(
            self._report.run_id, started_ms=_now_ms(), pid=os.getpid(), arguments=self._options.to_json()
        )
        try:
            self._steps(recipe)
        except BaseException as error:
            self._report.outcome = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self._report.messages.append(str(error) or self._report.outcome)
            self._end()
            raise
        finally:
            self._publisher.close()
        self._failpoints.reach("report")
        record_run(self._layout, self._report)
        self._end()  # step 9
        return self._report

    def _steps(self, recipe: Recipe) -> None:
        with self._timed("look"):
            witness = self._look(recipe)
            if witness is not None and vouches(self._catalog, witness, self._report):
                count_chunks(self._report, self._catalog, None)
                return
        with self._timed("scan"):
            observed = self._observe()  # step 3
        self._failpoints.reach("scan")
        with self._timed("plan"):
            plan = self._observer.plan(observed, recipe.recipe_id)  # step 4
        self._failpoints.reach("plan")
        documents: Mapping[DocumentId, DocumentRow] = {}
        if plan.work:
            plan, observed, documents = self._read(plan, observed, recipe)  # steps 5 to 7
        self._require_whole(plan)

        before = state.withheld_paths(self._catalog)
        changes = changes_of(plan, documents, observed.catalog, observed.scan, withheld_before=before)
        if touched := list(touched_rows(plan, observed.catalog)):
            with self._catalog.transaction():
                refresh(self._catalog, touched)
        published: Published | None = None
        if not changes.nothing or self._options.rebuild:
            self._failpoints.reach("publish")
            with self._timed("publish"):
                self._progress.step("publish")
                published = self._publisher.publish(  # step 8
                    changes, recipe, from_scratch=self._options.rebuild, new_points=self._report.computed
                )
        count_sources(self._report, plan, observed.scan)
        count_chunks(self._report, self._catalog, published)
        list_sources(self._report, self._catalog, plan, observed.scan, changes)
        if witness is not None and published is None and _is_all_the_same(plan, observed):
            keep(self._catalog, witness, self._report)

    def _look(self, recipe: Recipe) -> Witness | None:
        """Look at the roots at a glance, unless this run is asked to look closer."""
        options = self._options
        if options.rehash or options.rebuild or options.retry_quarantined or options.allow_removals is not None:
            return None
        self._progress.step("scan")
        seen = look(options.roots, self._observer.rules, now_ns=time.time_ns())
        known = state.known_roots(self._catalog)
        return None if seen is None else Witness(self._observer.key(recipe.recipe_id, known), seen)

    def _read(
        self, plan: IngestPlan, observed: Observed, recipe: Recipe
    ) -> tuple[IngestPlan, Observed, Mapping[DocumentId, DocumentRow]]:
        """Parse, chunk and embed what the plan asks for; return the plan that holds now that this is known."""
        # Only a run that has something to read pays for numpy, the parsers' pool and the encoders.
        from search.embedding import embedder_of
        from search.sparse import SparseEncoder

        from .documents import DocumentStage
        from .embedding import EmbeddingStage

        self._publisher.prepare()
        # By what the settings name first: of a model folder the recipe holds the name, not the place.
        embedder = embedder_of(
            recipe.embedding, model=self._settings.model, threads=self._settings.embed_threads, cache=cache_folder()
        )
        embedding = EmbeddingStage(
            self._catalog, recipe.vector_recipe_id, embedder, SparseEncoder(recipe.sparse), self._failpoints,
            self._progress,
        )  # fmt: skip
        stage = DocumentStage(
            self._observer, recipe, embedder, self._failpoints, self._progress,
            workers=self._settings.workers, take=embedding.add,
        )  # fmt: skip
        unstable: dict[bytes, Failure] = {}
        try:
            with self._timed("parse"):
                self._progress.step("parse")
                for attempt in range(1, ATTEMPTS + 1):
                    changed = stage.read(plan.work)
                    if not changed:
                        break
                    if attempt == ATTEMPTS:
                        unstable = {item.source.path: CHANGING for item in changed}
                    else:
                        observed = self._observe()
                    plan = self._observer.plan(observed, recipe.recipe_id, unstable=unstable)
            with self._timed("embed"):
                self._progress.step("embed")
                embedding.finish()
        finally:
            self._report.computed, self._report.reused = embedding.computed, embedding.reused
        if fallen := fallen_sources(plan, stage.rows, observed.catalog):
            plan = self._observer.plan(observed, recipe.recipe_id, fallen=fallen, unstable=unstable)
        return plan, observed, stage.rows

    def _observe(self) -> Observed:
        now_ns = time.time_ns()
        with _no_collection():
            known, catalog = state.known_roots(self._catalog), state.load(self._catalog)
            return self._observer.observe(known, catalog, now_ns=now_ns, progress=self._progress)

    def _require_whole(self, plan: IngestPlan) -> None:
        """A rebuild replaces every chunk, so it must have read every document.

        Raises ``UsageError`` when some could not be observed; nothing was published.
        """
        if self._options.rebuild and (plan.stale or plan.withheld):
            raise UsageError(
                f"--rebuild: {len(plan.stale)} documents were not seen in this run and {len(plan.withheld)} removals "
                "are withheld; give all roots, make them readable, and confirm removals with --allow-removals. "
                "Nothing was published"
            )

    def _end(self) -> None:
        self._catalog.end_run(
            self._report.run_id,
            ended_ms=_now_ms(),
            outcome=self._report.outcome,
            report=self._report.to_json(),
            revision=self._catalog.revision,
        )

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self._report.seconds[name] = self._report.seconds.get(name, 0.0) + time.monotonic() - begun


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch the cycle collector off: a scan of 100,000 files makes only records that stay, a third faster so."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _is_all_the_same(plan: IngestPlan, observed: Observed) -> bool:
    """True when every source in scope was seen, and is what the catalog says; nothing waits for another run."""
    scan = observed.scan
    waiting = plan.stale or plan.withheld or scan.errors or scan.unobserved or scan.gone
    return not waiting and all(verdict == "same" or not count for verdict, count in plan.counts.items())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""The index as a call sees it: opened in a thread of its own, so that discovery never waits for a model.

numpy, onnxruntime, the engine and the model are imported by that thread. A search waits for it until its deadline. An
index that is missing or damaged at the start is no reason not to start: every search asks again.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from search.errors import GroundedError, IndexUnavailable
from search.generation import IndexLayout
from search.records import SearchResult
from search.settings import Settings

if TYPE_CHECKING:
    # Importing it at run time would load numpy before the first reply.
    from search.lookup import Lookup
    from search.store import VectorReader, Where

__all__ = ["Index", "Searcher", "open_index"]

logger = logging.getLogger(__name__)


class Searcher(Protocol):
    """Answers a question from one generation (I4). MUST be thread-safe and repeatable. MUST NOT write."""

    def search(self, query: str, *, limit: int | None, path: str | None, until: float) -> SearchResult:
        """Return the passages for a query. Raises the errors of ``search.errors``.

        ``until`` is a time of ``time.monotonic``: nothing that can wait waits beyond it.
        """

    def close(self) -> None:
        """Let go of everything; a search that waits ends with ``IndexUnavailable``."""


class Index:
    """A ``Searcher`` over what ``opener`` opens, once, in the background."""

    def __init__(self, opener: "Callable[[], Lookup]") -> None:
        self._opener = opener
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._opened = threading.Event()
        self._warm = threading.Event()
        self._lookup: Lookup | None = None
        self._closed = False

    def start(self) -> None:
        """Begin to open, unless that has begun. Returns at once."""
        with self._lock:
            if self._thread is None and not self._closed:
                # A daemon, so that an exit need not wait for a model that is half loaded.
                self._thread = threading.Thread(target=self._open, name="warm-up", daemon=True)
                self._thread.start()

    def search(self, query: str, *, limit: int | None, path: str | None, until: float) -> SearchResult:
        """Return the passages for a query, see ``Searcher``."""
        self.start()
        if not self._warm.wait(max(until - time.monotonic(), 0)):
            raise IndexUnavailable("index: still loading; try again")
        lookup = self._lookup
        if lookup is None:
            raise IndexUnavailable("index: could not be opened, or is closed; see the log")
        where = _where(path)
        return lookup.lookup(query, limit=limit, where=where)

    def ready(self) -> bool:
        """True when a search would be answered now, from a generation that can be read."""
        if not self._warm.is_set() or self._lookup is None:
            return False
        try:
            self._lookup.warm_up()
        except GroundedError:
            return False
        return True

    def close(self) -> None:
        """Let go of the index; searches that wait for it end."""
        with self._lock:
            self._closed = True
            lookup, self._lookup = self._lookup, None
            self._warm.set()
        if lookup is not None:
            lookup.close()

    def _open(self) -> None:
        lookup: Lookup | None = None
        try:
            lookup = self._opener()
            lookup.warm_up()
        except GroundedError as error:
            logger.warning("index.not_ready reason=%s", error)
        finally:
            with self._lock:
                if not self._closed:
                    self._lookup = lookup
                self._warm.set()


def open_index(settings: Settings, cache: Path, reader: "Callable[[IndexLayout], VectorReader] | None" = None) -> Index:
    """Return the index of a ``.grounded`` folder, not opened yet. Makes nothing, uses no network.

    ``reader`` replaces the plain reader of generations (strict mode has its own).
    """

    def opener() -> "Lookup":
        from search.embedding import embedder_of
        from search.lookup import Lookup
        from search.view import open_reader

        return Lookup(
            (reader or open_reader)(IndexLayout(settings.home)),
            partial(embedder_of, model=settings.model, threads=settings.embed_threads, cache=cache),
            limit=min(settings.limit, 20),
            floor=settings.relevance_floor,
            query_cache=settings.query_cache,
        )

    return Index(opener)


def _where(path: str | None) -> "Where":
    from search.store import Where

    return Where(path=path.rstrip("/")) if path else Where()

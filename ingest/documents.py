"""Steps 5 and 6: documents to read become rows with their chunks. Durable effects: none."""

import json
import os
from collections.abc import Callable, Iterable, Sequence

from search.identity import DocumentId
from search.recipe import Recipe
from search.records import Chunk

from .catalog.changes import DocumentRow, pack_text
from .chunking.chunker import chunk
from .chunking.scale import Tokenizer
from .failpoints import Failpoints
from .observation import Observer
from .parsing.document import Document
from .parsing.failure import ParseFailure
from .parsing.pool import WorkerPool
from .parsing.registry import media_type
from .parsing.wire import Changed, Job
from .plan import Work
from .progress import Progress
from .recipes import sizes_of

__all__ = ["DocumentStage"]

# More parsing processes than this only wait for the disk or for each other (parsing.md, 4.9).
MOST_WORKERS = 4


class DocumentStage:
    """Parses and chunks the documents of a plan; one instance serves a run, and remembers what it has read."""

    def __init__(
        self,
        observer: Observer,
        recipe: Recipe,
        tokenizer: Tokenizer,
        failpoints: Failpoints,
        progress: Progress,
        *,
        workers: int,
        take: Callable[[Iterable[Chunk]], None],
    ) -> None:
        self._observer = observer
        self._recipe = recipe
        self._sizes = sizes_of(recipe)
        self._tokenizer = tokenizer
        self._failpoints = failpoints
        self._progress = progress
        self._workers = workers or min(os.cpu_count() or 1, MOST_WORKERS)
        self._take = take
        self.rows: dict[DocumentId, DocumentRow] = {}

    def read(self, work: Sequence[Work]) -> list[Work]:
        """Read what ``rows`` lacks, handing the chunks of each document on as soon as they are cut.

        Returns the work whose file was no longer the one that was planned, or could no longer be read, in order.
        """
        todo = {
            item.document_id: item
            for item in work
            if item.document_id not in self.rows or self.rows[item.document_id].suggested != item.kind
        }
        if not todo:
            return []
        changed: list[Work] = []
        limits, options = self._observer.limits, self._observer.reader_options
        with WorkerPool(min(self._workers, len(todo)), limits, options=options) as pool:
            for done, (job, result) in enumerate(pool.results([_job(item) for item in todo.values()]), 1):
                item = todo[job.document_id]
                self._failpoints.reach("parse")
                if isinstance(result, Changed) or _is_unreadable(result):
                    changed.append(item)
                else:
                    row = self._row(item, result)
                    self.rows[item.document_id] = row
                    self._failpoints.reach("chunk")
                    self._take(placed for placed, _ in row.chunks)
                self._progress.files(done, len(todo))
        return sorted(changed)

    def _row(self, item: Work, result: Document | ParseFailure) -> DocumentRow:
        recipe = self._recipe.recipe_id
        if isinstance(result, ParseFailure):
            kind = result.kind or item.kind
            return DocumentRow(
                document_id=item.document_id,
                suggested=item.kind,
                kind=kind,
                media_type=media_type(kind) or "application/octet-stream",
                fingerprint=self._observer.fingerprint(kind, recipe),
                failure_key=self._observer.failure_key(kind, result.status),
                status=result.status,
                reason=result.reason,
            )
        chunks = chunk(result, self._tokenizer, self._sizes)
        return DocumentRow(
            document_id=item.document_id,
            suggested=item.kind,
            kind=result.kind,
            media_type=media_type(result.kind) or "text/plain",
            fingerprint=self._observer.fingerprint(result.kind, recipe),
            status="indexed" if chunks else "empty",
            reason=None if chunks else "nothing with a letter or digit",
            title=result.title,
            text=pack_text(result.text),
            chars=len(result.text),
            meta=json.dumps(result.meta, ensure_ascii=False, sort_keys=True),
            warnings=result.warnings,
            gaps=tuple((gap.part, gap.reason) for gap in result.gaps),
            chunks=chunks,
        )


def _is_unreadable(result: Document | ParseFailure) -> bool:
    """True where the file could be hashed and not be opened a moment later: the source's trouble, not the content's.

    Another look at the folder tells whether it is gone, a link, or forbidden; till then what is indexed of it stays.
    """
    return isinstance(result, ParseFailure) and result.status == "unreadable"


def _job(item: Work) -> Job:
    return Job(
        document_id=item.document_id,
        root=item.source.root,
        parts=item.source.parts,
        size_bytes=item.source.stat.size_bytes,
        kind=item.kind,
        name=item.source.shown,
    )

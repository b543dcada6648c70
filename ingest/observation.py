"""Steps 3 and 4: what is on the disk, compared with what the catalog knows. Writes nothing."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from search.errors import UsageError
from search.identity import DocumentId, RecipeId, digest
from search.settings import Settings, secret

from .guard import Guard
from .parsing.limits import Limits, PdfEngine, ReaderOptions
from .parsing.registry import (
    failure_fingerprint,
    is_text_kind,
    optional_version,
    parse_fingerprint,
    reading_fingerprint,
    suggest_kind,
)
from .plan import CatalogState, Detection, IngestPlan, plan, to_hash
from .progress import Progress
from .rules import Rules
from .sources import Failure, Root, Scan, Seen, hash_sources, scan

__all__ = ["Observed", "Observer", "RunOptions"]


# For the OCR of one PDF: 300 pages, the most that its reader puts through it, at 15 s of CPU (measured: 3 to 12 s); and
# the memory that the models work in (measured: 1.7 GiB of addresses, 0.9 of them in use).
OCR_CPU_S, OCR_ADDRESS_SPACE_BYTES = 4_500, 3 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What one run is asked to do, beside the settings. ``allow_removals`` None lets the guard decide."""

    roots: tuple[Path, ...]
    rehash: bool = False
    rebuild: bool = False
    wait: bool = False
    allow_removals: int | None = None
    retry_quarantined: bool = False

    def to_json(self) -> dict[str, object]:
        """Return what the run's row keeps of its arguments."""
        return {
            "roots": [str(root).encode("utf-8", "surrogateescape").decode("utf-8", "replace") for root in self.roots],
            "rehash": self.rehash,
            "rebuild": self.rebuild,
            "allow_removals": self.allow_removals,
            "retry_quarantined": self.retry_quarantined,
        }


@dataclass(frozen=True, slots=True)
class Observed:
    """The disk and the catalog at one moment: all that a plan is made of."""

    scan: Scan
    hashes: Mapping[bytes, DocumentId | Failure]
    catalog: CatalogState


class Observer:
    """Looks at the disk by the rules of the settings, and plans."""

    def __init__(self, settings: Settings, options: RunOptions) -> None:
        self._options = options
        self._detection: Detection = "hash" if options.rehash else settings.change_detection  # type: ignore[assignment]  # settings allow these words only
        self.rules = Rules(
            include=settings.include,
            exclude=settings.exclude,
            hidden=settings.hidden,
            use_gitignore=settings.use_gitignore,
            follow_symlinks=settings.follow_symlinks,
            link_targets=tuple(Path(target).resolve() for target in settings.link_targets),
            index=settings.home,
        )
        self._guard = Guard(sources=settings.guard_sources, share=settings.guard_share, allow=options.allow_removals)
        self.limits = Limits(
            file_bytes=settings.max_file_bytes,
            text_file_bytes=settings.max_text_file_bytes,
            text_chars=settings.max_document_chars,
        )
        if settings.ocr:
            if optional_version("rapidocr") is None:
                raise UsageError(
                    "ocr: rapidocr is not installed; pip install 'grounded-ingest[ocr]', or set ocr = false"
                )
            self.limits = replace(self.limits, ocr_cpu_s=OCR_CPU_S, address_space_bytes=OCR_ADDRESS_SPACE_BYTES)
        engine: PdfEngine = settings.pdf_engine  # type: ignore[assignment]  # settings allow these words only
        passwords = tuple((secret("PDF_PASSWORDS") or "").splitlines())
        self.reader_options = ReaderOptions(
            fallback_encoding=settings.fallback_encoding,
            pdf_engine=engine,
            ocr=settings.ocr,
            pdf_passwords=passwords,
        )

    def observe(
        self, known_roots: Collection[Root], catalog: CatalogState, *, now_ns: int, progress: Progress
    ) -> Observed:
        """Walk the roots, and hash the sources whose stat tuples prove nothing. Does not write."""
        progress.step("scan")
        found = scan(self._options.roots, rules=self.rules, known_roots=list(known_roots), now_ns=now_ns)
        progress.step("hash")
        wanted = to_hash(found, catalog, detection=self._detection)
        return Observed(found, hash_sources(wanted, limit_of=self._limit_of), catalog)

    def plan(
        self,
        observed: Observed,
        recipe: RecipeId,
        *,
        fallen: Collection[bytes] = (),
        unstable: Mapping[bytes, Failure] | None = None,
    ) -> IngestPlan:
        """Compare; pure. ``fallen`` and ``unstable`` are what an earlier plan of this run came to."""
        catalog = observed.catalog
        if self._options.rebuild:
            stale = {key: document._replace(fingerprint="") for key, document in catalog.documents.items()}
            catalog = replace(catalog, documents=stale)
        return plan(
            observed.scan,
            {**observed.hashes, **(unstable or {})},
            catalog,
            guard=self._guard,
            kind_of=suggest_kind,
            fingerprint_of=cache(lambda kind: self.fingerprint(kind, recipe)),
            failure_key_of=cache(self.failure_key),
            retry=("quarantined",) if self._options.retry_quarantined else (),
            fallen=fallen,
        )

    def key(self, recipe: RecipeId, known_roots: Collection[Root]) -> str:
        """Return what decides, beside the disk and the catalog's revision, what a run has to do: 64 hex digits."""
        roots = sorted(os.path.realpath(os.fsencode(root)) for root in self._options.roots)
        known = sorted((os.fsencode(root.path), root.name.encode("utf-8", "surrogatepass")) for root in known_roots)
        reading = reading_fingerprint(self.limits, self.reader_options)
        facts = (repr(roots), repr(known), repr(self.rules), self._detection, reading, recipe)
        return digest(fact.encode("utf-8", "surrogatepass") for fact in facts)

    def fingerprint(self, kind: str, recipe: RecipeId) -> str:
        """Return what shapes the chunks of a document of this kind: readers, and the recipe they are cut by."""
        return f"{parse_fingerprint(kind, self.reader_options)} recipe/{recipe}"

    def failure_key(self, kind: str, status: str) -> str:
        """Return what a failed document is kept beside: it is tried again when this changes. No recipe mends a file."""
        return failure_fingerprint(kind, status, self.limits, self.reader_options)

    def _limit_of(self, seen: Seen) -> int:
        text = is_text_kind(suggest_kind(seen.path))
        return self.limits.text_file_bytes if text else self.limits.file_bytes

"""The checks in their order: pointer, files, points, catalog, sources; with ``full`` also contents, vectors, texts.

Each looks at one thing and says one thing. Where files are damaged the engine is not asked, since loading a damaged
shard rewrites it: the hashes have said already what is wrong.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ingest.catalog.database import Catalog
from ingest.observation import Observer
from search.errors import GroundedError
from search.generation import MANIFEST, IndexLayout, Manifest
from search.settings import Settings
from search.sparse_copy import copy_folder

from . import catalog_checks, content_checks, source_checks
from .findings import Check, VerifyReport, check

__all__ = ["generation", "verify"]

REPAIR = "ingest repair"


def verify(settings: Settings, observer: Observer, *, full: bool) -> VerifyReport:
    """Check the index. Takes no lock and writes nothing to it; a run that publishes meanwhile does not disturb.

    Raises ``IndexMissing`` where there is no index or nothing was published.
    """
    layout = IndexLayout(settings.home)
    catalog = Catalog.open_read_only(layout.catalog)
    try:
        catalog.connection.execute("BEGIN")  # one state of the catalog for all checks
        return VerifyReport(list(_checks(settings, observer, layout, catalog, full=full)))
    finally:
        catalog.close()


def _checks(
    settings: Settings, observer: Observer, layout: IndexLayout, catalog: Catalog, *, full: bool
) -> Iterator[Check]:
    yield catalog_checks.integrity(catalog)
    if catalog.generation is None:
        yield Check("generation", "warning", False, "nothing was published yet", "ingest run FOLDER")
        return
    folder = layout.generation(catalog.generation)
    yield _pointer(layout, catalog.generation)
    yield from generation(folder, catalog, full=full)
    yield from catalog_checks.rows(catalog)
    yield source_checks.on_disk(catalog)
    if full:
        yield content_checks.texts(catalog)
        yield content_checks.vectors(catalog, settings)
        yield source_checks.parsed_again(catalog, observer)


def generation(folder: Path, catalog: Catalog, *, full: bool) -> Iterator[Check]:
    """Check one generation against the catalog: manifest, files, points. Does not write."""
    try:
        manifest = Manifest.read(folder)
    except GroundedError as error:
        yield Check("manifest", "error", False, str(error), REPAIR)
        return
    yield _manifest(catalog, manifest)
    files = _files(folder, manifest, full=full)
    yield files
    if files.ok:
        yield from _points(folder, catalog, full=full)


def _pointer(layout: IndexLayout, current: str) -> Check:
    try:
        pointed = layout.current()
    except GroundedError as error:
        return Check("pointer", "error", False, str(error), REPAIR)
    wrong = [] if pointed == current else [f"CURRENT says {pointed}, the catalog {current}"]
    return check("pointer", wrong, fine=f"CURRENT names generation {current}", wrong="wrong pointer", remedy=REPAIR)


def _manifest(catalog: Catalog, manifest: Manifest) -> Check:
    wrong: list[str] = []
    if manifest.revision != catalog.revision:
        wrong.append(f"manifest is of revision {manifest.revision}, catalog of {catalog.revision}")
    if manifest.recipe != catalog.recipe:
        wrong.append("manifest and catalog name different recipes")
    (chunks,) = catalog.connection.execute("SELECT count(*) FROM points").fetchone()
    if manifest.chunks != chunks:
        wrong.append(f"manifest counts {manifest.chunks} chunks, catalog {chunks}")
    return check("manifest", wrong, fine="manifest and catalog agree", wrong="differences", remedy=REPAIR)


def _files(folder: Path, manifest: Manifest, *, full: bool) -> Check:
    """Names and sizes of the generation's files; with ``full`` their hashes."""
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    wrong = [f"{name}: missing" for name in sorted(manifest.files.keys() - there)]
    wrong += [f"{name}: not in the manifest" for name in sorted(there - manifest.files.keys())]
    for name in sorted(there & manifest.files.keys()):
        size = (folder / name).stat().st_size
        if size != manifest.files[name].size_bytes:
            wrong.append(f"{name}: {size} bytes, should be {manifest.files[name].size_bytes}")
    if full and not wrong:
        wrong = [f"{name}: its content changed" for name in manifest.differing(folder)]
    how = "names, sizes and hashes" if full else "names and sizes"
    return check(
        "files",
        wrong,
        fine=f"{len(there)} files of the generation have their {how}",
        wrong="files of the generation are not what was published",
        remedy=REPAIR,
    )


def _points(folder: Path, catalog: Catalog, *, full: bool) -> Iterator[Check]:
    """Ids (and with ``full`` payloads) of the generation against the catalog, read from a private clone."""
    from ingest.shard import iter_points  # the engine, 15 ms

    with tempfile.TemporaryDirectory(prefix="grounded-verify-") as temporary:
        private = Path(temporary) / folder.name
        copy_folder(folder, private)
        try:
            yield from catalog_checks.points(catalog, iter_points(private, with_payload=full), full=full)
        except GroundedError as error:
            yield Check("points", "error", False, str(error), REPAIR)

r"""Where the files of an index lie, and the manifest of a generation: what readers and writers agree on.

    .grounded/
      index/
        catalog.db            truth; only ``ingest`` opens it
        writer.lock           flock of the running ingest
        builder.lock          flock of its builder, which may outlive it
        CURRENT               "000018\n", replaced by rename; all that readers follow (I1)
        generations/000018/   Qdrant Edge shard + manifest.json; never changed again (I2, I4)
      audit/audit.db          the only file that the agent's process writes

This module reads. Writing ``CURRENT`` and manifests is done by ``ingest``, with the formats given here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from .errors import IndexDamaged, IndexMissing, SchemaMismatch
from .identity import sparse_sha256
from .recipe import Recipe
from .records import Completeness

__all__ = ["FORMAT_VERSION", "MANIFEST", "FileEntry", "GenerationKey", "IndexLayout", "Manifest", "generation_name"]

FORMAT_VERSION = 1
MANIFEST = "manifest.json"


def generation_name(revision: int) -> str:
    """Return the folder name of a revision's generation: six digits, more when they are needed."""
    return f"{revision:06d}"


class GenerationKey(NamedTuple):
    """A generation by its name, and its manifest by inode and time."""

    name: str
    ino: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The paths below one ``.grounded`` folder. Makes none of them."""

    home: Path

    @property
    def index(self) -> Path:
        """Folder of catalog, pointer and generations."""
        return self.home / "index"

    @property
    def catalog(self) -> Path:
        """The SQLite file that is the truth."""
        return self.index / "catalog.db"

    @property
    def lock(self) -> Path:
        """The file that a running ingest holds locked."""
        return self.index / "writer.lock"

    @property
    def pointer(self) -> Path:
        """The file that names the current generation."""
        return self.index / "CURRENT"

    @property
    def generations(self) -> Path:
        """Folder of the published generations."""
        return self.index / "generations"

    @property
    def trash(self) -> Path:
        """Folder in which old generations wait for their removal."""
        return self.index / "trash"

    @property
    def audit(self) -> Path:
        """Folder of the audit store."""
        return self.home / "audit"

    def generation(self, name: str) -> Path:
        """Folder of one generation."""
        return self.generations / name

    def current(self) -> str | None:
        """Return the name that ``CURRENT`` holds, or None where nothing was published. Does not write.

        Raises ``IndexMissing`` where there is no index at all, ``IndexDamaged`` for a pointer that names nothing.
        """
        try:
            name = self.pointer.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            if not self.index.is_dir():
                raise IndexMissing(f"index {self.home}: not there; make it with `ingest FOLDER`") from None
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise IndexDamaged(f"{self.pointer}: cannot be read ({error}); run `ingest repair`") from error
        if not name.isascii() or not name.isdigit():
            raise IndexDamaged(f"{self.pointer}: holds no generation; run `ingest repair`")
        return name

    def published(self) -> str:
        """Return the name that ``CURRENT`` holds. Raises as ``current``, and ``IndexMissing`` where there is none."""
        name = self.current()
        if name is None:
            raise IndexMissing(f"index {self.home}: nothing was published yet; run `ingest FOLDER`")
        return name

    def current_key(self) -> GenerationKey:
        """Return what tells the current generation from every other: a repair makes one of the same name anew.

        Raises as ``published``.
        """
        name = self.published()
        try:
            status = (self.generation(name) / MANIFEST).stat()
        except OSError:
            return GenerationKey(name, 0, 0)
        return GenerationKey(name, status.st_ino, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a generation: its size in bytes and its ``sparse_sha256``."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a generation holds. ``statuses`` counts the sources by status; ``files`` lists all but the manifest."""

    revision: int
    recipe: Recipe
    chunks: int
    documents: int
    statuses: Mapping[str, int]
    documents_with_gaps: int
    removals_withheld: int
    files: Mapping[str, FileEntry]

    @property
    def name(self) -> str:
        """The generation's name."""
        return generation_name(self.revision)

    @property
    def completeness(self) -> Completeness:
        """What the index lacks; statuses as parsing defines them."""
        fine = {"indexed", "empty", "needs_ocr"}
        return Completeness(
            sources_failed=sum(count for status, count in self.statuses.items() if status not in fine),
            sources_needing_ocr=self.statuses.get("needs_ocr", 0),
            removals_withheld=self.removals_withheld,
            documents_with_gaps=self.documents_with_gaps,
        )

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "format": FORMAT_VERSION,
            "revision": self.revision,
            "recipe_id": self.recipe.recipe_id,
            "recipe": self.recipe.to_json(),
            "counts": {
                "chunks": self.chunks,
                "documents": self.documents,
                "documents_with_gaps": self.documents_with_gaps,
                "removals_withheld": self.removals_withheld,
                "sources": dict(sorted(self.statuses.items())),
            },
            "files": {
                name: {"size": entry.size_bytes, "sha256": entry.sha256} for name, entry in sorted(self.files.items())
            },
        }

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of a generation. Does not write.

        Raises ``IndexDamaged`` where it is missing or not readable, ``SchemaMismatch`` for a later format.
        """
        path = folder / MANIFEST
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            version = values["format"]
            if version > FORMAT_VERSION:
                raise SchemaMismatch(
                    f"{path}: format {version}, this program reads up to {FORMAT_VERSION}; install a newer version"
                )
            counts = values["counts"]
            return cls(
                revision=values["revision"],
                recipe=Recipe.from_json(values["recipe"]),
                chunks=counts["chunks"],
                documents=counts["documents"],
                documents_with_gaps=counts["documents_with_gaps"],
                removals_withheld=counts["removals_withheld"],
                statuses=cast("Mapping[str, int]", counts["sources"]),
                files={name: FileEntry(entry["size"], entry["sha256"]) for name, entry in values["files"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise IndexDamaged(f"{path}: missing or unreadable ({error}); run `ingest repair`") from error

    def check_sizes(self, folder: Path) -> None:
        """Compare names and sizes of the files with the folder: a stat each. Does not write.

        Raises ``IndexDamaged`` and names the first file that differs. Hashes are compared by ``differing``.
        """
        for name, entry in self.files.items():
            try:
                size = (folder / name).stat().st_size
            except OSError as error:
                raise IndexDamaged(f"{folder / name}: missing ({error.strerror}); run `ingest repair`") from error
            if size != entry.size_bytes:
                raise IndexDamaged(f"{folder / name}: {size} bytes, should be {entry.size_bytes}; run `ingest repair`")

    def differing(self, folder: Path) -> Iterator[str]:
        """Yield the names of files whose content is not what the manifest says; reads all of them. Does not write."""
        for name, entry in sorted(self.files.items()):
            path = folder / name
            try:
                same = path.stat().st_size == entry.size_bytes and sparse_sha256(path) == entry.sha256
            except OSError:
                same = False
            if not same:
                yield name

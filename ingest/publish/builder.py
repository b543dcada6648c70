"""The process that builds one generation: clone, apply, flush, optimize, settle, manifest, rename (step 8).

A child of the run, because a full disk reaches the engine as SIGBUS and kills its process; its death is one clear error
of the run, and the old generation is untouched. It reads lines of JSON on stdin (a header, batches, an end), answers
with one line on stdout, and dies at the end of its input: a builder without a run publishes nothing.
"""

import base64
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from ingest.catalog.vectors import dense_array
from ingest.failpoints import Failpoints
from ingest.shard import PointRecord, Shard, settle
from search.errors import ExitCode, GroundedError, PublishFailed
from search.generation import MANIFEST, FileEntry, Manifest
from search.identity import ChunkId, sparse_sha256
from search.recipe import Recipe
from search.records import SparseVector

from .clone import clone_generation
from .durable import sync_folder, sync_tree
from .pointer import PARTIAL

__all__ = ["main"]

Payload = dict[str, object]


def main() -> int:
    """Build the generation that the lines on stdin describe; the answer goes to stdout."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing that the engine may print can pass for the answer
    _say(answer, {"kind": "ready"})
    lines = (json.loads(line) for line in sys.stdin)
    try:
        build(lines, Failpoints())
    except (GroundedError, OSError) as error:
        number = error.errno if isinstance(error, OSError) else None
        kind = error.kind if isinstance(error, GroundedError) else "failed"
        _say(answer, {"kind": kind, "errno": number, "message": str(error)})
        return ExitCode.FAILED
    _say(answer, {"kind": "done"})
    return ExitCode.DONE


def build(lines: Iterator[dict[str, object]], failpoints: Failpoints) -> None:
    """Make the generation. Its folder appears under its name only when it is complete and durable."""
    header = next(lines)
    folder, base = Path(cast("str", header["folder"])), cast("str | None", header["base"])
    partial = folder.with_name(folder.name + PARTIAL)
    recipe = Recipe.from_json(cast("Mapping[str, object]", header["recipe"]))
    shared = Shared.clone(Path(base), partial) if base is not None else Shared({})
    failpoints.reach("publish.clone")

    end: Mapping[str, object] | None = None
    opened = Shard.create(partial, recipe.embedding) if base is None else Shard.open(partial, recipe.embedding)
    with opened as writer:
        for line in lines:
            if "end" in line:
                end = cast("Mapping[str, object]", line["end"])
                break
            writer.apply(
                [_point(item) for item in cast("list[dict[str, object]]", line["upserts"])],
                [(ChunkId(key), payload) for key, payload in cast("list[tuple[str, Payload]]", line["payloads"])],
                [ChunkId(key) for key in cast("list[str]", line["deletes"])],
            )
            failpoints.reach("publish.apply")
        if end is None:
            raise EOFError("the run ended before the generation was complete")
        writer.optimize()
    failpoints.reach("publish.flush")
    settle(partial, cast("int", end["chunks"]))
    failpoints.reach("publish.settle")

    _write_manifest(partial, recipe, end, shared.entries(partial))
    sync_tree(partial)
    failpoints.reach("publish.manifest")
    partial.rename(folder)
    sync_folder(folder.parent)
    failpoints.reach("publish.rename")


def _point(item: Mapping[str, object]) -> PointRecord:
    return PointRecord(
        chunk_id=ChunkId(cast("str", item["id"])),
        dense=dense_array(base64.b64decode(cast("str", item["dense"]))),
        sparse=SparseVector(tuple(cast("list[int]", item["indices"])), tuple(cast("list[float]", item["values"]))),
        payload=cast("dict[str, object]", item["payload"]),
    )


@dataclass(frozen=True, slots=True)
class Shared:
    """Files that a generation shares with the one it was cloned from: their manifest entries, and their times."""

    known: Mapping[str, tuple[FileEntry, int]]

    @classmethod
    def clone(cls, base: Path, partial: Path) -> "Shared":
        """Clone ``base``, without its manifest."""
        manifest = Manifest.read(base)
        names = [str(path) for path in clone_generation(base, partial)]
        (partial / MANIFEST).unlink()
        return cls({name: (manifest.files[name], (partial / name).stat().st_mtime_ns) for name in names})

    def entries(self, partial: Path) -> dict[str, FileEntry]:
        """Return the manifest entries of those that are still there, and did not change.

        Raises ``PublishFailed`` where the engine wrote one: it would have changed a published generation (I1).
        """
        found: dict[str, FileEntry] = {}
        for name, (entry, mtime_ns) in self.known.items():
            try:
                now = (partial / name).stat()
            except FileNotFoundError:  # its segment was merged into another
                continue
            if (now.st_mtime_ns, now.st_size) != (mtime_ns, entry.size_bytes):
                raise PublishFailed(f"{partial / name}: changed by the engine, though it was thought never to be")
            found[name] = entry
        return found


def _write_manifest(partial: Path, recipe: Recipe, end: Mapping[str, object], known: dict[str, FileEntry]) -> None:
    """Write the manifest: every file with size and sha256; those of shared files stand in the older manifest."""
    files = {
        name: known.get(name) or FileEntry(path.stat().st_size, sparse_sha256(path))
        for path in sorted(partial.rglob("*"))
        if path.is_file() and (name := str(path.relative_to(partial)))
    }
    manifest = Manifest(recipe=recipe, files=files, **end)  # type: ignore[arg-type]  # the publisher wrote the fields
    text = json.dumps(manifest.to_json(), ensure_ascii=False, indent=1, sort_keys=True)
    (partial / MANIFEST).write_text(text, encoding="utf-8")


def _say(answer: IO[str], message: Mapping[str, object]) -> None:
    answer.write(json.dumps(message) + "\n")
    answer.flush()


if __name__ == "__main__":
    sys.exit(main())

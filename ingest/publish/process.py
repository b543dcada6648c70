"""The run's handle on the builder process: starts it, feeds it, and turns every way it can end into one clear error."""

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from ingest.lock import take
from search.engine import FULL
from search.errors import NotEnoughSpace, PublishFailed
from search.identity import ChunkId
from search.recipe import Recipe
from search.records import SparseVector

__all__ = ["BuilderProcess", "encode_upsert"]

# The folder that holds our packages. The builder starts there: the user's folder may hold modules of any name.
IMPORT_ROOT = Path(__file__).resolve().parents[2]
# How much of what a dying builder printed is worth repeating.
LAST_WORDS = 300


def encode_upsert(
    chunk_id: ChunkId, dense: bytes, sparse: SparseVector, payload: Mapping[str, object]
) -> dict[str, object]:
    """Return the JSON form of a point for the builder's input."""
    return {
        "id": chunk_id,
        "dense": base64.b64encode(dense).decode("ascii"),
        "indices": sparse.indices,
        "values": sparse.values,
        "payload": payload,
    }


class BuilderProcess:
    """One builder. Started early, so that it imports the engine while the run still parses and embeds.

    It alone holds ``lock`` until it has ended, so that the run after a killed one can wait for it.
    """

    def __init__(self, lock: Path) -> None:
        self._ready = False
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by stop()
        handle = take(lock)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ingest.publish.builder"],
                cwd=IMPORT_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                pass_fds=(handle,),
                start_new_session=True,  # Ctrl-C is the run's to handle
                text=True,
                encoding="utf-8",
            )
        finally:
            os.close(handle)

    @property
    def pid(self) -> int:
        """Process id of the builder."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Wait for the line by which the builder says that it has imported what it needs.

        Raises ``PublishFailed`` when it died before.
        """
        assert self._process.stdout is not None  # noqa: S101  # for the type checker: stdout is a pipe
        if not self._ready and not self._process.stdout.readline():
            self._process.wait()
            raise self._failure("")
        self._ready = True

    def begin(self, *, folder: Path, base: Path | None, recipe: Recipe) -> None:
        """Say which generation to make: from an empty one, or from a clone of ``base``."""
        self.wait_until_ready()
        self._send({"folder": str(folder), "base": str(base) if base else None, "recipe": recipe.to_json()})

    def apply(
        self,
        *,
        upserts: Sequence[Mapping[str, object]],
        payloads: Sequence[tuple[str, Mapping[str, object]]],
        deletes: Sequence[str],
    ) -> None:
        """Send one batch of differences."""
        self._send({"upserts": upserts, "payloads": payloads, "deletes": deletes})

    def finish(self, end: Mapping[str, object]) -> None:
        """Have the generation completed with these manifest values, and wait for it.

        Raises ``NotEnoughSpace`` when the disk was full, ``PublishFailed`` for any other death.
        """
        self._send({"end": end})
        try:
            answer, _ = self._process.communicate()
        except BrokenPipeError:
            answer = ""
        if self._process.returncode != 0:
            raise self._failure(answer)

    def stop(self) -> None:
        """Kill the builder if it still runs. May be called at any time, and twice."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except BrokenPipeError:  # what was still in the buffer has no reader any more
                    continue

    def _send(self, message: Mapping[str, object]) -> None:
        assert self._process.stdin is not None  # noqa: S101  # for the type checker: stdin is a pipe
        try:
            self._process.stdin.write(json.dumps(message, ensure_ascii=False) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._process.wait()
            assert self._process.stdout is not None  # noqa: S101  # for the type checker: stdout is a pipe
            raise self._failure(self._process.stdout.read()) from None

    def _failure(self, answer: str) -> PublishFailed | NotEnoughSpace:
        code = self._process.returncode
        if code == -signal.SIGBUS:
            return NotEnoughSpace(
                "publish: the disk is full (the engine was killed by SIGBUS); the old generation stands. "
                "Free some space and run again"
            )
        message: Mapping[str, object] = json.loads(answer) if answer.strip() else {}
        if message.get("errno") in FULL or message.get("kind") == NotEnoughSpace.kind:
            return NotEnoughSpace("publish: the disk is full; the old generation stands. Free some space and run again")
        if message:
            return PublishFailed(f"publish: {message['message']}; the old generation stands. Run again")
        self._errors.seek(0)
        words = self._errors.read().decode("utf-8", "replace").strip()[-LAST_WORDS:]
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return PublishFailed(f"publish: the builder was {how}; the old generation stands. Run again. {words}".strip())

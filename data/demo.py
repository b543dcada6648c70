"""``make demo``: the sample corpus goes in, goes in again with nothing written, and one question is answered.

Runs the real commands in a folder that is thrown away afterwards, and stops at the first that does not do what it says.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SAMPLE = Path(__file__).resolve().parent / "sample"
QUESTION = "What do I do when the bilge pump cannot keep up?"


def main() -> None:
    """Run the demonstration; raises ``SystemExit`` with a sentence when a step fails."""
    with tempfile.TemporaryDirectory(prefix="grounded-demo-") as folder:
        say("$ ingest data/sample              # the first run reads, cuts and embeds everything")
        command(folder, "run", str(SAMPLE))
        say("\n$ ingest data/sample              # the second finds nothing to do")
        command(folder, "run", str(SAMPLE))
        report = json.loads(command(folder, "run", str(SAMPLE), "--json", show=False))
        if report["published"] or report["chunks"]["written"] or report["embeddings"]["computed"]:
            raise SystemExit("demo: running again wrote something; that is a bug")
        say(f'\n$ ingest search "{QUESTION}"')
        command(folder, "search", QUESTION, "--limit", "1")
        say("\n$ ingest verify --full")
        command(folder, "verify", "--full")


def say(line: str) -> None:
    """Print a line before what the commands print themselves, in a pipe too."""
    print(line, flush=True)


def command(folder: str, *words: str, show: bool = True) -> str:
    """Run one command of ours on the demonstration's index and return its output, shown unless told otherwise."""
    done = subprocess.run(
        [sys.executable, "-m", "ingest", *words, "--index", f"{folder}/.grounded"],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdout=None if show else subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"demo: `ingest {' '.join(words)}` ended with code {done.returncode}")
    return done.stdout or ""


if __name__ == "__main__":
    main()

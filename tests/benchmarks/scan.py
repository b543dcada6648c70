"""A run that finds nothing changed beside ``git status`` on the same tree: seconds, CPU seconds, memory.

Lays out a tree of small files in a temporary folder, commits it with git, ingests it with the real command until a run
has vouched for it, and lets both look for changes in turn, each in a process of its own, so that start, imports and
memory count. The long way, through scan and plan, stands beside it once. ``FILES=20000`` makes it shorter; the files
hold few different passages, since embedding is not what is measured.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

FILES = int(os.environ.get("FILES", "100000"))
# The folders of the target in the design: 100 files each.
FILES_A_FOLDER = 100
PASSAGES = 500
ROUNDS = 7


class Cost(NamedTuple):
    """What one process took; ``peak_mib`` is its own largest resident size."""

    seconds: float
    cpu_s: float
    peak_mib: float


def main() -> None:
    """Lay out, ingest, measure in turns, print medians and ratios."""
    with tempfile.TemporaryDirectory(prefix="grounded-bench-") as folder:
        tree = Path(folder) / "tree"
        lay_out(tree)
        ingest = [sys.executable, "-m", "ingest", "run", str(tree), "--index", f"{folder}/.grounded", "--quiet"]
        status = ["git", "-C", str(tree), "status", "--porcelain"]
        first = cost(ingest)
        print(f"first run over {FILES} files: {first.seconds:.0f} s, {first.cpu_s:.0f} CPU s, {first.peak_mib:.0f} MiB")
        long_way = cost(ingest)  # no run has vouched for the tree yet
        cost(ingest)
        print(f"no change, every source compared: {long_way.cpu_s:.2f} CPU s, {long_way.peak_mib:.0f} MiB")
        cost(status)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(cost(ingest))
            theirs.append(cost(status))
        print_row("no change", ours)
        print_row("git status", theirs)
        for name in ("seconds", "cpu_s"):
            ratio = median(getattr(item, name) for item in ours) / median(getattr(item, name) for item in theirs)
            print(f"ratio of {name}: {ratio:.2f} (to hold: 3)")


def lay_out(tree: Path) -> None:
    """Write small files, all different, with few different passages, an hour old; commit them with git."""
    an_hour_ago = time.time() - 3600
    for number in range(FILES):
        folder = tree / f"{number // FILES_A_FOLDER:04}"
        if number % FILES_A_FOLDER == 0:
            folder.mkdir(parents=True)
        passage, copy = number % PASSAGES, number // PASSAGES
        path = folder / f"item{number:06}.txt"
        path.write_text(f"Item {passage} is kept on shelf {passage % 61}.{chr(10) * (copy + 1)}", "utf-8")
        os.utime(path, (an_hour_ago, an_hour_ago))
    git = ["git", "-C", str(tree), "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"]
    for words in (["init", "-q"], ["add", "--all"], ["commit", "-q", "-m", "tree"]):
        subprocess.run([*git, *words], check=True)


def cost(command: list[str]) -> Cost:
    """Run a command to its end and return what it took, its children included."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode != 0:
        raise RuntimeError(f"{command}: ended with {process.returncode}")
    return Cost(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def print_row(name: str, costs: list[Cost]) -> None:
    """Print the medians of one side."""
    seconds, cpu_s, peak = (median(getattr(item, field) for item in costs) for field in Cost._fields)
    print(f"{name}: {seconds:.2f} s, {cpu_s:.2f} CPU s, {peak:.0f} MiB (p50 of {len(costs)})")


if __name__ == "__main__":
    main()

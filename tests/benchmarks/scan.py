"""A run that finds nothing changed, up to its empty plan, beside ``git status`` on the same tree.

``python -m tests.benchmarks.scan [--files N] [--rounds N]`` lays out a tree of small files in a temporary folder,
commits it with git, and lets both look for changes in turn, each in a process of its own, so that start, imports and
memory count. CPU seconds stand beside seconds, since git looks at files from several threads. Ours loads a catalog of
that tree from SQLite, walks, compares and plans. First, once: hashing everything.
"""

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from ingest.plan import CatalogDocument, CatalogSource, CatalogState, Guard, plan, to_hash
from ingest.sources import Rules, StatTuple, hash_sources, scan
from search.identity import DocumentId

FILES = 100_000
# The folders of the target in the design: 100 files each.
FILES_A_FOLDER = 100
ROUNDS = 5
LIMIT_BYTES = 1 << 20

ROWS = """create table sources (path blob primary key, root text, size int, mtime int, ctime int, ino int, dev int,
document_id text, status text) without rowid"""


def kind_of(name: bytes) -> str:
    """Suggest a kind by the ending, as the detector does."""
    return "markdown" if name.endswith(b".md") else "text"


def lay_out(tree: Path, files: int) -> None:
    """Write small Markdown files and commit them."""
    for number in range(files):
        folder = tree / f"{number // FILES_A_FOLDER:04}"
        if number % FILES_A_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"item{number:06}.md").write_text(f"# Item {number}\n\nKept on shelf {number % 613}.\n", "utf-8")
    git = ["git", "-C", str(tree), "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "tree"], check=True)


def remember(tree: Path, catalog: Path) -> float:
    """Scan, hash everything, and store the rows; return the seconds of the hashing."""
    found = scan([tree], rules=Rules(), known_roots=(), now_ns=time.time_ns() + 10**12)
    begun = time.perf_counter()
    hashes = hash_sources(found.seen, limit_of=lambda seen: LIMIT_BYTES)
    hashed_s = time.perf_counter() - begun
    with sqlite3.connect(catalog) as connection:
        connection.execute(ROWS)
        connection.executemany(
            "insert into sources values (?, ?, ?, ?, ?, ?, ?, ?, 'indexed')",
            ((seen.path, seen.home.name, *seen.stat, hashes[seen.path]) for seen in found.seen),
        )
    connection.close()
    return hashed_s


def load(catalog: Path) -> CatalogState:
    """Read the rows back, equal texts shared."""
    known = CatalogDocument("markdown", "markdown", "1", None, "indexed")
    sources: dict[bytes, CatalogSource] = {}
    documents: dict[DocumentId, CatalogDocument] = {}
    connection = sqlite3.connect(catalog)
    for path, root, size, mtime, ctime, ino, dev, document_id, status in connection.execute("select * from sources"):
        stats = StatTuple(size, mtime, ctime, ino, dev)
        sources[path] = CatalogSource(path, sys.intern(root), stats, False, document_id, sys.intern(status))
        documents[document_id] = known
    connection.close()
    return CatalogState(sources=sources, documents=documents)


def look_again(tree: Path, catalog: Path) -> dict[str, float]:
    """Plan the run of an unchanged tree; return seconds by step and the greatest memory in MiB."""
    times = [time.perf_counter()]
    state = load(catalog)
    times.append(time.perf_counter())
    found = scan([tree], rules=Rules(), known_roots=(), now_ns=time.time_ns() + 10**12)
    times.append(time.perf_counter())
    pending = to_hash(found, state)
    made = plan(
        found,
        {},
        state,
        guard=Guard(),
        kind_of=kind_of,
        fingerprint_of=lambda kind: "1",
        failure_key_of=lambda kind: "1",
    )
    times.append(time.perf_counter())
    if pending or not made.is_empty:
        raise SystemExit("the tree changed while it was measured: nothing can be said")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return {"load": times[1] - times[0], "scan": times[2] - times[1], "plan": times[3] - times[2], "memory_mib": memory}


def timed(command: list[str]) -> tuple[float, float, str]:
    """Run a command; return its seconds, its CPU seconds over all cores, and what it printed."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended - begun, cpu_s, printed


def main(arguments: list[str] | None = None) -> None:
    """Measure and print: seconds of both, the ratio, steps, and memory."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scan", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--look-again", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.look_again:
        print(json.dumps(look_again(*options.look_again)))
        return

    with tempfile.TemporaryDirectory() as folder:
        tree, catalog = Path(folder, "tree"), Path(folder, "catalog.db")
        lay_out(tree, options.files)
        hashed_s = remember(tree, catalog)
        ours = [sys.executable, "-m", "tests.benchmarks.scan", "--look-again", str(tree), str(catalog)]
        git = ["git", "-C", str(tree), "status", "--porcelain"]
        timed(git)  # once more than measured: it rewrites its index after the first look
        rounds = [(timed(git), timed(ours)) for _ in range(options.rounds)]

    steps = [json.loads(ours_[2]) for _, ours_ in rounds]
    print(f"scan: {options.files} files, {options.rounds} rounds, {os.cpu_count()} cores, median (least, greatest)")
    for number, unit in enumerate(("s", "CPU s")):
        git_s, ours_s = ([side[number] for side in sides] for sides in zip(*rounds, strict=True))
        ratios = [ours_ / git_ for git_, ours_ in zip(git_s, ours_s, strict=True)]
        for name, values, of in (("git status", git_s, unit), ("no-change plan", ours_s, unit), ("ratio", ratios, "")):
            print(f"  {name:<16} {median(values):6.2f} ({min(values):.2f}, {max(values):.2f}) {of}")
    for name in ("load", "scan", "plan"):
        print(f"    of it {name:<10} {median(step[name] for step in steps):6.2f} s")
    memory_mib = max(step["memory_mib"] for step in steps)
    print(f"  peak memory      {memory_mib:6.0f} MiB (targets: 300 MiB, 3 times the seconds of git status)")
    print(f"  hashing it all   {hashed_s:6.2f} s, {hashed_s / options.files * 1e6:.0f} us a file")


if __name__ == "__main__":
    main()

"""``make bench [ONLY=name]``: run the benchmarks one after the other, each in a process of its own."""

import importlib
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

NAMES = ("scan", "publish", "chunking", "decoding", "pdf", "retrieval", "agent_tool", "audit")
LIBRARIES = ("fastembed", "onnxruntime", "qdrant-edge-py", "pypdfium2")


def main() -> None:
    """Print the surroundings, then every benchmark that is there."""
    here = Path(__file__).parent
    if len(sys.argv) > 1:
        importlib.import_module(f"{__package__}.{sys.argv.pop(1)}").main()
        return
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=here, check=False
    )
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    print(f"commit {commit.stdout.strip() or 'unknown'}; {platform.machine()}, {os.cpu_count()} cores; {versions}")
    only = os.environ.get("ONLY")
    for name in NAMES:
        if only in (None, "", name):
            print(f"\n== {name} ==", flush=True)
            subprocess.run([sys.executable, "-m", __package__, name], check=False)


if __name__ == "__main__":
    main()

"""The writer process of ``test_readers``: one edit after the other, each followed by a run, all in one process.

``python editor.py HOME DOCS EDITS``. Edit N writes the two pages as edition N, with the marker in the one or the other,
runs, and prints one JSON line: the generation, the edition, and the page that has the marker.
"""

import json
import sys
from pathlib import Path

from ingest.observation import RunOptions
from ingest.pipeline import run
from ingest.progress import Silent
from search.settings import load

PAGES = ("harbour.md", "museum.md")
MARKER = "The marker stands beside the purple anchor."


def write_edition(docs: Path, edition: int) -> str:
    """Write both pages, and return the name of the one that has the marker."""
    holder = PAGES[edition % 2]
    for page in PAGES:
        name = page.removesuffix(".md")
        text = f"# The {name}\n\nThis is edition {edition} of the page about the {name}.\n"
        (docs / page).write_text(f"{text}\n{MARKER}\n" if page == holder else text, encoding="utf-8")
    return holder


def main(home: str, docs: str, edits: str) -> None:
    """Edit and run."""
    settings = load({"workers": 1, "embed_threads": 1}, index=home)
    for edition in range(1, int(edits) + 1):
        holder = write_edition(Path(docs), edition)
        report = run(settings, RunOptions(roots=(Path(docs),)), Silent())
        print(json.dumps([report.generation, edition, holder]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

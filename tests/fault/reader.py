"""A reader process of ``test_readers``: asks in a loop, and writes every answer down, until its stdin is closed.

``python reader.py HOME OUTPUT QUESTION...``. It says on stdout that it has answered once, and asks once more after the
end of its input, so that the last generation is among its answers. An error ends it with a traceback.
"""

import json
import os
import select
import sys
from pathlib import Path

from search.edge import EdgeReader
from search.embedding import load_embedder
from search.generation import IndexLayout
from search.lookup import Lookup
from search.settings import DEFAULT_MODEL, cache_folder


def main(home: str, output: str, *questions: str) -> None:
    """Ask all questions again and again."""
    # Four readers would keep both cores from the run, and how fast they are is not what they test.
    os.nice(10)
    embedder = load_embedder(DEFAULT_MODEL, threads=1, cache=cache_folder())
    lookup = Lookup(EdgeReader(IndexLayout(Path(home))), lambda _spec: embedder)

    def ask() -> None:
        for question in questions:
            result = lookup.lookup(question)
            found = [[passage.citation.path, passage.text] for passage in result.passages]
            answers.write(json.dumps([result.generation, question, found]) + "\n")

    with Path(output).open("w", encoding="utf-8") as answers:
        ask()
        print("answering", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            ask()
        ask()


if __name__ == "__main__":
    main(*sys.argv[1:])

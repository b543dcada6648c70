"""PDF reading: how far the two engines agree on the words of a page, and what each costs.

``make bench ONLY=pdf FOLDER=DIR`` measures every PDF below a folder, without one the generated documents of
``tests/parsing/layouts.py``. Both ways go through the worker pool, so that no file ends the benchmark: the text that
``pdf_engine = auto`` chooses, and that of the other engine, pypdf. Agreement is the F1 measure of the words of a page
(each as often as it stands there), the mean over pages where both have words.
"""

import os
import re
import resource
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean

from ingest.parsing.document import Document
from ingest.parsing.limits import PdfEngine, ReaderOptions
from ingest.parsing.pool import Job, ParseResult, WorkerPool
from search.identity import DocumentId, document_id
from tests.parsing.layouts import LAYOUTS, write

__all__ = ["agreements", "f1", "page_words"]

WORD = re.compile(r"\w+")
# pypdf leaves no blanks between words of these letters, so it has one word for a line of them.
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
WORST = 10


def page_words(document: Document) -> Iterator[Counter[str]]:
    """Yield the words of each page in lower case, each with its number."""
    starts = [*(part.start for part in document.parts), len(document.text)]
    for start, end in pairwise(starts):
        yield Counter(WORD.findall(document.text[start:end].lower()))


def f1(one: Counter[str], other: Counter[str]) -> float:
    """Return the share of words that two pages have in common: 1.0 for the same words, 0.0 for none."""
    return 2 * (one & other).total() / (one.total() + other.total())


def agreements(chosen: Document, other: Document) -> list[float]:
    """Return the agreement of each page on which both have words."""
    pages = zip(page_words(chosen), page_words(other), strict=True)
    return [f1(one, two) for one, two in pages if one and two]


def jobs_of(folder: Path) -> Iterator[Job]:
    """Yield a job for every PDF below ``folder``, each content once."""
    seen = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() == ".pdf" and path.is_file():
            content = path.read_bytes()
            name = document_id(content)
            if content and name not in seen:
                seen.add(name)
                parts = tuple(os.fsencode(part) for part in path.relative_to(folder).parts)
                yield Job(name, folder, parts, len(content), "pdf", str(path.relative_to(folder)))


def read(jobs: Sequence[Job], engine: PdfEngine) -> tuple[Mapping[DocumentId, ParseResult], float]:
    """Return what each file came to, and the CPU seconds of the workers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with WorkerPool(1, options=ReaderOptions(pdf_engine=engine)) as pool:
        found = {job.document_id: result for job, result in pool.results(jobs)}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of every number."""
    jobs = list(jobs_of(folder))
    chosen, seconds = read(jobs, "auto")
    other, other_seconds = read(jobs, "pypdf")
    by_file: dict[str, list[float]] = {}
    left_to_right: list[float] = []
    counts: Counter[str] = Counter()
    pages, by_pypdf, uneven = 0, 0, 0
    for job in jobs:
        one, two = chosen[job.document_id], other[job.document_id]
        counts[one.status if hasattr(one, "status") else "read"] += 1
        if not isinstance(one, Document):
            continue
        pages += len(one.parts)
        by_pypdf += any(warning.startswith("read_again") for warning in one.warnings) or one.reader.endswith("by pypdf")
        if not isinstance(two, Document):
            counts["read, but not by pypdf"] += 1
        elif len(one.parts) != len(two.parts):
            uneven += 1
        elif found := agreements(one, two):
            by_file[job.name] = found
            left_to_right += [] if RIGHT_TO_LEFT.search(one.text) else found
    every = [agreement for found in by_file.values() for agreement in found]
    yield "files", ", ".join(f"{status} {count}" for status, count in sorted(counts.items()))
    yield "pages read", str(pages)
    yield "files read by pypdf, or some of their pages", str(by_pypdf)
    yield "files in which the engines count other pages", str(uneven)
    if every:
        yield "pages compared", f"{len(every)} in {len(by_file)} files"
        yield "agreement", f"{mean(every):.4f} mean of pages, {mean(map(mean, by_file.values())):.4f} mean of files"
        if len(left_to_right) < len(every):
            yield "  but for words from right to left", f"{mean(left_to_right):.4f} mean of {len(left_to_right)} pages"
        yield "pages under 0.9", f"{sum(agreement < 0.9 for agreement in every)}"
        for name, found in sorted(by_file.items(), key=lambda item: mean(item[1]))[:WORST]:
            yield f"  {name[-60:]}", f"{mean(found):.4f} of {len(found)} pages"
    yield "CPU, pypdf beside auto", f"{other_seconds / seconds:.1f} times ({other_seconds:.1f} s, {seconds:.1f} s)"


def main() -> None:
    """Print the table for ``FOLDER``, or for the generated documents."""
    named = os.environ.get("FOLDER")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(named or made).resolve()
        if not named:
            for layout in LAYOUTS:
                write(layout, folder / f"{layout}.pdf")
        for name, value in measure(folder):
            print(f"{name:<64} {value}")


if __name__ == "__main__":
    main()

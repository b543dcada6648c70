"""What holds for the reader of every kind: whole and unharmed files, then damaged ones, through real workers.

All tests run over ``FORMATS``: a new kind without a builder in ``specimens`` fails.
"""

import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.parsing.document import Document
from ingest.parsing.failure import ParseFailure
from ingest.parsing.limits import Limits
from ingest.parsing.pool import Job, ParseResult, WorkerPool
from ingest.parsing.reading import check_document, read_document
from ingest.parsing.registry import FORMATS
from search.identity import document_id
from tests.property.damage import damaged
from tests.property.specimens import ADDED, BUILDERS, SAMPLE

KINDS = sorted(FORMATS)
# Kinds whose text is that of the file and not rendered.
LINED_KINDS = frozenset({"asciidoc", "code", "markdown", "python", "rst", "text", "xml"})
WORD = re.compile(r"[^\W\d_]+")
VOCABULARY = ("boat", "pier", "harbour", "größe", "café", "rope", "tide", "lantern", "ash", "quay", "mooring")
# The fonts of the builder of PDFs have Latin letters only.
OTHER_SCRIPTS = ("ωμέγα", "вода", "漢字", "שלום")
# No reader may have more than a GiB, nor think for minutes.
LIMITS = Limits(address_space_bytes=1 << 30, cpu_s=10, html_cpu_s=10)
MUTANTS = 20
# The libraries of old workbooks and messages allocate what such a file says that it holds, and one of them aborts.
OLE = b"\xd0\xcf\x11\xe0"


@cache
def specimen(kind: str) -> bytes:
    """Return the file of a kind that is made of the sample."""
    return BUILDERS[kind](SAMPLE)


def paragraphs(kind: str) -> st.SearchStrategy[list[str]]:
    """Return up to seven paragraphs of words that the builder of a kind can write."""
    words = st.sampled_from(VOCABULARY if kind == "pdf" else VOCABULARY + OTHER_SCRIPTS)
    paragraph = st.lists(words, min_size=3, max_size=8).map(" ".join)
    return st.lists(paragraph, min_size=1, max_size=7)


def words_of(found: Document) -> list[str]:
    """Return the words of all blocks but those that no paragraph holds."""
    inside = (found.text[block.start : block.end] for block in found.blocks)
    return [word for text in inside for word in WORD.findall(text) if word not in ADDED]


def check_sound(found: Document) -> None:
    """Assert what every document promises, however bad its file."""
    check_document(found)
    for block in found.blocks:
        assert found.text[block.start : block.end].strip()
        assert (1 <= block.level <= 6) if block.kind == "heading" else block.level >= 0
    # Lone surrogates can be stored and sent nowhere.
    said = [found.title, found.warnings, found.meta, [block.heading for block in found.blocks]]
    json.dumps([found.text, *said, [part.label for part in found.parts]], ensure_ascii=False).encode()


@pytest.mark.parametrize("kind", KINDS)
@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.data())
def test_a_document_has_the_words_of_its_file_in_order(kind: str, data: st.DataObject) -> None:
    """All of them and no others, each in a block; the blocks in order and apart; the lines of a text as they are."""
    given_words = data.draw(paragraphs(kind))
    content = BUILDERS[kind](given_words)
    found = read_document(content, kind)
    assert isinstance(found, Document), found
    assert found.kind == kind
    check_sound(found)
    assert words_of(found) == WORD.findall(" ".join(given_words))
    end = 0
    for block in found.blocks:
        assert WORD.search(found.text, end, block.start) is None
        end = block.end
    assert WORD.search(found.text, end) is None
    assert found.lines == (kind in LINED_KINDS)
    if found.lines:
        assert found.text == content.decode()


class Bench:
    """A pool for all tests of this module, and the folder of its files."""

    def __init__(self, pool: WorkerPool, folder: Path) -> None:
        self.pool = pool
        self.folder = folder

    def read(self, kind: str, contents: Sequence[bytes]) -> list[ParseResult]:
        """Return what becomes of each content under a name of ``kind``, in the order given."""
        jobs = []
        for number, content in enumerate(contents):
            name = f"{number}.{FORMATS[kind].extensions[0]}"
            (self.folder / name).write_bytes(content)
            jobs.append(Job(document_id(content), self.folder, (name.encode(),), len(content), kind, name))
        found = {job.name: result for job, result in self.pool.results(jobs)}
        return [found[job.name] for job in jobs]


def children() -> set[int]:
    """Return the pids of this process's children."""
    return {int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One pool of two workers; none of them is left when it is done, and none ever had more than a GiB."""
    before = children()
    with WorkerPool(2, LIMITS) as pool:
        yield Bench(pool, tmp_path_factory.mktemp("bench"))
        workers = children() - before
        assert workers
        for worker in workers:
            peak = re.search(r"VmPeak:\s+(\d+) kB", Path(f"/proc/{worker}/status").read_text())
            assert peak is not None
            assert int(peak[1]) << 10 <= LIMITS.address_space_bytes
    assert children().isdisjoint(workers)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Another pool, whose worker reads each file once."""
    with WorkerPool(1, LIMITS) as pool:
        yield Bench(pool, tmp_path_factory.mktemp("other"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_process_reads_a_file_alike(kind: str, bench: Bench, other: Bench) -> None:
    """Here and in workers, which began with other seeds of ``hash``; the second time as the first."""
    content = specimen(kind)
    here = read_document(content, kind)
    assert isinstance(here, Document)
    assert [here, *bench.read(kind, [content] * 4), *other.read(kind, [content])] == [here] * 6


@pytest.mark.parametrize("kind", KINDS)
@settings(
    derandomize=True,
    deadline=None,
    max_examples=4,
    # Both fixtures serve all examples alike: the pool, and what was written since the test began.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_damage_ends_in_a_status_and_costs_no_other_file_its_result(
    kind: str, bench: Bench, capfd: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    """Cut, flipped, spliced with another file, torn open and packed again: a document or a reason, each time.

    Nothing is printed by anybody, and the sound file among them is read as ever.
    """
    sound = specimen(kind)
    chance = random.Random(data.draw(st.integers(0, 1 << 64)))
    mutants = [damaged(sound, specimen(chance.choice(KINDS)), chance) for _ in range(MUTANTS)]
    first, *found, last = bench.read(kind, [sound, *mutants, sound])
    assert first == last == read_document(sound, kind)
    for mutant, result in zip(mutants, found, strict=True):
        if isinstance(result, Document):
            check_sound(result)
            continue
        assert isinstance(result, ParseFailure), mutant
        assert result.reason, mutant
        assert result.reason.isprintable(), mutant
        assert len(result.reason) <= 200, mutant
        assert "Traceback" not in result.reason, mutant
        assert result.status != "quarantined" or mutant.startswith(OLE), (result, mutant)
    assert capfd.readouterr() == ("", "")


def test_a_reader_that_asks_for_more_memory_is_stopped_and_named(tmp_path: Path) -> None:
    """A million empty objects, with room for some of them; the file beside it is read by the same pool."""
    hungry, modest = b"[" + b"{}," * 1_000_000 + b"1]", b'{"berth": "seven"}'
    with WorkerPool(1, Limits(address_space_bytes=160 << 20)) as pool:
        found = Bench(pool, tmp_path).read("json", [hungry, modest])
    assert found[0] == ParseFailure("quarantined", "its reader needed more than 160 MiB of memory, twice")
    assert isinstance(found[1], Document)
    assert found[1].text == "berth: seven"

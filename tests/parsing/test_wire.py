"""Messages between pool and workers: what is sent arrives, and what is no message is refused."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.parsing.document import Block, Document, Gap, Part
from ingest.parsing.failure import ParseFailure
from ingest.parsing.limits import Limits, ReaderOptions
from ingest.parsing.wire import (
    HEADER,
    Changed,
    FrameReader,
    Job,
    ParseResult,
    WireError,
    pack,
    pack_job,
    pack_result,
    pack_setup,
    unpack_job,
    unpack_result,
    unpack_setup,
)
from search.identity import DocumentId

DOCUMENT = Document(
    kind="pdf",
    reader="pdf/1",
    text="Head\nline \U0001f6a2 \ud800",
    blocks=(Block("heading", 0, 4, 1, "Head"), Block("table_row", 5, 9, cells="A1:B1")),
    parts=(Part("page", 1, "i", 0), Part("page", 2, None, 5)),
    title="Title",
    lines=True,
    meta={"running": ["a"], "encoding": "utf-8"},
    warnings=("w: x",),
    gaps=(Gap(2, "no_text"),),
)


def received(frame: bytes, pieces: int = 3) -> tuple[dict[str, object], str]:
    """Return the message in a frame that arrives in pieces."""
    frames = FrameReader(1 << 20)
    for start in range(0, len(frame), pieces):
        assert frames.take() is None
        frames.feed(frame[start : start + pieces])
    found = frames.take()
    assert found is not None
    assert frames.take() is None
    return found


@pytest.mark.parametrize("result", [DOCUMENT, ParseFailure("damaged", "x \ud800"), Changed(DocumentId("0" * 64))])
def test_a_result_arrives_as_it_was(result: ParseResult) -> None:
    """In pieces of any size, lone surrogates and all."""
    assert unpack_result(*received(pack_result(result))) == result


def test_a_job_and_the_setup_arrive_as_they_were() -> None:
    """Paths are bytes, passwords any text, infinite and whole numbers what they are."""
    root = Path(os.fsdecode(b"/srv/d\xff"))
    job = Job(DocumentId("0" * 64), root, (b"a b", b"\xff\x01"), 12, "text", "name \udcff")
    assert unpack_job(received(pack_job(job, use_fallback=True))[0]) == (job, True)
    limits, options = Limits(cpu_s=1.5), ReaderOptions(pdf_passwords=("ö", ""), pdf_engine="pypdf")
    assert unpack_setup(received(pack_setup(limits, options))[0]) == (limits, options)


def test_two_messages_in_one_piece_are_two() -> None:
    """A stream has no borders of its own."""
    frames = FrameReader(1 << 20)
    frames.feed(pack({"a": 1}, "x") + pack({"b": 2}))
    assert [frames.take(), frames.take(), frames.take()] == [({"a": 1}, "x"), ({"b": 2}, ""), None]


@pytest.mark.parametrize(
    "frame",
    [
        HEADER.pack(1 << 31, 0),
        HEADER.pack(0, 1 << 31),
        HEADER.pack(2, 0) + b"{]",
        HEADER.pack(2, 0) + b"[]",
        HEADER.pack(2, 1) + b"{}\xff",
        HEADER.pack(9999, 0) + b"[" * 9999,
    ],
)
def test_what_is_no_frame_is_refused(frame: bytes) -> None:
    """Lengths that nobody may send, and bytes that are no JSON object."""
    frames = FrameReader(1 << 20)
    frames.feed(frame)
    with pytest.raises(WireError):
        frames.take()


SOUND = json.loads(pack_result(DOCUMENT)[HEADER.size :].partition(b"Head\nline")[0])


@pytest.mark.parametrize(
    "change",
    [
        {"result": "code"},
        {"result": "failure", "status": "indexed", "reason": "x"},
        {"result": "failure", "status": ["damaged"], "reason": "x"},
        {"kind": 5},
        {"title": 5},
        {"blocks": [["heading", 0, 4, 1, "Head"]]},
        {"blocks": [["script", 0, 4, 1, "Head", None]]},
        {"blocks": [["heading", 0, 4.0, 1, "Head", None]]},
        {"blocks": [["heading", True, 4, 1, "Head", None]]},
        {"blocks": [["paragraph", 0, 99, 0, None, None]]},
        {"blocks": [["paragraph", 3, 5, 0, None, None], ["paragraph", 4, 5, 0, None, None]]},
        {"parts": [["page", 2, None, 0]]},
        {"parts": [["page", 1, None, 99]]},
        {"gaps": [[1, "lost"]]},
        {"meta": []},
        {"warnings": "w"},
    ],
)
def test_a_document_that_is_none_is_refused(change: dict[str, object]) -> None:
    """Whatever took a worker over, the writer believes nothing that is out of shape."""
    assert unpack_result(SOUND, DOCUMENT.text) == DOCUMENT
    with pytest.raises(WireError):
        unpack_result(SOUND | change, DOCUMENT.text)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.binary(max_size=64))
def test_any_bytes_are_a_message_or_an_error_of_the_wire(content: bytes) -> None:
    """Nothing else can come out of a hijacked worker."""
    frames = FrameReader(1 << 16)
    frames.feed(content)
    try:
        found = frames.take()
        if found is not None:
            unpack_result(*found)
    except WireError:
        return

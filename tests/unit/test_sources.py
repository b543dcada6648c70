"""The scan on real trees: odd names, links, special files, depth, missing rights, and files that change meanwhile."""

import base64
import os
import pickle
import shutil
import socket
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import pytest

from ingest import opening, walk
from ingest.sources import (
    Failure,
    NotRegular,
    Root,
    Rules,
    Scan,
    Seen,
    StatTuple,
    hash_source,
    hash_sources,
    open_source,
    scan,
)
from search.identity import document_id, stream_sha256

LATER = 2**62  # long after every time stamp here, so that nothing is racy
NOBODY = 65534
T = TypeVar("T")


def look(*roots: Path, rules: Rules | None = None, known: tuple[Root, ...] = (), now_ns: int = LATER) -> Scan:
    """Scan with the usual rules."""
    return scan(roots, rules=rules or Rules(), known_roots=known, now_ns=now_ns)


def shown(result: Scan) -> list[str]:
    """Return the sources as people read them."""
    return [source.shown for source in result.seen]


def skipped(result: Scan) -> dict[str, str]:
    """Return the rule of everything left out."""
    return {skip.shown: skip.rule for skip in result.skips}


def write(path: Path, content: str = "text") -> Path:
    """Make a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def as_ordinary_user(function: Callable[[], T]) -> T:
    """Call the function in a child that root's rights do not protect from permission bits; return what it returned."""
    if os.geteuid() != 0:
        return function()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writer, pickle.dumps(function()))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    returned: T = pickle.loads(content)
    return returned


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that an ordinary user may enter; ``tmp_path`` belongs to whoever runs the tests."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


def test_each_odd_name_is_a_source_that_can_be_opened_again(tmp_path: Path) -> None:
    """Names of any bytes are met, shown without control characters, and lead back to the very file."""
    nfc = unicodedata.normalize("NFC", "größe-학점.md").encode()
    nfd = unicodedata.normalize("NFD", "größe-학점.md").encode()
    names = [
        b"line\nbreak.md", b"tab\there.md", b"latin1-\xe9t\xe9.md", b"\xff\xfe.txt", b" blanks .md", b"-rf.md", nfc,
        nfd, b"UPPER.MD", b"upper.md", b"back\\slash.md", b"bracket[1]*.md", "rtl-\u202egpj.md".encode(),
        b"noextension", "\U0001f468\u200d\U0001f469.md".encode(), ("名" * 80 + ".md").encode(),
        b"%20#?.md", b"quote'\"`.md",
    ]  # fmt: skip
    folder = tmp_path / "dir\nwith newline" / os.fsdecode(b"\xf0\x28")
    folder.mkdir(parents=True)
    for name in names:
        (folder / os.fsdecode(name)).write_bytes(name)

    result = look(tmp_path)

    assert {source.parts[-1] for source in result.seen} == set(names)
    assert [source.path for source in result.seen] == sorted(source.path for source in result.seen)
    for source in result.seen:
        assert hash_source(source) == document_id(source.parts[-1])
        assert source.shown.encode().decode() == source.shown
        assert not any(unicodedata.category(letter) == "Cc" or letter == "\u202e" for letter in source.shown)
        assert source.path_b64 is not None, "the folder's name is shown escaped"
        assert base64.b64decode(source.path_b64) == b"/".join(source.parts)


def test_only_a_name_that_is_not_shown_exactly_has_an_exact_twin(tmp_path: Path) -> None:
    """Readable names stand for themselves; a name in Latin-1 is shown with its bytes and comes with all of them."""
    write(tmp_path / "größe 1.md")
    (tmp_path / os.fsdecode(b"caf\xe9.md")).touch()

    assert [(source.shown, source.path_b64) for source in look(tmp_path).seen] == [
        ("caf\\xe9.md", base64.b64encode(b"caf\xe9.md").decode()),
        ("größe 1.md", None),
    ]


def test_a_tree_deeper_than_path_max_is_read_to_its_bottom(tmp_path: Path) -> None:
    """A chain of 300 folders, longer than any path the system opens at once, hides no file."""
    folder = os.open(tmp_path, os.O_RDONLY)
    for number in range(300):
        name = f"level{number:03}_abcdefgh"
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("bottom.md", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    write(tmp_path / "zz" / "after.md")

    result = look(tmp_path)

    assert [source.parts[-1] for source in result.seen] == [b"bottom.md", b"after.md"]
    assert len(result.seen[0].path) > 4096
    assert hash_source(result.seen[0]) == document_id(b"")
    assert opening.stat_tuple(opening.stat_source(tmp_path, result.seen[0].parts)) == result.seen[0].stat
    assert not result.unobserved


def test_what_lies_too_deep_is_unobserved_and_its_neighbours_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder beyond the depth limit is named, with the reason, and hides nothing else."""
    monkeypatch.setattr(walk, "MAX_DEPTH", 3)
    write(tmp_path / "1" / "2" / "3" / "4" / "deep.md")
    write(tmp_path / "1" / "2" / "3" / "near.md")

    result = look(tmp_path)

    assert shown(result) == ["1/2/3/near.md"]
    assert [(item.shown, item.reason) for item in result.unobserved] == [("1/2/3/4", "more than 3 folders deep")]


def test_the_walk_keeps_few_descriptors_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deeper than the number of kept descriptors, folders are opened from the last kept one, and all is closed."""
    monkeypatch.setattr(opening, "OPEN_FOLDERS", 2)
    for name in ("a/b/c/d/1.md", "a/b/c/2.md", "a/b/x/y/3.md", "z/4.md"):
        write(tmp_path / name)
    descriptors = Path("/dev/fd")
    before = len(list(descriptors.iterdir()))

    assert shown(look(tmp_path)) == ["a/b/c/2.md", "a/b/c/d/1.md", "a/b/x/y/3.md", "z/4.md"]
    assert len(list(descriptors.iterdir())) == before


def test_pipes_and_sockets_are_skipped_and_never_opened(tmp_path: Path) -> None:
    """A pipe without a writer would block whoever opens it; the scan does not."""
    write(tmp_path / "real.md")
    os.mkfifo(tmp_path / "pipe.md")
    server = socket.socket(socket.AF_UNIX)
    folder = os.open(tmp_path, os.O_RDONLY)
    server.bind(f"/proc/self/fd/{folder}/socket.md")
    server.close()
    os.close(folder)

    result = look(tmp_path)

    assert shown(result) == ["real.md"]
    assert skipped(result) == {"pipe.md": "special", "socket.md": "special"}
    with pytest.raises(NotRegular):
        open_source(tmp_path, [b"pipe.md"])


def test_links_are_skipped_and_broken_ones_named(tmp_path: Path) -> None:
    """Without ``follow_symlinks`` no link leads anywhere, neither a file's nor a folder's."""
    write(tmp_path / "docs" / "a.md")
    write(tmp_path / "secret" / "s.md")
    (tmp_path / "docs" / "file.md").symlink_to(tmp_path / "secret" / "s.md")
    (tmp_path / "docs" / "folder").symlink_to(tmp_path / "secret")
    (tmp_path / "docs" / "broken.md").symlink_to("nowhere")
    (tmp_path / "docs" / "loop").symlink_to("loop")

    result = look(tmp_path / "docs")

    assert shown(result) == ["a.md"]
    assert skipped(result) == {
        "broken.md": "broken-symlink",
        "file.md": "symlink",
        "folder": "symlink",
        "loop": "broken-symlink",
    }


def test_followed_links_end_at_real_paths_and_never_go_in_circles(tmp_path: Path) -> None:
    """A source reached in three ways is one source; a link to a parent ends the walk; targets elsewhere are refused."""
    write(tmp_path / "docs" / "real" / "a.md")
    write(tmp_path / "shared" / "s.md")
    write(tmp_path / "elsewhere" / "e.md")
    (tmp_path / "docs" / "twice").symlink_to("real")
    (tmp_path / "docs" / "real" / "up").symlink_to("..")
    (tmp_path / "docs" / "again.md").symlink_to("real/a.md")
    (tmp_path / "docs" / "shared").symlink_to(tmp_path / "shared")
    (tmp_path / "docs" / "elsewhere").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "shared" / "back").symlink_to(tmp_path / "docs")

    result = look(tmp_path / "docs", rules=Rules(follow_symlinks=True, link_targets=(tmp_path / "shared",)))

    assert [(source.home.name, source.shown) for source in result.seen] == [("docs", "real/a.md"), ("shared", "s.md")]
    assert skipped(result) == {"elsewhere": "link-target"}


def test_a_link_put_in_place_after_the_scan_leads_nowhere(tmp_path: Path) -> None:
    """Neither a file nor a folder on the way that became a link is opened through it."""
    write(tmp_path / "docs" / "sub" / "a.md")
    secret = write(tmp_path / "secret" / "a.md", "secret")
    source = look(tmp_path / "docs").seen[0]
    (tmp_path / "docs" / "sub" / "a.md").unlink()
    (tmp_path / "docs" / "sub" / "a.md").symlink_to(secret)
    assert isinstance(hash_source(source), Failure)

    shutil.rmtree(tmp_path / "docs" / "sub")
    (tmp_path / "docs" / "sub").symlink_to(tmp_path / "secret")
    assert isinstance(hash_source(source), Failure)
    with pytest.raises(OSError, match="Not a directory"):
        open_source(source.root, source.parts)


@pytest.mark.parametrize("parts", [[], [b".."], [b"..", b"a.md"], [b"sub/a.md"], [b""], [b"."]])
def test_no_path_leads_out_of_the_root(tmp_path: Path, parts: list[bytes]) -> None:
    """Components are names: nothing climbs, and nothing is hidden in a slash."""
    write(tmp_path / "a.md")
    (tmp_path / "root" / "sub").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"component|names no file"):
        open_source(tmp_path / "root", parts)


@pytest.mark.invariant("I6")
def test_an_unreadable_folder_is_an_unobserved_prefix(open_folder: Path) -> None:
    """The rest is read, the folder is named with the system's reason, an unreadable file fails alone."""
    write(open_folder / "docs" / "ok.md")
    write(open_folder / "docs" / "locked" / "in.md")
    write(open_folder / "docs" / "unlisted" / "in.md")
    write(open_folder / "docs" / "noread.md").chmod(0)
    (open_folder / "docs" / "locked").chmod(0)
    (open_folder / "docs" / "unlisted").chmod(0o444)

    result = as_ordinary_user(lambda: look(open_folder / "docs"))
    hashes = as_ordinary_user(lambda: hash_sources(result.seen, limit_of=lambda seen: 100))

    assert shown(result) == ["noread.md", "ok.md"]
    assert [(item.shown, item.reason) for item in result.unobserved] == [
        ("locked", "EACCES: Permission denied"),
        ("unlisted", "EACCES: Permission denied"),
    ]
    assert [hashes[source.path] for source in result.seen] == [
        Failure("unreadable", "EACCES: Permission denied"),
        document_id(b"text"),
    ]


@pytest.mark.invariant("I6")
def test_an_unreadable_root_is_an_error_and_unobserved(open_folder: Path) -> None:
    """The other root is read; nothing under the locked one counts as absent."""
    write(open_folder / "good" / "ok.md")
    write(open_folder / "bad" / "in.md")
    (open_folder / "bad").chmod(0)

    result = as_ordinary_user(lambda: look(open_folder / "bad", open_folder / "good"))

    assert shown(result) == ["ok.md"]
    assert [error.reason for error in result.errors] == ["EACCES: Permission denied"]
    assert [item.prefix for item in result.unobserved] == [os.fsencode(open_folder / "bad")]
    assert [scope.home.name for scope in result.scopes] == ["good"]


def test_an_unreadable_ignore_file_leaves_its_folder_unobserved(open_folder: Path) -> None:
    """What the file would leave out must not be taken in, so nothing is."""
    write(open_folder / "docs" / "sub" / "secret.md")
    write(open_folder / "docs" / "sub" / ".gitignore", "secret.md").chmod(0)
    write(open_folder / "docs" / "ok.md")

    result = as_ordinary_user(lambda: look(open_folder / "docs"))

    assert shown(result) == ["ok.md"]
    assert [item.shown for item in result.unobserved] == ["sub"]


def test_a_folder_that_vanishes_during_the_scan_is_gone_not_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed and not there a moment later: the next run decides."""
    write(tmp_path / "a" / "1.md")
    write(tmp_path / "b" / "2.md")
    entered = walk.Walk._enter

    def enter_and_lose(self: walk.Walk, *arguments: object) -> str | None:
        shutil.rmtree(tmp_path / "b", ignore_errors=True)
        return entered(self, *arguments)  # type: ignore[arg-type]  # passes on what it was given

    monkeypatch.setattr(walk.Walk, "_enter", enter_and_lose)
    result = look(tmp_path)

    assert shown(result) == ["a/1.md"]
    assert result.gone == (os.fsencode(tmp_path / "b"),)
    assert not result.unobserved


def test_a_source_changed_within_two_seconds_of_the_scan_is_racy(tmp_path: Path) -> None:
    """A time stamp may be as coarse as two seconds, so such a tuple proves nothing."""
    path = write(tmp_path / "a.md")
    os.utime(path, ns=(0, 0))
    changed = path.stat().st_ctime_ns

    assert look(tmp_path, now_ns=changed + 2_000_000_000).seen[0].racy
    assert not look(tmp_path, now_ns=changed + 2_000_000_001).seen[0].racy
    assert look(tmp_path).seen[0].stat == StatTuple(4, 0, changed, path.stat().st_ino, path.stat().st_dev)


def test_a_source_that_changes_while_it_is_read_is_unstable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three readings between two different stats, and no document is made of a mixture."""
    path = write(tmp_path / "a.md")
    source = look(tmp_path).seen[0]
    readings: list[int] = []

    def read_and_change(stream: BinaryIO, times: int) -> str:
        found = stream_sha256(stream)
        readings.append(1)
        if len(readings) <= times:
            path.write_text("x" * len(readings) * 10, encoding="utf-8")
        return found

    monkeypatch.setattr(opening, "stream_sha256", lambda stream: read_and_change(stream, 9))
    assert hash_source(source) == Failure("unstable", "changed each of 3 times while it was read")
    assert len(readings) == 3

    readings.clear()
    monkeypatch.setattr(opening, "stream_sha256", lambda stream: read_and_change(stream, 2))
    assert hash_source(source) == document_id(path.read_bytes())


def test_a_source_over_its_limit_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size alone decides; the reason says both numbers."""
    write(tmp_path / "big.md", "x" * 11)
    write(tmp_path / "fits.md", "x" * 10)
    sources = look(tmp_path).seen
    ticks: list[Seen] = []
    monkeypatch.setattr(opening, "open_source", lambda root, parts: pytest.fail(str(parts)) if b"big" in parts else 0)

    assert hash_source(sources[0], 10) == Failure("too_large", "11 bytes, over the limit of 10")
    monkeypatch.undo()
    outcomes = hash_sources(sources, limit_of=lambda source: 10, tick=ticks.append)
    assert outcomes == {
        sources[0].path: Failure("too_large", "11 bytes, over the limit of 10"),
        sources[1].path: document_id(b"x" * 10),
    }
    assert ticks == list(sources)


def test_a_source_that_is_gone_when_it_is_hashed_is_left_to_the_next_run(tmp_path: Path) -> None:
    """Neither missing nor turned into a pipe is a failure of the source."""
    path = write(tmp_path / "a.md")
    source = look(tmp_path).seen[0]
    path.unlink()
    assert hash_source(source) == Failure("gone", "ENOENT: No such file or directory")
    os.mkfifo(path)
    assert hash_source(source) == Failure("gone", "not a regular file")


def test_two_scans_of_a_tree_are_equal(tmp_path: Path) -> None:
    """The result does not depend on the order in which the file system lists names."""
    for name in ("b/1.md", "b-c/2.md", "a.md", "b.md", "ä/3.md", "b/.hidden", "b/x.tmp"):
        write(tmp_path / name)

    first, second = look(tmp_path), look(tmp_path)

    assert first == second
    assert shown(first) == ["a.md", "b-c/2.md", "b.md", "b/1.md", "ä/3.md"]

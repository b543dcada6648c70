"""Roots: real paths, outermost known root, stable labels, errors for single roots, files as roots."""

import itertools
import os
import unicodedata
from pathlib import Path

import pytest

from ingest.sources import Root, Rules, Scan, scan

LATER = 2**62


def look(*roots: Path, rules: Rules | None = None, known: tuple[Root, ...] = ()) -> Scan:
    """Scan with the usual rules."""
    return scan(roots, rules=rules or Rules(), known_roots=known, now_ns=LATER)


def write(path: Path) -> Path:
    """Make a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(path.name, encoding="utf-8")
    return path


def shown(result: Scan) -> list[tuple[str, str]]:
    """Return the sources as people read them."""
    return [(source.home.name, source.shown) for source in result.seen]


def test_order_repetition_overlap_and_links_of_roots_do_not_matter(tmp_path: Path) -> None:
    """Every way of naming the same folders gives the same scan."""
    write(tmp_path / "docs" / "sub" / "a.md")
    write(tmp_path / "more" / "b.md")
    (tmp_path / "link").symlink_to("docs")
    docs, sub, more, link = (tmp_path / name for name in ("docs", "docs/sub", "more", "link"))
    wanted = look(docs, more)

    assert shown(wanted) == [("docs", "sub/a.md"), ("more", "b.md")]
    for roots in itertools.permutations([docs, sub, more, link]):
        assert look(*roots) == wanted
    assert look(more, more, link / "sub" / "..") == wanted


def test_a_folder_in_a_known_root_is_shown_relative_to_that_root(tmp_path: Path) -> None:
    """``ingest docs``, then ``ingest docs/sub``: the root stays ``docs``, and the run covers ``docs/sub`` alone."""
    write(tmp_path / "docs" / "sub" / "a.md")
    write(tmp_path / "docs" / "other.md")
    known = look(tmp_path / "docs").roots

    result = look(tmp_path / "docs" / "sub", known=known)

    assert result.roots == known
    assert shown(result) == [("docs", "sub/a.md")]
    assert [scope.prefix for scope in result.scopes] == [os.fsencode(tmp_path / "docs" / "sub")]
    assert not result.scopes[0].covers(os.fsencode(tmp_path / "docs" / "other.md"))
    assert not result.scopes[0].covers(os.fsencode(tmp_path / "docs" / "subway.md"))


def test_an_outer_root_takes_a_known_one_in(tmp_path: Path) -> None:
    """``ingest docs/sub``, then ``ingest docs``: the outermost wins, and the old label leads to it."""
    write(tmp_path / "docs" / "sub" / "a.md")
    known = look(tmp_path / "docs" / "sub").roots

    result = look(tmp_path / "docs", known=known)

    docs = Root(tmp_path / "docs", "docs")
    assert result.roots == (docs,)
    assert result.superseded == {"sub": docs}
    assert shown(result) == [("docs", "sub/a.md")]


def test_labels_are_names_of_folders_made_unique(tmp_path: Path) -> None:
    """Never more of the path than the last name; a known label stays with its folder; numbers do not move."""
    for name in ("a/docs", "b/docs", "c/docs"):
        write(tmp_path / name / "x.md")
    known = look(tmp_path / "b" / "docs").roots
    result = look(tmp_path / "c" / "docs", tmp_path / "a" / "docs", known=known)

    assert {root.path.parent.name: root.name for root in result.roots} == {"a": "docs-2", "b": "docs", "c": "docs-3"}
    assert look(tmp_path / "c" / "docs", known=result.roots).roots == result.roots


def test_a_file_as_root_leaves_its_siblings_out_of_the_run(tmp_path: Path) -> None:
    """It is shown below its folder; the run covers nothing but the file."""
    path = write(tmp_path / "docs" / "a.md")
    write(tmp_path / "docs" / "b.md")

    result = look(path)

    assert shown(result) == [("docs", "a.md")]
    assert [(scope.prefix, scope.file) for scope in result.scopes] == [(os.fsencode(path), True)]
    assert not result.scopes[0].covers(os.fsencode(tmp_path / "docs" / "b.md"))


@pytest.mark.invariant("I6")
def test_a_missing_root_is_an_error_and_the_others_are_read(tmp_path: Path) -> None:
    """It becomes no root and no scope; what is known under it stays, since it was not observed."""
    write(tmp_path / "docs" / "a.md")
    os.mkfifo(tmp_path / "pipe")

    result = look(tmp_path / "gone", tmp_path / "docs", tmp_path / "pipe", tmp_path / "docs" / "a.md" / "b")

    assert shown(result) == [("docs", "a.md")]
    assert sorted(error.reason for error in result.errors) == [
        "ENOENT: No such file or directory",
        "ENOTDIR: Not a directory",
        "is neither a folder nor a regular file",
    ]
    assert os.fsencode(tmp_path / "gone") in {item.prefix for item in result.unobserved}
    assert [scope.home.name for scope in result.scopes] == ["docs"]
    assert [root.name for root in result.roots] == ["docs"]


def test_a_typed_path_is_found_by_its_composed_form_if_that_is_unique(tmp_path: Path) -> None:
    """Keyboards compose, some file systems decompose; two candidates are no answer."""
    typed = unicodedata.normalize("NFC", "größe")
    stored = unicodedata.normalize("NFD", "größe")
    write(tmp_path / stored / "sub" / "a.md")

    assert shown(look(tmp_path / typed / "sub")) == [("sub", "a.md")]

    write(tmp_path / typed / "b.md")
    assert [source.shown for source in look(tmp_path / typed).seen] == ["b.md"], "as given comes first"
    result = look(tmp_path / unicodedata.normalize("NFC", "größe") / "sub")
    assert [error.reason for error in result.errors] == ["ENOENT: No such file or directory"]


def test_what_rules_leave_out_is_read_when_it_is_given_as_a_root(tmp_path: Path) -> None:
    """Hidden, never-read, temporary and ignored names are honoured where somebody names them; below them rules hold."""
    for name in (".hidden/a.md", "node_modules/b.md", "ignored/c.md", "ignored/.d.md", "draft.tmp", "e.md"):
        write(tmp_path / "docs" / name)
    (tmp_path / "docs" / ".gitignore").write_text("ignored/\n", encoding="utf-8")
    docs = tmp_path / "docs"

    given = [docs, docs / ".hidden", docs / "node_modules", docs / "ignored", docs / "draft.tmp"]
    together = look(*given)
    apart = [source for root in given for source in look(root, known=(Root(docs, "docs"),)).seen]

    names = [".hidden/a.md", "draft.tmp", "e.md", "ignored/c.md", "node_modules/b.md"]
    assert [source.shown for source in together.seen] == names
    assert sorted(source.shown for source in apart) == names
    assert {skip.shown: skip.rule for skip in together.skips} == {".gitignore": "hidden", "ignored/.d.md": "hidden"}
    assert [scope.prefix for scope in together.scopes] == [os.fsencode(docs)]


def test_ignore_files_above_a_scope_hold_in_it(tmp_path: Path) -> None:
    """``ingest docs/sub`` leaves out what ``ingest docs`` would leave out, so that runs do not undo each other."""
    write(tmp_path / "docs" / "sub" / "a.md")
    write(tmp_path / "docs" / "sub" / "b.log")
    (tmp_path / "docs" / ".gitignore").write_text("*.log\n", encoding="utf-8")

    assert shown(look(tmp_path / "docs" / "sub", known=(Root(tmp_path / "docs", "docs"),))) == [("docs", "sub/a.md")]


def test_the_index_is_never_read(tmp_path: Path) -> None:
    """Not below a root, not through a link, and not when it is named."""
    write(tmp_path / "docs" / "a.md")
    write(tmp_path / "docs" / "my-index" / "notes.md")
    (tmp_path / "docs" / "link").symlink_to("my-index")
    index = tmp_path / "docs" / "my-index"

    result = look(tmp_path / "docs", index, rules=Rules(index=index, follow_symlinks=True))

    assert shown(result) == [("docs", "a.md")]
    assert [error.reason for error in result.errors] == ["is inside the index folder"]
    assert {skip.shown: skip.rule for skip in result.skips} == {"link": "index", "my-index": "index"}


def test_the_root_of_the_file_system_can_be_a_root(tmp_path: Path) -> None:
    """Its label is made up, and paths below it are shown without a leading slash."""
    path = write(tmp_path / "a.md")

    result = look(path, known=(Root(Path("/"), "root"),))

    assert [(source.home.name, "/" + source.shown) for source in result.seen] == [("root", str(path))]
    assert Path("/").joinpath(*map(os.fsdecode, result.seen[0].parts)) == path

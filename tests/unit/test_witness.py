"""The witness: what makes it speak, and that nothing which a scan would notice escapes it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest import pipeline
from ingest.observation import RunOptions
from ingest.progress import Silent
from ingest.report import RunReport
from ingest.rules import Rules
from ingest.witness import look
from search.recipe import EmbeddingSpec
from search.settings import load
from tests.fakes import FAKE_SPEC, FakeEmbedder

# A scan that takes place this late finds no file of these tests racy.
LATE_NS = 4_000_000_000 * 10**9
SECOND_NS = 10**9


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree with a folder, a hidden file and a link."""
    root = tmp_path / "docs"
    (root / "inner").mkdir(parents=True)
    (root / "a.md").write_text("# Alpha\n\nThe lamp is lit at dusk.\n", encoding="utf-8")
    (root / "inner" / "b.txt").write_text("The oil is kept in the cellar.\n", encoding="utf-8")
    (root / ".hidden").write_text("x", encoding="utf-8")
    (root / "link").symlink_to("a.md")
    return root


def seen(*roots: Path, rules: Rules | None = None) -> str | None:
    """What a late look gives."""
    return look(roots, rules or Rules(), now_ns=LATE_NS)


def change_content(tree: Path) -> None:
    """Write other bytes of the same length, and put the times back as far as that goes."""
    path = tree / "inner" / "b.txt"
    before = path.stat()
    path.write_text("The oil is kept in the cellaR.\n", encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": change_content,
    "new file": lambda tree: (tree / "inner" / "c.md").write_text("new", encoding="utf-8"),
    "new hidden file": lambda tree: (tree / ".gitignore").write_text("*.md", encoding="utf-8"),
    "new empty folder": lambda tree: (tree / "empty").mkdir(),
    "removed": lambda tree: (tree / "a.md").unlink(),
    "renamed": lambda tree: (tree / "a.md").rename(tree / "z.md"),
    "moved": lambda tree: (tree / "a.md").rename(tree / "inner" / "a.md"),
    "permissions": lambda tree: (tree / "a.md").chmod(0o600),
    "folder permissions": lambda tree: (tree / "inner").chmod(0o700),
    "link": lambda tree: ((tree / "link").unlink(), (tree / "link").symlink_to("inner/b.txt")),
    "file to folder": lambda tree: ((tree / "a.md").unlink(), (tree / "a.md").mkdir()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_in_a_folder_changes_the_digest(tree: Path, change: str) -> None:
    """Names, kinds, contents, permissions and links all count."""
    before = seen(tree)
    assert before is not None
    assert seen(tree) == before
    CHANGES[change](tree)
    assert seen(tree) != before


def test_the_order_of_roots_and_a_root_given_twice_do_not_matter(tree: Path, tmp_path: Path) -> None:
    """One digest for one set of folders."""
    other = tmp_path / "other"
    other.mkdir()
    assert seen(tree, other) == seen(other, tree, other)
    assert seen(tree) != seen(tree, other)


def test_what_is_never_read_is_not_looked_into(tree: Path) -> None:
    """A commit changes .git and no document."""
    (tree / ".git").mkdir()
    before = seen(tree)
    (tree / ".git" / "index").write_text("x", encoding="utf-8")
    assert seen(tree) == before


def test_the_folder_of_the_index_is_not_looked_into(tree: Path) -> None:
    """A run writes there, also where it lies among the documents under another name."""
    (tree / "store").mkdir()
    rules = Rules(index=tree / "store")
    before = seen(tree, rules=rules)
    (tree / "store" / "catalog.db").write_text("x", encoding="utf-8")
    assert seen(tree, rules=rules) == before


def test_a_file_that_has_just_changed_is_not_vouched_for(tree: Path) -> None:
    """Within the grain of time stamps it may change again and look the same."""
    newest = (tree / "a.md").stat().st_ctime_ns
    assert look([tree], Rules(), now_ns=newest + SECOND_NS) is None
    assert look([tree], Rules(), now_ns=newest + 60 * SECOND_NS) is not None


def test_nothing_is_vouched_for_that_cannot_be_seen_whole(tree: Path, tmp_path: Path) -> None:
    """A missing root, a file as root, links that lead elsewhere."""
    assert seen(tmp_path / "gone") is None
    assert seen(tree / "a.md") is None
    assert seen(tree, rules=Rules(follow_symlinks=True)) is None


@pytest.fixture
def run(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunReport]:
    """Run in this process, with a fake embedder and a clock by which every file is old."""

    def fake_embedder(model: str, **_: object) -> FakeEmbedder:
        return FakeEmbedder()

    def fake_spec(model: str, **_: object) -> EmbeddingSpec:
        return FAKE_SPEC

    monkeypatch.setattr("search.embedding.load_embedder", fake_embedder)
    monkeypatch.setattr("ingest.recipes.spec_of", fake_spec)
    monkeypatch.setattr("ingest.pipeline.time.time_ns", lambda: LATE_NS)
    monkeypatch.setenv("GROUNDED_WORKERS", "1")

    def once(**options: bool) -> RunReport:
        settings = load({}, index=str(tmp_path / "index"))
        return pipeline.run(settings, RunOptions(roots=(tree,), **options), Silent())

    return once


def went_the_long_way(report: RunReport) -> bool:
    """True when the run scanned and planned."""
    return "plan" in report.seconds


def test_a_run_goes_the_short_way_once_another_has_vouched(run: Callable[..., RunReport], tree: Path) -> None:
    """First run, the run that vouches, the short way; a change, and the long way until it is vouched for again."""
    first, vouching, short = run(), run(), run()
    assert [went_the_long_way(report) for report in (first, vouching, short)] == [True, True, False]
    for name in ("sources", "chunks", "failures", "skips", "revision", "generation"):
        assert getattr(short, name) == getattr(vouching, name)

    change_content(tree)
    edited, again, short = run(), run(), run()
    assert [went_the_long_way(report) for report in (edited, again, short)] == [True, True, False]
    assert edited.sources.changed == 1


def test_who_asks_for_a_closer_look_gets_the_long_way(run: Callable[..., RunReport]) -> None:
    """--rehash reads every file, whatever anybody vouched for."""
    run(), run()
    assert not went_the_long_way(run())
    assert went_the_long_way(run(rehash=True))


def test_other_rules_ask_anew(run: Callable[..., RunReport], monkeypatch: pytest.MonkeyPatch) -> None:
    """What was vouched for under some settings says nothing under others."""
    run(), run()
    monkeypatch.setenv("GROUNDED_EXCLUDE", "inner")
    report = run()
    assert went_the_long_way(report)
    assert report.sources.removed == 1


def test_a_failed_source_is_reported_on_the_short_way_too(run: Callable[..., RunReport], tree: Path) -> None:
    """It is not tried again, and not forgotten."""
    (tree / "bad.pdf").write_bytes(b"%PDF-1.7 nothing more")
    run(), run()
    report = run()
    assert not went_the_long_way(report)
    assert [(item.source, item.status) for item in report.failures] == [("bad.pdf", "damaged")]
    assert report.exit_code == 3

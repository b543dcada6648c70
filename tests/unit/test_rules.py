"""What a scan leaves out, and the name of the rule that says so."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ingest.rules import name_rule
from ingest.sources import Rules, Scan, scan


def look(root: Path, rules: Rules | None = None) -> Scan:
    """Scan one root."""
    return scan([root], rules=rules or Rules(), known_roots=(), now_ns=2**62)


def make(root: Path, *names: str) -> None:
    """Lay out files below a folder."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text", encoding="utf-8")


def shown(result: Scan) -> list[str]:
    """Return the sources as people read them."""
    return [source.shown for source in result.seen]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("report.docx", None),
        ("~$report.docx", "temporary"),
        (".~lock.report.odt#", "temporary"),
        ("~WRL0001.tmp", "temporary"),
        ("X.TMP", "temporary"),
        ("big.pdf.part", "temporary"),
        ("big.crdownload", "temporary"),
        (".notes.md.swp", "temporary"),
        (".#notes.md", "temporary"),
        ("#notes.md#", "temporary"),
        ("notes.md~", "temporary"),
        ("#1 answer.md", None),
        ("C#", None),
        ("~home.md", None),
        ("part", None),
        (".env", "hidden"),
        (".git", "never-read"),
        (".mypy_cache", "never-read"),
        ("my_cache", None),
        ("Thumbs.db", "never-read"),
        (".DS_Store", "never-read"),
        ("node_modules", "never-read"),
        (".grounded", "never-read"),
    ],
)
def test_names_are_judged_by_the_first_rule_that_fits(name: str, rule: str | None) -> None:
    """Version control and caches before temporary files before hidden ones."""
    assert name_rule(name, folder=False, hidden=False) == rule


def test_hidden_names_are_read_on_request_and_never_read_ones_are_not() -> None:
    """``hidden`` concerns names with a dot alone."""
    assert name_rule(".env", folder=False, hidden=True) is None
    assert name_rule(".git", folder=True, hidden=True) == "never-read"
    assert name_rule(".ruff_cache", folder=True, hidden=True) == "never-read"


def test_a_folder_is_not_temporary_by_its_name() -> None:
    """Only files are: a folder that ends in ``.part`` may hold a book."""
    assert name_rule("volume.part", folder=True, hidden=False) is None


def test_everything_left_out_is_named_with_its_rule(tmp_path: Path) -> None:
    """Pruned folders are named once; what they hold is not listed."""
    make(
        tmp_path, "docs/a.md", ".env", ".git/config", ".git/objects/aa", "node_modules/x/README.md", "~$a.docx",
        "ignored/deep/i.md", "private/p.md",
    )  # fmt: skip
    (tmp_path / ".gitignore").write_text("ignored/\n", encoding="utf-8")
    (tmp_path / ".groundedignore").write_text("private\n", encoding="utf-8")

    result = look(tmp_path)

    assert shown(result) == ["docs/a.md"]
    assert [skip.to_json() for skip in result.skips] == [
        {"source": ".env", "rule": "hidden"},
        {"source": ".git", "rule": "never-read"},
        {"source": ".gitignore", "rule": "hidden"},
        {"source": ".groundedignore", "rule": "hidden"},
        {"source": "ignored", "rule": "gitignore"},
        {"source": "node_modules", "rule": "never-read"},
        {"source": "private", "rule": "groundedignore"},
        {"source": "~$a.docx", "rule": "temporary"},
    ]


# Ignore files by folder, what stays of TREE. Found by comparing 1,200 random trees with git; each line was once wrong
# or is easily got wrong.
TREE = ("a/b/x.md", "a/b/z.log", "a/x.md", "a/y.txt", "build/x.md", "keep.md", "l\nb/build/x.md", "z.log")
IGNORED: list[tuple[dict[str, str], list[str]]] = [
    ({"": "*.log"}, ["a/b/x.md", "a/x.md", "a/y.txt", "build/x.md", "keep.md", "l\nb/build/x.md"]),
    ({"": "/build"}, ["a/b/x.md", "a/b/z.log", "a/x.md", "a/y.txt", "keep.md", "l\nb/build/x.md", "z.log"]),
    ({"": "build/"}, ["a/b/x.md", "a/b/z.log", "a/x.md", "a/y.txt", "keep.md", "z.log"]),
    ({"": "**/build/x.md"}, ["a/b/x.md", "a/b/z.log", "a/x.md", "a/y.txt", "keep.md", "z.log"]),
    ({"": "*\n!*/\n!*.md"}, ["a/b/x.md", "a/x.md", "build/x.md", "keep.md", "l\nb/build/x.md"]),
    ({"": "*\n!*/\n!/keep.md"}, ["keep.md"]),
    ({"": "*\n!*/\n!a/**"}, ["a/b/x.md", "a/b/z.log", "a/x.md", "a/y.txt"]),
    ({"": "/*\n!/a"}, ["a/b/x.md", "a/b/z.log", "a/x.md", "a/y.txt"]),
    ({"": "a/**\n!a/x.md"}, ["a/x.md", "build/x.md", "keep.md", "l\nb/build/x.md", "z.log"]),
    ({"": "a\n!a/x.md"}, ["build/x.md", "keep.md", "l\nb/build/x.md", "z.log"]),
    ({"": "*.md\n*.log", "a": "!*.md"}, ["a/b/x.md", "a/x.md", "a/y.txt"]),
    ({"": "*.md\n*.log", "a": "!b/"}, ["a/y.txt"]),
    ({"": "!*.md", "a": "*.md"}, ["a/b/z.log", "a/y.txt", "build/x.md", "keep.md", "l\nb/build/x.md", "z.log"]),
    ({"": "\ufeff*.md\r\nz.log  \r\n"}, ["a/y.txt"]),
    ({"": "# z.log\n\n!\n/\n[a\nz.log\\\n"}, sorted(TREE)),
    ({"": "**"}, []),
    ({"": "**/"}, ["keep.md", "z.log"]),
]


@pytest.mark.parametrize(("files", "left"), IGNORED)
def test_ignore_files_mean_what_they_mean_to_git(tmp_path: Path, files: dict[str, str], left: list[str]) -> None:
    """Nested files, negation, anchors, folders, white space, invalid lines: what stays is what git would add."""
    make(tmp_path, *TREE)
    for folder, content in files.items():
        (tmp_path / folder / ".gitignore").write_text(content, encoding="utf-8", newline="")

    assert [str(Path("/".join(map(bytes.decode, source.parts)))) for source in look(tmp_path).seen] == left
    if shutil.which("git"):  # the table itself is held against git where there is one
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, capture_output=True)
        options = ["-z", "--others", "--exclude-per-directory=.gitignore", "--", "*", ":!*.gitignore"]
        listed = subprocess.run(
            ["git", "ls-files", *options], cwd=tmp_path, check=True, capture_output=True, text=True, encoding="utf-8"
        ).stdout
        assert sorted(filter(None, listed.split("\0"))) == sorted(left)


def test_groundedignore_outranks_gitignore(tmp_path: Path) -> None:
    """What is built for the web may be ignored by git and yet be the documentation."""
    make(tmp_path, "site/a.md", "site/draft.md", "src/x.log")
    (tmp_path / ".groundedignore").write_text("!site/\ndraft.md\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("site/\n*.log\n", encoding="utf-8")

    assert shown(look(tmp_path)) == ["site/a.md"]
    assert shown(look(tmp_path, Rules(use_gitignore=False))) == ["site/a.md", "src/x.log"]


def test_include_and_exclude_speak_of_paths_below_the_root(tmp_path: Path) -> None:
    """``include`` chooses among files and prunes nothing; ``exclude`` prunes folders; both together narrow down."""
    make(tmp_path, "a.md", "a.txt", "sub/b.md", "sub/deep/c.md", "old/d.md")

    assert shown(look(tmp_path, Rules(include=("*.md",)))) == ["a.md", "old/d.md", "sub/b.md", "sub/deep/c.md"]
    assert shown(look(tmp_path, Rules(include=("sub/",)))) == ["sub/b.md", "sub/deep/c.md"]
    assert shown(look(tmp_path, Rules(include=("*.md",), exclude=("old/", "/sub/*.md")))) == ["a.md", "sub/deep/c.md"]
    assert {
        skip.shown: skip.rule for skip in look(tmp_path, Rules(include=("*.txt",), exclude=("old", "sub"))).skips
    } == {
        "a.md": "include",
        "old": "exclude",
        "sub": "exclude",
    }


def test_an_ignore_file_that_is_a_link_or_a_folder_is_none(tmp_path: Path) -> None:
    """As for git: what somebody can point elsewhere does not decide what is read."""
    make(tmp_path, "docs/a.md", "docs/sub/b.md", "elsewhere")
    (tmp_path / "elsewhere").write_text("*.md", encoding="utf-8")
    (tmp_path / "docs" / ".gitignore").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "docs" / "sub" / ".gitignore").mkdir()

    assert shown(look(tmp_path / "docs")) == ["a.md", "sub/b.md"]


def test_a_monstrous_ignore_file_leaves_its_folder_unobserved(tmp_path: Path) -> None:
    """It is not read, so nothing is known of what it would leave out."""
    make(tmp_path, "a.md", "sub/b.md")
    (tmp_path / "sub" / ".gitignore").write_bytes(b"x\n" * (1 << 19) + b"y")

    result = look(tmp_path)

    assert shown(result) == ["a.md"]
    assert [item.reason for item in result.unobserved] == ["EFBIG: .gitignore is larger than 1048576 bytes"]

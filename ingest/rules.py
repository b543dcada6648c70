"""Which files a scan leaves out, by name and by pattern; each rule has a name that the report shows.

Built-in names come first, then ignore files (``.groundedignore`` outranks ``.gitignore``, the inner one the outer one,
the later line the earlier), then the patterns of the settings. Patterns are those of gitignore(5), matched by pathspec.
Nothing here opens a file; links and file types are the walk's business. What is given as a root is read in spite of its
name and of ignore files, so the walk does not ask about it.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec, Pattern

__all__ = ["IGNORE_FILES", "IgnoreFile", "Patterns", "Rules", "name_rule"]

logger = logging.getLogger(__name__)

# Version control, dependencies, caches and droppings of file browsers; never documents, also where `hidden` is set.
NEVER_READ = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox", ".grounded", "Thumbs.db", "desktop.ini"}
    | {".DS_Store"}
)
# Word and LibreOffice owner files, editors' swap and backup files, unfinished downloads. Files only.
TEMPORARY_ENDINGS = (".tmp", ".part", ".crdownload", ".swp", "~")

# File name to the rule that it makes, the stronger one first.
IGNORE_FILES = {".groundedignore": "groundedignore", ".gitignore": "gitignore"}

# Surrogates that no name and no line decodes to (PEP 383 uses U+DC80..U+DCFF): the end of a path, a newline in a name.
END, NEWLINE = "\ud800", "\ud801"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is left out, as the settings say. ``index`` is the folder of the index itself and never read."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    use_gitignore: bool = True
    follow_symlinks: bool = False
    link_targets: tuple[Path, ...] = ()
    index: Path | None = None


def name_rule(name: str, folder: bool, hidden: bool) -> str | None:
    """Return the built-in rule that leaves a name out, or None. ``hidden`` says that hidden names are read."""
    if name in NEVER_READ:
        return "never-read"
    first = name[0]
    if first == "." and name.endswith("_cache"):
        return "never-read"
    if not folder:
        if name.lower().endswith(TEMPORARY_ENDINGS):
            return "temporary"
        if first in ".~#" and (
            name.startswith(("~$", ".#")) or (name[-1] == "#" and (first == "#" or name.startswith(".~lock.")))
        ):
            return "temporary"
    return "hidden" if first == "." and not hidden else None


class IgnoreFile(NamedTuple):
    """One compiled ignore file; ``base`` is its folder below the root, empty or ending in ``/``.

    A pattern here speaks of a path itself, never of what lies below it: the walk prunes what is left out, so that for
    git, too, everything below is out of reach. Hence the mark at the end of a pattern and of the path it is held
    against. Without it ``!*/``, which brings back folders, would bring back every file in them.
    """

    rule: str
    base: str
    patterns: tuple[Pattern, ...]

    @classmethod
    def parse(cls, name: str, base: str, content: bytes) -> "IgnoreFile | None":
        """Compile the content of an ignore file; None if no line says anything. As git does, bad lines are left out."""
        text = content.decode("utf-8-sig", "surrogateescape")
        lines = [marked for line in text.split("\n") if (marked := _marked(line.removesuffix("\r"))) is not None]
        patterns = tuple(pattern for pattern in _compile(lines).patterns if pattern.include is not None)
        return cls(IGNORE_FILES[name], base, patterns[::-1]) if patterns else None

    def decides(self, path: str, *, folder: bool) -> bool | None:
        """Return True where the path (below the root) is left out, False where it is brought back, else None."""
        subject = _subject(path[len(self.base) :] + END, folder=folder)
        return next((pattern.include for pattern in self.patterns if pattern.match_file(subject) is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """The patterns that hold in one folder: those of the settings, and the ignore files from there up to the root."""

    exclude: GitIgnoreSpec | None
    include: GitIgnoreSpec | None
    ignore: tuple[IgnoreFile, ...] = ()  # the one that decides first comes first

    @classmethod
    def of(cls, rules: Rules) -> "Patterns":
        """Return the patterns of the settings alone."""
        return cls(
            exclude=_compile(rules.exclude) if rules.exclude else None,
            include=_compile(rules.include) if rules.include else None,
        )

    @property
    def active(self) -> bool:
        """True when there is any pattern to match with."""
        return bool(self.ignore) or self.exclude is not None or self.include is not None

    def with_ignore_files(self, found: Sequence[IgnoreFile]) -> "Patterns":
        """Return the patterns of a folder that holds ignore files of its own."""
        return replace(
            self, ignore=tuple(sorted((*found, *self.ignore), key=lambda file: file.rule != "groundedignore"))
        )

    def rule(self, path: str, *, folder: bool) -> str | None:
        """Return the rule that leaves the path (below the root) out, or None."""
        return self.ignored(path, folder=folder) or self.setting_rule(path, folder=folder)

    def ignored(self, path: str, *, folder: bool) -> str | None:
        """Return the rule of the ignore file that leaves the path out, or None."""
        for file in self.ignore:
            left_out = file.decides(path, folder=folder)
            if left_out is not None:
                return file.rule if left_out else None
        return None

    def setting_rule(self, path: str, *, folder: bool) -> str | None:
        """Return the setting that leaves the path out, or None; ``include`` chooses among files only."""
        subject = _subject(path, folder=folder)
        if self.exclude is not None and self.exclude.match_file(subject):
            return "exclude"
        if self.include is not None and not folder and not self.include.match_file(subject):
            return "include"
        return None


def _subject(path: str, *, folder: bool) -> str:
    """Return what patterns are held against: a newline replaced, since ``.`` of a regular expression matches none."""
    return path.replace("\n", NEWLINE) + ("/" if folder else "")


def _marked(line: str) -> str | None:
    """Return a line of an ignore file so that it matches nothing but whole paths that end in the mark, or None."""
    line = line if line.endswith("\\ ") else line.rstrip(" ")
    body = line.removeprefix("!")
    core = body.removesuffix("/")
    backslashes = len(core) - len(core.rstrip("\\"))
    if not core or line.startswith("#") or backslashes % 2:
        return None
    # `a/**` is all that `a` holds, not `a` itself, else `!a/b` after it could not bring anything back.
    last = "/*" if core == "**" or core.endswith("/**") else ""
    return line[: len(line) - len(body)] + core + last + END + body[len(core) :]


def _compile(lines: Iterable[str]) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines([line for line in lines if _is_valid(line)])


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        logger.warning("rules.bad_pattern pattern=%r", line.replace(END, ""))
        return False
    return True

"""The statuses of a source in words: when it is tried again, why a rule left it out, which parts of it are missing.

The table is that of the parsing design (4.3); what a status means for a run is decided by the planner, not here.
"""

from collections.abc import Iterable, Mapping

from .parsing.ranges import ranges_text, spans

__all__ = ["FINE", "STATUSES", "gap_entries", "gap_phrases", "retry_rule", "skip_reason"]

# In the order in which people read them: what is in, what needs nothing, what somebody could mend, what was left out.
STATUSES = (
    "indexed", "empty", "needs_ocr", "needs_password", "too_large", "damaged", "quarantined", "unreadable", "unstable",
    "unsupported", "binary", "skipped",
)  # fmt: skip
# Statuses of a source that is as it should be: none of them is a failure.
FINE = ("indexed", "empty", "skipped")

OTHERWISE = "when the file or its reader changes"
RETRY: Mapping[str, str] = {
    "indexed": "when the file, its kind or the recipe changes",
    "empty": "when the file, its kind or the recipe changes",
    "unsupported": "when the file changes or its kind gets a reader",
    "binary": OTHERWISE,
    "too_large": "when the file changes or the limit is raised",
    "needs_password": "when the file changes, or the passwords for a PDF",
    "needs_ocr": "when the file or its reader changes, or OCR is switched on",
    "damaged": OTHERWISE,
    "quarantined": "when the file, its reader or a limit changes, or with --retry-quarantined",
    "unreadable": "every run",
    "unstable": "every run",
    "skipped": "every run",
}

SKIPS: Mapping[str, str] = {
    "hidden": "its name begins with a dot; --hidden reads it",
    "never-read": "version control, dependencies, caches and the like are never documents",
    "temporary": "a temporary, backup or lock file",
    "gitignore": "left out by a .gitignore file",
    "groundedignore": "left out by a .groundedignore file",
    "exclude": "left out by the setting exclude",
    "include": "none of the patterns of the setting include",
    "symlink": "a symbolic link; --follow-symlinks follows it",
    "broken-symlink": "a symbolic link that leads nowhere",
    "link-target": "a symbolic link that leads out of the roots and of link_targets",
    "special": "a pipe, socket or device",
    "index": "the index itself",
}

# What the parts of a document are called; gaps of all other kinds are gaps of parts.
PARTS: Mapping[str, str] = {
    "pdf": "page", "pptx": "slide", "pptm": "slide", "epub": "chapter",
    **dict.fromkeys(("xlsx", "xlsm", "xlsb", "xls", "ods"), "sheet"),
}  # fmt: skip
GAPS: Mapping[str, str] = {"no_text": "no text", "garbled": "garbled text", "unread": "could not be read"}
# Ranges of one gap that are written out; a scan in which every second page has text has hundreds.
RANGES = 8


def retry_rule(status: str) -> str:
    """Return when a source of this status is tried again."""
    return RETRY.get(status, OTHERWISE)


def skip_reason(rule: str) -> str:
    """Return what a rule of the scan means."""
    return SKIPS.get(rule, rule)


def gap_entries(kind: str | None, gaps: Iterable[tuple[int, str]]) -> list[dict[str, object]]:
    """Return the gaps of a document as reports list them: part (from 1), what such a part is called, and the reason."""
    name = PARTS.get(kind or "", "part")
    return [{"part": part, "kind": name, "reason": reason} for part, reason in gaps]


def gap_phrases(entries: Iterable[Mapping[str, object]]) -> list[str]:
    """Return one phrase for each reason, such as ``pages 4-6, 9: no text``, in the order of their first parts."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for entry in entries:
        part = entry["part"]
        if isinstance(part, int):
            numbers.setdefault((str(entry["kind"]), str(entry["reason"])), []).append(part)
    return [
        f"{kind}{'s' if len(parts) > 1 else ''} {_ranges(parts)}: {GAPS.get(reason, reason)}"
        for (kind, reason), parts in numbers.items()
    ]


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers as ``4-6, 9``, and how many more there are behind the first few ranges."""
    found = spans(numbers)
    shown = ranges_text(found[:RANGES])
    more = sum(last - first + 1 for first, last in found[RANGES:])
    return f"{shown} and {more} more" if more else shown

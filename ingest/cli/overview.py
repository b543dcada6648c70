"""What ``ingest status`` shows to people: the index, totals by status, what is not in it and why, and doubts.

Every list is bounded and says how many more there are; ``--json`` has them all. Paths are never cut: lines are folded
at the width of a terminal, and left whole in a pipe.
"""

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import cast

import click

from ingest.report import FailedSource, RunReport
from ingest.status import IndexStatus, LastLook
from ingest.statuses import STATUSES, gap_phrases, retry_rule

from .console import write_table

__all__ = ["show_outcome", "show_settings", "show_status"]

# Sources shown of one status, and sources with doubts: a screen, not a list of everything.
SHOWN_OF_STATUS = 8
SHOWN_DOUBTS = 12
SHOWN_OF_RUN = 3
# Columns below which there is no room for what a setting means beside its value.
WIDE = 130
# A pipe has as many columns as a line needs; text is folded at this many even where a terminal has fewer.
UNBOUNDED, NARROWEST = 1 << 20, 30
MIB = 1 << 20


def show_status(status: IndexStatus) -> None:
    """Print the state of an index that exists."""
    summary = cast("dict[str, object]", status.summary())
    several = len(cast("list[str]", summary["roots"])) > 1
    write_table("", "", rows=_index_rows(summary))
    click.echo()
    write_table("status", "sources", "tried again", rows=_total_rows(summary, status.last_look))
    click.echo()
    failures = status.failures()
    if failures:
        click.echo(f"not in the index: {len(failures)}")
        _show_failures(failures, shown=SHOWN_OF_STATUS, several=several)
    _show_unobserved(status.last_look.unobserved, several=several)
    _show_doubts(status.doubts(), several=several)


def show_outcome(report: RunReport) -> None:
    """Print what a run leaves out of the index, and where what it read now is doubtful: numbers, and the first few."""
    roots = {scope["root"] for scope in report.scopes or ()} | {failure.root for failure in report.failures}
    several = len(roots) > 1
    if report.failures:
        click.echo(f"not in the index: {len(report.failures)}; `ingest status` tells more")
        _show_failures(report.failures, shown=SHOWN_OF_RUN, several=several)
    _show_unobserved(report.unobserved, several=several)
    _show_doubts(iter(report.warnings), several=several)


def _show_failures(failures: Iterable[FailedSource], *, shown: int, several: bool) -> None:
    """Print failures by status: of each the number, the first ``shown``, and how many more there are."""
    ordered = sorted(failures, key=lambda failure: (_rank(failure.status), failure.root, failure.source))
    for status, group in groupby(ordered, key=lambda failure: failure.status):
        members = list(group)
        click.echo(f"  {status}: {len(members)}")
        for failure in members[:shown]:
            _write_item(_place(failure.root, failure.source, several=several), failure.reason, indent=4)
        _show_rest(len(members) - shown, indent=4)


def show_settings(settings: Sequence[Mapping[str, object]]) -> None:
    """Print each setting, its value and where it came from; what it means where there is room."""
    rows = [(row["name"], _value(row["value"]), row["origin"], row["help"]) for row in settings]
    if _width() >= WIDE:
        write_table("setting", "value", "from", "", rows=rows)
    else:
        write_table("setting", "value", "from", rows=[row[:3] for row in rows])
        click.echo(f"what they mean: in a terminal of {WIDE} columns, and with --json")


def _write_item(subject: str, text: str, *, indent: int) -> None:
    """Print ``subject: text``, the text on lines of its own where the terminal is too narrow for both."""
    margin = " " * indent
    line = f"{margin}{subject}: {text}"
    if len(line) < _width():
        click.echo(line)
        return
    click.echo(f"{margin}{subject}:")
    for folded in textwrap.wrap(text, max(_width() - indent - 5, NARROWEST), break_long_words=False):
        click.echo(f"{margin}    {folded}")


def _doubt(entry: Mapping[str, object]) -> str:
    """Return what is missing or doubtful in a document in one line, gaps first: ``pages 4-6: no text``."""
    gaps = gap_phrases(cast("list[dict[str, object]]", entry["gaps"]))
    return "; ".join([*gaps, *cast("list[str]", entry["warnings"])])


def _index_rows(summary: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    yield "index", summary["folder"]
    for number, root in enumerate(cast("list[str]", summary["roots"])):
        yield "" if number else "roots", root
    yield "generation", f"{summary['generation'] or 'none'}, last run {summary['last_run'] or 'none'}"
    if summary["recipe"]:
        yield "model", f"{summary['model']}, recipe {summary['recipe']}"
    gaps = summary["documents_with_gaps"]
    yield "documents", f"{summary['documents']} indexed" + (f", {gaps} of them with gaps" if gaps else "")
    undo = summary["chunks_kept_for_undo"]
    yield "chunks", f"{summary['chunks']}" + (f", and vectors of {undo} more kept for an undo" if undo else "")
    sizes = [cast("int", summary[name]) / MIB for name in ("catalog_bytes", "generation_bytes")]
    yield "on disk", "catalog {:.1f} MiB, generations {:.1f} MiB".format(*sizes)
    if summary["removals_withheld"]:
        yield "withheld", f"{summary['removals_withheld']} removals; the next `ingest run` says how to confirm them"


def _total_rows(summary: Mapping[str, object], last_look: LastLook) -> Iterator[tuple[str, str, str]]:
    counts = cast("dict[str, int]", summary["sources"])
    for status in sorted(counts, key=_rank):
        yield status, f"{counts[status]:>7}", retry_rule(status)
    if last_look.skips:
        rules = Counter(skip.rule for skip in last_look.skips)
        named = ", ".join(f"{count} {rule}" for rule, count in sorted(rules.items()))
        yield "skipped", f"{len(last_look.skips):>7}", f"{retry_rule('skipped')} ({named})"


def _show_unobserved(unobserved: Sequence[Mapping[str, object]], *, several: bool) -> None:
    if not unobserved:
        return
    click.echo(f"could not be looked into: {len(unobserved)}; what is known below stays")
    for item in unobserved[:SHOWN_OF_STATUS]:
        place = _place(str(item["root"]), str(item["shown"]), several=several)
        known = item["rows"]
        _write_item(place, f"{item['reason']}" + (f" (known sources in it: {known})" if known else ""), indent=2)
    _show_rest(len(unobserved) - SHOWN_OF_STATUS, indent=2)


def _show_doubts(doubts: Iterator[Mapping[str, object]], *, several: bool) -> None:
    """Print the first indexed sources with gaps or doubts; those after them are only counted."""
    first = list(islice(doubts, SHOWN_DOUBTS))
    if not first:
        return
    more = sum(1 for _ in doubts)
    click.echo(f"indexed with gaps or doubts: {len(first) + more}")
    for entry in first:
        _write_item(_place(str(entry["root"]), str(entry["source"]), several=several), _doubt(entry), indent=2)
    _show_rest(more, indent=2)


def _show_rest(count: int, *, indent: int) -> None:
    if count > 0:
        click.echo(f"{'':<{indent}}... and {count} more; `ingest status --json` lists all")


def _place(root: str, source: str, *, several: bool) -> str:
    """Return a source as it is shown: with the label of its root where there are ``several`` roots."""
    return f"{root}/{source}" if several and root else source


def _rank(status: str) -> int:
    return STATUSES.index(status) if status in STATUSES else len(STATUSES)


def _width() -> int:
    """Return the columns of the terminal that reads us; a pipe has as many as a line likes."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNBOUNDED


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    return "none" if value is None else str(value)

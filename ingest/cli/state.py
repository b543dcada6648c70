"""``ingest status, verify, repair, export, runs``: looking at an index, and mending it from what it holds."""

import contextlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click

from ingest.catalog.database import Catalog
from ingest.export import export as export_lines
from ingest.observation import Observer, RunOptions
from ingest.progress import Silent
from ingest.repair import repair as repair_index
from ingest.status import IndexStatus
from ingest.verify import verify as verify_index
from search.errors import ExitCode
from search.generation import IndexLayout

from .console import print_json, write_table
from .options import Common, common_options
from .overview import show_settings, show_status

__all__ = ["export", "repair", "runs", "status", "verify"]


@click.command()
@common_options
def status(common: Common) -> int:
    """Show the index, the state of its sources, and every setting with where it came from."""
    settings = common.settings()
    with IndexStatus(settings) as state:
        code = ExitCode.DONE if state.exists else ExitCode.NO_INDEX
        if common.json:
            _print_status(state)
            return code
        if state.exists:
            show_status(state)
        else:
            click.echo(f"index none at {settings.home}; make it with `ingest FOLDER`")
    click.echo()
    show_settings(settings.describe())
    return code


def _print_status(state: IndexStatus) -> None:
    """Print one JSON object on one line; the sources, at its end, one by one as they are read."""
    click.echo(json.dumps(state.to_json(), ensure_ascii=False)[:-1] + ', "sources": [', nl=False)
    for number, entry in enumerate(state.sources()):
        sys.stdout.write((", " if number else "") + json.dumps(entry, ensure_ascii=False))
    click.echo("]}")


@click.command()
@click.option("--full", is_flag=True, help="Also hashes, payloads, texts, and a sample of vectors and documents.")
@common_options
def verify(common: Common, full: bool) -> int:
    """Check the index; name every problem and the command that mends it. Changes nothing."""
    settings = common.settings()
    report = verify_index(settings, Observer(settings, RunOptions(roots=())), full=full)
    if common.json:
        print_json(report.to_json())
    else:
        for check in report.checks:
            mark = "ok" if check.ok else check.severity
            click.echo(f"{mark:<8} {check.name:<14} {check.message}")
            for sample in check.samples:
                click.echo(f"{'':<24}{sample}")
            if not check.ok and check.remedy:
                click.echo(f"{'':<24}mend it with: {check.remedy}")
        click.echo("no problems" if report.ok else "problems found")
    return ExitCode.DONE if report.ok else ExitCode.PROBLEMS_FOUND


@click.command()
@click.option("--recompute", is_flag=True, help="Embed every chunk again.")
@click.option("--wait", is_flag=True, help="Wait for another run to finish.")
@common_options
def repair(common: Common, recompute: bool, wait: bool) -> int:
    """Rebuild generation and pointer from the catalog. Parses nothing, embeds nothing unless asked."""
    report = repair_index(common.settings(), Silent(), recompute=recompute, wait=wait)
    if common.json:
        print_json(report.to_json())
    elif report.rebuilt:
        click.echo(f"generation {report.generation} rebuilt from the catalog: {report.chunks} chunks")
    elif report.pointer:
        click.echo(f"CURRENT names generation {report.generation} again")
    else:
        click.echo(f"nothing to repair; generation {report.generation} is sound")
    return ExitCode.DONE


@click.command()
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: stdout.")
@common_options
def export(common: Common, output: Path | None) -> int:
    """Write sources, documents and chunks as sorted JSON lines: equal states give equal bytes."""
    layout = IndexLayout(common.settings().home)
    catalog = Catalog.open_read_only(layout.catalog)
    with contextlib.closing(catalog):
        stream = output.open("w", encoding="utf-8", newline="\n") if output else contextlib.nullcontext(sys.stdout)
        with stream as target:
            for line in export_lines(catalog):
                target.write(line + "\n")
    return ExitCode.DONE


@click.command()
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Most runs to list.")
@common_options
def runs(common: Common, limit: int) -> int:
    """List the runs of this index, newest first."""
    layout = IndexLayout(common.settings().home)
    with contextlib.closing(Catalog.open_read_only(layout.catalog)) as catalog:
        found = catalog.runs(limit)
    if common.json:
        print_json({"message_type": "runs", "runs": found})
        return ExitCode.DONE
    rows = [
        (_time(item["started_ms"]), item["run_id"], item["outcome"], item["revision"] or "", _written(item["report"]))
        for item in found
    ]
    write_table("started", "run", "outcome", "revision", "chunks written", rows=rows)
    return ExitCode.DONE


def _time(milliseconds: object) -> str:
    moment = datetime.fromtimestamp(cast("int", milliseconds) / 1000, tz=UTC).astimezone()
    return moment.isoformat(sep=" ", timespec="seconds")


def _written(report: object) -> object:
    return cast("dict[str, dict[str, int]]", report)["chunks"]["written"] if report else ""

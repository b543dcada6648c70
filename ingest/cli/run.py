"""``ingest run``: options, and what the terminal shows of a run."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ingest import pipeline
from ingest.guard import ALL
from ingest.observation import RunOptions
from ingest.plan import IngestPlan
from ingest.progress import Progress, Silent
from ingest.report import RunReport
from search.errors import ExitCode, UsageError
from search.generation import IndexLayout
from search.settings import CONFIG_FILE, Settings

from .console import note, print_json, write_table
from .options import Common, common_options
from .overview import show_outcome

__all__ = ["run"]


class Removals(click.ParamType[int]):
    """A number of removals, or ``all``."""

    name = "removals"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the ceiling."""
        if value == "all":
            return ALL
        if isinstance(value, str) and value.isdigit():
            return int(value)
        raise click.BadParameter("give a number, or 'all'", ctx, param)


@click.command()
@click.argument("roots", nargs=-1, metavar="[ROOT]...", type=click.Path(path_type=Path, readable=False))
@click.option("--dry-run", is_flag=True, help="Show the plan; write nothing.")
@click.option("--include", multiple=True, metavar="PATTERN", help="Only sources that match (.gitignore syntax).")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="No sources that match (.gitignore syntax).")
@click.option("--hidden", is_flag=True, default=None, help="Read names that begin with a dot, too.")
@click.option("--follow-symlinks", is_flag=True, default=None, help="Follow links to targets under a root.")
@click.option("--rehash", is_flag=True, help="Hash every file, whatever its size and times say.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes that parse.")
@click.option("--model", metavar="NAME|DIR", help="Embedding model; part of the recipe.")
@click.option("--chunk-tokens", type=click.IntRange(min=1), help="Most tokens of a chunk; part of the recipe.")
@click.option("--rebuild", is_flag=True, help="Read everything again, and build the generation anew beside the old.")
@click.option("--allow-removals", type=Removals(), metavar="N|all", help="Confirm up to N withheld removals.")
@click.option("--retry-quarantined", is_flag=True, help="Try files again that killed their worker twice.")
@click.option("--wait", is_flag=True, help="Wait for another run to finish.")
@click.option("--watch", is_flag=True, help="Run again whenever a folder changed, until Ctrl-C.")
@common_options
def run(
    common: Common,
    roots: tuple[Path, ...],
    dry_run: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    hidden: bool | None,
    follow_symlinks: bool | None,
    rehash: bool,
    workers: int | None,
    model: str | None,
    chunk_tokens: int | None,
    rebuild: bool,
    allow_removals: int | None,
    retry_quarantined: bool,
    wait: bool,
    watch: bool,
) -> int:
    """Bring the index in line with the folders (or single files) ROOT.

    Without ROOT: all folders that the index knows. Running again on what was seen writes nothing; an edit rewrites the
    chunks it touched; Ctrl-C keeps what was done.
    """
    settings = common.settings(
        {
            "include": include or None,
            "exclude": exclude or None,
            "hidden": hidden,
            "follow_symlinks": follow_symlinks,
            "workers": workers,
            "model": _resolved(model),
            "chunk_tokens": chunk_tokens,
        }
    )
    options = RunOptions(
        roots=_roots(settings, roots),
        rehash=rehash,
        rebuild=rebuild,
        wait=wait or watch,
        allow_removals=allow_removals,
        retry_quarantined=retry_quarantined,
    )
    if watch:
        return _watch(settings, options, common, dry_run=dry_run)
    if dry_run:
        _show_plan(pipeline.dry_run(settings, options), common)
        return ExitCode.DONE
    report = _run(settings, options, common)
    if common.json:
        print_json(report.to_json())
    else:
        _show(report, common)
    if report.published and not common.quiet:
        _note_model_folder(settings)
    return report.exit_code


def _run(settings: Settings, options: RunOptions, common: Common) -> RunReport:
    with _progress(common) as progress:
        return pipeline.run(settings, options, progress)


def _watch(settings: Settings, options: RunOptions, common: Common, *, dry_run: bool) -> ExitCode:
    """Run whenever something changed, until Ctrl-C; ends well when it was waiting just then."""
    from ingest.watch import Rounds, alarm_of, check

    from .rounds import tell

    check(options, dry_run=dry_run)
    alarm = alarm_of(settings, options)
    rounds = Rounds(
        lambda: _run(settings, options, common),
        alarm,
        interval_s=settings.watch_interval_s,
        sweep_s=settings.watch_sweep_s,
    )
    tell(rounds, alarm, common, show=lambda report: _show(report, common))
    return ExitCode.DONE


def _resolved(model: str | None) -> str | None:
    """Return a model's folder as an absolute path, so that it means the same from everywhere; names stay."""
    return str(Path(model).resolve()) if model and Path(model).is_dir() else model


def _note_model_folder(settings: Settings) -> None:
    """Tell how to keep a model folder that was given by a flag: the index holds its name, not its place."""
    if settings.origins.get("model") == "flag" and Path(settings.model).is_dir():
        config = settings.config or settings.home / CONFIG_FILE
        note(f'later runs and readers find this model by a line model = "{settings.model}" in {config}')


def _roots(settings: Settings, given: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the roots to read. A typing error must not make an index, so that one of them has to be there at first."""
    layout = IndexLayout(settings.home)
    known = layout.catalog.exists()
    if not given:
        roots = pipeline.roots_of(layout) if known else ()
        if not roots:
            raise UsageError("ingest run: no folder given; name one, as in `ingest ./docs`")
        return roots
    if not known and not any(root.exists() for root in given):
        raise UsageError(f"{given[0]}: no such file or folder; nothing was written")
    return given


@contextlib.contextmanager
def _progress(common: Common) -> Iterator[Progress]:
    if common.quiet or not sys.stderr.isatty():
        yield Silent()
        return
    from rich.console import Console  # only for somebody who watches

    from .bar import Bar

    with Bar(Console(stderr=True)) as bar:
        yield bar


def _show_plan(plan: IngestPlan, common: Common) -> None:
    if common.json:
        print_json(plan.to_json())
        return
    for item in plan.items:
        click.echo(f"{item.verdict:<9} {item.home.name}/{item.shown}")
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in plan.counts.items() if count) or "no sources")
    for withheld in plan.withheld:
        note(withheld.message)


def _show(report: RunReport, common: Common) -> None:
    sources, chunks = report.sources, report.chunks
    rows = [
        (
            "sources",
            _counts(sources, ("unchanged", "added", "changed", "renamed", "removed", "withheld", "failed", "skipped")),
        ),
        ("chunks", _counts(chunks, ("written", "relocated", "removed", "kept", "total"))),
        ("vectors", f"{report.computed} computed, {report.reused} reused"),
    ]
    write_table("", "", rows=rows)
    show_outcome(report)
    if report.published:
        seconds = sum(report.seconds.values())
        click.echo(f"generation {report.generation} published in {seconds:.1f} s")
    else:
        click.echo(f"nothing to write; generation {report.generation or 'none'} stands")
    if not common.quiet:
        for message in report.messages:
            note(message)


def _counts(counted: object, names: tuple[str, ...]) -> str:
    found = [f"{getattr(counted, name)} {name}" for name in names if getattr(counted, name)]
    return ", ".join(found) or "none"

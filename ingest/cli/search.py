"""``ingest search``: the lookup of the agent's tool, from the command line. Reads the published generation only."""

from functools import partial

import click

from search.embedding import embedder_of
from search.errors import ExitCode
from search.generation import IndexLayout
from search.lookup import Lookup
from search.records import Citation, SearchResult
from search.settings import cache_folder
from search.store import Where
from search.view import open_reader

from .console import note, print_json
from .options import Common, common_options

__all__ = ["search"]


@click.command()
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, 100), help="Most passages to show.")
@click.option("--path", "path", metavar="PREFIX", help="Only documents at or under this path of a citation.")
@click.option("--root", "root", metavar="LABEL", help="Only documents of this root.")
@common_options
def search(common: Common, query: str, limit: int | None, path: str | None, root: str | None) -> int:
    """Print the passages that answer QUERY, best first, each with where to check it."""
    settings = common.settings({"limit": limit})
    reader = open_reader(IndexLayout(settings.home))
    embedders = partial(embedder_of, model=settings.model, threads=settings.embed_threads, cache=cache_folder())
    try:
        lookup = Lookup(
            reader, embedders, limit=settings.limit, floor=settings.relevance_floor, query_cache=settings.query_cache
        )
        result = lookup.lookup(query, where=Where(path=path.rstrip("/") if path else None, root=root))
    finally:
        reader.close()
    if common.json:
        print_json(result.to_json())
    else:
        _show(result, common)
    return ExitCode.DONE


def _show(result: SearchResult, common: Common) -> None:
    for passage in result.passages:
        click.secho(f"[{passage.ref}] {_place(passage.citation)}", bold=True, nl=False)
        click.echo(f"  score {passage.score:.2f}")
        if passage.citation.heading_path:
            click.echo(f"    {' > '.join(passage.citation.heading_path)}")
        for line in passage.text.split("\n"):
            click.echo(f"    {line}")
        for citation in passage.also_at:
            click.echo(f"    also at {_place(citation)}")
        if passage.more_locations:
            click.echo(f"    and at {passage.more_locations} more place{'s' if passage.more_locations > 1 else ''}")
        click.echo()
    if not result.passages:
        click.echo("no match: nothing in the index answers this")
    lacking = [
        f"{count} {one if count == 1 else several}"
        for count, one, several in (
            (result.completeness.sources_failed, "source failed", "sources failed"),
            (result.completeness.sources_needing_ocr, "source needs OCR", "sources need OCR"),
            (result.completeness.removals_withheld, "removal is withheld", "removals are withheld"),
        )
        if count
    ]
    if not common.quiet:
        note(f"generation {result.generation}" + (f"; not in the index: {', '.join(lacking)}" if lacking else ""))


def _place(citation: Citation) -> str:
    place = f"{citation.root}/{citation.path}"
    if citation.page_start is not None:
        place += f", page {_span(citation.page_start, citation.page_end)}"
        if citation.page_label and citation.page_label != str(citation.page_start):
            place += f" (labelled {citation.page_label})"
    elif citation.slide is not None:
        place += f", slide {_span(citation.slide, citation.slide_end)}"
    elif citation.sheet is not None:
        place += f", sheet {citation.sheet}" + (f" {citation.cells}" if citation.cells else "")
    elif citation.line_start is not None:
        place += f":{_span(citation.line_start, citation.line_end)}"
    return place


def _span(first: int, last: int | None) -> str:
    return str(first) if last in {None, first} else f"{first}-{last}"

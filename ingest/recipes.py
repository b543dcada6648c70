"""The recipe that a run works by: what the settings ask for, or what the index already has.

A setting that nobody gave follows the index, so that ``ingest --model X docs`` and later ``ingest docs`` agree; one
that was given and differs is refused, unless the run rebuilds. Of a model folder the index holds the name alone, since
a recipe means the same wherever its files lie: where it lies is for the settings to say.
"""

from search.embedding import spec_of
from search.errors import ModelMismatch, UsageError
from search.recipe import EmbeddingSpec, Recipe, require_equal
from search.settings import CONFIG_FILE, Settings, cache_folder
from search.sparse import sparse_spec

from .chunking.sizes import CHUNKER_VERSION, Sizes

__all__ = ["recipe_for", "sizes_of"]


def recipe_for(settings: Settings, index: Recipe | None, *, rebuild: bool) -> Recipe:
    """Return the recipe of the next run. Hashes the model's files, loads nothing, does not write to the index.

    Raises ``RecipeMismatch``, naming both sides, where the settings ask for another recipe than the index has and
    ``rebuild`` is false, ``ModelMismatch`` where its model folder is not named; ``ModelUnavailable`` where the
    files of a model are not there.
    """
    asked = {name: getattr(settings, name) for name in ("model", "language", "chunk_tokens")}
    if index is not None and not rebuild:
        had = {
            "model": index.embedding.model,
            "language": index.sparse.language,
            "chunk_tokens": index.chunking["chunk_tokens"],
        }
        asked |= {name: value for name, value in had.items() if settings.origins.get(name, "default") == "default"}
    embedding = _spec(asked["model"], settings, follows=index is not None and asked["model"] != settings.model)
    sizes = Sizes.for_limit(embedding.max_tokens, embedding.special_tokens, asked["chunk_tokens"] or None)
    recipe = Recipe(
        embedding=embedding,
        sparse=sparse_spec(asked["language"]),
        chunking={"version": CHUNKER_VERSION, "chunk_tokens": asked["chunk_tokens"], "sizes": sizes.to_json()},
    )
    if index is not None and not rebuild:
        require_equal(index, recipe, subject=f"index {settings.home}")
    return recipe


def _spec(model: str, settings: Settings, *, follows: bool) -> EmbeddingSpec:
    """Return the spec of a model; ``follows`` says that its name comes from the index."""
    try:
        return spec_of(model, cache=cache_folder(), allow_download=True)
    except UsageError as error:
        if not follows:
            raise
        raise ModelMismatch(
            f"index {settings.home}: made with the model folder {model}, which is not at hand; say where it is by "
            f'--model DIR, or for good by a line model = "DIR" in {settings.home / CONFIG_FILE}'
        ) from error


def sizes_of(recipe: Recipe) -> Sizes:
    """Return the chunk sizes of a recipe."""
    chunk_tokens = recipe.chunking["chunk_tokens"]
    assert isinstance(chunk_tokens, int)  # noqa: S101  # recipe_for wrote it
    return Sizes.for_limit(recipe.embedding.max_tokens, recipe.embedding.special_tokens, chunk_tokens or None)

"""The recipe: equal recipes have equal ids, every part counts, and a difference is refused by name."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from search.errors import ExitCode, ModelMismatch, RecipeMismatch
from search.recipe import EmbeddingSpec, Recipe, SparseSpec, require_equal

RECIPE = Recipe(
    embedding=EmbeddingSpec(
        model="small", files={"model.onnx": "a" * 64, "tokenizer.json": "b" * 64}, dim=8, max_tokens=64
    ),
    sparse=SparseSpec(encoder="bm25", version="1", language="english", k=1.2, b=0.75, avg_len=100.0, max_token_len=40),
    chunking={"version": "cdc-1", "chunk_tokens": 0, "sizes": {"target": 40}},
)
# What may differ, and whether it shapes the vector of a given passage.
CHANGES: dict[str, tuple[Callable[[], Recipe], bool]] = {
    "schema": (lambda: replace(RECIPE, schema=99), False),
    "embedding.model": (lambda: replace(RECIPE, embedding=replace(RECIPE.embedding, model="large")), True),
    "embedding.dim": (lambda: replace(RECIPE, embedding=replace(RECIPE.embedding, dim=16)), True),
    "embedding.query_prefix": (lambda: replace(RECIPE, embedding=replace(RECIPE.embedding, query_prefix="q: ")), True),
    "embedding.files.model.onnx": (
        lambda: replace(
            RECIPE, embedding=replace(RECIPE.embedding, files={**RECIPE.embedding.files, "model.onnx": "c"})
        ),
        True,
    ),
    "sparse.language": (lambda: replace(RECIPE, sparse=replace(RECIPE.sparse, language="german")), True),
    "chunking.chunk_tokens": (lambda: replace(RECIPE, chunking={**RECIPE.chunking, "chunk_tokens": 60}), False),
    "chunking.sizes.target": (lambda: replace(RECIPE, chunking={**RECIPE.chunking, "sizes": {"target": 50}}), False),
}


def test_a_recipe_is_read_back_as_it_was() -> None:
    """Through JSON text, with the same id."""
    read = Recipe.from_json(json.loads(json.dumps(RECIPE.to_json())))
    assert read.to_json() == RECIPE.to_json()
    assert read.recipe_id == RECIPE.recipe_id


@pytest.mark.parametrize("name", CHANGES)
def test_every_part_of_a_recipe_counts(name: str) -> None:
    """Another value is another recipe; vectors stay usable unless the value shapes them."""
    make, shapes_vectors = CHANGES[name]
    changed = make()
    assert changed.recipe_id != RECIPE.recipe_id
    assert (changed.vector_recipe_id != RECIPE.vector_recipe_id) == shapes_vectors


@pytest.mark.parametrize("name", CHANGES)
def test_a_difference_is_refused_by_the_name_of_what_differs(name: str) -> None:
    """The message names the part, both values and the way out; exit code 12."""
    with pytest.raises(RecipeMismatch) as refused:
        require_equal(RECIPE, CHANGES[name][0](), subject="index here")
    message = str(refused.value)
    assert message.startswith("index here: ")
    assert f"{name}: index has " in message
    assert "settings ask for" in message
    assert "--rebuild" in message
    assert refused.value.exit_code == ExitCode.RECIPE_MISMATCH
    assert isinstance(refused.value, ModelMismatch) == name.startswith("embedding.files")


def test_equal_recipes_pass() -> None:
    """In whatever order their files are named."""
    turned = replace(RECIPE.embedding, files=dict(sorted(RECIPE.embedding.files.items(), reverse=True)))
    require_equal(RECIPE, replace(RECIPE, embedding=turned), subject="index")

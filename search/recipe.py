"""The recipe: all that shapes a vector besides the text. One index has one recipe.

The parts that a vector or a chunk id depends on (embedding, sparse, chunking, schema) must be equal for the whole
index; a difference is refused before anything is written, and the sentence names both sides. Reader versions are not
among them: they are kept with each document, and a document whose readers changed is parsed again by the next run
(equal text keeps every chunk id, I3).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, cast

from .errors import ModelMismatch, RecipeMismatch
from .identity import RecipeId, recipe_id

__all__ = ["SCHEMA_VERSION", "EmbeddingSpec", "Recipe", "SparseSpec", "require_equal"]

# Version of the point layout: vector names, payload fields, how a payload names its locations.
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpec:
    """Which model made the dense vectors. ``files`` maps file names to sha256: a model's name is not its version."""

    model: str
    files: Mapping[str, str]
    dim: int
    max_tokens: int
    special_tokens: int = 2
    query_prefix: str = ""
    passage_prefix: str = ""
    pooling: str = "mean"

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "model": self.model,
            "files": dict(sorted(self.files.items())),
            "dim": self.dim,
            "max_tokens": self.max_tokens,
            "special_tokens": self.special_tokens,
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
            "pooling": self.pooling,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Self:
        """Read what ``to_json`` wrote."""
        return cls(**values)  # type: ignore[arg-type]  # written by to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseSpec:
    """How BM25 vectors are made. ``version`` names the encoder's package, whose tokeniser may change."""

    encoder: str
    version: str
    language: str
    k: float
    b: float
    avg_len: float
    max_token_len: int

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "encoder": self.encoder,
            "version": self.version,
            "language": self.language,
            "k": self.k,
            "b": self.b,
            "avg_len": self.avg_len,
            "max_token_len": self.max_token_len,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Self:
        """Read what ``to_json`` wrote."""
        return cls(**values)  # type: ignore[arg-type]  # written by to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The whole recipe. ``chunking`` holds the chunker's version and sizes as JSON values."""

    embedding: EmbeddingSpec
    sparse: SparseSpec
    chunking: Mapping[str, object]
    schema: int = SCHEMA_VERSION

    def to_json(self) -> dict[str, object]:
        """Return JSON values, by part."""
        return {
            "schema": self.schema,
            "embedding": self.embedding.to_json(),
            "sparse": self.sparse.to_json(),
            "chunking": dict(self.chunking),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Self:
        """Read what ``to_json`` wrote."""
        return cls(
            schema=cast("int", values["schema"]),
            embedding=EmbeddingSpec.from_json(cast("Mapping[str, object]", values["embedding"])),
            sparse=SparseSpec.from_json(cast("Mapping[str, object]", values["sparse"])),
            chunking=cast("Mapping[str, object]", values["chunking"]),
        )

    @property
    def recipe_id(self) -> RecipeId:
        """16 hex digits; equal recipes have equal ids."""
        return recipe_id(self.to_json())

    @property
    def vector_recipe_id(self) -> RecipeId:
        """Id of the parts that shape the vector of a given passage; vectors are stored under it."""
        return recipe_id({"embedding": self.embedding.to_json(), "sparse": self.sparse.to_json()})


def require_equal(index: Recipe, settings: Recipe, *, subject: str) -> None:
    """Refuse settings that ask for another recipe than the index has. Does not write.

    Raises ``ModelMismatch`` when only the model's files differ, else ``RecipeMismatch``; both name both sides.
    """
    differences = sorted(_differences("", index.to_json(), settings.to_json()))
    if not differences:
        return
    listed = "; ".join(f"{name}: index has {old}, settings ask for {new}" for name, old, new in differences)
    files_only = all(name.startswith("embedding.files") for name, _, _ in differences)
    error = ModelMismatch if files_only else RecipeMismatch
    raise error(
        f"{subject}: made by another recipe ({listed}); nothing was written. "
        "Run with --rebuild to build a new generation, or go back to the settings the index has"
    )


def _differences(prefix: str, old: object, new: object) -> list[tuple[str, str, str]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found: list[tuple[str, str, str]] = []
        for key in sorted(old.keys() | new.keys()):
            name = f"{prefix}.{key}" if prefix else str(key)
            found += _differences(name, old.get(key, "nothing"), new.get(key, "nothing"))
        return found
    return [] if old == new else [(prefix, str(old), str(new))]

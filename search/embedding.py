"""Turning texts into dense vectors: the protocol, and how a model's name leads to an embedder.

This module is light: it imports neither tokenizers nor onnxruntime nor fastembed, so that a run with nothing to embed
pays for none of them. What they do stands in ``model_files`` (which files a model has) and ``fastembed_model`` (the
adapter). Writes nothing but the cache folder it is given.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .errors import GroundedError, ModelMismatch
from .recipe import EmbeddingSpec

if TYPE_CHECKING:  # numpy costs 0.1 s, and a run with nothing to embed needs none of it
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder", "embedder_of", "load_embedder", "passage_text", "spec_of"]

logger = logging.getLogger(__name__)


class Embedder(Protocol):
    """Turns texts into vectors. MUST be repeatable: one text, one vector under one recipe, whatever its batch (I3).

    MUST be thread-safe. MUST NOT use the network. May load its files at the first call that needs them.
    """

    @property
    def spec(self) -> EmbeddingSpec:
        """Which model this is; part of the recipe. MUST be known without loading the model."""

    def token_ends(self, text: str) -> NDArray[np.int32]:
        """Return where each token of ``text`` ends, in code points, ascending; shape (number of tokens,).

        Nothing is cut off, nothing padded, no special token counted. Does not load the model, only its tokenizer.
        """

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text, in the order given. No text gives shape (0, dim).

        Shape (len(texts), dim), unit length. What lies beyond ``spec.max_tokens`` tokens does not shape the vector.
        Raises ``ModelUnavailable`` where the model cannot be loaded.
        """

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question: shape (dim,), unit length. Raises as ``embed_passages``."""


def passage_text(context: str, text: str) -> str:
    """Return what is embedded of a passage, by the dense model and by BM25 alike: its context above its text."""
    return f"{context}\n{text}" if context else text


def spec_of(model: str, *, cache: Path, allow_download: bool = False) -> EmbeddingSpec:
    """Return the spec of a model by name or folder, without loading it: its files are hashed, no more.

    Errors as ``load_embedder``. A name known to fastembed costs the import of fastembed.
    """
    from .model_files import find_model

    return find_model(model, cache=cache, allow_download=allow_download).spec


def load_embedder(model: str, *, threads: int, cache: Path, allow_download: bool = False) -> Embedder:
    """Return the embedder of a model: the bundled name, a local folder, or a name that fastembed knows.

    A folder holds ``tokenizer.json`` and ``model.onnx`` (or ``onnx/model.onnx``). ``threads`` 0 takes one per core.
    ``cache`` is a folder for derived files that may be deleted at any time; where it cannot be written, a temporary one
    is used. The network is used for nothing but a fastembed model that is not in the cache, and only if
    ``allow_download``. Tokenizer and model are loaded when they are first needed.

    Raises ``ModelUnavailable`` where the files are not there, ``ModelMismatch`` where those of the bundled model are
    not the pinned ones, ``UsageError`` for a name that means nothing.
    """
    from .fastembed_model import FastembedEmbedder
    from .model_files import find_model

    files = find_model(model, cache=cache, allow_download=allow_download)
    return FastembedEmbedder(files, threads=threads, cache=cache)


def embedder_of(spec: EmbeddingSpec, *, model: str, threads: int, cache: Path) -> Embedder:
    """Return the embedder that made an index, for a reader: never the network.

    Tried are ``model`` (of the settings) and the name that the recipe holds; the first whose files are those of the
    recipe is taken. Raises ``ModelMismatch`` where neither is, so that no question is asked with foreign vectors.
    """
    reasons: list[str] = []
    for name in dict.fromkeys((model, spec.model)):
        try:
            embedder = load_embedder(name, threads=threads, cache=cache)
        except GroundedError as error:
            reasons.append(str(error))
            continue
        if embedder.spec == spec:
            return embedder
        reasons.append(f"model {name}: not the one of the index")
    raise ModelMismatch(
        f"index: made with model {spec.model}, which is not at hand ({'; '.join(reasons)}); "
        "name its folder by the setting `model` (GROUNDED_MODEL, or config.toml in the index folder), or rebuild the "
        "index with `ingest --rebuild`"
    )

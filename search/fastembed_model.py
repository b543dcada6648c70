"""The adapter to fastembed: the only module that imports fastembed, onnxruntime or the tokenizer of a model.

Every text is a batch of its own. Measured with the bundled model on two cores (texts of 130 tokens): one session with
one thread, run from two Python threads with one text each, embeds 43 texts a second; two threads in one session with
batches of four 42, with batches of one 28. One text per batch needs no padding, so a vector cannot depend on its batch
(I3), not even with a dynamically quantised model. Refuses the network unless the caller allows a download.
"""

import logging
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .errors import GroundedError, ModelUnavailable, UsageError
from .identity import digest
from .model_files import ModelFiles, linked_folder
from .recipe import EmbeddingSpec

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from tokenizers import Tokenizer

__all__ = ["FastembedEmbedder", "TokenizerFacts", "output_width", "registered_folder", "tokenizer_facts"]

logger = logging.getLogger(__name__)

# fastembed keeps custom models in a list of the process; only one thread may look and add.
REGISTRY_LOCK = threading.Lock()
SURROGATES = re.compile("[\ud800-\udfff]")
CPU = ["CPUExecutionProvider"]


class FastembedEmbedder:
    """An ``Embedder`` on fastembed. Thread-safe; tokenizer and model are loaded when they are first needed."""

    def __init__(self, files: ModelFiles, *, threads: int, cache: Path) -> None:
        self._files = files
        self._threads = threads if threads > 0 else len(os.sched_getaffinity(0))
        self._cache = cache
        self._lock = threading.Lock()
        self._tokenizer: Tokenizer | None = None
        self._model: TextEmbedding | None = None
        self._pool: ThreadPoolExecutor | None = None

    @property
    def spec(self) -> EmbeddingSpec:
        """Which model this is."""
        return self._files.spec

    def token_ends(self, text: str) -> NDArray[np.int32]:
        """Return where each token ends, in code points; shape (number of tokens,)."""
        encoding = self._load_tokenizer().encode(_encodable(text), add_special_tokens=False)
        return np.fromiter((end for _, end in encoding.offsets), dtype=np.int32, count=len(encoding))

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text, in the order given; shape (len(texts), dim), unit length."""
        return self._embed([self.spec.passage_prefix + text for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question; shape (dim,), unit length."""
        vector: NDArray[np.float32] = self._embed([self.spec.query_prefix + text])[0]
        return vector

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), self.spec.dim), dtype=np.float32)
        model = self._load_model()

        def embed_one(place: int) -> None:
            vectors[place] = self._vector(model, _encodable(texts[place]))

        # Long texts first, so that no thread is left alone with one at the end.
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        if self._pool is None or len(texts) < 2:
            for place in order:
                embed_one(place)
        else:
            for _ in self._pool.map(embed_one, order):
                pass
        return vectors

    def _vector(self, model: "TextEmbedding", text: str) -> NDArray[np.float32]:
        vector = np.asarray(next(iter(model.embed([text], batch_size=1))), dtype=np.float32)
        norm = float(np.linalg.norm(vector))
        if vector.shape != (self.spec.dim,) or not np.isfinite(norm) or norm == 0.0:
            raise ModelUnavailable(
                f"model {self.spec.model}: gave no usable vector (shape {vector.shape}, length {norm}); "
                "get its files again or choose another with --model"
            )
        return vector / np.float32(norm)

    def _load_tokenizer(self) -> "Tokenizer":
        with self._lock:
            if self._tokenizer is None:
                tokenizer = _open_tokenizer(self._files.tokenizer)
                tokenizer.no_truncation()
                tokenizer.no_padding()
                self._tokenizer = tokenizer
            return self._tokenizer

    def _load_model(self) -> "TextEmbedding":
        with self._lock:
            if self._model is None:
                self._model = _open(self._files, self._cache)
                if self._threads > 1:
                    self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="embed")
                logger.info("model.loaded model=%s threads=%d", self.spec.model, self._threads)
            return self._model


def registered_folder(model: str, *, cache: Path, allow_download: bool) -> tuple[str, Path, list[str], int]:
    """Return of a model that fastembed knows: its name, its folder, the names of its weight files, its dimension.

    Downloads it when it is not in the cache and ``allow_download``. Raises ``UsageError`` for an unknown name,
    ``ModelUnavailable`` where it is not at hand.
    """
    _forbid_network(unless=allow_download)
    from fastembed import TextEmbedding
    from fastembed.common.onnx_model import OnnxModel

    known = {entry["model"].lower(): entry for entry in TextEmbedding.list_supported_models()}
    entry = known.get(model.lower())
    if entry is None:
        raise UsageError(
            f"model {model}: neither the bundled one, nor a folder, nor a name that fastembed knows; correct --model"
        )
    if allow_download:
        logger.info("model.download_allowed model=%s cache=%s (only if it is not there yet)", entry["model"], cache)
    cure = "run `ingest` where the network is allowed, or name a local folder with --model"
    with _wrapped(f"model {entry['model']}: not in the cache {cache}, and not to be had", cure):
        loaded = TextEmbedding(
            entry["model"],
            cache_dir=str(cache / "fastembed"),
            lazy_load=True,
            local_files_only=not allow_download,
            providers=CPU,
        )
    if not isinstance(loaded.model, OnnxModel):
        raise UsageError(f"model {entry['model']}: not an ONNX text model; choose another with --model")
    # Not public, and the only way to the files; the exact pin of the version is in the recipe of each index.
    folder = loaded.model._model_dir
    return entry["model"], folder, [entry["model_file"], *entry["additional_files"]], entry["dim"]


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """Of a tokenizer file: special tokens around a text, where it cuts a text (if it says so), its padding token."""

    special_tokens: int
    truncated_at: int | None
    pad_token: str


def tokenizer_facts(path: Path) -> TokenizerFacts:
    """Read a tokenizer file. Does not write. Raises ``ModelUnavailable`` where it is none."""
    tokenizer = _open_tokenizer(path)
    truncation, padding = tokenizer.truncation or {}, tokenizer.padding or {}
    return TokenizerFacts(
        tokenizer.num_special_tokens_to_add(False), truncation.get("max_length"), padding.get("pad_token", "[PAD]")
    )


def output_width(onnx: Path) -> int:
    """Return the last dimension of a model's first output, for folders whose configuration does not tell it."""
    import onnxruntime  # type: ignore[import-untyped]  # ships no types

    with _wrapped(f"model file {onnx}: cannot be loaded", "get the model again"):
        session = onnxruntime.InferenceSession(str(onnx), providers=CPU)
    width = session.get_outputs()[0].shape[-1]
    if not isinstance(width, int):
        raise ModelUnavailable(f"model file {onnx}: does not tell its dimension; put its config.json beside it")
    return width


def _open_tokenizer(path: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    with _wrapped(f"model file {path}: not a tokenizer", "get the model again"):
        return Tokenizer.from_file(str(path))


def _open(files: ModelFiles, cache: Path) -> "TextEmbedding":
    _forbid_network(unless=False)
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    with _wrapped(f"model {files.spec.model}: cannot be loaded", "reinstall it, or choose another with --model"):
        if files.registered is not None:
            return TextEmbedding(
                files.registered, cache_dir=str(cache / "fastembed"), local_files_only=True, threads=1, providers=CPU
            )
        folder = linked_folder(files, cache)
        name = f"grounded-ingest/{digest([str(folder).encode()])[:16]}"
        with REGISTRY_LOCK:
            if all(entry["model"] != name for entry in TextEmbedding.list_supported_models()):
                TextEmbedding.add_custom_model(
                    model=name,
                    pooling=PoolingType[files.spec.pooling.upper()],
                    normalization=True,
                    sources=ModelSource(hf=name),
                    dim=files.spec.dim,
                    model_file="model.onnx",
                )
        return TextEmbedding(name, specific_model_path=str(folder), threads=1, providers=CPU)


@contextmanager
def _wrapped(subject: str, cure: str) -> Iterator[None]:
    """Turn what the libraries raise into ``ModelUnavailable``."""
    try:
        yield
    except GroundedError:
        raise
    except Exception as error:  # onnxruntime, tokenizers and hub errors have no other common root
        raise ModelUnavailable(f"{subject} ({error}); {cure}") from error


def _forbid_network(*, unless: bool) -> None:
    """Tell huggingface_hub, which reads this at its import, to stay off the network and to send no statistics."""
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    if not unless:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")


def _encodable(text: str) -> str:
    """Replace lone surrogates, which the tokenizer refuses, one for one, so that offsets stay."""
    return SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text) if not text.isascii() else text

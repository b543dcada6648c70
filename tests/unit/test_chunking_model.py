"""Chunking with the tokenizer of the default model: what the embedder will really see."""

import base64
import random

import pytest

from ingest.chunking.chunker import chunk
from ingest.chunking.sizes import Sizes
from search.embedding import passage_text
from tests.benchmarks.chunking import ModelTokenizer, generated, markdown, plain

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def tokenizer() -> ModelTokenizer:
    """The bundled model's tokenizer, found without importing the package that holds it."""
    return ModelTokenizer()


def samples() -> dict[str, str]:
    """Return texts that tokenizers treat very differently."""
    generator = random.Random(11)
    hanzi = "".join(chr(generator.randrange(0x4E00, 0x5E00)) for _ in range(3000))
    return {
        "markdown": generated(20_000, generator),
        "base64": base64.b64encode(generator.randbytes(9_000)).decode(),
        "short blobs": " ".join(base64.b64encode(generator.randbytes(70)).decode() for _ in range(60)),
        "chinese": hanzi,
        "accents": "ünïcödé wörds ärë ßplit " * 300,
        "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467 letter " * 900,
    }


@pytest.mark.parametrize("limit", [128, 256, 512])
@pytest.mark.parametrize("name", sorted(samples()))
def test_context_and_text_fit_the_model_with_its_special_tokens(
    name: str, limit: int, tokenizer: ModelTokenizer
) -> None:
    """Nothing is cut off silently by the embedder, whatever the text."""
    text = samples()[name]
    pairs = chunk(markdown(text) if name == "markdown" else plain(text), tokenizer, Sizes.for_limit(limit))
    assert len(pairs) > 3
    for passage, _ in pairs:
        counted = len(tokenizer.token_ends(passage_text(passage.context, passage.text)))
        assert counted + 2 <= limit
        assert passage.n_tokens >= counted


@pytest.mark.parametrize("limit", [256, 512])
def test_passages_of_prose_are_neither_scraps_nor_torn(limit: int, tokenizer: ModelTokenizer) -> None:
    """No passage is under the floor, and none is longer than the greatest size."""
    sizes = Sizes.for_limit(limit)
    text = samples()["markdown"]
    counted = [len(tokenizer.token_ends(passage.text)) for passage, _ in chunk(markdown(text), tokenizer, sizes)]
    assert min(counted) >= sizes.floor
    assert max(counted) <= sizes.max

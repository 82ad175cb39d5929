"""The default model beside sentence-transformers over the same weights: the cosines that the documents tell."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processors.embedding.loader import MINILM, load_embedder
from processors.embedding.model_files import PACKAGE
from thalweg.bench.recall_sets import BUILT_IN, read_set

SHORT = [
    "A man is eating food.",
    "",
    "東京タワーへ行く",
    "naïve café 🙂",
    "def f(x): return x",
    "ALL CAPS!",
    "river " * 254,
]


@pytest.fixture(scope="module")
def original() -> Any:
    from sentence_transformers import SentenceTransformer

    spec = find_spec(PACKAGE)
    assert spec is not None and spec.submodule_search_locations
    model = SentenceTransformer(str(Path(spec.submodule_search_locations[0]) / "model"), device="cpu")
    assert model.max_seq_length == MINILM.max_tokens
    return model


@pytest.fixture(scope="module")
def texts(original: Any) -> list[str]:
    """Those that fit the model's window: of a longer one the library reads the beginning, and we read all."""
    conversations = [conversation for name in BUILT_IN for conversation in read_set(name)]
    said = {
        part.text: None for conversation in conversations for part in (*conversation.turns, *conversation.questions)
    }
    whole = [text for text in (*SHORT, *said) if len(original.tokenizer(text)["input_ids"]) <= MINILM.max_tokens]
    assert len(whole) > 200
    return whole


@pytest.fixture(scope="module")
def expected(original: Any, texts: list[str]) -> np.ndarray:
    rows: np.ndarray = original.encode(texts)
    return rows


def cosines(name: str, model_cache: Path, texts: list[str], expected: np.ndarray) -> np.ndarray:
    embedder = load_embedder(name, cache_dir=model_cache)
    assert embedder is not None
    found = embedder.encode(texts).astype(np.float64)
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected.astype(np.float64), axis=1)
    found = (found * expected).sum(axis=1) / lengths
    print(json.dumps({"model": name, "texts": len(texts), "least": found.min(), "mean": found.mean()}))
    return found


def test_minilm_float32_gives_the_librarys_vectors(model_cache: Path, texts: list[str], expected: np.ndarray) -> None:
    assert cosines("minilm-float32", model_cache, texts, expected).min() >= 0.9999995


def test_minilm_in_eight_bits_is_as_near_to_them_as_the_documents_say(
    model_cache: Path, texts: list[str], expected: np.ndarray
) -> None:
    found = cosines("minilm", model_cache, texts, expected)
    assert found.min() >= 0.995 and found.mean() >= 0.9985

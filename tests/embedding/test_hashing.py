"""The hashing embedder: deterministic unit vectors in which alike texts are near."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from processors.embedding.hashing import DIM, HashingEmbedder
from processors.embedding.model import encode_documents, encode_query

EMBEDDER = HashingEmbedder()


@given(st.lists(st.text(max_size=80), max_size=6))
def test_each_text_has_a_unit_vector_that_does_not_depend_on_the_others(texts: list[str]) -> None:
    rows = EMBEDDER.encode(texts)
    assert rows.shape == (len(texts), DIM)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    assert all((EMBEDDER.encode([text])[0] == row).all() for text, row in zip(texts, rows, strict=True))


def test_alike_texts_are_nearer_than_others() -> None:
    text, alike, other = EMBEDDER.encode(
        [
            "The build fails when the cache is cold",
            "the build failed with a cold cache",
            "Robbie prefers short answers in the morning",
        ]
    )
    assert text @ alike > 0.4 > text @ other


def test_it_says_that_it_is_not_trained() -> None:
    assert not EMBEDDER.info.trained


def test_another_process_makes_the_same_vectors() -> None:
    program = (
        "from processors.embedding.hashing import HashingEmbedder as H; print(H().encode(['río 東京']).tobytes().hex())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()
    assert printed == EMBEDDER.encode(["río 東京"]).tobytes().hex()


def test_the_prefixes_of_a_model_go_before_queries_and_stored_texts() -> None:
    embedder = HashingEmbedder()
    embedder.info = replace(embedder.info, query_prefix="query: ", document_prefix="passage: ")
    plain = HashingEmbedder()
    assert (encode_query(embedder, "a river")[0] == plain.encode(["query: a river"])[0]).all()
    assert (encode_documents(embedder, ["a river"]) == plain.encode(["passage: a river"])).all()

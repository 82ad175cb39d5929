"""The default model through its ONNX graph, with the official weights."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from processors.embedding import int8_onnx
from processors.embedding.loader import _int8_graph, load_embedder
from processors.embedding.model import Embedder, TokenEmbedder
from processors.embedding.model_files import find_model
from storage.search.vectors.token_vectors import pack, unpack

TEXTS = [
    "A man is eating food.",
    "",
    "word " * 600,
    "東京タワーへ行く",
    "A man eats something.",
    "naïve café 🙂",
    *(f"sentence number {number} " * (1 + number % 13) for number in range(40)),
]


@pytest.fixture(scope="module")
def embedder(model_cache: Path) -> Embedder:
    loaded = load_embedder("minilm", cache_dir=model_cache)
    assert loaded is not None
    return loaded


@pytest.fixture(scope="module")
def original(model_cache: Path) -> Embedder:
    loaded = load_embedder("minilm-float32", cache_dir=model_cache)
    assert loaded is not None
    return loaded


@pytest.fixture(scope="module")
def rows(embedder: Embedder) -> np.ndarray:
    return embedder.encode(TEXTS)


def test_every_row_has_length_one(rows: np.ndarray) -> None:
    assert rows.shape == (len(TEXTS), 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)


def test_rows_are_in_the_order_of_the_texts_and_do_not_depend_on_the_batch(
    embedder: Embedder, rows: np.ndarray
) -> None:
    alone = np.concatenate([embedder.encode([text]) for text in TEXTS])
    assert np.abs(alone - rows).max() < 1e-6
    assert np.abs(embedder.encode(TEXTS[::-1])[::-1] - rows).max() < 1e-6


def test_known_cosines_are_the_checkpoints_own(embedder: Embedder, original: Embedder) -> None:
    # as printed on the model's card for this pair of sentences
    for model, tolerance in ((original, 2e-4), (embedder, 1e-2)):
        one, two, other = model.encode(
            ["That is a happy person", "That is a very happy person", "Today is a sunny day"]
        )
        assert one @ two == pytest.approx(0.9429, abs=tolerance)
        assert one @ other == pytest.approx(0.2569, abs=tolerance)


def test_eight_bits_keep_the_direction_and_are_a_space_of_their_own(
    embedder: Embedder, original: Embedder, rows: np.ndarray
) -> None:
    assert (rows * original.encode(TEXTS)).sum(axis=1).min() > 0.995
    assert (embedder.info.dtype, original.info.dtype) == ("int8", "float32")
    assert embedder.info.space != original.info.space
    assert (embedder.info.model_id, embedder.info.revision) == (original.info.model_id, original.info.revision)


@pytest.mark.parametrize("is_signed", [None, False], ids=["chosen for this processor", "unsigned"])
def test_products_of_whole_numbers_are_those_of_exact_arithmetic(
    model_cache: Path, monkeypatch: pytest.MonkeyPatch, is_signed: bool | None
) -> None:
    if is_signed is not None:
        monkeypatch.setattr(int8_onnx, "products_are_exact", lambda probe: is_signed)
    graph = _int8_graph(find_model(model_cache, None), model_cache)
    given = {"input_ids": np.array([[101, 2008, 2003, 1037, 3407, 2711, 102]])}  # "that is a happy person"
    given["attention_mask"] = np.ones_like(given["input_ids"])
    [exact] = ReferenceEvaluator(onnx.load(graph)).run(["sentence_embedding"], given)
    [found] = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"]).run(["sentence_embedding"], given)
    assert np.abs(exact - found).max() < 1e-6


def test_texts_that_say_the_same_are_nearer(embedder: Embedder) -> None:
    friction, again, other = embedder.encode(
        [
            "The test suite is slow because of the database",
            "Tests take ages as the DB is slow",
            "I prefer tea to coffee",
        ]
    )
    assert friction @ again > 0.5 > friction @ other


def test_text_past_the_window_counts_as_much_as_it_is_long(embedder: Embedder) -> None:
    base = "river " * 254
    same, longer, tail = embedder.encode([base, base + "mountain " * 127, "mountain " * 127])
    expected = (254 * same + 127 * tail) / np.linalg.norm(254 * same + 127 * tail)
    assert np.abs(longer - expected).max() < 1e-5
    assert same @ longer < 0.999


def test_token_vectors_come_with_the_same_vector_and_know_which_words_say_something(embedder: Embedder) -> None:
    assert isinstance(embedder, TokenEmbedder)
    found = embedder.encode_tokens(["The river bends.", "", "river " * 300])
    assert np.abs(found.vectors - embedder.encode(["The river bends.", "", "river " * 300])).max() < 1e-6
    first, empty, long = found.tokens
    assert first.content.tolist() == [False, True, True, False]
    assert np.allclose(np.linalg.norm(first.vectors, axis=1), 1.0, atol=1e-5)
    assert (len(empty.ids), len(long.ids)) == (0, 300)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.encode([]).shape == (0, 384)


def test_the_texts_of_a_small_batch_are_shared_out_to_threads_and_stay_the_same(
    model_cache: Path, embedder: Embedder
) -> None:
    several = load_embedder("minilm", cache_dir=model_cache, threads=3)
    assert isinstance(several, TokenEmbedder) and isinstance(embedder, TokenEmbedder)
    for some in (TEXTS[:1], TEXTS[6:8], TEXTS[6:20], TEXTS):
        expected, found = embedder.encode_tokens(some), several.encode_tokens(some)
        assert np.abs(found.vectors - expected.vectors).max() < 1e-6
        for one, other in zip(found.tokens, expected.tokens, strict=True):
            assert one.ids.tolist() == other.ids.tolist()
            assert np.allclose(one.vectors, other.vectors, atol=1e-5)


def test_threads_may_share_it(embedder: Embedder, rows: np.ndarray) -> None:
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: embedder.encode(TEXTS[:12]), range(8)):
            assert np.abs(found - rows[:12]).max() < 1e-6


@pytest.mark.process
def test_a_damaged_graph_in_the_cache_is_built_again(model_cache: Path, tmp_path: Path, embedder: Embedder) -> None:
    cache_dir = Path(shutil.copytree(model_cache, tmp_path / "cache"))
    for graph in cache_dir.glob("minilm-*-int8-*.onnx"):
        content = bytearray(graph.read_bytes())
        content[len(content) // 2] ^= 1
        graph.write_bytes(content)
    again = load_embedder("minilm", cache_dir=cache_dir)
    assert again is not None
    assert (again.encode(TEXTS[:2]) == embedder.encode(TEXTS[:2])).all()


def test_the_word_pieces_of_a_text_are_those_that_are_stored_each_with_its_place(embedder: TokenEmbedder) -> None:
    text = "The Kuramoto model: 東京 and naïve oscillators."
    [tokens], [pieces] = embedder.encode_tokens([text]).tokens, embedder.piece_starts([text])
    stored, _ = unpack(pack(tokens))
    assert pieces.ids.tolist() == stored.tolist()
    assert [text[start:][:2] for start in pieces.starts][:3] == ["Ku", "ra", "ot"], "whole words, cut into pieces"
    assert text[pieces.starts[-1] :] in ("oscillators.", "ators.", "tors.", "s.")
    [silent] = embedder.piece_starts(["of the and"])
    assert len(silent.ids) == 3, "a text without content keeps all its tokens"

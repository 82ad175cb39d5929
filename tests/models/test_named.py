"""A model by its folder gives what sentence-transformers gives, in the form that the store takes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from processors.embedding.loader import load_embedder
from processors.embedding.model import Embedder, encode_documents, encode_query
from processors.embedding.sentence_transformer import SPARSE_DIM, hash_terms
from streams.errors import EmbedderUnavailable
from tests.models.making import LONGEST, MAKERS, PROMPTS
from thalweg.process.model import Models
from thalweg.settings import Settings

TEXTS = [
    "the river bends",
    "a build is slow.",
    "z",
    "",
    *(f"case {'abcdefghij'[number]} " * (1 + number) for number in range(10)),
]
Checkpoint = Callable[[str], Path]
POOLING = {
    "dense": "mean",
    "dense, first token": "cls",
    "dense, with prompts": "mean",
    "dense, projected": "mean",
    "sparse": "sparse terms, hashed",
    "multi-vector": "mean of token vectors",
    "clip": "clip text projection",
    "clip, older": "clip text projection",
}


def load(folder: Path, threads: int = 1) -> Embedder:
    embedder = load_embedder(str(folder), cache_dir=folder.parent / "cache", threads=threads)
    assert embedder is not None
    return embedder


def test_a_process_loads_a_folder_once_and_anew_when_its_files_are_others(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(checkpoint("dense"), tmp_path / "model"))
    models = Models(Settings(home=tmp_path / "home"))
    first = models.load(str(folder))
    assert first is not None and models.load(str(folder)) is first
    shutil.copytree(checkpoint("dense, first token"), folder, dirs_exist_ok=True)
    other = models.load(str(folder))
    assert other is not None and other is not first and other.info.space != first.info.space


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def differ(rows: np.ndarray) -> bool:
    """Whether these texts can be told apart: an encoder that gives all of them one vector would equal itself."""
    return bool(np.linalg.matrix_rank(rows, tol=1e-4) > 4)


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind.startswith(("dense", "clip"))])
def test_a_dense_or_clip_models_vectors_are_the_librarys_own_at_length_one(checkpoint: Checkpoint, kind: str) -> None:
    from sentence_transformers import SentenceTransformer

    expected = unit(SentenceTransformer(str(checkpoint(kind)), device="cpu").encode(TEXTS, prompt=""))
    found = load(checkpoint(kind)).encode(TEXTS)
    assert found.dtype == np.float32 and differ(found)
    assert np.abs(found - expected).max() < 1e-5


def test_a_text_lies_where_a_clip_models_images_lie(checkpoint: Checkpoint) -> None:
    from PIL import Image
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(checkpoint("clip")), device="cpu")
    images = model.encode([Image.new("RGB", (20, 20), colour) for colour in ("red", "black")])
    expected = model.similarity(model.encode(TEXTS), images).numpy()
    assert np.abs(load(checkpoint("clip")).encode(TEXTS) @ unit(images).T - expected).max() < 1e-5


def test_a_sparse_models_terms_are_hashed_so_that_their_cosines_stay(checkpoint: Checkpoint) -> None:
    from sentence_transformers import SparseEncoder

    terms = SparseEncoder(str(checkpoint("sparse")), device="cpu").encode(TEXTS, convert_to_sparse_tensor=False).numpy()
    found = load(checkpoint("sparse")).encode(TEXTS)
    assert found.shape == (len(TEXTS), SPARSE_DIM)
    count = terms.shape[1]
    # where each term lies, and with which sign
    places = hash_terms(np.arange(count), np.arange(count), np.ones(count, np.float32), count)
    assert np.abs(found - unit(terms @ places)).max() < 1e-5
    assert np.abs(found @ found.T - unit(terms) @ unit(terms).T).max() < 0.15 and differ(found)


def test_a_multi_vector_models_vector_is_the_mean_of_its_token_vectors(checkpoint: Checkpoint) -> None:
    from sentence_transformers import MultiVectorEncoder

    tokens = MultiVectorEncoder(str(checkpoint("multi-vector")), device="cpu").encode(TEXTS)
    assert len({len(one) for one in tokens}) > 3
    found = load(checkpoint("multi-vector")).encode(TEXTS)
    assert np.abs(found - unit(np.stack([np.mean(np.asarray(one), axis=0) for one in tokens]))).max() < 1e-5 and differ(
        found
    )


@pytest.mark.parametrize("kind", MAKERS)
def test_what_the_registry_says_of_a_model_is_true(checkpoint: Checkpoint, kind: str) -> None:
    embedder = load(checkpoint(kind))
    info = embedder.info
    rows = embedder.encode(TEXTS)
    assert rows.shape == (len(TEXTS), info.dim) and np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert (info.model_id, info.dtype, info.trained) == (str(checkpoint(kind)), str(rows.dtype), True)
    assert (info.pooling, info.max_tokens) == (POOLING[kind], LONGEST)
    assert info.space == f"text/{checkpoint(kind).name}@{info.revision}" and len(info.revision) == 12
    assert info.provider.startswith("sentence-transformers ")


@pytest.mark.parametrize("kind", MAKERS)
def test_a_texts_vector_depends_on_neither_its_batch_nor_its_place_nor_the_thread(
    checkpoint: Checkpoint, kind: str
) -> None:
    embedder = load(checkpoint(kind), threads=2)
    rows = embedder.encode(TEXTS)
    assert np.abs(np.concatenate([embedder.encode([text]) for text in TEXTS]) - rows).max() < 1e-5
    assert np.abs(embedder.encode(TEXTS[::-1])[::-1] - rows).max() < 1e-5
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda number: embedder.encode(TEXTS[number % 5 :]), range(40)):
            assert np.abs(found - rows[-len(found) :]).max() < 1e-5


def test_prompts_are_put_before_what_is_asked_and_what_is_stored(checkpoint: Checkpoint) -> None:
    from sentence_transformers import SentenceTransformer

    embedder, model = (
        load(checkpoint("dense, with prompts")),
        SentenceTransformer(str(checkpoint("dense, with prompts")), device="cpu"),
    )
    assert (embedder.info.query_prefix, embedder.info.document_prefix) == (PROMPTS["query"], PROMPTS["passage"])
    asked, _ = encode_query(embedder, TEXTS[0])
    stored = encode_documents(embedder, TEXTS[:1])[0]
    assert np.abs(asked - unit(model.encode(TEXTS[:1], prompt_name="query"))[0]).max() < 1e-5
    assert np.abs(stored - unit(model.encode(TEXTS[:1], prompt_name="passage"))[0]).max() < 1e-5
    assert asked @ stored < 0.9999


def test_a_default_prompt_is_put_before_a_text_once(checkpoint: Checkpoint, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(checkpoint("dense")), prompts={"say": "query: "}, default_prompt_name="say", device="cpu"
    )
    model.save(str(tmp_path / "m"))
    expected = unit(model.encode(TEXTS[:2]))
    assert np.abs(encode_documents(load(tmp_path / "m"), TEXTS[:2]) - expected).max() < 1e-5


def test_what_is_longer_than_the_model_reads_is_cut(checkpoint: Checkpoint) -> None:
    embedder = load(checkpoint("dense"))
    whole = "river " * (LONGEST - 2)  # beside the two marks
    assert np.abs(embedder.encode([whole]) - embedder.encode([whole + "build " * 9])).max() < 1e-5
    assert np.abs(embedder.encode([whole]) - embedder.encode([whole[:-6] + "build"])).max() > 1e-4


def test_other_weights_are_another_space(checkpoint: Checkpoint, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(checkpoint("dense"), tmp_path / checkpoint("dense").name))
    assert load(folder).info.space == load(checkpoint("dense")).info.space
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"] *= 1.01
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert load(folder).info.space != load(checkpoint("dense")).info.space


def test_a_models_name_without_a_hub_or_a_head_or_its_tokenizer_is_refused_in_a_sentence(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(EmbedderUnavailable, match="'some/model' cannot be looked up"):
        load_embedder("some/model", cache_dir=tmp_path)
    headless = Path(shutil.copytree(checkpoint("multi-vector"), tmp_path / "headless"))
    (headless / "1_Dense" / "model.safetensors").unlink()
    with pytest.raises(EmbedderUnavailable, match="Dense head; it would be random"):
        load(headless)
    broken = Path(shutil.copytree(checkpoint("dense"), tmp_path / "broken"))
    (broken / "tokenizer.json").write_text("{}")
    with pytest.raises(EmbedderUnavailable, match="does not load"):
        load(broken)


def test_the_head_of_a_sparse_model_is_found_in_the_older_format_of_weights_too(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file

    folder = Path(shutil.copytree(checkpoint("sparse"), tmp_path / "older"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert np.abs(load(folder).encode(TEXTS) - load(checkpoint("sparse")).encode(TEXTS)).max() < 1e-6
    torch.save(
        {name: value for name, value in weights.items() if not name.startswith("cls.")}, folder / "pytorch_model.bin"
    )
    with pytest.raises(EmbedderUnavailable, match="lacks its language-model head"):
        load(folder)

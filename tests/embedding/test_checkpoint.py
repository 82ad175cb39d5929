"""Checkpoints of sentence-transformers are read without it.

What each is, and which are refused because a head is missing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from processors.embedding.checkpoint import read_checkpoint
from processors.embedding.sentence_transformer import SPARSE_DIM, hash_terms
from streams.errors import EmbedderUnavailable

TRANSFORMER = ("", "sentence_transformers.base.modules.transformer.Transformer")
POOLING = ("1_Pooling", "sentence_transformers.models.Pooling")
DENSE = ("2_Dense", "sentence_transformers.models.Dense")
SPLADE = ("1_SpladePooling", "sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling")
AUTO = ("2_SparseAutoEncoder", "sentence_transformers.sparse_encoder.models.SparseAutoEncoder")
MASK = ("3_Mask", "sentence_transformers.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask")
CLIP = ("0_CLIPModel", "sentence_transformers.models.CLIPModel")
ENCODER = "encoder.layer.0.weight"


def checkpoint(folder: Path, *modules: tuple[str, str], weights: dict[str, list[str]], **settings: Any) -> Path:
    """A folder with modules.json and, per module path, a weights file with tensors of these names."""
    folder.mkdir(exist_ok=True)
    listing = [
        {"idx": number, "name": str(number), "path": path, "type": kind} for number, (path, kind) in enumerate(modules)
    ]
    if modules:
        (folder / "modules.json").write_text(json.dumps(listing))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    for path, names in weights.items():
        (folder / path).mkdir(exist_ok=True)
        save_file({name: np.ones((2, 2), np.float32) for name in names}, folder / path / "model.safetensors")
    return folder


WHOLE = {
    "dense": ((TRANSFORMER, POOLING, DENSE), {"": [ENCODER], "2_Dense": ["linear.weight"]}, "dense", "mean"),
    "splade": ((TRANSFORMER, SPLADE), {"": [ENCODER, "cls.predictions.bias"]}, "sparse", "sparse terms, hashed"),
    "autoencoder": (
        (TRANSFORMER, POOLING, AUTO),
        {"": [ENCODER], "2_SparseAutoEncoder": ["encoder.weight"]},
        "sparse",
        "sparse terms, hashed",
    ),
    "multi-vector": (
        (TRANSFORMER, DENSE, MASK),
        {"": [ENCODER], "2_Dense": ["linear.weight"]},
        "multi-vector",
        "mean of token vectors",
    ),
    "clip": (
        (CLIP,),
        {"0_CLIPModel": ["text_projection.weight", "visual_projection.weight"]},
        "clip",
        "clip text projection",
    ),
}
HEADLESS = {
    "no modules at all": ((), {"": [ENCODER]}, "untrained"),
    "no pooling": ((TRANSFORMER,), {"": [ENCODER]}, "no pooling"),
    "no weights of its dense head": ((TRANSFORMER, POOLING, DENSE), {"": [ENCODER]}, "Dense head; it would be random"),
    "no language-model head": ((TRANSFORMER, SPLADE), {"": [ENCODER]}, "language-model head; it would be random"),
    "no weights of its autoencoder": (
        (TRANSFORMER, POOLING, AUTO),
        {"": [ENCODER]},
        "SparseAutoEncoder head; it would be random",
    ),
    "no projection of tokens": (
        (TRANSFORMER, MASK),
        {"": [ENCODER]},
        "projection of its token vectors; it would be random",
    ),
    "no weights of that projection": ((TRANSFORMER, DENSE, MASK), {"": [ENCODER]}, "Dense head; it would be random"),
    "no projection of texts": (
        (CLIP,),
        {"0_CLIPModel": ["vision_model.weight"]},
        "projection of texts; it would be random",
    ),
    "no projection of images": (
        (CLIP,),
        {"0_CLIPModel": ["text_projection.weight"]},
        "projection of images; it would be random",
    ),
    "a module that nobody knows": ((TRANSFORMER, ("1_X", "somebody.Router")), {"": [ENCODER]}, "Router"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_checkpoint_says_what_it_is(tmp_path: Path, name: str) -> None:
    modules, weights, kind, pooling = WHOLE[name]
    found = read_checkpoint("m", checkpoint(tmp_path / "m", *modules, weights=weights))
    assert (found.kind, found.pooling) == (kind, pooling)


@pytest.mark.parametrize("lack", HEADLESS)
def test_a_checkpoint_whose_head_is_missing_is_refused(tmp_path: Path, lack: str) -> None:
    modules, weights, why = HEADLESS[lack]
    with pytest.raises(EmbedderUnavailable, match=why):
        read_checkpoint("m", checkpoint(tmp_path / "m", *modules, weights=weights))


def test_a_clip_model_is_known_by_its_settings_where_no_module_is_named_so(tmp_path: Path) -> None:
    folder = checkpoint(
        tmp_path / "m", TRANSFORMER, weights={"": ["text_projection.weight", "visual_projection.weight"]}
    )
    (folder / "config.json").write_text('{"model_type": "clip"}')
    assert (read_checkpoint("m", folder).kind, read_checkpoint("m", folder).pooling) == ("clip", "clip text projection")
    save_file({"vision_model.weight": np.ones((2, 2), np.float32)}, folder / "model.safetensors")
    with pytest.raises(EmbedderUnavailable, match="projection of texts; it would be random"):
        read_checkpoint("m", folder)


def test_the_prompts_become_prefixes(tmp_path: Path) -> None:
    weights = {"": [ENCODER]}
    named = checkpoint(
        tmp_path / "a", TRANSFORMER, POOLING, weights=weights, prompts={"query": "query: ", "passage": "passage: "}
    )
    assert (read_checkpoint("m", named).query_prefix, read_checkpoint("m", named).document_prefix) == (
        "query: ",
        "passage: ",
    )
    one = checkpoint(
        tmp_path / "b", TRANSFORMER, POOLING, weights=weights, prompts={"sts": "Say: "}, default_prompt_name="sts"
    )
    assert (read_checkpoint("m", one).query_prefix, read_checkpoint("m", one).document_prefix) == ("Say: ", "Say: ")


def test_other_weights_or_other_pooling_are_another_revision(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", TRANSFORMER, POOLING, weights={"": [ENCODER]})
    first = read_checkpoint("m", folder).revision
    assert read_checkpoint("m", folder).revision == first
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    assert read_checkpoint("m", folder).revision != first
    assert read_checkpoint("m", folder).pooling == "cls"


def test_a_prompt_that_pooling_leaves_out_cannot_be_a_prefix(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", TRANSFORMER, POOLING, weights={"": [ENCODER]})
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true, "include_prompt": false}')
    with pytest.raises(EmbedderUnavailable, match="prompt"):
        read_checkpoint("m", folder)


def test_damaged_weights_are_refused_with_their_name(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", TRANSFORMER, SPLADE, weights={"": [ENCODER]})
    (folder / "model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(EmbedderUnavailable, match=r"model\.safetensors cannot be read"):
        read_checkpoint("m", folder)


def test_hashed_sparse_vectors_keep_their_cosines() -> None:
    chance = np.random.default_rng(3)
    exact = np.zeros((20, 30_000), np.float32)
    exact[:, :60] = chance.random((20, 60))  # what they share
    for row in exact:
        row[chance.choice(30_000, 120, replace=False)] += chance.random(120)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    rows, terms = np.nonzero(exact)
    made = hash_terms(rows, terms, exact[rows, terms], 20)
    assert made.shape == (20, SPARSE_DIM)
    assert np.abs(made @ made.T - exact @ exact.T).max() < 0.15
    assert np.abs(made @ made.T - exact @ exact.T).mean() < 0.04

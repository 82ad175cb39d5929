"""The views of a node, each made by a small model of its kind."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from processors.embedding.loader import load_embedder
from processors.embedding.view_model import KINDS, ViewEncoder
from storage.search.vectors.model_vector import similarities
from streams.errors import EmbedderUnavailable
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S
from thalweg.control.requests import ask

TEXTS = ["the river bends", "a build is slow.", "river river build"]
Checkpoint = Callable[[str], Path]


def encoder(view: int, folder: Path) -> ViewEncoder:
    embedder = load_embedder(str(folder), cache_dir=folder.parent / "cache")
    assert embedder is not None
    return ViewEncoder(view, embedder)


def test_a_dense_view_is_compared_as_the_library_compares(checkpoint: Checkpoint) -> None:
    from sentence_transformers import SentenceTransformer

    folder = checkpoint("dense, with prompts")
    model = SentenceTransformer(str(folder), device="cpu")
    asked, stored = (model.encode(TEXTS, prompt_name=name) for name in ("query", "passage"))
    expected = model.similarity(asked, stored).numpy()
    assert aligned(encoder(7, folder)) == pytest.approx(expected, abs=1e-4)


def test_a_sparse_view_is_compared_by_its_terms_and_none_is_hashed(checkpoint: Checkpoint) -> None:
    from sentence_transformers import SparseEncoder

    rows = SparseEncoder(str(checkpoint("sparse")), device="cpu").encode(TEXTS, convert_to_sparse_tensor=False).numpy()
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    made = encoder(13, checkpoint("sparse"))
    assert aligned(made) == pytest.approx(rows @ rows.T, abs=1e-4)
    assert made.info.dim == rows.shape[1]


def test_a_view_by_token_is_compared_by_the_best_match_of_each_token(checkpoint: Checkpoint) -> None:
    from sentence_transformers import MultiVectorEncoder

    model = MultiVectorEncoder(str(checkpoint("multi-vector")), device="cpu")
    asked, stored = model.encode_query(TEXTS), model.encode_document(TEXTS)
    expected = [[float((one @ other.T).max(axis=1).mean()) for other in unit(stored)] for one in unit(asked)]
    assert aligned(encoder(12, checkpoint("multi-vector"))) == pytest.approx(np.array(expected), abs=1e-4)


def unit(texts: list[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(rows) / np.linalg.norm(rows, axis=1, keepdims=True) for rows in texts]


def aligned(made: ViewEncoder) -> np.ndarray:
    stored = made.encode_stored(TEXTS)
    return np.array([similarities(made.encode_query(text), stored) for text in TEXTS])


@pytest.mark.parametrize(("view", "kind"), [(7, "sparse"), (13, "dense"), (12, "dense"), (10, "dense"), (1, "clip")])
def test_a_model_of_another_kind_is_refused(checkpoint: Checkpoint, view: int, kind: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=f"E{view} needs a {KINDS[view]} model"):
        encoder(view, checkpoint(kind))


def test_an_untrained_head_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    headless = Path(shutil.copytree(checkpoint("multi-vector"), tmp_path / "headless"))
    (headless / "1_Dense" / "model.safetensors").unlink()
    with pytest.raises(EmbedderUnavailable, match="Dense head; it would be random"):
        encoder(12, headless)


def test_a_node_makes_nine_views_by_models_of_their_own(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folders = {view: checkpoint(kind) for view, kind in KINDS.items()}
    setting = ",".join(f"E{view}={folder}" for view, folder in folders.items())
    node = NodeProcess(tmp_path / "home", THALWEG_VIEW_MODELS=setting).start()
    try:
        client = Client(node.home)
        for text in TEXTS:
            client.call("store_memory", {"content": text})
        deadline = time.monotonic() + PATIENCE_S
        vectors: list[int] = []
        while vectors != [len(TEXTS)] * len(KINDS):
            assert time.monotonic() < deadline, ask(node.home, "status")["views"]
            vectors = [state["vectors"] for state in ask(node.home, "status")["views"]["serving"].values()]
            time.sleep(0.1)
        rows = {int(row["embedder"][1:]): row for row in client.call("get_graph_manifest", {})["embedders"]}
        for view, folder in folders.items():
            assert (rows[view]["model"], rows[view]["trained"], rows[view]["available"]) == (str(folder), True, True)
            asked = {"query_content": TEXTS[0], "specific_embedder": view - 1, "min_similarity": 0}
            assert client.call("search_teleological", asked)["results"][0]["content"] == TEXTS[0], view
    finally:
        assert node.stop() == 0

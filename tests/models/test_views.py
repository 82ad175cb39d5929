"""The views of a node, each made by a small model of its kind."""

from __future__ import annotations

import base64
import io
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
from tests.models.making import COLOURS, LONGEST, SHADES
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


def png(colour: tuple[int, int, int]) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (20, 30), colour).save(file, "PNG")
    return file.getvalue()


def test_an_image_is_encoded_by_its_pixels_as_the_library_does_and_an_unreadable_one_is_not(
    checkpoint: Checkpoint,
) -> None:
    from PIL import Image
    from sentence_transformers import SentenceTransformer

    made, model = encoder(10, checkpoint("clip")), SentenceTransformer(str(checkpoint("clip")), device="cpu")
    for colour in ((200, 10, 60), (0, 0, 0)):
        [expected] = unit([model.encode([Image.new("RGB", (20, 30), colour)])])
        found = made.encode_picture(png(colour))
        assert found is not None and np.abs(found.rows - expected).max() < 1e-5
    for data in (
        b"no image",
        png((1, 2, 3))[:40],
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%!PS-Adobe-3.0 EPSF-3.0",
    ):
        assert made.encode_picture(data) is None
    assert made.encode_picture(oversized()) is None, "an image of very many pixels is not unpacked"


def oversized() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("1", (10_000, 5_000)).save(file, "PNG")
    return file.getvalue()


def test_a_clip_model_whose_side_of_images_is_untrained_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    blind = Path(shutil.copytree(checkpoint("clip"), tmp_path / "blind"))
    weights = {name: rows for name, rows in load_file(blind / "model.safetensors").items() if "visual_p" not in name}
    save_file(weights, blind / "model.safetensors", {"format": "pt"})
    with pytest.raises(EmbedderUnavailable, match="lacks its projection of images"):
        encoder(10, blind)


@pytest.mark.parametrize("view", [7, 10, 12, 13])
def test_of_a_text_longer_than_the_models_window_the_best_passage_counts(checkpoint: Checkpoint, view: int) -> None:
    made = encoder(view, checkpoint(KINDS[view]))
    words = " ".join([*["z"] * 4 * LONGEST, "river river build"])
    [short, long] = made.encode_stored(["z z", words])
    assert len(short.passages) == 1 and len(long.passages) > 4
    for text in TEXTS:
        asked = made.encode_query(text)
        each = [similarities(asked, [part])[0] for part in long.passages]
        assert similarities(asked, [long])[0] == pytest.approx(max(each), abs=1e-6)


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


def test_a_node_finds_images_by_what_they_show_and_by_their_words_where_it_may_not_read_them(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    """The words of all are alike: only their pixels tell them apart."""
    images = tmp_path / "images"
    images.mkdir()
    (tmp_path / "red.png").write_bytes(png(SHADES["red"]))
    (images / "first.png").write_bytes(png(SHADES["blue"]))
    uris = {name: f"data:image/png;base64,{base64.b64encode(png(SHADES[name])).decode()}" for name in ("red", "green")}
    setting = {"THALWEG_VIEW_MODELS": f"E10={checkpoint(COLOURS)}", "THALWEG_IMAGE_FOLDER": str(images)}
    node = NodeProcess(tmp_path / "home", **setting).start()
    try:
        client = Client(node.home)
        contents = {**uris, "blue": "first.png", "late": "later.png", "outside": str(tmp_path / "red.png")}
        contents["broken"] = "data:image/png;base64," + "A" * 40
        ids = {}
        for name, content in contents.items():
            asked = {"content": content, "modality": "image", "rationale": "A card."}
            ids[name] = client.call("store_memory", asked)["fingerprintId"]
        served = {"vectors": len(contents), "images": {"pixels": 3, "words": 3}}
        assert_serves(node, **served)
        for name in ("red", "green", "blue"):
            assert nearest_image(client, name, {ids[one] for one in ("red", "green", "blue")}) == ids[name]
        assert node.stop() == 0
        (images / "later.png").write_bytes(png(SHADES["white"]))
        node.start()
        assert_serves(node, vectors=len(contents), images={"pixels": 4, "words": 2})
        seen = {ids[one] for one in ("red", "green", "blue", "late")}
        assert nearest_image(Client(node.home), "white", seen) == ids["late"]
    finally:
        assert node.stop() == 0


def nearest_image(client: Client, colour: str, seen: set[str]) -> str:
    """Of the images that are there by their pixels, the one that E10 ranks first; of others their words count."""
    asked = {"query_content": colour, "specific_embedder": 9, "min_similarity": 0}
    found = client.call("search_teleological", asked)["results"]
    return str(next(row["id"] for row in found if row["id"] in seen))


def assert_serves(node: NodeProcess, **expected: object) -> None:
    """E10 serves with these counts, soon."""
    deadline = time.monotonic() + PATIENCE_S
    state: dict[str, object] = {}
    while {name: state.get(name) for name in expected} != expected:
        assert time.monotonic() < deadline, ask(node.home, "status")["views"]
        state = ask(node.home, "status")["views"]["serving"].get("E10", {})
        time.sleep(0.1)

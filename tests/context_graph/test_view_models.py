"""A view with a model of its own: built beside what serves it, killed meanwhile, and taken away again.

The model here is all-MiniLM-L6-v2, whose own passes need no extra; tests/models has those of sentence-transformers.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processors.context_graph.rules.views.catalogue import VIEWS
from processors.embedding.loader import MINILM, load_embedder
from processors.embedding.model import encode_documents
from storage.search.vectors.model_vector import unpack_vector
from storage.search.vectors.vector_file import VectorFile
from storage.search.vectors.view_spaces import file_space
from streams.ids import document_label
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S
from thalweg.control.requests import ask
from thalweg.views.filling import BATCH

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
CONTENTS = [f"The ferry number {number} leaves the harbour at noon." for number in range(2 * BATCH)]
MEANT, ASKED = "A physician treats the patient.", "doctor"
"""No letters or words in common: only a trained model finds the one by the other."""
E7 = {"THALWEG_VIEW_MODELS": "E7=minilm"}


@pytest.fixture
def node(tmp_path: Path) -> NodeProcess:
    node = NodeProcess(tmp_path / "home", THALWEG_PARTITIONS="2").start()
    client = Client(node.home)
    for content in [*CONTENTS, MEANT]:
        client.call("store_memory", {"content": content})
    node.settle()
    assert node.stop() == 0
    return node


def serving(node: NodeProcess, *, vectors: int) -> dict[str, Any]:
    """What the status says of the views, once E7 serves and has this many vectors."""
    deadline = time.monotonic() + PATIENCE_S
    while (state := ask(node.home, "status")["views"])["serving"].get("E7", {}).get("vectors") != vectors:
        assert time.monotonic() < deadline, state
        time.sleep(0.05)
    assert state["building"] == {}
    return dict(state["serving"]["E7"])


def manifest(node: NodeProcess) -> dict[str, Any]:
    """What is said of E7."""
    return dict(Client(node.home).call("get_graph_manifest", {})["embedders"][6])


def best(node: NodeProcess) -> str:
    asked = {"query_content": ASKED, "specific_embedder": 6, "max_results": 1, "min_similarity": 0}
    return str(Client(node.home).call("search_teleological", asked)["results"][0]["content"])


def files(node: NodeProcess) -> list[Path]:
    return list((node.home / "indexes" / "views").glob("*"))


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_view_gets_its_model_through_a_kill_follows_new_memories_and_is_what_it_was_without_the_setting(
    node: NodeProcess, nth: int
) -> None:
    node.launch(**E7, THALWEG_FAILPOINT=f"mid_view:{nth}:kill")
    assert node.died() == -9, node.log_tail()
    [file] = files(node)
    before = VectorFile(file, file_space(MINILM.space))
    assert len(before) == min(nth * BATCH, len(CONTENTS) + 1), "what was made before the kill is there"
    before.close()

    node.start(**E7)
    state = serving(node, vectors=len(CONTENTS) + 1)
    info = MINILM
    assert (state["model"], state["space"], files(node)) == (info.model_id, info.space, [file])
    told = manifest(node)
    assert (told["model"], told["provider"], told["trained"]) == (info.model_id, info.provider, True)
    assert (told["native_dimension"], told["available"], told["stands_in_for"]) == (info.dim, True, None)
    assert "building" not in told and best(node) == MEANT
    client = Client(node.home)
    rows = client.call("search_graph", {"query": ASKED})["results"]
    assert MEANT in [row["content"] for row in rows] and all("E7" in row["views"] for row in rows)
    added = client.call("store_memory", {"content": "The surgeon washes her hands."})["fingerprintId"]
    serving(node, vectors=len(CONTENTS) + 2)
    assert node.stop() == 0
    assert_vectors(file, {added: "The surgeon washes her hands."})

    node.start()
    assert files(node) == [] and ask(node.home, "status")["views"] == {"serving": {}, "building": {}}
    told = manifest(node)
    assert (told["model"], told["trained"], told["stands_in_for"]) == (VIEWS[6].model, False, VIEWS[6].stands_in_for)
    assert node.stop() == 0


def assert_vectors(file: Path, texts: dict[str, str]) -> None:
    """The file has these vectors, as the model makes them."""
    kept = VectorFile(file, file_space(MINILM.space))
    bodies = kept.read([document_label("default", one) for one in texts])
    kept.close()
    embedder = load_embedder("minilm", cache_dir=file.parents[2] / "models")
    assert embedder is not None
    expected = encode_documents(embedder, list(texts.values()))
    found = np.stack([unpack_vector(body).rows[0] for body in bodies.values()])
    assert np.abs(found - expected).max() < 1e-3


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        ("E7=hashing", "is untrained, so E7 would say nothing"),
        ("E13=minilm", "E13 needs a sparse model"),
        ("E7=/no/such/folder", "/no/such/folder"),
    ],
)
def test_a_model_that_cannot_make_the_view_is_refused_in_the_status_and_what_served_it_serves(
    node: NodeProcess, models: str, sentence: str
) -> None:
    node.start(THALWEG_VIEW_MODELS=models)
    view = models.partition("=")[0]
    deadline = time.monotonic() + PATIENCE_S
    problems: list[str] = []
    while not problems:
        status = ask(node.home, "status")
        problems = [problem for problem in status["problems"] if view in problem]
        assert time.monotonic() < deadline, status["views"]
    [problem] = problems
    assert sentence in problem and status["status"] == "red" and status["views"]["serving"] == {}
    embedders = Client(node.home).call("get_graph_manifest", {})["embedders"]
    [row] = [one for one in embedders if one["embedder"] == view]
    assert row["trained"] is False and row["available"] is True and row["building"]["problem"] in problem
    assert node.stop() == 0

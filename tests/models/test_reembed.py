"""A named model in a store: from its first start, and put in another's place by `thalweg reembed`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from processors.embedding.loader import load_embedder
from processors.embedding.model import encode_documents
from storage.vector_codec import read_vector
from tests.e2e.program import Program
from tests.node_process import Client, NodeProcess
from thalweg.control.requests import ask

CONTENTS = [
    f"I realized that {matter}."
    for matter in ("the river bends at a mill", "a build is slow", "Jo likes tea", "the query waits for a lock")
]
"""Of four matters: of one, the newest would stand first."""


def write(home: Path) -> None:
    client = Client(home)
    for content in CONTENTS:
        client.call("journal_write", {"content": content, "category": "insight"})
    client.close()


def assert_answered_by(node: NodeProcess, folder: Path) -> None:
    """The live space is the folder's model, holds its vectors of all texts, and finds a text by itself."""
    embedder = load_embedder(str(folder), cache_dir=node.home / "models")
    assert embedder is not None
    status = node.settle()
    assert status["status"] == "green" and status["spaces"]["live"] == embedder.info.space, status
    query = "SELECT d.text, e.vector FROM embeddings e JOIN documents d ON d.label = e.label WHERE e.space = ?"
    with node.store() as store:
        rows = store.execute(query, [embedder.info.space]).fetchall()
        [(documents,)] = store.execute("SELECT count(*) FROM documents").fetchall()
    assert {text for text, _ in rows} >= set(CONTENTS) and len(rows) == documents
    expected = encode_documents(embedder, [text for text, _ in rows])
    assert np.abs(np.stack([read_vector(vector) for _, vector in rows]) - expected).max() < 1e-5
    client = Client(node.home)
    for content in CONTENTS:
        answer = client.call("journal_query", {"query": content})
        assert answer["results"][0]["content"] == content and not answer.get("degraded")
    client.close()


@pytest.mark.timeout(600)
def test_a_store_begins_with_a_named_model_changes_to_others_and_needs_the_last_one_after_a_restart(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    node = NodeProcess(tmp_path / "home", embedder=str(checkpoint("dense"))).start()
    try:
        write(node.home)
        assert_answered_by(node, checkpoint("dense"))
        for kind in ("sparse", "multi-vector", "clip", "dense, with prompts"):
            report = Program(node.home)("reembed", "--model", str(checkpoint(kind)), "--json").json()
            live = next(row for row in report["spaces"] if row["state"] == "live")
            assert live["space"] == report["live"] and live["model_id"] == str(checkpoint(kind))
            assert_answered_by(node, checkpoint(kind))
        assert node.stop() == 0
        node.start()  # its setting still says the first: the store knows better
        assert ask(node.home, "status")["embedder"]["model_id"] == str(checkpoint("dense, with prompts"))
        assert_answered_by(node, checkpoint("dense, with prompts"))
    finally:
        node.stop()

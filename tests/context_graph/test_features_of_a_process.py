"""The rows of texts in a running node: made beside its work, killed meanwhile, and made anew where they are wrong."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from processors.context_graph.read.memory_texts import feature_space
from processors.embedding.hashing import HashingEmbedder
from storage.search.vectors.vector_file import VectorFile
from streams.ids import document_label
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S
from thalweg.control.requests import ask
from thalweg.views.features import BATCH

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
CONTENTS = [f"The ferry number {number} leaves the harbour at noon." for number in range(2 * BATCH)]
SPACE = feature_space(HashingEmbedder().info.space)
ASKED = {"query_content": "ferry harbour", "include_breakdown": False, "min_similarity": 0, "max_results": 5}


def rows(node: NodeProcess, count: int) -> None:
    """Wait until the node has this many rows."""
    deadline = time.monotonic() + PATIENCE_S
    while (state := ask(node.home, "status")["indexes"]["features"])["rows"] != count or state["lacking"]:
        assert time.monotonic() < deadline, state
        time.sleep(0.05)


def only_file(node: NodeProcess) -> Path:
    [file] = (node.home / "indexes" / "features").iterdir()
    return file


def bodies(file: Path, ids: list[str]) -> dict[int, bytes]:
    kept = VectorFile(file, SPACE)
    found = kept.read([document_label("default", one) for one in ids])
    kept.close()
    return found


def found(node: NodeProcess) -> list[Any]:
    return [row["id"] for row in Client(node.home).call("search_teleological", ASKED)["results"]]


@pytest.mark.parametrize("nth", [1, 2])
def test_rows_outlive_a_kill_and_a_rebuild_and_what_is_of_another_text_is_made_anew(tmp_path: Path, nth: int) -> None:
    node = NodeProcess(tmp_path / "home", THALWEG_PARTITIONS="2").start()
    client = Client(node.home)
    ids = [client.call("store_memory", {"content": content})["fingerprintId"] for content in CONTENTS]
    node.settle()
    rows(node, len(CONTENTS))
    best = found(node)
    assert node.stop() == 0
    whole = bodies(only_file(node), ids)
    assert len(whole) == len(CONTENTS)

    only_file(node).unlink()
    node.launch(THALWEG_FAILPOINT=f"mid_features:{nth}:kill")
    assert node.died() == -9, node.log_tail()
    assert len(bodies(only_file(node), ids)) == nth * BATCH, "what was made before the kill is there"

    kept = VectorFile(only_file(node), SPACE)
    first, unknown = document_label("default", ids[0]), document_label("default", "nothing")
    kept.remove([first])
    kept.add([(first, b"another!", whole[first][:-1]), (unknown, b"nowhere!", whole[first])])
    kept.close()
    node.start()
    rows(node, len(CONTENTS))
    assert found(node) == best
    assert node.stop() == 0
    assert bodies(only_file(node), ids) == whole

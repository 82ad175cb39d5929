"""What the tests of Context Graph run on: the real door over a node on one thread, where everything has its vector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmbeddingNode]:
    node = EmbeddingNode(tmp_path)
    yield node
    node.close()


@pytest.fixture
def agent(node: EmbeddingNode) -> Agent:
    return Agent(node)

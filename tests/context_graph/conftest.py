"""What the tests of Context Graph run on: the real door over a node on one thread, where everything has its vector."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from mcp_ingress.services import Limits
from processors.embedding.loader import load_embedder
from processors.memory.stages.embed import Embed
from streams.codec import decode
from streams.log.base import Outgoing
from streams.positions import Position
from streams.topics import MEMORY
from tests.context_graph.sleeper import Sleeper, awake
from tests.patience import PATIENCE_S
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent


class ModelNode(SmallNode):
    """A node with the default model: what is published is embedded at once, as the stage does it."""

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = PATIENCE_S) -> list[Position]:
        positions = await super().publish(records, timeout_s=timeout_s)
        logged = [
            each
            for outgoing in records
            if outgoing.topic == MEMORY.name
            for each in decode(self.store.record(outgoing))
            if each.event.type in Embed.accepts
        ]
        self._keep(*(fact for facts in await self.embed.facts(logged) for fact in facts))
        return positions


@pytest.fixture
def model_node(tmp_path: Path, model_cache: Path) -> Iterator[ModelNode]:
    node = ModelNode(tmp_path, load_embedder("minilm", cache_dir=model_cache))
    node.services.limits = Limits(PATIENCE_S, PATIENCE_S, PATIENCE_S)  # a publish lasts as long as the model
    yield node
    node.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmbeddingNode]:
    node = EmbeddingNode(tmp_path)
    yield node
    node.close()


@pytest.fixture
def agent(node: EmbeddingNode) -> Agent:
    return Agent(node)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent of which all tests of a module ask what is refused: nothing is kept."""
    node = EmbeddingNode(tmp_path_factory.mktemp("asked"))
    yield Agent(node)
    node.close()


@pytest.fixture
async def sleeper(tmp_path: Path) -> AsyncIterator[Sleeper]:
    async with awake(tmp_path / "home") as sleeper:
        yield sleeper

"""What the tests of Valence's conversations run on: the real door over the node on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_ingress.door import REQUEST_ID_META, Door, Request, Visitor
from mcp_ingress.inventory import find_tools
from tests.talos.node import SmallNode


class Agent:
    """`await agent.call("session_start", platform="api")` is the answer as a client gets it, checked against its
    schema.
    """

    def __init__(self, node: SmallNode) -> None:
        self.node = node
        self.door = Door(node.services, find_tools(), rate_limit=10_000)
        self._visitor = Visitor(self.door.local, node.connection)

    async def call(self, tool: str, *, request_id: str | None = None, **arguments: Any) -> dict[str, Any]:
        meta = {} if request_id is None else {REQUEST_ID_META: request_id}
        answer = await self.door.call(self._visitor, Request(tool, arguments, meta))
        if not answer.is_error and answer.body["success"]:
            jsonschema_rs.validate(dict(self.door.inventory.tools[tool].output_schema), answer.body)
        assert answer.is_error == (answer.body["success"] is False and "error_code" in answer.body)
        return answer.body

    async def session(self, **arguments: Any) -> str:
        """The id of a session just begun."""
        return str((await self.call("session_start", **{"platform": "api", **arguments}))["session_id"])

    async def say(self, session_id: str, content: str, role: str = "user", **more: Any) -> dict[str, Any]:
        return await self.call("exchange_add", session_id=session_id, role=role, content=content, **more)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SmallNode]:
    node = SmallNode(tmp_path)
    yield node
    node.close()


@pytest.fixture
def agent(node: SmallNode) -> Agent:
    return Agent(node)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent of which all tests of a module ask what is refused: nothing is kept."""
    node = SmallNode(tmp_path_factory.mktemp("asked"))
    yield Agent(node)
    node.close()

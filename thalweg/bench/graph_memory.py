"""Memories of Context Graph as an agent has them: stored, searched and asked for over MCP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import orjson

from streams.errors import Unavailable
from thalweg.bench.scratch import SocketClient

WAITS = 300


class GraphMemory:
    """A node's memory of one connection's calls."""

    def __init__(self, client: SocketClient) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool. Raises Unavailable for an error, and for a call that was not decided.

        A memory has its id at once, so that storing one need not be decided.
        """
        body = await self.asked(tool, **arguments)
        if not body["success"] or (body.get("pending") and tool != "store_memory"):
            raise Unavailable(f"The node did not decide a `{tool}` in time: {body.get('message', 'pending')}")
        return body

    async def asked(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer, also of a call that was not decided yet. Raises Unavailable for an error."""
        answer = await self.client.request("tools/call", {"name": tool, "arguments": arguments})
        body: dict[str, Any] = answer["structuredContent"]
        return body

    async def store(self, text: str) -> str:
        """Keep a text; its id."""
        return str((await self.call("store_memory", content=text))["fingerprintId"])

    async def find(self, query: str, most: int) -> list[dict[str, Any]]:
        """The rows of `search_graph`."""
        rows: list[dict[str, Any]] = (await self.call("search_graph", query=query, topK=most))["results"]
        return rows

    async def embedded(self) -> None:
        """Wait until every memory has its vector. Raises Unavailable after WAITS looks."""
        for _ in range(WAITS):
            status = await self.call("get_memetic_status")
            if status["fingerprintCount"] == status["nodeCount"] and not status.get("stale"):
                return
            await asyncio.sleep(1)
        raise Unavailable("The node did not embed what was stored in time.")

    async def living(self, ids: Iterable[str]) -> dict[str, str]:
        """By each id the memory that stands for it now."""
        found = {}
        for one in ids:
            answer = await self.client.request("resources/read", {"uri": f"thalweg://memory/{one}"})
            [memory] = orjson.loads(answer["contents"][0]["text"])["contents"]
            found[one] = str(memory.get("merged_into", one))
        return found

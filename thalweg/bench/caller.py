"""A caller that writes with the measured tool and notices when each write can be searched.

It writes through the real door.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_ingress.tool import Tool
from streams.errors import Unavailable
from streams.topics import MEMORY
from thalweg.bench.examples import PREREQUISITES, WRITE, example, write_tool
from thalweg.bench.scratch import SocketClient

STAGES = ["embed"]
WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class WriteTimes:
    """How long a memory took until it was answered, and until it was embedded and applied.

    Both in milliseconds from the moment at which it was due.
    """

    accepted_ms: float
    searchable_ms: float


class Caller:
    """An MCP connection for the calls and a control connection for the waiting, both kept open."""

    def __init__(self, calls: SocketClient, waits: SocketClient, tool: Tool) -> None:
        self._calls, self._waits, self._tool = calls, waits, tool

    @classmethod
    async def connect(cls, home: Path, tool: Tool) -> Caller:
        calls = await SocketClient.open(home)
        await calls.greet()
        return cls(calls, await SocketClient.control(home), tool)

    async def write(self, text: str, due: float | None = None) -> WriteTimes:
        """Write once; `due` (of `time.perf_counter`) is when it should have begun: waiting for a turn counts."""
        arguments = await self._arguments(self._tool, text)
        started = time.perf_counter() if due is None else due
        answer = await self._call(self._tool, arguments)
        accepted = time.perf_counter()
        token = {MEMORY.name: answer["freshness"][MEMORY.name]}
        reached = await self._waits.ask("wait", freshness=token, stages=STAGES, timeout_s=WAIT_S)
        searchable = time.perf_counter()
        if not reached["applied"]:
            raise Unavailable(f"A memory was not searchable within {WAIT_S:g} s.")
        return WriteTimes((accepted - started) * 1000, (searchable - started) * 1000)

    async def is_accepted(self, tool: Tool, text: str) -> bool:
        """Call any tool; whether it, and what has to be there before, was accepted."""
        try:
            request = {"name": tool.name, "arguments": await self._arguments(tool, text)}
        except Unavailable:
            return False
        answer = await self._calls.answer("tools/call", request)
        return "result" in answer and not answer["result"].get("isError")

    async def _arguments(self, tool: Tool, text: str) -> dict[str, Any]:
        """What the tool is called with; what has to be there before is made, and not measured."""
        arguments, prerequisite = example(tool, text), PREREQUISITES.get(tool.name)
        if prerequisite is None:
            return arguments
        earlier = write_tool(prerequisite.tool)
        value: Any = await self._call(earlier, example(earlier, text))
        for key in prerequisite.id_path:
            value = value[key]
        return arguments | {prerequisite.argument: value}

    async def _call(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = await self._calls.request("tools/call", {"name": tool.name, "arguments": arguments})
        body: dict[str, Any] = answer["structuredContent"]
        if not body.get("success", True) or body.get("spooled"):  # its time would be that of something else
            raise Unavailable(
                f"The node did not take a `{tool.name}` at once: {body.get('message', 'the log was away')}"
            )
        return body

    def close(self) -> None:
        self._calls.close()
        self._waits.close()


async def write_in_turn(home: Path, callers: int, entries: Sequence[str], tool: str = WRITE) -> list[WriteTimes]:
    """All entries, by this many callers; each begins its next entry when its last can be searched."""
    waiting = iter(entries)
    connected = [await Caller.connect(home, write_tool(tool)) for _ in range(callers)]

    async def work(caller: Caller) -> list[WriteTimes]:
        return [await caller.write(text) for text in waiting]

    return await _all(connected, [work(caller) for caller in connected])


async def write_at_rate(home: Path, rate: float, entries: Sequence[str], callers: int) -> list[WriteTimes]:
    """One entry every 1/rate seconds, whether the last is done or not. What is late is counted from when it was due."""
    connected = [await Caller.connect(home, write_tool(WRITE)) for _ in range(callers)]
    start = time.perf_counter() + 0.1
    waiting = iter(enumerate(entries))

    async def work(caller: Caller) -> list[WriteTimes]:
        done = []
        for number, text in waiting:
            due = start + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            done.append(await caller.write(text, due))
        return done

    return await _all(connected, [work(caller) for caller in connected])


async def _all(callers: Sequence[Caller], work: Sequence[object]) -> list[WriteTimes]:
    try:
        results: list[list[WriteTimes]] = await asyncio.gather(*work)  # type: ignore[call-overload]
    finally:
        for caller in callers:
            caller.close()
    return [written for result in results for written in result]

"""A client of a node with a namespace and a connection of its own, and what it was answered."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

from mcp_ingress.door import REQUEST_ID_META
from mcp_ingress.resource import find_resources
from streams.events import Event, wire_type
from tests.ingress.lines import Lines
from thalweg.process.node import Node


@dataclass
class Question:
    """A question and its answer; `given`: values in the question, which an answer may say again."""

    name: str
    given: Any
    answer: dict[str, Any]


@dataclass
class Side:
    """One namespace of the node.

    Who calls in it, the mark in each of its texts, and the ids that it was given by kind.
    """

    node: Node
    namespace: str
    mark: str
    questions: list[Question] = field(default_factory=list)
    ids: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._calls = 0
        self._turn = asyncio.Lock()
        self._peer: Lines | None = None

    async def connected(self) -> Self:
        """With a connection of its own to the node's socket, which has named this namespace."""
        self._peer = await Lines.to_socket(self.node.running.socket.path)
        scope = {"jsonrpc": "2.0", "id": 0, "method": "thalweg/scope", "params": {"namespace": self.namespace}}
        assert (await self._peer.ask(scope))["result"]["namespace"] == self.namespace
        await self._peer.greet()
        return self

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What the tool answers; an error is an answer too. The request ids are the same on every side."""
        self._calls += 1
        meta = {REQUEST_ID_META: f"request-{self._calls}"}
        answer = await self._ask("tools/call", name=tool, arguments=arguments, _meta=meta)
        return self._keep(tool, arguments, _body(answer, "structuredContent"))

    async def ok(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.call(tool, **arguments)
        assert "error_code" not in answer and not answer.get("pending"), (tool, answer)
        return answer

    async def read(self, uri: str) -> dict[str, Any]:
        """What a resource holds."""
        answer = await self._ask("resources/read", uri=uri)
        return self._keep(find_resources().name_of(uri), uri, _body(answer, "contents"))

    async def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        assert self._peer is not None
        async with self._turn:
            return await self._peer.ask({"jsonrpc": "2.0", "id": self._calls, "method": method, "params": params})

    async def control(self, command: str, **request: Any) -> dict[str, Any]:
        """What the node answers the command line about this namespace."""
        control = {"command": command, "namespace": self.namespace, **request}
        return self._keep(command, request, await self.node.control.handle(control))

    def _keep(self, name: str, given: Any, answer: dict[str, Any]) -> dict[str, Any]:
        self.questions.append(Question(name, given, answer))
        return answer

    def know(self, kind: str, value: Any) -> Any:
        self.ids.setdefault(kind, []).append(value)
        return value

    def say(self, text: str) -> str:
        """The text as this side says it."""
        return f"{text.rstrip('.?')} near {self.mark}{text[-1] if text[-1] in '.?' else ''}"

    def event(self, short: str, number: int, days_ago: float, **data: Any) -> Event:
        """What a producer sends, this many days ago."""
        time = self.node.clock.now() - timedelta(days=days_ago)
        return Event(f"{short}-{number}", "producer", wire_type(short), self.namespace, time, data)


def _body(answer: dict[str, Any], field: str) -> dict[str, Any]:
    """The object that a call or a resource was answered with; of an error its data and its sentence."""
    if "error" in answer:
        return {**(answer["error"].get("data") or {}), "sentence": answer["error"]["message"]}
    body = answer["result"][field]
    return body if isinstance(body, dict) else json.loads(body[0]["text"])

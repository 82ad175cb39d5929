"""A scripted Responses API, as Codex asks it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tests.conformance.scripted_api import Block, ScriptedAnswer, ScriptedApi, Step, serving

TOKENS = {"input_tokens": 20, "output_tokens": 2, "total_tokens": 22}


def message(text: str) -> Block:
    """What the model says."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def function_call(number: int, name: str, arguments: dict[str, Any], namespace: str | None = None) -> Block:
    """An item that asks the client to call a tool; those of an MCP server are in its namespace."""
    item: Block = {"type": "function_call", "call_id": f"call_{number:024d}", "name": name}
    return {**item, "arguments": json.dumps(arguments), **({"namespace": namespace} if namespace else {})}


class ResponsesApi(ScriptedApi):
    """Each request is a turn."""

    def __init__(self, script: Sequence[Step]) -> None:
        super().__init__(ResponsesAnswer, script)

    @property
    def outputs(self) -> dict[str, str]:
        """What the model was shown of its tools, by call, as the client sent it back with the last turn."""
        items = self.turns[-1]["input"]
        return {item["call_id"]: item["output"] for item in items if item["type"] == "function_call_output"}


class ResponsesAnswer(ScriptedAnswer):
    """One item, streamed."""

    server: ResponsesApi
    place = "/v1/responses"

    def answer(self, request: dict[str, Any]) -> None:
        block = self.server.next_block(request)
        self.send_events(_stream(f"resp_{len(self.server.turns)}", block))


def _stream(response: str, block: Block) -> Iterator[dict[str, Any]]:
    """The events of one response of one item, as the API documents them."""
    yield {"type": "response.created", "response": {"id": response}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": block}
    yield {"type": "response.completed", "response": {"id": response, "usage": TOKENS}}


def scripted(*script: Step) -> AbstractContextManager[ResponsesApi]:
    """The API while the block runs."""
    return serving(ResponsesApi(script))

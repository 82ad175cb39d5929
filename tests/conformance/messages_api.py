"""A scripted Messages API, as Claude Code asks it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tests.conformance.scripted_api import Block, ScriptedAnswer, ScriptedApi, Step, serving


def tool_use(number: int, name: str, arguments: dict[str, Any]) -> Block:
    """A block that asks the client to call a tool."""
    return {"type": "tool_use", "id": f"toolu_{number:024d}", "name": name, "input": arguments}


class MessagesApi(ScriptedApi):
    """A turn is a request that carries tools."""

    def __init__(self, script: Sequence[Step]) -> None:
        super().__init__(MessagesAnswer, script)
        self.others: list[str] = []

    def answer_to(self, request: dict[str, Any]) -> Block:
        """A turn takes the script's next block; what carries no tools (a title, a check) gets a word."""
        if request.get("tools"):
            return self.next_block(request)
        self.others.append(json.dumps(request["messages"])[:200])
        return {"type": "text", "text": "ok"}

    @property
    def tool_results(self) -> list[Block]:
        """What the client was shown of its tools, as it sent it back with the last turn."""
        messages = self.turns[-1]["messages"]
        blocks = (block for message in messages if isinstance(message["content"], list) for block in message["content"])
        return [block for block in blocks if block["type"] == "tool_result"]


class MessagesAnswer(ScriptedAnswer):
    """One message, streamed when asked."""

    server: MessagesApi
    place = "/v1/messages"

    def answer(self, request: dict[str, Any]) -> None:
        block = self.server.answer_to(request)
        if request.get("stream"):
            self.send_events(_stream(request["model"], block))
        else:
            self.send("application/json", json.dumps(_message(request["model"], [block], _reason(block))).encode())


def _reason(block: Block) -> str:
    return "tool_use" if block["type"] == "tool_use" else "end_turn"


def _message(model: str, content: list[Block], reason: str | None) -> dict[str, Any]:
    about = {"id": "msg_scripted", "type": "message", "role": "assistant", "model": model, "content": content}
    return {**about, "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}


def _stream(model: str, block: Block) -> Iterator[dict[str, Any]]:
    """The events of one streamed message of one block, as the API documents them."""
    yield {"type": "message_start", "message": _message(model, [], None)}
    if block["type"] == "tool_use":
        empty: Block = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": _reason(block), "stop_sequence": None},
        "usage": {"output_tokens": 1},
    }
    yield {"type": "message_stop"}


def scripted(*script: Step) -> AbstractContextManager[MessagesApi]:
    """The API while the block runs."""
    return serving(MessagesApi(script))

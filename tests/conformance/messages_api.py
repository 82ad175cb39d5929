"""A scripted Messages API on 127.0.0.1: what a real client is answered, and what it asked. No model is behind it.

It is the client's proxy as well: a request for any other machine arrives here as CONNECT, is refused and noted.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]
Step = Block | Callable[[], Block]
"""What is answered; of a function, once it has returned it."""


def tool_use(number: int, name: str, arguments: dict[str, Any]) -> Block:
    """A block that asks the client to call a tool."""
    return {"type": "tool_use", "id": f"toolu_{number:024d}", "name": name, "input": arguments}


class MessagesApi(ThreadingHTTPServer):
    """Answers the n-th turn of a conversation (turns that carry tools) with the n-th block of the script."""

    daemon_threads = True

    def __init__(self, script: Sequence[Step]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.script = list(script)
        self.turns: list[dict[str, Any]] = []
        self.others: list[str] = []
        self.refused: list[str] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer_to(self, request: dict[str, Any]) -> Block:
        """A turn takes the script's next block; what carries no tools (a title, a check) gets a word."""
        with self._lock:
            if not request.get("tools"):
                self.others.append(json.dumps(request["messages"])[:200])
                return {"type": "text", "text": "ok"}
            self.turns.append(request)
            step = self.script[min(len(self.turns), len(self.script)) - 1]
        return step() if callable(step) else step

    @property
    def tool_results(self) -> list[Block]:
        """What the client was shown of its tools, as it sent it back with the last turn."""
        messages = self.turns[-1]["messages"]
        blocks = (block for message in messages if isinstance(message["content"], list) for block in message["content"])
        return [block for block in blocks if block["type"] == "tool_result"]


class Answer(BaseHTTPRequestHandler):
    """POST /v1/messages, streamed when asked; anything else is refused."""

    server: MessagesApi
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path.split("?")[0] != "/v1/messages":
            self._refuse()
            return
        block = self.server.answer_to(request)
        if request.get("stream"):
            self._send("text/event-stream", b"".join(_event(part) for part in _stream(request["model"], block)))
        else:
            self._send("application/json", json.dumps(_message(request["model"], [block], _reason(block))).encode())

    def handle(self) -> None:
        """A client that has ended closes its connections as it likes."""
        with suppress(ConnectionError):
            super().handle()

    def do_HEAD(self) -> None:
        self._send("text/plain", b"")

    def _refuse(self) -> None:
        self.server.refused.append(f"{self.command} {self.path}")
        body = b'{"type":"error","error":{"type":"not_found_error","message":"not in the script"}}'
        self._send("application/json", body, status=404)

    do_GET = do_CONNECT = do_PUT = do_DELETE = _refuse

    def _send(self, kind: str, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the test's standard error."""


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


def _event(part: dict[str, Any]) -> bytes:
    return f"event: {part['type']}\ndata: {json.dumps(part)}\n\n".encode()


@contextmanager
def scripted(*script: Step) -> Iterator[MessagesApi]:
    """The API while the block runs."""
    api = MessagesApi(script)
    thread = threading.Thread(target=api.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.shutdown()
        api.server_close()
        thread.join(10)

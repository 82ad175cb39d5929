"""A scripted API on 127.0.0.1: what a real client's model is to answer, and what it was asked. No model is behind it.

It is the client's proxy as well: a request for any other machine arrives here as CONNECT, is refused and noted.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

Block = dict[str, Any]
Step = Block | Callable[[], Block]
"""What is answered; of a function, once it has returned it."""


class ScriptedApi(ThreadingHTTPServer):
    """Answers the n-th turn of a conversation with the n-th block of the script, then always with the last."""

    daemon_threads = True

    def __init__(self, answer: type[ScriptedAnswer], script: Sequence[Step]) -> None:
        super().__init__(("127.0.0.1", 0), answer)
        self.script = list(script)
        self.turns: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_block(self, request: dict[str, Any]) -> Block:
        """Note the turn; what the script says to it."""
        with self._lock:
            self.turns.append(request)
            step = self.script[min(len(self.turns), len(self.script)) - 1]
        return step() if callable(step) else step


class ScriptedAnswer(BaseHTTPRequestHandler):
    """Answers what is posted to one path; anything else is refused."""

    server: ScriptedApi
    protocol_version = "HTTP/1.1"
    place: str
    """The path of the API."""

    def answer(self, request: dict[str, Any]) -> None:
        """Send what belongs to this request."""
        raise NotImplementedError

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.split("?")[0] != self.place:
            self.refuse()
            return
        self.answer(json.loads(body or b"{}"))

    def do_HEAD(self) -> None:
        self.send("text/plain", b"")

    def refuse(self) -> None:
        self.server.refused.append(f"{self.command} {self.path}")
        body = b'{"type":"error","error":{"type":"not_found_error","message":"not in the script"}}'
        self.send("application/json", body, status=404)

    do_GET = do_CONNECT = do_PUT = do_DELETE = refuse

    def handle(self) -> None:
        """A client that has ended closes its connections as it likes."""
        with suppress(ConnectionError):
            super().handle()

    def send(self, kind: str, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_events(self, events: Iterable[dict[str, Any]]) -> None:
        """A stream of server-sent events, each named by its type."""
        parts = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
        self.send("text/event-stream", b"".join(parts))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the test's standard error."""


Api = TypeVar("Api", bound=ScriptedApi)


@contextmanager
def serving(api: Api) -> Iterator[Api]:
    """The API while the block runs."""
    thread = threading.Thread(target=api.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.shutdown()
        api.server_close()
        thread.join(10)

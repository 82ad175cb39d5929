"""Calls a provider over HTTP: paced, timed out, tried again with growing waits.

Judges and embedders use it. The key comes from the environment when the node starts, and goes nowhere but into the
request's header.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

TRIES = 4
FIRST_WAIT_S = 1.0
JITTER = 0.2
TIMEOUT_S = 20.0
RETRIED = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What a provider answered: HTTP status and body."""

    status: int
    body: bytes


Post = Callable[[str, Mapping[str, str], bytes], HttpReply]
"""(url, headers, body) -> reply. Raises TimeoutError or OSError."""


@dataclass(frozen=True)
class Provider:
    """A provider's address, the variables of its key and its address, and how it takes the key.

    `headers` makes a request's headers from the key.
    """

    url: str
    key_variable: str
    url_variable: str
    headers: Callable[[str], Mapping[str, str]]


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL", lambda key: {"Authorization": f"Bearer {key}"}
    ),
    "anthropic": Provider(
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
    ),
}


def post(url: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
    """One HTTP request."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return HttpReply(response.status, response.read())
    except urllib.error.HTTPError as error:
        return HttpReply(error.code, error.read())


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What came of a question: the answer's JSON, None when there is none; and how often it was asked."""

    answer: Any
    tries: int


@dataclass
class ProviderClient:
    """One provider with a key, asked at most `per_second` times a second by however many threads."""

    provider: Provider
    key: str | None = field(repr=False)
    per_second: float
    url: str = ""
    post: Post = post
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[float, float], float] = random.uniform
    _next: float = field(default=0.0, repr=False)
    _pacing: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def configured(cls, name: str, per_second: float, environ: Mapping[str, str]) -> ProviderClient:
        """The provider of this name, with its key and address from the environment."""
        provider = PROVIDERS[name]
        return cls(
            provider, environ.get(provider.key_variable), per_second, environ.get(provider.url_variable) or provider.url
        )

    def ask(self, path: str, question: Mapping[str, Any]) -> ProviderAnswer:
        """Four tries, 1, 2, 4 s ± 20 % apart, after 429, 503 and a time-out. Any other status but 200 is not an
        answer."""
        body = orjson.dumps(question)
        for attempt in range(TRIES):
            self._pace()
            try:
                reply = self.post(self.url.rstrip("/") + path, self.provider.headers(self.key or ""), body)
            except (OSError, http.client.HTTPException):  # a TimeoutError is an OSError
                reply = HttpReply(503, b"")
            if reply.status == 200:
                return ProviderAnswer(_parsed(reply.body), attempt + 1)
            if reply.status not in RETRIED:
                return ProviderAnswer(None, attempt + 1)
            if attempt < TRIES - 1:
                self.sleep(FIRST_WAIT_S * 2**attempt * self.chance(1 - JITTER, 1 + JITTER))
        return ProviderAnswer(None, TRIES)

    def _pace(self) -> None:
        with self._pacing:
            now = self.monotonic()
            wait, self._next = max(0.0, self._next - now), max(now, self._next) + 1 / self.per_second
        if wait:
            self.sleep(wait)


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None

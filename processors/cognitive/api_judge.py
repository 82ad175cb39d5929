"""Judges that ask a provider (OpenAI, Anthropic): paced, retried, timed out, their tokens counted; what fails is missing.

The key comes from the environment when the node starts and goes nowhere but into the request's header.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from processors.cognitive.agreement import snapped
from processors.cognitive.judging import Corpus, Document, Judged, Spent
from streams.errors import Refused

TRIES = 4
FIRST_WAIT_S = 1.0
JITTER = 0.2
TIMEOUT_S = 20.0
PER_SECOND = 1.0
_RETRIED = frozenset({429, 503})
_SCORE = re.compile(r"(?<![\d.])(?:0(?:\.\d+)?|1(?:\.0+)?)(?![\d.])")
PROMPT = """\
How relevant is the document to the query? Answer with one number and nothing else:
0 (irrelevant), 0.3 (hardly), 0.5 (partly), 0.7 (mostly), 1.0 (fully).

Query: {query}

Document: {document}"""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a provider answered: HTTP status and body."""

    status: int
    body: bytes


Post = Callable[[str, Mapping[str, str], bytes], Awaitable[Reply]]
"""(url, headers, body) -> reply. Raises TimeoutError or OSError."""


@dataclass(frozen=True)
class Provider:
    """How one provider is asked. `prices`: USD per million tokens, in and out, by the beginning of a model's name."""

    url: str
    variable: str
    headers: Callable[[str], Mapping[str, str]]
    text_of: Callable[[Any], str]
    usage: tuple[str, str]
    prices: Mapping[str, tuple[float, float]]


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1/chat/completions",
        "OPENAI_API_KEY",
        lambda key: {"Authorization": f"Bearer {key}"},
        lambda body: str(body["choices"][0]["message"]["content"]),
        ("prompt_tokens", "completion_tokens"),
        {"gpt-4o-mini": (0.15, 0.60), "gpt-4o": (2.50, 10.00)},
    ),
    "anthropic": Provider(
        "https://api.anthropic.com/v1/messages",
        "ANTHROPIC_API_KEY",
        lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
        lambda body: str(body["content"][0]["text"]),
        ("input_tokens", "output_tokens"),
        {"claude-3-5-haiku": (0.80, 4.00), "claude-3-haiku": (0.25, 1.25)},
    ),
}


async def post(url: str, headers: Mapping[str, str], body: bytes) -> Reply:
    """One HTTP request on a thread."""

    def ask() -> Reply:
        request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return Reply(response.status, response.read())
        except urllib.error.HTTPError as error:
            return Reply(error.code, error.read())

    return await asyncio.to_thread(ask)


@dataclass
class ApiJudge:
    """One model of a provider at temperature 0. Raises Refused `api_key_not_configured` when there is no key."""

    name: str
    model_name: str
    key: str | None = field(repr=False)
    post: Post = post
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic
    _next: float = field(default=0.0, repr=False)

    @property
    def model(self) -> str:
        return f"{self.name}:{self.model_name}"

    async def judge(self, query: str, documents: Sequence[Document], corpus: Corpus) -> Judged:
        provider = PROVIDERS[self.name]
        if not self.key:
            raise Refused(f"The judge {self.model} needs a key in {provider.variable}.", code="api_key_not_configured")
        scores: list[float | None] = []
        spent = Spent()
        for document in documents:
            score, cost = await self._score(provider, PROMPT.format(query=query, document=document.content))
            scores.append(score)
            spent += cost
        return Judged(scores, spent)

    async def _score(self, provider: Provider, prompt: str) -> tuple[float | None, Spent]:
        asked = {"model": self.model_name, "temperature": 0, "max_tokens": 8, "messages": [{"role": "user", "content": prompt}]}
        for attempt in range(TRIES):
            await self._pace()
            try:
                reply = await self.post(provider.url, provider.headers(self.key or ""), orjson.dumps(asked))
            except (TimeoutError, OSError):
                reply = Reply(503, b"")
            if reply.status == 200:
                return self._read(provider, reply.body)
            if reply.status not in _RETRIED:
                break
            if attempt < TRIES - 1:
                await self.sleep(FIRST_WAIT_S * 2**attempt * random.uniform(1 - JITTER, 1 + JITTER))
        return None, Spent()

    async def _pace(self) -> None:
        """One request a second."""
        now = self.monotonic()
        wait, self._next = max(0.0, self._next - now), max(now, self._next) + 1 / PER_SECOND
        if wait:
            await self.sleep(wait)

    def _read(self, provider: Provider, body: bytes) -> tuple[float | None, Spent]:
        try:
            answer = orjson.loads(body)
            tokens_in, tokens_out = (int(answer["usage"][name]) for name in provider.usage)
            spent = Spent(tokens_in, tokens_out, self._cost(provider, tokens_in, tokens_out))
            found = _SCORE.fullmatch(provider.text_of(answer).strip())
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, ValueError):
            return None, Spent()
        return (snapped(float(found.group())) if found else None), spent

    def _cost(self, provider: Provider, tokens_in: int, tokens_out: int) -> float | None:
        price = next((price for name, price in provider.prices.items() if self.model_name.startswith(name)), None)
        return None if price is None else (tokens_in * price[0] + tokens_out * price[1]) / 1e6

"""Judges that ask a provider (OpenAI, Anthropic): one request a second, with tokens and cost counted.

A judgement that fails is missing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from processors.cognitive.rules.agreement import snap
from processors.cognitive.rules.judging import Corpus, Cost, Document, Judgement
from processors.embedding.providers import ProviderClient
from streams.errors import Refused

PER_SECOND = 1.0
BUDGET_S = 540.0
"""After this long no further document is judged: its judgement is missing, and the call is answered."""
_SCORE = re.compile(r"(?<![\d.])(?:0(?:\.\d+)?|1(?:\.0+)?)(?![\d.])")
PROMPT = """\
How relevant is the document to the query? Answer with one number and nothing else:
0 (irrelevant), 0.3 (hardly), 0.5 (partly), 0.7 (mostly), 1.0 (fully).

Query: {query}

Document: {document}"""


@dataclass(frozen=True)
class ChatForm:
    """How a provider's chat is asked and read.

    `prices`: USD per million tokens, in and out, by the beginning of a model's name.
    """

    path: str
    text_of: Callable[[Any], str]
    usage: tuple[str, str]
    prices: Mapping[str, tuple[float, float]]


CHAT_FORMS: Mapping[str, ChatForm] = {
    "openai": ChatForm(
        "/chat/completions",
        lambda body: str(body["choices"][0]["message"]["content"]),
        ("prompt_tokens", "completion_tokens"),
        {"gpt-4o-mini": (0.15, 0.60), "gpt-4o": (2.50, 10.00)},
    ),
    "anthropic": ChatForm(
        "/messages",
        lambda body: str(body["content"][0]["text"]),
        ("input_tokens", "output_tokens"),
        {"claude-3-5-haiku": (0.80, 4.00), "claude-3-haiku": (0.25, 1.25)},
    ),
}


@dataclass
class ApiJudge:
    """One model of a provider at temperature 0. Raises Refused `api_key_not_configured` when there is no key."""

    name: str
    model_name: str
    client: ProviderClient

    @property
    def model(self) -> str:
        return f"{self.name}:{self.model_name}"

    async def judge(self, query: str, documents: Sequence[Document], corpus: Corpus) -> Judgement:
        if not self.client.key:
            raise Refused(
                f"The judge {self.model} needs a key in {self.client.provider.key_variable}.",
                code="api_key_not_configured",
            )
        return await asyncio.to_thread(self._judge, query, documents)

    def _judge(self, query: str, documents: Sequence[Document]) -> Judgement:
        until = self.client.monotonic() + BUDGET_S
        scores: list[float | None] = []
        spent = Cost()
        for document in documents:
            score, cost = (
                (None, Cost())
                if self.client.monotonic() > until
                else self._score(PROMPT.format(query=query, document=document.content))
            )
            scores.append(score)
            spent += cost
        return Judgement(scores, spent)

    def _score(self, prompt: str) -> tuple[float | None, Cost]:
        form = CHAT_FORMS[self.name]
        question = {
            "model": self.model_name,
            "temperature": 0,
            "max_tokens": 8,
            "messages": [{"role": "user", "content": prompt}],
        }
        answer = self.client.ask(form.path, question).answer
        try:
            tokens_in, tokens_out = (int(answer["usage"][name]) for name in form.usage)
            spent = Cost(tokens_in, tokens_out, self._cost(form, tokens_in, tokens_out))
            found = _SCORE.fullmatch(form.text_of(answer).strip())
        except (KeyError, IndexError, TypeError, ValueError):
            return None, Cost()
        return (snap(float(found.group())) if found else None), spent

    def _cost(self, form: ChatForm, tokens_in: int, tokens_out: int) -> float | None:
        price = next((price for name, price in form.prices.items() if self.model_name.startswith(name)), None)
        return None if price is None else (tokens_in * price[0] + tokens_out * price[1]) / 1e6

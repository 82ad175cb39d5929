"""Judges and embeddings of a provider, asked over HTTP: a server of this machine answers what the test tells it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import orjson
import pytest

from mcp_ingress.toolsets.cognitive_memory.judges import configured
from processors.cognitive.api_judge import ApiJudge
from processors.cognitive.config import CognitiveConfig
from processors.cognitive.rules.judging import Corpus, Document, Judgement
from processors.embedding import providers
from processors.embedding.api import ApiEmbedder
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.loader import load_embedder
from processors.frame import stage
from processors.frame.stage import StageRunner
from processors.memory.stages.embed import Embed
from streams.errors import EmbedderUnavailable, KeyMissing, SettingsError
from streams.events import LoggedEvent
from streams.log.base import Log
from streams.positions import Position
from streams.topics import MEMORY
from tests.cognitive.node import opened
from tests.cognitive.test_tools import truth
from tests.processors.harness import event
from thalweg.settings import Settings

KEY = "secret-key-of-nobody"
LATE = 0
SOON_S, MOMENT_S = 30.0, 0.1


class Server(ThreadingHTTPServer):
    """Answers with (status, body) from `replies` in turn, the last again and again; LATE is no answer in time."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.replies.pop(0) if len(self.server.replies) > 1 else self.server.replies[0]
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        if status == LATE:
            self.rfile.read(1)  # until who asked has gone away
            return
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer if isinstance(answer, bytes) else orjson.dumps(answer))

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(providers, "TIMEOUT_S", SOON_S)
    server = Server()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def said(text: str) -> tuple[int, Any]:
    return 200, {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 1000, "completion_tokens": 2}}


def environment(server: Server) -> dict[str, str]:
    return {
        f"{name}_{what}": value
        for name in ("OPENAI", "ANTHROPIC")
        for what, value in (("API_KEY", KEY), ("BASE_URL", server.url))
    }


def judges(server: Server, **settings: Any) -> tuple[CognitiveConfig, list[float]]:
    """As the node configures them; what they would have waited is noted instead, and no time passes."""
    asked = {"judge1": "openai:gpt-4o", "judge2": "anthropic:claude-3-5-haiku-latest", **settings}
    made = configured(Settings(**asked), None, environment(server))
    waits: list[float] = []
    for judge in made.judges or ():
        assert isinstance(judge, ApiJudge)
        judge.client.sleep, judge.client.chance, judge.client.monotonic = (
            waits.append,
            lambda low, high: high,
            lambda: 0.0,
        )
    return made, waits


def judged(made: CognitiveConfig, which: int = 0, count: int = 1) -> Judgement:
    assert made.judges is not None
    documents = [Document(number, f"text {number}") for number in range(count)]
    return asyncio.run(made.judges[which].judge("a query", documents, Corpus(0, {})))


def test_a_judge_is_asked_again_with_growing_waits_and_its_tokens_are_priced(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies = [(429, b""), (503, b""), (LATE, b""), said("0.7")]
    made, waits = judges(server)

    def wait(seconds: float) -> None:
        waits.append(seconds)
        until = time.monotonic() + SOON_S
        while len(server.asked) < len(waits):  # a request that was not answered in time was received, too
            assert time.monotonic() < until
            time.sleep(0.001)
        monkeypatch.setattr(providers, "TIMEOUT_S", MOMENT_S if server.replies[0][0] == LATE else SOON_S)

    client = made.judges[0].client  # type: ignore[index,union-attr]
    client.sleep, client.monotonic = wait, itertools.count(0.0, 10.0).__next__  # no request is too soon
    result = judged(made)
    assert result.scores == [0.7] and waits == [1.2, 2.4, 4.8]
    assert (result.spent.input_tokens, result.spent.output_tokens, result.spent.cost_usd) == (
        1000,
        2,
        (1000 * 2.5 + 2 * 10) / 1e6,
    )
    path, headers, body = server.asked[0]
    assert path == "/v1/chat/completions" and headers["authorization"] == f"Bearer {KEY}" and body["temperature"] == 0
    assert "a query" in body["messages"][0]["content"] and "text 0" in body["messages"][0]["content"]


@pytest.mark.parametrize(
    "reply", [(429, b""), (400, b"{}"), (200, b"no json"), (200, {}), said("7"), said("1.5"), said("very")]
)
def test_a_judgement_that_fails_is_missing(server: Server, reply: tuple[int, Any]) -> None:
    server.replies = [reply]
    assert judged(judges(server)[0]).scores == [None] and len(server.asked) == (4 if reply[0] == 429 else 1)


def test_a_judge_is_asked_once_a_second_and_each_provider_in_its_own_form(server: Server) -> None:
    server.replies = [(200, {"content": [{"text": "1.0"}], "usage": {"input_tokens": 10, "output_tokens": 1}})]
    made, waits = judges(server)
    assert judged(made, which=1, count=3).scores == [1.0] * 3
    assert waits == [1.0, 2.0]
    path, headers, _ = server.asked[0]
    assert path == "/v1/messages" and headers["x-api-key"] == KEY and headers["anthropic-version"]


def test_a_key_is_shown_nowhere(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.replies = [(401, {"error": KEY})]
    with caplog.at_level(logging.DEBUG):
        made, _ = judges(server)
        judged(made)
        with pytest.raises(EmbedderUnavailable) as caught:
            embedder(server).encode(["text"])
    assert KEY not in caplog.text + repr(made) + str(made) + caught.value.message


def test_stages_are_for_judges_of_providers_alone(server: Server) -> None:
    assert judges(server, judge_stages=True)[0].is_staged and not judges(server)[0].is_staged
    with pytest.raises(SettingsError, match="judge_stages"):
        configured(Settings(judge_stages=True), None, {})


async def test_what_has_no_key_says_so_and_judgements_that_fail_are_listed(server: Server, tmp_path: Path) -> None:
    docs = [{"id": number, "content": "text"} for number in (1, 2, 3)]
    async with opened(tmp_path) as node:
        truth(node, 42)
        keyless = configured(Settings(judge1="openai:gpt-4o"), None, {})
        node.services.parts[CognitiveConfig] = replace(
            keyless, missing_key="The embedder needs a key in OPENAI_API_KEY."
        )
        asked: tuple[tuple[str, dict[str, Any]], ...] = (
            ("store_dual_judge_scores", {"query_id": 42, "query": "q", "docs": docs}),
            ("compress_to_l2_insight", {"content": "text", "source_ids": []}),
            ("store_episode", {"query": "q", "reward": 0, "reflection": "r"}),
        )
        for tool, arguments in asked:
            error = await node.error(tool, **arguments)
            assert error["error"] == "API key not configured" and "OPENAI_API_KEY" in error["details"]
        node.services.parts[CognitiveConfig], _ = judges(server, judge2="openai:gpt-4o-mini")
        server.replies = [said("1.0"), said("1.0"), (400, b""), said("1.0")]
        answer = await node.ok("store_dual_judge_scores", query_id=42, query="q", docs=docs)
        assert answer["evaluated_documents"] == 2 and len(answer["failed_documents"]) == 1 == answer["judge1_score"]
        server.replies = [(400, b"")]
        error = await node.error("store_dual_judge_scores", query_id=42, query="q", docs=docs)
        assert error["error"] == "Tool execution failed"
        [(tokens, cost)] = node.store.sql("SELECT input_tokens, cost_usd FROM judge_runs")
        assert tokens == 5000 and round(cost, 7) in (0.0054936, 0.0078624)  # one of the two prices failed once


def embedder(server: Server, key: str | None = KEY) -> ApiEmbedder:
    given = environment(server)
    if key is None:
        del given["OPENAI_API_KEY"]
    made = load_embedder("openai:text-embedding-3-small", cache_dir=Path(), environ=given)
    assert isinstance(made, ApiEmbedder)
    made._client.sleep = lambda seconds: None
    return made


def test_embeddings_of_a_provider_are_unit_vectors_in_the_order_of_the_texts(server: Server) -> None:
    rows = [{"index": place, "embedding": [float(place + 1), *[0.0] * 1534, 1.0]} for place in (1, 0)]
    server.replies = [(503, b""), (200, {"data": rows})]
    made = embedder(server)
    vectors = made.encode(["one", "two"])
    assert vectors.shape == (2, 1536) == (2, made.info.dim) and np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert (
        vectors[0, 0] < vectors[1, 0]
        and server.asked[0][2]["input"] == ["one", "two"]
        and server.asked[0][0] == "/v1/embeddings"
    )
    for wrong in ((400, b""), (200, {"data": rows[:1]}), (200, {"data": [{"index": 0, "embedding": [1.0]}] * 2})):
        server.replies = [wrong]
        with pytest.raises(EmbedderUnavailable, match="gave no embedding"):
            made.encode(["one", "two"])
    with pytest.raises(KeyMissing, match="OPENAI_API_KEY"):
        embedder(server, key=None).encode(["one"])
    with pytest.raises(EmbedderUnavailable, match="text-embedding-3-small"):
        load_embedder("openai:gpt-4o", cache_dir=Path())


class Lazy(HashingEmbedder):
    """Does not answer the first `failing` calls."""

    failing = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if self.failing:
            self.failing -= 1
            raise EmbedderUnavailable("Not now.")
        return super().encode(texts)


async def test_a_vector_for_which_the_model_was_asked_again_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage comes again until the model answers: the answer waits for it, and the log keeps how often it was."""
    monkeypatch.setattr(stage, "RETRY_DELAY_S", 0.001)
    async with opened(tmp_path) as node:
        node.stage.embedder = lazy = Lazy()
        patient = StageRunner(node.stage, cast(Log, node), node.clock)._patient  # what runs a stage in the node
        node.stage = SimpleNamespace(accepts=Embed.accepts, facts=patient)  # type: ignore[assignment]
        insight = {"content": "Gauges drift when the banks are wet", "source_ids": []}
        assert (await node.ok("compress_to_l2_insight", **insight))["embedding_status"] == "success"
        for tool, arguments in (
            ("compress_to_l2_insight", insight | {"content": "Wet banks mislead a gauge"}),
            (
                "store_episode",
                {"query": "Why do gauges drift?", "reward": 0.5, "reflection": "Problem: wet banks. Lesson: wait."},
            ),
        ):
            lazy.failing = 2
            answer = await node.ok(tool, **arguments)
            assert answer["embedding_status"] == "retried"
            [(tries,)] = node.store.sql(
                "SELECT tries FROM embedding_retries WHERE record_id LIKE '%-' || ?", str(answer["id"])
            )
            assert tries == 3
        found = await node.ok("hybrid_search", query_text="Wet banks mislead a gauge")
        assert found["results"][0]["semantic_rank"] == 1


async def test_what_a_providers_client_asks_again_counts_too(server: Server) -> None:
    server.replies = [(503, b""), (429, b""), (200, {"data": [{"index": 0, "embedding": [1.0] * 1536}]})]
    asked = event("cm.l2.stored", {"content": "one", "source_ids": []})
    [[fact]] = await Embed(embedder(server)).facts([LoggedEvent(asked, Position(MEMORY.name, 0, 0), 0, 0, asked.key)])
    assert fact.data["tries"] == 3
    server.replies = server.replies[-1:]
    [[fact]] = await Embed(embedder(server)).facts([LoggedEvent(asked, Position(MEMORY.name, 0, 0), 0, 0, asked.key)])
    assert "tries" not in fact.data

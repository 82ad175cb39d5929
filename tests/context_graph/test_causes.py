"""Causes: what a text states, which memories are linked by it, and what the stage publishes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from processors.context_graph.read.causes import CauseFinder
from processors.context_graph.read.edges import read_edges
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.rules.cause_links import KNOWN, REVERSED, UNKNOWN, asymmetric_similarity
from processors.context_graph.rules.causes import MAX_CHARS, MAX_STATEMENTS, read_causes
from processors.context_graph.rules.edges import Edge
from processors.context_graph.rules.memories import memory_id_of
from processors.context_graph.stages.causes import Causes
from processors.embedding.loader import load_embedder
from streams.codec import encode
from streams.event_types.context_graph import MEMORY_STORED
from streams.events import Event, LoggedEvent
from streams.positions import Position
from streams.topics import DERIVED, MEMORY
from tests.context_graph.conftest import ModelNode


def stated(text: str) -> list[tuple[str | None, str | None, float]]:
    """(cause, effect, confidence) of what is stated and not denied."""
    return [
        (_of(text, one.cause), _of(text, one.effect), one.confidence)
        for one in read_causes(text).statements
        if not one.is_denied
    ]


def _of(text: str, where: tuple[int, int] | None) -> str | None:
    return None if where is None else text[slice(*where)]


@pytest.mark.parametrize(
    ("text", "cause", "effect"),
    [
        ("The build broke because the lockfile was stale.", "the lockfile was stale", "The build broke"),
        ("Because the disk was full, ingest stopped.", "the disk was full", "ingest stopped"),
        ("Ingest stopped due to a full disk.", "a full disk", "Ingest stopped"),
        ("The upgrade to 2.0 led to red builds.", "The upgrade to 2.0", "red builds"),
        ("The disk was full. As a result, ingest stopped.", "The disk was full", "ingest stopped"),
        ("The disk was full. This caused lost data.", "The disk was full", "lost data"),
        ("Prices were wrong. Root cause: uv.lock was stale.", "uv.lock was stale", "Prices were wrong"),
        ("Kafka's cost is why we use SQLite.", "Kafka's cost", "we use SQLite"),
        ("Main was broken, so nobody could merge.", "Main was broken", "nobody could merge"),
        ("Since Ravi is ill, Ingrid takes over.", "Ravi is ill", "Ingrid takes over"),
        ("The reason for the outage was a wrong flag.", "a wrong flag", "the outage"),
    ],
)
def test_a_sentence_states_a_cause_and_its_effect(text: str, cause: str, effect: str) -> None:
    assert stated(text) == [(cause, effect, 0.9)]


@pytest.mark.parametrize(
    "text",
    [
        "If the disk is full, ingest stops.",
        "The outage was probably caused by the new flag.",
        "Support was so swamped by tickets that the training was cancelled.",
        "Faster builds mean that developers run all tests.",
        "The upgrade broke the build.",
    ],
)
def test_what_is_supposed_conditional_or_implied_is_less_sure(text: str) -> None:
    [(_, _, confidence)] = stated(text)
    assert confidence == 0.6


@pytest.mark.parametrize(
    "text",
    [
        "The login service runs in three replicas.",
        "Did the build break because the lockfile was stale?",
        "Why did the build break?",
        "The build did not break because of the network.",
        "Wrong prices were not caused by the converter.",
        "The converter has nothing to do with wrong prices.",
        "The encoding was not the reason why the import failed.",
        "The network was ruled out as the cause of the outage.",
        "It has been slow since Monday.",
        "So much has happened since we last spoke.",
        "I am happy, so glad you came.",
        "```\nx = 1  # because y led to z\n```",
        "",
        "🙂",
        "because",
        "because because because",
        "Weil es regnete, blieb die Fähre im Hafen, so dass niemand kam.",
        "因为暴风雨，港口关闭了，所以渡轮没有开。",
    ],
)
def test_nothing_is_stated_by_what_asks_denies_tells_a_time_or_is_no_english_prose(text: str) -> None:
    assert stated(text) == []


def test_a_huge_text_is_read_in_time_and_only_its_beginning() -> None:
    reading = read_causes("It broke because of this, so that and since then, " * 20_000)
    assert len(reading.statements) <= MAX_STATEMENTS
    assert max(last for _, last in reading.sentences) <= MAX_CHARS


def test_how_near_a_cause_is_depends_on_direction_and_shared_names() -> None:
    assert asymmetric_similarity(0.8, UNKNOWN, 1.0) == pytest.approx(0.8)
    assert asymmetric_similarity(0.8, KNOWN, 0.5) == pytest.approx(0.816)
    assert asymmetric_similarity(0.8, REVERSED, 0.1) == pytest.approx(0.4672)
    assert asymmetric_similarity(0.95, KNOWN, 1.0) == 1
    assert asymmetric_similarity(-0.3, KNOWN, 1.0) == 0


def logged(position: Position, event: Event) -> LoggedEvent:
    return LoggedEvent(event, position, 0, 0, str(event.key))


class _Writer:
    """Stores memories of one namespace, and lets the stage look at each."""

    def __init__(self, node: ModelNode, namespace: str) -> None:
        self.node, self.namespace, self._count = node, namespace, 0
        self.stage = Causes(node.reader, node.indexes, node.applied, node.embed)

    async def store(self, content: str, modality: str = "text") -> str:
        """The memory's id."""
        self.node.clock.time += timedelta(seconds=1)
        self._count += 1
        data = {"content": content, "modality": modality}
        event = Event(
            f"{self.namespace}-{self._count}", "test", MEMORY_STORED, self.namespace, self.node.clock.now(), data
        )
        [position] = await self.node.publish([encode(MEMORY.name, event)])
        self.facts(logged(position, event))
        return memory_id_of(event)

    def facts(self, one: LoggedEvent) -> list[Event]:
        [facts] = self.stage.find(self.node.store.database.cursor(), [one])
        for fact in facts:
            self.node.process([self.node.store.record(encode(DERIVED.name, fact))])
        return list(facts)

    def edges(self) -> dict[tuple[str, str], Edge]:
        """The causes that were found, by cause and effect."""
        found = read_edges(self.node.store.database.cursor(), self.namespace, ["causal"])
        return {(edge.source_id, edge.target_id): edge for edge in found}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> Iterator[ModelNode]:
    node = ModelNode(tmp_path_factory.mktemp("causes"), load_embedder("minilm", cache_dir=model_cache))
    yield node
    node.close()


@pytest.fixture
def writer(node: ModelNode, request: pytest.FixtureRequest) -> _Writer:
    return _Writer(node, request.node.name)


IDS = "SELECT memory_id FROM context_memories WHERE namespace = ?"
CERTIFICATE = "The TLS certificate of the login service expired on Sunday."
LOGINS = "Logins failed all night because the certificate of the login service had expired."
TICKETS = "Support received 240 tickets on Monday, since logins had failed all night."


async def test_a_stated_cause_is_an_edge_with_its_sentence_whichever_was_stored_first(writer: _Writer) -> None:
    tickets, logins, certificate = [await writer.store(text) for text in (TICKETS, LOGINS, CERTIFICATE)]
    edges = writer.edges()
    assert set(edges) == {(certificate, logins), (logins, tickets)}
    edge = edges[certificate, logins]
    assert edge.evidence == {"memory_id": logins, "sentence": LOGINS.rstrip("."), "marker": "because"}
    assert edge.confidence == 0.9 and 0.5 <= edge.weight <= 1


async def test_what_is_near_and_not_stated_is_no_cause(writer: _Writer) -> None:
    for text in (
        CERTIFICATE,
        "The login service runs in three replicas behind the edge proxy.",
        "Logins failed all night; the certificate of the login service was not the reason.",
        "The login page was redrawn because the designers wanted larger buttons.",
        "Did logins fail because the certificate of the login service had expired?",
        "Die Anmeldung schlug fehl, weil das Zertifikat des Login-Service am Sonntag abgelaufen war.",
        "登录服务的证书星期天过期了，所以大家都登录不了。",
    ):
        await writer.store(text)
    assert writer.edges() == {}


async def test_a_later_denial_takes_an_edge_back(writer: _Writer) -> None:
    certificate, logins = await writer.store(CERTIFICATE), await writer.store(LOGINS)
    assert writer.edges()[certificate, logins].weight > 0
    denied = "Logins did not fail all night because of the certificate of the login service having expired."
    by = await writer.store(denied)
    assert writer.edges() == {}
    columns = "source_id, target_id, weight, confidence, evidence ->> 'memory_id'"
    kept = writer.node.store.sql(f"SELECT {columns} FROM context_edges WHERE namespace = ?", writer.namespace)
    assert kept == [(certificate, logins, 0, 1, by)]


async def test_code_is_not_read_for_causes_and_another_namespace_is_not_seen(writer: _Writer) -> None:
    await _Writer(writer.node, "elsewhere").store(CERTIFICATE)
    await writer.store(f"# {LOGINS}\ndef login(): ...", "code")
    await writer.store(CERTIFICATE)
    await writer.store(LOGINS.replace("Logins", "All logins"))
    assert len(writer.edges()) == 1


async def test_a_repeat_publishes_the_same_fact_and_a_redelivery_too(writer: _Writer) -> None:
    await writer.store(CERTIFICATE)
    event = Event("again", "test", MEMORY_STORED, writer.namespace, writer.node.clock.now(), {"content": LOGINS})
    [position] = await writer.node.publish([encode(MEMORY.name, event)])
    first, second = (writer.facts(logged(position, event)) for _ in range(2))
    assert [fact.id for fact in first] == [fact.id for fact in second] and len(first) == 1
    again = event.changed(id="once more")
    [position] = await writer.node.publish([encode(MEMORY.name, again)])
    assert writer.facts(logged(position, again)) == [], "the content is stored once"


async def test_a_memory_that_states_nothing_is_compared_with_those_that_do_and_nothing_is_lost(
    writer: _Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)
    things = ("certificate", "login service", "cache", "edge proxy", "disk", "queue")
    for number in range(40):
        one, other = chance.sample(things, 2)
        broke = f"the {one} of host {number % 5} broke on Sunday night"
        stalled, calm = f"The {other} stalled because {broke}.", f"The {other} did not stall because {broke}."
        await writer.store(chance.choice((f"{broke.capitalize()}.", stalled, calm)))
    node, cursor = writer.node, writer.node.store.database.cursor()
    reader = FingerprintReader(cursor, node.indexes, node.embedder, FingerprintCache(0), writer.namespace)
    ids = [identity for (identity,) in node.store.sql(IDS, writer.namespace)]
    few = [CauseFinder(reader).links(identity) for identity in ids]
    monkeypatch.setattr(CauseFinder, "_stating", lambda self, labels: set(labels))
    assert few == [CauseFinder(reader).links(identity) for identity in ids]
    assert sum(map(len, few)) > 10

"""Captured sessions are searched: their turns are found beside the memories and change nothing of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from mcp_ingress.toolsets.memory.resources.memory import find_text
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import Embedder
from processors.memory.reembedding import SLICE_TURNS, Missing, facts_of, lacking_turns, missing_labels, read_texts
from processors.memory.registry import CATEGORIES, ENDED, PRIVATE, ROLES, STORED_TEXTS, TAGS, TEXTS, texts_to_embed
from processors.memory.stages.embed import encode_texts
from processors.telemetry.formats.transcript import session_event, session_fields
from storage.search.captured import CAPTURED, MEMORIES, captured_cursor, read_turns, reading, turns_among
from storage.search.entries import DocumentEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter, TagFilter
from storage.search.records.hits import SearchResult
from storage.search.search import Keywords, prefetch, prefetch_turns, search
from storage.search.sessions import search_sessions
from storage.search.why import explain
from storage.search.why_session import explain_session, is_session
from streams.codec import encode, encode_batches
from streams.events import Event, LoggedEvent
from streams.log.base import RECORD_BYTES
from streams.topics import DERIVED, TELEMETRY
from tests.talos.making import NOON
from tests.talos.node import SmallNode

EMBEDDER = HashingEmbedder()


def line(number: int, text: str, *, role: str = "user", session_id: str = "s", namespace: str = "default") -> Event:
    """What the import makes of a line of Claude Code's."""
    payload = {"type": role, "uuid": f"line-{number}", "message": {"role": role, "content": text}}
    moment = NOON + timedelta(minutes=number)
    return session_event(
        "thalweg:import/claude-code",
        namespace,
        f"line-{number}",
        moment,
        session_id,
        role,
        role=role,
        text=text,
        payload=payload,
        session=session_fields("claude-code"),
    )


class Node(SmallNode):
    """A node with an embedder, to which sessions are imported."""

    def __init__(self, home: Path, embedder: Embedder | None = EMBEDDER) -> None:
        super().__init__(home, embedder)

    def _derive(self, logged: LoggedEvent) -> None:
        super()._derive(logged)
        event = logged.event
        texts = texts_to_embed(event) if event.type in TEXTS else ()
        self.publish_vectors([Missing(event.namespace, *text, event.time) for text in texts], of_turns=False)

    def capture(self, *events: Event) -> None:
        for event in events:
            self.process([self.store.record(encode(TELEMETRY.name, event))])

    def fill(self, most: int = 1) -> list[str]:
        """What the node does when nothing else is to be done: embed slices of the newest turns; their texts."""
        embedded: list[str] = []
        for _ in range(most):
            cursor = self.store.database.cursor()
            assert self.embedder is not None
            labels, _ = lacking_turns(cursor, self.embedder.info.space, sorted(self.indexes.unsearched))
            if not len(labels):
                break
            with reading(cursor, CAPTURED):
                turns = read_texts(cursor, labels)
            embedded += [turn.text for turn in turns]
            self.publish_vectors(turns, of_turns=True)
        return embedded

    def publish_vectors(self, turns: Sequence[Missing], *, of_turns: bool) -> None:
        assert self.embedder is not None
        encoded = encode_texts(self.embedder, list({turn.text for turn in turns}))
        for group in facts_of(self.embedder.info, "filling", turns, encoded, RECORD_BYTES, of_turns=of_turns):
            records = encode_batches(DERIVED.name, lambda some: some[0], group, RECORD_BYTES)
            self.process([self.store.record(record) for record in records])

    def find(self, text: str, *, limit: int = 10, indexes: IndexSet | None = None, **chosen: Any) -> SearchResult:
        cursor = self.store.database.cursor()
        return search(cursor, indexes or self.indexes, query(text, limit, **chosen))


def query(text: str, limit: int = 10, *, with_turns: bool = True, **chosen: Any) -> Query:
    filter = Filter(chosen.pop("namespace", "default"), **chosen)
    return Query(text, EMBEDDER.encode([text])[0], filter, limit, with_turns=with_turns)


def shown(result: SearchResult) -> list[tuple[str, str, float]]:
    return [(hit.kind, hit.text, round(hit.score, 9)) for hit in result.hits]


@pytest.fixture
def node(tmp_path: Path) -> Any:
    made = Node(tmp_path)
    yield made
    made.close()


FORD = "The ford of the upper weir is passable in August."


async def test_a_turn_is_found_by_its_words_as_soon_as_it_is_applied_and_by_its_meaning_once_it_is_embedded(
    node: Node,
) -> None:
    node.capture(line(1, FORD), line(2, "Noted.", role="assistant"))
    [hit, *_] = node.find("passable ford").hits
    assert (hit.kind, hit.toolset, hit.session_id, hit.text) == ("Turn", "telemetry", "s", FORD)
    assert "vector" not in hit.sides and node.find("passable ford").degraded is None
    node.fill()
    [hit, *_] = node.find("passable ford").hits
    assert {"vector", "keyword"} <= set(hit.sides)


async def test_a_hit_names_the_role_the_agent_and_the_event_of_its_session(node: Node) -> None:
    node.capture(line(1, FORD), line(2, "The ford is passable, says the gauge.", role="assistant"))
    cursor = node.store.database.cursor()
    hits = node.find("passable ford").hits
    said = read_turns(cursor, turns_among(hits))
    assert sorted((each["event_id"], each["role"], each["source"]) for each in said.values()) == [
        ("line-1", "user", "claude-code"),
        ("line-2", "assistant", "claude-code"),
    ]
    for hit in hits:
        [(text,)] = node.store.sql("SELECT text FROM session_events WHERE event_id = ?", said[hit.label]["event_id"])
        assert text == hit.text
        found = find_text(cursor, "default", hit.record_id, "content")
        assert found is not None and (found["content"], found["kind"]) == (hit.text, "Turn")
        assert find_text(cursor, "other", hit.record_id, "content") is None


async def test_only_what_asks_for_turns_finds_them(node: Node) -> None:
    node.capture(line(1, FORD))
    node.fill()
    cursor = node.store.database.cursor()
    assert search(cursor, node.indexes, query("passable ford", with_turns=False)).hits == []
    assert node.find("passable ford", kinds=("JournalEntry",)).hits == []
    assert len(node.find("passable ford", kinds=("Turn",)).hits) == 1
    assert node.find("passable ford", namespace="other").hits == []


async def told(node: SmallNode) -> None:
    for number in range(12):
        await node.call(
            "journal_write", content=f"I believe gauge {number} of the weir drifts by the ford.", category="observation"
        )
    await node.call("journal_write", content=FORD, category="observation")
    await node.call("belief_create", content=FORD, domain_path=["river"])
    await node.call("entity_search", query="weir")


ASKED: Sequence[tuple[str, dict[str, Any]]] = (
    ("journal_query", {"query": "which gauge of the weir drifts by the ford?"}),
    ("journal_query", {"query": "passable in August", "limit": 3}),
    ("belief_query", {"query": "is the ford passable"}),
    ("hybrid_search", {"query_text": "ford of the weir"}),
    ("entity_search", {"query": "weir"}),
)


async def test_the_toolsets_answer_as_if_there_were_no_turns(tmp_path: Path) -> None:
    alone, beside = Node(tmp_path / "alone"), Node(tmp_path / "beside")
    said = [f"The weir and ford {number % 7} drift, a gauge says." for number in range(30)] + [FORD] * 70
    beside.capture(*(line(number, text) for number, text in enumerate(said)))
    beside.fill(most=2)
    await told(alone)
    await told(beside)
    beside.fill(most=3)
    for tool, arguments in ASKED:
        assert await beside.call(tool, **arguments) == await alone.call(tool, **arguments), tool
    assert len((await beside.call("journal_query", query="which gauge of the weir drifts?"))["results"]) == 10
    for table in ("merges", "memory_changes", "embeddings"):
        count = f"SELECT count(*) FROM {table}"
        assert beside.store.sql(count) == alone.store.sql(count)
    alone.close()
    beside.close()


async def test_repeated_lines_are_one_fact_with_the_times_it_was_said(node: Node) -> None:
    node.capture(*(line(number, "Continue.", session_id=f"s{number % 20}") for number in range(90)))
    [hit] = node.find("continue").hits
    assert (hit.times, len(hit.also)) == (90, 10)
    await node.call("journal_write", content="continue", category="observation")
    [both] = [hit for hit in node.find("continue").hits if hit.text.casefold().startswith("continue")]
    assert both.kind != "Turn" and ("Turn", hit.record_id) in both.also and both.times == 91


async def test_the_same_line_twice_is_one_turn_and_so_is_a_message_that_two_lines_show(node: Node) -> None:
    node.capture(line(1, FORD), line(1, FORD))
    shown = {"type": "assistant", "uuid": "line-9", "message": {"content": [{"type": "text", "text": "Found it."}]}}
    own = line(9, "Found it.", role="assistant", session_id="s/agent")
    progress = session_event(
        own.source,
        "default",
        "outer",
        own.time,
        "s/agent",
        "progress",
        payload={"type": "progress", "uuid": "outer", "data": {"type": "agent_progress", "message": shown}},
        session=session_fields("claude-code", parent="s"),
    )
    node.capture(progress, own)
    assert node.store.sql("SELECT text, count(*) FROM turns GROUP BY text ORDER BY text") == [
        ("Found it.", 1),
        (FORD, 1),
    ]


async def test_the_newest_turns_are_embedded_first_a_slice_at_a_time_and_no_memory_waits_for_them(node: Node) -> None:
    node.capture(*(line(number, f"The ford is passable on day {number}.") for number in range(SLICE_TURNS + 5)))
    assert await node.services.embedding_behind("default") == 0
    cursor = node.store.database.cursor()
    lacking, present = missing_labels(cursor, EMBEDDER.info.space)
    assert (len(lacking), present) == (0, 0)
    first = node.fill()
    newest = [f"The ford is passable on day {number}." for number in range(5, SLICE_TURNS + 5)]
    assert sorted(first) == sorted(newest)
    node.capture(line(900, "The ford is flooded now."))
    assert "The ford is flooded now." in node.fill()
    assert node.fill() == []


async def test_a_namespace_that_has_opted_out_is_not_searched_and_not_embedded_and_its_telemetry_lands(
    node: Node,
) -> None:
    node.indexes.unsearched = frozenset({"quiet"})
    node.capture(line(1, FORD, namespace="quiet"), line(2, "The ford."))
    assert node.find("passable ford", namespace="quiet").hits == []
    assert node.fill() == ["The ford."]
    assert node.store.sql("SELECT text FROM session_events WHERE namespace = 'quiet'") == [(FORD,)]


async def test_a_session_is_found_by_its_turns_and_why_explains_turn_and_session(node: Node) -> None:
    node.capture(line(1, FORD), line(2, "The mill is closed.", session_id="mill"))
    node.fill()
    cursor = node.store.database.cursor()
    asked = query("passable ford in August")
    best, *_ = search_sessions(cursor, node.indexes, asked).sessions
    assert best.session_id == "s" and [hit.text for hit in best.hits] == [FORD]
    [hit] = [hit for hit in node.find("passable ford in August").hits if hit.text == FORD]
    explained = explain(cursor, node.indexes, asked, hit.record_id)
    assert (explained.verdict, explained.place, explained.is_embedded) == ("returned", 1, True)
    filtered = explain(cursor, node.indexes, query("ford", kinds=("Insight",)), hit.record_id)
    assert (filtered.verdict, filtered.filtered_by) == ("filtered", ("kinds",))
    assert is_session(cursor, "default", "s")
    assert explain_session(cursor, node.indexes, asked, "s").verdict == "returned"
    assert explain_session(cursor, node.indexes, query("ford", kinds=("Insight",)), "s").verdict == "filtered"
    assert cursor.execute("SELECT current_schema()").fetchone() == (MEMORIES,)


async def test_indexes_that_are_built_again_from_the_tables_rank_turns_alike(node: Node, tmp_path: Path) -> None:
    node.capture(
        *(
            line(number, f"The ford {number} is passable by weir {number * 7 % 11} " + "now " * number)
            for number in range(40)
        )
    )
    node.capture(line(50, f"{FORD} " * 120))
    node.fill(most=3)
    connect = node.store.database.cursor
    turns = IndexSet(tmp_path / "a", lambda: captured_cursor(connect()), EMBEDDER.info)
    again = IndexSet(tmp_path / "b", connect, EMBEDDER.info, turns=turns)
    again.open({})
    assert node.indexes.turns is not None
    node.indexes.turns.catch_up()
    node.indexes.turns.maintain()  # words move to the index, where they lie after a start
    for text in ("passable ford 3", "the upper weir in August"):
        before, after = node.find(text), node.find(text, indexes=again)
        assert [hit.text for hit in before.hits] == [hit.text for hit in after.hits] and before.hits
        assert [hit.score for hit in after.hits] == pytest.approx([hit.score for hit in before.hits])
    again.close(save=False)


async def test_many_that_nobody_waits_for_enter_the_index_at_once_and_rank_like_those_that_a_search_waited_for(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.search.index_set.IDLE_S", 0.0)
    monkeypatch.setattr("storage.search.index_set.BUILT_ROWS", 10)
    said = [f"The ford {number} is passable by weir {number * 7 % 11} " + "now " * number for number in range(40)]
    waited = Node(tmp_path / "waited")
    for each in (node, waited):
        each.capture(*(line(number, text) for number, text in enumerate(said)))
        assert each.indexes.turns is not None
    added: list[int] = []
    monkeypatch.setattr(node.indexes.turns.words.index, "add", lambda entries: added.append(len(list(entries))))
    node.indexes.maintain()
    assert added == [] and waited.indexes.turns.catch_up()
    waited.indexes.maintain()
    for text in ("passable ford 3", "weir 6 now"):
        assert shown(node.find(text, limit=40)) == shown(waited.find(text, limit=40)) != []
    waited.close()


async def test_a_search_that_comes_while_many_are_indexed_waits_for_those_at_hand_only(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.search.index_set.IDLE_S", 0.0)
    monkeypatch.setattr("storage.search.index_set.BUILT_ROWS", 10)
    node.capture(*(line(number, f"{FORD} {number}") for number in range(30)))
    turns = node.indexes.turns
    assert turns is not None
    caller = Thread(target=turns.catch_up)
    built: list[int] = []
    build, take_in = turns.words.build, turns.records.apply

    def apply(documents: Sequence[DocumentEntry]) -> None:
        take_in(documents)
        if caller.ident is None:
            caller.start()
            while not turns.is_waited_for:
                time.sleep(0.001)

    def build_some(entries: Iterable[DocumentEntry]) -> None:
        build(one for one in entries if built.append(one.label) is None)

    monkeypatch.setattr(turns.records, "apply", apply)
    monkeypatch.setattr(turns.words, "build", build_some)
    node.indexes.maintain()
    caller.join()
    assert len(built) == 1
    assert len(node.find("passable ford", limit=40).hits) == 30


async def test_a_retrieval_of_thoughts_finds_what_was_said_with_its_origin_and_place_and_by_its_filters(
    node: Node,
) -> None:
    node.capture(line(1, FORD), line(2, f"{FORD} So says the gauge.", role="assistant"))
    await node.call("journal_write", content="The ford of the upper weir is mended.", category="observation")
    before = await node.call("inner_voice.retrieve", query=FORD, mix=0.0, floor=0.0)
    assert [snippet["id"][:9] for snippet in before["snippets"]] == ["t:journal"]
    node.fill()
    found = await node.call("inner_voice.retrieve", query=FORD, mix=0.0, floor=0.0)
    human, model, _ = found["snippets"]
    assert (human["text"], human["origin"], human["trust_tier"]) == (FORD, "human", "green")
    assert (model["origin"], model["trust_tier"]) == ("model", "red")
    place = {"session_id": "s", "role": "user", "source": "claude-code", "event_id": "line-1"}
    assert {name: human[name] for name in place} == place
    assert found["diagnostics"]["thought_candidates"] == before["diagnostics"]["thought_candidates"] + 2
    for nothing in ({"include_tags": ["observation"]}, {"mix": 1.0}):
        snippets = (await node.call("inner_voice.retrieve", **{"query": FORD, "mix": 0.0} | nothing))["snippets"]
        assert not any("turn-" in snippet["id"] for snippet in snippets)


async def test_every_filter_that_a_domain_declares_can_be_asked_of_turns(node: Node) -> None:
    node.capture(line(1, FORD))
    cursor = node.store.database.cursor()
    with reading(cursor, CAPTURED):
        for select in (*CATEGORIES, TAGS, PRIVATE, ENDED, STORED_TEXTS, ROLES):
            rows = cursor.execute(f"SELECT * FROM ({select})").fetchall()
            assert all(row[1].startswith("turn-") for row in rows)
    moment = NOON + timedelta(days=1)
    for chosen, count in (
        ({"tags": TagFilter(("tech",), CATEGORIES)}, 0),
        ({"entities": ("e",)}, 0),
        ({"valid_at": moment, "known_at": moment}, 1),
        ({"valid_at": NOON}, 0),
        ({"session_ids": ("s",), "toolsets": ("telemetry",)}, 1),
        ({"domains": ("tech",)}, 0),
    ):
        assert len(node.find("ford", **chosen).hits) == count, chosen


async def test_a_search_says_when_what_was_captured_just_now_is_not_indexed_yet(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.search.search.CATCH_UP_S", 0.0)
    node.capture(line(1, FORD))
    found = node.find("passable ford")
    assert found.hits == [] and found.degraded is not None and "is being indexed" in found.degraded
    node.indexes.maintain()  # within two seconds of the capture: what an import brings next goes first
    assert node.find("passable ford").hits == []
    monkeypatch.setattr("storage.search.index_set.IDLE_S", 0.0)
    node.indexes.maintain()
    found = node.find("passable ford")
    assert ([hit.text for hit in found.hits], found.degraded) == ([FORD], None)


async def test_what_the_words_of_a_search_have_waited_for_in_vain_is_not_waited_for_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.capture(line(1, FORD))
    asked = query("passable ford")
    with monkeypatch.context() as hurried:
        hurried.setattr("storage.search.search.CATCH_UP_S", 0.0)
        assert prefetch_turns(node.indexes, asked.text, asked.filter) is None
    cursor = node.store.database.cursor()
    found = search(cursor, node.indexes, asked, Keywords(prefetch(cursor, node.indexes, asked.text, asked.filter)))
    assert found.hits == [] and found.degraded is not None and "is being indexed" in found.degraded
    assert [hit.text for hit in search(cursor, node.indexes, asked).hits] == [FORD]

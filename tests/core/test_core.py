"""remember and recall: one thing in, everything found, and the other toolsets see the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import orjson
import pytest

from mcp_ingress.services import Limits
from mcp_ingress.toolsets.core.records import read_kinds
from processors.memory.rules.plain_kind import PLAIN_KINDS, plain_kind
from tests.patience import PATIENCE_S
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

SAID = {
    "fact": "The gateway listens on port 8080.",
    "decision": "We decided to deploy the gateway on Tuesdays.",
    "preference": "The user prefers tabs over spaces in gateway code.",
    "goal": "The goal is a gateway without downtime.",
    "lesson": "We learned that the gateway forgets its cache.",
    "question": "Which certificate does the gateway use?",
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmbeddingNode]:
    node = EmbeddingNode(tmp_path)
    yield node
    node.close()


@pytest.fixture
def agent(node: EmbeddingNode) -> Agent:
    return Agent(node)


async def recalled(agent: Agent, query: str = "gateway", **arguments: Any) -> list[dict[str, Any]]:
    return list((await agent.call("recall", query=query, **arguments))["results"])


async def remembered(agent: Agent) -> dict[str, str]:
    """Kind -> id of one statement of each kind."""
    kept = {kind: await agent.call("remember", text=text) for kind, text in SAID.items()}
    assert {kind: (answer["kind"], answer["guessed"]) for kind, answer in kept.items()} == {
        kind: (kind, True) for kind in SAID
    }
    return {kind: answer["id"] for kind, answer in kept.items()}


async def test_each_kind_is_guessed_kept_and_recalled_under_the_id_that_was_answered(agent: Agent) -> None:
    ids = await remembered(agent)
    rows = await recalled(agent)
    assert {row["kind"]: row["id"] for row in rows} == ids and not any("about" in row for row in rows)
    for kind in PLAIN_KINDS:
        [row] = await recalled(agent, kind=kind)
        assert (row["id"], row["text"]) == (ids[kind], SAID[kind])


async def test_a_search_names_each_memory_by_the_kind_that_the_view_of_analysts_has(agent: Agent) -> None:
    ids = await remembered(agent)
    await agent.call("correct", id=ids["goal"], text="The goal is that the gateway answers in 20 ms.")
    await agent.call("journal_write", content="The gateway is slow.", category="friction")
    await agent.call("store_memory", content="The gateway has two ports.")
    asked = "SELECT record_id, kind FROM plain_kinds"
    seen = dict(await agent.node.services.reader.run(lambda cursor: cursor.execute(asked).fetchall()))
    services = agent.node.services
    documents = services.indexes.records.documents
    found = await services.reader.run(lambda cursor: read_kinds(cursor, documents, "default", [*seen, "unknown"]))
    assert found == seen and set(seen.values()) > set(PLAIN_KINDS)


async def test_the_other_toolsets_see_what_core_wrote(agent: Agent) -> None:
    ids = await remembered(agent)
    beliefs = (await agent.call("belief_query", query="gateway"))["beliefs"]
    assert {belief["id"] for belief in beliefs} == {ids["fact"], ids["preference"]}
    entries = (await agent.call("journal_query", query="gateway", limit=50))["results"]
    said = {row["content"] for row in entries}
    assert said >= {SAID[kind] for kind in ("decision", "goal", "lesson", "question")}
    assert await agent.node.services.reader.run(
        lambda cursor: cursor.execute("SELECT category FROM journal ORDER BY created_at").fetchall()
    ) == [("decision",), ("reflection",), ("insight",), ("reflection",)]


@pytest.mark.parametrize(("first", "second"), [("fact", "lesson"), ("lesson", "fact")])
async def test_a_write_names_what_it_changes_under_the_id_that_can_be_corrected(
    agent: Agent, first: str, second: str
) -> None:
    agent.node.services.limits = Limits(0.05, 1.0, vector_wait_s=PATIENCE_S)
    old = await agent.call("remember", text=SAID["fact"], kind=first)
    agent.node.clock.time += timedelta(seconds=1)
    new = await agent.call("remember", text="The gateway listens on port 8443.", kind=second)
    assert new["contradicts"] == [{"id": old["id"], "kind": first, "text": SAID["fact"]}] and "contradicts" not in old
    rows = {row["id"]: row for row in await recalled(agent)}
    assert rows[new["id"]]["earlier"] == [old["id"]] and rows[old["id"]]["disputed_by"] == [new["id"]]


@pytest.mark.parametrize(
    ("tool", "said"),
    [("remember", {"text": SAID["fact"], "kind": kind}) for kind in ("fact", "lesson")]
    + [("store_memory", {"content": SAID["fact"]})],
)
async def test_what_is_said_again_after_it_was_changed_is_recalled_first_however_it_is_kept(
    agent: Agent, tool: str, said: dict[str, str]
) -> None:
    agent.node.services.limits = Limits(0.05, 1.0, vector_wait_s=PATIENCE_S)
    for name, arguments in [(tool, said), ("remember", {"text": "The gateway listens on port 8443."}), (tool, said)]:
        await agent.call(name, **arguments)
        changed_on = agent.node.clock.time.date() - timedelta(days=1)
        agent.node.clock.time += timedelta(days=1)
    for query in ("gateway port 8443", "gateway port 8080"):
        holds, changed = await recalled(agent, query)
        assert holds["text"] == SAID["fact"] and changed["text"] == "The gateway listens on port 8443."
        assert holds["earlier"] == [changed["id"]] and "disputed_by" not in holds
        assert changed["disputed_by"] == [holds["id"]] and "earlier" not in changed
        then = [row["text"] for row in await recalled(agent, query, as_of=str(changed_on))]
        assert then == [changed["text"], holds["text"]]


async def test_a_call_that_is_repeated_on_a_connection_without_the_session_is_the_same_call(agent: Agent) -> None:
    await agent.call("session_open", session_id="2026-01-05-a", goal="Mend the gateway")
    once = await agent.call("remember", text=SAID["decision"], kind="decision", request_id="one")
    agent.node.connection.open_session_id = None
    again = await agent.call("remember", text=SAID["decision"], kind="decision", request_id="one")
    rows = agent.node.store.sql("SELECT entry_id, session_id FROM talos_journal")
    assert again["id"] == once["id"] and rows == [(once["id"], "2026-01-05-a")]


async def test_a_name_that_says_nothing_is_not_recalled(agent: Agent) -> None:
    names = {"persona": "gateway", "protocol": "gateway first", "human": "Gateway"}
    await agent.call("session_open", session_id="2026-01-05-a", goal="Mend the gateway", **names)
    await agent.call("remember", text=SAID["decision"], about="gateway")
    await agent.call("belief_create", content=SAID["fact"], entities=[{"name": "gateway", "type": "tool"}])
    assert {row["kind"] for row in await recalled(agent)} == {"goal", "decision", "fact"}


async def test_what_was_found_in_one_entry_is_stated_once(agent: Agent) -> None:
    for _ in range(2):
        rows = await recalled(agent)
        assert all("times" not in row and "also" not in row for row in rows)
        await agent.call("remember", text=SAID["question"])
    [row] = await recalled(agent)
    assert row["times"] == 2 and len(row["also"]) == 1


async def test_what_was_stated_again_counts_each_time_whether_or_not_it_became_a_record(agent: Agent) -> None:
    for _ in range(3):
        await agent.call("remember", text=SAID["fact"], kind="fact")  # one belief
        agent.node.clock.time += timedelta(minutes=1)
    await agent.call("journal_write", content=SAID["fact"], category="observation")
    [row] = await recalled(agent)
    assert row["times"] == 4 and len(row["also"]) == 1
    before = agent.node.clock.now()
    agent.node.clock.time += timedelta(minutes=1)
    await agent.call("remember", text=SAID["fact"], kind="fact")
    [now], [then] = await recalled(agent), await recalled(agent, as_of=before.isoformat())
    assert (now["times"], then["times"]) == (5, 4)


async def test_what_other_tools_wrote_is_recalled_too(agent: Agent) -> None:
    belief = await agent.call("belief_create", content="The gateway is written in Rust.")
    entry = await agent.call("journal_write", content="The gateway restarts at night.", category="observation")
    dialogue = await agent.node.call(
        "store_raw_dialogue", session_id="s", speaker="user", content="My gateway hums.", metadata={}
    )
    rows = {row["id"]: row["kind"] for row in await recalled(agent)}
    assert rows == {
        belief["belief"]["id"]: "fact",
        entry["entry_id"]: "observation",
        f"l0-{dialogue['id']}": "raw_dialogue",
    }


async def test_what_it_is_about_narrows_a_recall_whatever_the_kind(agent: Agent) -> None:
    about = "Gateway project"
    for kind in PLAIN_KINDS:
        await agent.call("remember", text=SAID[kind], kind=kind, about=about)
        await agent.call("remember", text=f"{SAID[kind][:-1]}, as they say.", kind=kind, about="others")
    rows = await recalled(agent, about=about.upper())
    assert {(row["kind"], row["about"]) for row in rows} == {(kind, about) for kind in PLAIN_KINDS}
    [row] = await recalled(agent, about=about, kind="preference")
    assert row["text"] == SAID["preference"]


async def test_an_answer_takes_no_more_tokens_than_it_may(agent: Agent) -> None:
    for number in range(30):
        await agent.call(
            "journal_write", content=f"Gateway {number} hums. " + "It is warm. " * 200, category="experience"
        )
    for detail, most in product(("index", "text"), (100, 300, 1500)):
        answer = await agent.call("recall", query="gateway hums", max_tokens=most, detail=detail)
        assert 0 < len(orjson.dumps(answer)) / 4 <= most
        assert answer["total"] > len(answer["results"]) > 0
        for row in answer["results"]:
            assert row["text"].startswith("Gateway") and "\n" not in row["text"]
            assert len(row["text"]) <= 120 if detail == "index" else row["truncated"] is True


async def test_a_day_ends_with_its_last_moment_and_a_recall_as_of_then_knows_nothing_later(agent: Agent) -> None:
    await agent.call("remember", text=SAID["fact"])
    today = agent.node.clock.now().date().isoformat()
    assert len(await recalled(agent, until=today)) == len(await recalled(agent, since=today)) == 1
    assert len(await recalled(agent, as_of=today)) == 1
    assert await recalled(agent, as_of="2020-01-01") == await recalled(agent, until="2020-01-01") == []


async def test_the_same_said_again_is_known_and_keeps_its_id(agent: Agent) -> None:
    first = await agent.call("remember", text=SAID["fact"])
    again = await agent.call("remember", text=SAID["fact"].upper())
    assert again["id"] == first["id"] and again["known"] is True and "known" not in first


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("remember", {"text": " "}, "`text` is blank"),
    ("remember", {"text": "x", "about": "y" * 201}, "`about` has 201 characters"),
    ("remember", {"text": "x", "kind": "wish"}, "it must be one of fact, decision"),
    ("recall", {"query": "x", "max_tokens": 99}, "at least 100"),
    ("recall", {"query": "x", "toolset": "tallos"}, "it must be one of cognitive_memory"),
    ("recall", {"query": "x", "since": "yesterday"}, "a date YYYY-MM-DD"),
    ("recall", {"query": "x", "until": "9999-12-31"}, "the last day that there is"),
]


async def test_bad_input_gets_a_sentence(agent: Agent) -> None:
    for tool, arguments, sentence in BAD:
        answer = await agent.call(tool, **arguments)
        assert answer["success"] is False and sentence in answer["message"], (tool, arguments)
    assert agent.node.published == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Wir haben entschieden, dienstags auszuliefern.", "decision"),
        ("Nous avons décidé de livrer le mardi.", "decision"),
        ("決めた: 火曜日に出す。", "decision"),
        ("Der Nutzer mag am liebsten Tabs.", "preference"),
        ("Elle préfère le thé.", "preference"),
        ("Unser Ziel ist eine Woche ohne Ausfall.", "goal"),
        ("We want to ship by March.", "goal"),
        ("Gelernt: der Cache vergisst.", "lesson"),
        ("¿Qué certificado usa?", "question"),
        ("どの証明書ですか？", "question"),
        ("The lamp works like a switch.", "fact"),
        ("Die Lampe hängt im Flur.", "fact"),
    ],
)
def test_a_kind_is_guessed_by_the_words_that_announce_it_in_several_languages(text: str, kind: str) -> None:
    assert plain_kind(text) == kind

"""A journal entry can be corrected and retracted: the newest text is found, the history stays, nothing else is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from processors.embedding.hashing import HashingEmbedder
from processors.frame.reducer import Outcome
from processors.talos.rules.identifiers import entry_id
from tests.processors.harness import Store
from tests.talos.making import Reduction, entry, make_event
from tests.talos.node import SmallNode

CORRECTED, RETRACTED = "talos.journal.corrected", "talos.journal.retracted"
OLD, NEW = "I realized that the gateway listens on port 8080.", "The gateway listens on port 8443."


@pytest.fixture
def node(tmp_path: Path) -> SmallNode:
    return SmallNode(tmp_path, HashingEmbedder())


async def written(node: SmallNode, content: str = OLD) -> str:
    return str((await node.call("journal_write", content=content, category="insight"))["entry_id"])


async def contents(node: SmallNode, query: str = "gateway port") -> set[str]:
    return {row["content"] for row in (await node.call("journal_query", query=query))["results"]}


async def test_a_corrected_entry_is_found_by_its_newest_text_only(node: SmallNode) -> None:
    old = await written(node)
    status, _, result = node.request(CORRECTED, entry_id=old, content=NEW, reason="it was moved")
    assert status == "applied" and result["corrects_id"] == old
    assert await contents(node) == {NEW}
    [row] = (await node.call("journal_query", query="gateway port"))["results"]
    assert row["id"] == result["entry_id"] and row["entity_type"] == "JournalEntry"


async def test_a_retracted_entry_is_not_found_nor_what_was_found_in_it(node: SmallNode) -> None:
    old = await written(node)
    assert OLD in await contents(node)
    assert node.request(RETRACTED, entry_id=old)[0] == "applied"
    assert await contents(node) == set()
    [(pruned,)] = node.store.sql("SELECT count(*) FROM prunes")
    assert pruned >= 1


async def test_what_another_entry_says_too_stays(node: SmallNode) -> None:
    first = await written(node, "I believe that rivers remember.")
    await node.call("journal_write", content="I believe that rivers remember.", category="observation", domain="water")
    node.request(RETRACTED, entry_id=first)
    assert "I believe that rivers remember." in await contents(node, "rivers")
    kept = "SELECT count(*) FROM entities e WHERE label = 'Belief' AND entity_id NOT IN (SELECT record_id FROM prunes)"
    assert node.store.sql(kept) == [(1,)]


async def test_the_history_of_an_entry_is_there_in_sql_with_its_reasons(node: SmallNode) -> None:
    old = await written(node)
    second = node.request(CORRECTED, entry_id=old, content=NEW, reason="it was moved")[2]["entry_id"]
    third = node.request(CORRECTED, entry_id=second, content="The gateway is gone.")[2]["entry_id"]
    node.request(RETRACTED, entry_id=third, reason=" it is back ")
    rows = node.store.sql(
        "SELECT entry_id, content, status, successor_id, reason FROM journal_history WHERE root_id = ? "
        "ORDER BY created_at",
        old,
    )
    assert rows == [
        (old, OLD, "corrected", second, "it was moved"),
        (second, NEW, "corrected", third, None),
        (third, "The gateway is gone.", "retracted", None, "it is back"),
    ]
    live = node.store.sql("SELECT memory_id, is_live, superseded_by FROM memories WHERE kind = 'insight' ORDER BY ALL")
    assert sorted(live) == sorted([(old, False, second), (second, False, third), (third, False, None)])


@pytest.mark.parametrize(
    ("short", "data", "code", "words"),
    [
        (CORRECTED, {"entry_id": "journal-2026-01-05-000000000000"}, "entry_not_found", "There is no journal entry"),
        (CORRECTED, {"content": "  "}, "invalid_argument", "The content is blank"),
        (CORRECTED, {"content": f" {OLD}\n"}, "unchanged", "says this already"),
        (RETRACTED, {"entry_id": "\u6c34" * 180_000}, "entry_not_found", "There is no journal entry"),
    ],
)
def test_what_cannot_be_corrected_is_refused_with_a_sentence(
    short: str, data: dict[str, Any], code: str, words: str
) -> None:
    reduction = Reduction()
    reduction.apply(entry(OLD))
    asked = {"entry_id": entry_id(entry(OLD))} | ({"content": NEW} if short == CORRECTED else {}) | data
    outcome = reduction.apply(make_event(short, asked, event_id="ask"))
    assert (outcome.status, outcome.code) == ("refused", code)
    assert words in str(outcome.message) and len(str(outcome.message)) < 300
    assert len(reduction.state.rows("documents")) == 1 and not reduction.state.rows("corrections")


def test_of_two_corrections_the_first_on_the_log_wins_and_the_other_is_told_where_to_go() -> None:
    reduction = Reduction()
    reduction.apply(entry(OLD))
    old = entry_id(entry(OLD))

    def ask(short: str, number: int, **data: Any) -> Outcome:
        return reduction.apply(make_event(short, {"entry_id": old, **data}, event_id=f"ask-{number}"))

    first = ask(CORRECTED, 1, content=NEW)
    for again in (ask(CORRECTED, 2, content="Another."), ask(RETRACTED, 3)):
        assert (again.status, again.code) == ("refused", "already_corrected")
        assert first.result["entry_id"] in str(again.message)
    old = str(first.result["entry_id"])
    assert ask(RETRACTED, 4).status == "applied"
    assert ask(CORRECTED, 5, content="Back.").code == ask(RETRACTED, 6).code == "already_retracted"


def test_an_entry_of_another_namespace_is_as_one_that_does_not_exist() -> None:
    reduction = Reduction()
    reduction.apply(entry(OLD))
    asked = {"entry_id": entry_id(entry(OLD)), "content": NEW}
    elsewhere = reduction.apply(make_event(CORRECTED, asked, event_id="ask", namespace="work"))
    absent = reduction.apply(
        make_event(CORRECTED, asked | {"entry_id": "journal-x"}, event_id="ask-2", namespace="work")
    )
    assert elsewhere.code == absent.code == "entry_not_found"
    assert str(elsewhere.message).replace(asked["entry_id"], "journal-x") == absent.message


@pytest.mark.parametrize("content", ["\u6cb3\u6d41" * 90_000, "The gateway \U0001f6aa listens."])
def test_a_correction_may_be_long_and_in_any_script(content: str) -> None:
    reduction = Reduction()
    reduction.apply(entry(OLD))
    asked = {"entry_id": entry_id(entry(OLD)), "content": content}
    assert reduction.apply(make_event(CORRECTED, asked, event_id="ask")).status == "applied"
    assert content in {row["text"] for row in reduction.state.rows("documents")}


@pytest.mark.parametrize("wrong", [{"entry_id": 7}, {"entry_id": ""}, {"content": float("nan")}, {"content": ["x"]}])
def test_a_correction_of_a_wrong_shape_is_a_dead_letter_and_changes_nothing(wrong: dict[str, Any]) -> None:
    store = Store()
    store.publish(make_event(CORRECTED, {"entry_id": "journal-1", "content": NEW} | wrong))
    [(count,)] = store.sql("SELECT count(*) FROM dead_letters")
    assert count == 1 and store.sql("FROM corrections") == [] == store.sql("FROM journal_versions")


def test_a_correction_that_comes_again_changes_nothing() -> None:
    store, asked = Store(), {"entry_id": entry_id(entry(OLD)), "content": NEW}
    for _ in range(2):
        store.publish(entry(OLD), make_event(CORRECTED, asked, event_id="ask"))
    assert store.sql("SELECT count(*) FROM corrections") == store.sql("SELECT count(*) FROM journal_versions") == [(1,)]

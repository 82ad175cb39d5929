"""Working memory: ten items, least recently touched first out, critical ones last; nothing is lost, nothing counted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from processors.cognitive.rules.identifiers import item_number, normalised
from tests.examples import examples
from tests.processors.harness import NOW, Store, event


def put(store: Store, number: int, content: str, importance: float = 0.5, **more: Any) -> dict[str, Any]:
    """The outcome of one update.

    `number` is the event's, and the second at which it is made unless `at` says otherwise.
    """
    moment = NOW + timedelta(seconds=more.pop("at", number))
    store.publish(event("cm.wm.updated", {"content": content, "importance": importance}, id=f"w{number}", time=moment))
    [(result,)] = store.sql("SELECT result FROM outcomes WHERE request_id = ?", f"w{number}")
    import orjson

    return dict(orjson.loads(result))


def contents(store: Store) -> set[str]:
    return {row[0] for row in store.sql("SELECT content FROM working_memory")}


def stale(store: Store) -> list[tuple[Any, ...]]:
    return store.sql("SELECT original_content, importance, reason FROM stale_memory ORDER BY archived_at")


def filled(importance: float = 0.5) -> Store:
    store = Store()
    for number in range(10):
        put(store, number, f"item {number}", importance)
    return store


def test_the_eleventh_normal_item_evicts_the_first_and_its_text_is_archived() -> None:
    store = filled()
    answer = put(store, 10, "item 10")
    assert answer["evicted_id"] == item_number("default", "item 0") and answer["refreshed"] is False
    assert contents(store) == {f"item {n}" for n in range(1, 11)}
    assert stale(store) == [("item 0", 0.5, "LRU_EVICTION")]
    assert [(answer["archived_id"],)] == store.sql("SELECT id FROM stale_memory")


def test_ten_critical_items_stay_and_the_new_normal_one_evicts_itself() -> None:
    store = filled(0.9)
    answer = put(store, 10, "item 10", 0.5)
    assert answer["evicted_id"] == answer["added_id"]
    assert contents(store) == {f"item {n}" for n in range(10)} and stale(store) == [("item 10", 0.5, "LRU_EVICTION")]


def test_of_eleven_critical_items_the_oldest_goes_and_keeps_its_importance() -> None:
    store = filled(0.9)
    put(store, 10, "item 10", 0.95)
    assert stale(store) == [("item 0", 0.9, "LRU_EVICTION")]


def test_an_importance_of_exactly_point_eight_is_not_critical() -> None:
    store = filled(0.8)
    put(store, 10, "item 10", 0.9)
    assert stale(store) == [("item 0", 0.8, "LRU_EVICTION")]


def test_an_item_of_exactly_point_eight_goes_before_an_older_critical_one() -> None:
    store = Store()
    for number in range(10):
        put(store, number, f"item {number}", 0.9 if number == 0 else 0.8)
    put(store, 10, "item 10", 0.9)
    assert stale(store) == [("item 1", 0.8, "LRU_EVICTION")]


def test_what_was_touched_last_stays_whatever_the_order_of_the_log() -> None:
    store = Store()
    for number in range(10):
        put(store, number, f"item {number}", at=100 if number == 0 else number)
    put(store, 10, "item 10", at=101)
    assert stale(store) == [("item 1", 0.5, "LRU_EVICTION")]


def test_the_same_words_again_touch_the_item_so_that_it_is_not_the_oldest() -> None:
    store = filled()
    answer = put(store, 10, "  ITEM \n 0 ", 0.3)
    assert answer == {
        "added_id": item_number("default", "item 0"),
        "evicted_id": None,
        "archived_id": None,
        "refreshed": True,
    }
    assert store.sql("SELECT importance, created_at < last_accessed FROM working_memory WHERE content = 'item 0'") == [
        (0.5, True)
    ]
    put(store, 11, "item 11")
    assert stale(store) == [("item 1", 0.5, "LRU_EVICTION")]


def test_items_touched_at_one_moment_go_in_the_order_of_the_log() -> None:
    store = Store()
    for number in range(12):
        put(store, number, f"item {number}", at=0)
    assert [row[0] for row in store.sql('SELECT original_content FROM stale_memory ORDER BY "offset"')] == [
        "item 0",
        "item 1",
    ]


def test_an_operator_archives_an_item_and_a_missing_one_is_refused() -> None:
    store = filled()
    for number, item in enumerate((item_number("default", "item 3"), 77)):
        store.publish(event("cm.wm.archived", {"item_id": item}, id=f"a{number}", time=NOW + timedelta(seconds=60)))
    assert store.sql("SELECT status, message FROM outcomes WHERE request_id LIKE 'a%' ORDER BY 1") == [
        ("applied", None),
        ("refused", "There is no item 77 in working memory."),
    ]
    assert stale(store) == [("item 3", 0.5, "MANUAL_ARCHIVE")] and len(contents(store)) == 9
    assert put(store, 20, "item 20")["evicted_id"] is None


def test_a_blank_content_changes_nothing() -> None:
    store = Store()
    store.publish(event("cm.wm.updated", {"content": " \n"}))
    assert store.sql("SELECT status, code FROM outcomes") == [("refused", "invalid_argument")] and not contents(store)


UPDATES = st.lists(st.tuples(st.integers(0, 20), st.sampled_from([0.0, 0.5, 0.8, 0.81, 1.0])), min_size=1, max_size=60)


@settings(max_examples=examples(3, 12), deadline=None)
@given(UPDATES, st.booleans())
def test_never_more_than_ten_rows_every_evicted_one_archived_once_and_a_replay_gives_the_same(
    updates: list[tuple[int, float]], in_one_batch: bool
) -> None:
    from streams.codec import encode
    from streams.topics import MEMORY

    events = [
        event(
            "cm.wm.updated",
            {"content": f"item {n}", "importance": i},
            id=f"u{place}",
            time=NOW + timedelta(seconds=place),
        )
        for place, (n, i) in enumerate(updates)
    ]
    first, again = Store(), Store()
    for each in events:
        first.publish(each)
        assert len(contents(first)) <= 10
    if in_one_batch:
        again.apply(*(again.record(encode(MEMORY.name, each)) for each in events))
    else:
        again.publish(*events, *events)
    for table in ("working_memory_slots", "stale_memory"):
        assert sorted(map(repr, first.sql(f"FROM {table}"))) == sorted(map(repr, again.sql(f"FROM {table}")))
    put_in = {normalised(f"item {n}") for n, _ in updates}
    kept, gone = contents(first), {row[0] for row in stale(first)}
    assert kept | gone == put_in
    [(added,)] = first.sql("SELECT count(*) FROM outcomes WHERE NOT (result->>'refreshed')::BOOLEAN")
    assert added == len(kept) + len(stale(first))

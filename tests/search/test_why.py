"""`why` says of each record what the search did with it, and filters by time ask what held and what was known."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.search.query import Query
from storage.search.records.filter import Filter, TagFilter
from storage.search.search import search
from storage.search.why import explain
from tests.examples import examples
from tests.search.store import EMBEDDER, START, Store

WORDS = ("tide", "gauge", "offset", "sign", "harbour", "moon", "parser")
FIRST = START.replace(tzinfo=UTC)
RECORD = st.tuples(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    st.sampled_from(["Insight", "Belief"]),
    st.sampled_from([None, "tech", "sea"]),
)
FILTERS = st.builds(
    Filter,
    st.just("a"),
    kinds=st.sampled_from([(), ("Insight",)]),
    domains=st.sampled_from([(), ("TECH",)]),
    tags=st.sampled_from([None, TagFilter(("Sea",))]),
    created_from=st.sampled_from([None, FIRST + timedelta(minutes=2)]),
    known_at=st.sampled_from([None, FIRST + timedelta(minutes=3)]),
    valid_at=st.sampled_from([None, FIRST + timedelta(minutes=4)]),
)


@settings(max_examples=examples(15, 60), deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(RECORD, min_size=1, max_size=12),
    st.lists(st.sampled_from([*WORDS, "elsewhere"]), min_size=1, max_size=3).map(" ".join),
    FILTERS,
    st.integers(1, 4),
    st.booleans(),
    st.data(),
)
def test_for_any_record_and_query_why_agrees_with_what_the_search_does(
    records: list[tuple[str, str, str | None]],
    query: str,
    filter: Filter,
    limit: int,
    with_vector: bool,
    data: st.DataObject,
) -> None:
    store = Store()
    with tempfile.TemporaryDirectory() as directory:
        indexes = store.open(Path(directory))
        for number, (text, kind, domain) in enumerate(records):
            store.write(f"r{number}", text, kind=kind, domain=domain, to=indexes)
        if len(records) > 2:
            store.merge("r1", "r0")
            store.relate("r0", "r2")
        chosen = f"r{data.draw(st.integers(0, len(records)))}"
        vector = EMBEDDER.encode([query])[0] if with_vector else None
        asked = Query(query, vector, filter, limit)
        found = search(store.connection, indexes, asked)
        said = explain(store.connection, indexes, asked, chosen)
        places = {hit.record_id: place for place, hit in enumerate(found.hits, 1)}
        assert (said.verdict == "returned") == (chosen in places)
        assert said.reasons and (said.verdict != "returned" or said.place == places[chosen])
        unlimited = {hit.record_id for hit in search(store.connection, indexes, replace(asked, limit=1000)).hits}
        if said.verdict in ("filtered", "merged", "unknown", "unmatched"):
            assert chosen not in unlimited
        if said.verdict == "outranked":
            assert chosen in unlimited
        indexes.close(save=False)


def test_each_cause_is_named(tmp_path: Path) -> None:
    store = Store()
    indexes = store.open(tmp_path)
    for number in range(4):
        store.write(f"r{number}", f"the tide turns {number}", domain="sea", to=indexes)
    store.write("other", "nothing alike", vector=-EMBEDDER.encode(["tide"])[0], to=indexes)
    store.write("bare", "unrelated words", model_id="another-model", to=None)
    indexes.apply([(1, "a", "unrelated words")], [])
    store.merge("r3", "r0")
    vector = EMBEDDER.encode(["tide"])[0]

    def why(record_id: str, filter: Filter = Filter("a"), limit: int = 1) -> tuple[str, str]:
        said = explain(store.connection, indexes, Query("tide", vector, filter, limit), record_id)
        return said.verdict, " ".join(said.reasons)

    assert why("r3")[0] == "merged" and "r0" in why("r3")[1]
    assert why("nobody")[0] == "unknown" and "forgotten" in why("nobody")[1]
    assert (
        why("r1", Filter("a", domains=("tech",)))[0] == "filtered"
        and "domains" in why("r1", Filter("a", domains=("tech",)))[1]
    )
    _, reasons = why("r1", Filter("a", tags=TagFilter(("land", "sky"))))
    assert reasons == "The filter `tags` (land, sky) leaves it out."
    assert {why(f"r{number}")[0] for number in range(3)} == {"returned", "outranked"}
    verdict, reasons = why("other")
    assert verdict == "unmatched" and "below the floor of 0.3" in reasons and "no word" in reasons
    assert "not embedded yet" in why("bare")[1]
    indexes.close(save=False)


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (Filter("a"), {"head"}),
        (Filter("a", known_at=FIRST + timedelta(minutes=30)), {"head", "merged"}),
        (Filter("a", known_at=FIRST - timedelta(minutes=1)), set()),
        (Filter("a", known_at=FIRST + timedelta(days=2)), {"head"}),
        (Filter("a", valid_at=FIRST + timedelta(minutes=30)), {"head", "merged"}),
        (Filter("a", valid_at=FIRST + timedelta(days=2)), {"head"}),
        (Filter("a", valid_at=FIRST + timedelta(days=2), known_at=FIRST + timedelta(minutes=30)), {"head", "merged"}),
        (Filter("a", valid_at=FIRST - timedelta(minutes=1)), set()),
    ],
)
def test_what_held_and_what_was_known_can_be_asked_apart(tmp_path: Path, filter: Filter, expected: set[str]) -> None:
    store = Store()
    indexes = store.open(tmp_path)
    for record_id in ("head", "merged"):
        store.write(record_id, "the tide turns", to=indexes, created_at=START)
        store.connection.execute(
            "INSERT INTO entities SELECT ?, 'Insight', 'x', 'x', NULL, NULL, NULL, NULL, NULL, NULL, ?, '', 'a', "
            "'t', 0, 0, 0, ''",
            [record_id, START],
        )
    store.merge("merged", "head")
    store.connection.execute("UPDATE merges SET merged_at = ?", [datetime(2026, 1, 2)])
    found = search(store.connection, indexes, Query("tide", None, filter, 10, distinct=False))
    assert {hit.record_id for hit in found.hits} == expected
    indexes.close(save=False)

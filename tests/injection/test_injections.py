"""What a client was given without asking is an event, and a row that SQL can ask about."""

from __future__ import annotations

from streams.topics import TELEMETRY
from tests.processors.harness import NOW, Store, event


def test_what_was_injected_is_one_row_with_its_records_scores_and_tokens() -> None:
    store = Store()
    given = {
        "session_id": "s1",
        "hook": "UserPromptSubmit",
        "prompt_digest": "ab12",
        "records": [{"record_id": "r1", "score": 0.7}, {"record_id": "r2"}],
        "tokens": 41,
    }
    store.publish(event("context.injected", given, id="i1"), topic=TELEMETRY.name)
    store.publish(event("context.injected", given, id="i1"), topic=TELEMETRY.name)
    rows = store.sql(
        "SELECT session_id, hook, prompt_digest, record_ids, scores, tokens, injected_at, event_id FROM injections"
    )
    assert rows == [("s1", "UserPromptSubmit", "ab12", ["r1", "r2"], [0.7, None], 41, NOW.replace(tzinfo=None), "i1")]
    records = store.sql(
        "SELECT record_id, count(*) FROM (SELECT unnest(record_ids) AS record_id FROM injections) GROUP BY 1 ORDER BY 1"
    )
    assert records == [("r1", 1), ("r2", 1)]


def test_an_injection_without_records_or_with_half_a_token_is_buried() -> None:
    store = Store()
    for number, wrong in enumerate(({"records": None}, {"tokens": 0.5}, {"session_id": ""})):
        given = {"session_id": "s1", "hook": "SessionStart", "records": [], "tokens": 1, **wrong}
        assert len(store.publish(event("context.injected", given, id=f"w{number}"), topic=TELEMETRY.name).buried) == 1
    assert store.sql("SELECT * FROM injections") == []

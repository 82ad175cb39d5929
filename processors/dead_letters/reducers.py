"""What an operator did about dead letters, as rows. A letter's state follows (view `dead_letter_states`)."""

from __future__ import annotations

from processors.frame.reducer import Outcome, Reducer, Row, Rows, at
from streams.event_types.dead_letters import LETTERS_DROPPED, LETTERS_REPLAYED
from streams.events import LoggedEvent

MARKS = "dead_letter_marks"


def _mark(logged: LoggedEvent, letter_id: str, mark: str) -> Row:
    return {"dead_letter_id": letter_id, "mark": mark, "marked_at": at(logged.event.time)}


def _replayed(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    for letter in logged.event.data["letters"]:
        for place in letter["positions"]:
            to = {"to_topic": place["topic"], "to_partition": place["partition"], "to_offset": place["offset"]}
            rows.insert(MARKS, _mark(logged, letter["dead_letter_id"], "replayed") | to)
    return None


def _dropped(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    for letter_id in logged.event.data["dead_letter_ids"]:
        rows.insert(MARKS, _mark(logged, letter_id, "dropped") | {"reason": logged.event.data["reason"]})
    return None


REDUCERS = {LETTERS_REPLAYED: Reducer(_replayed), LETTERS_DROPPED: Reducer(_dropped)}

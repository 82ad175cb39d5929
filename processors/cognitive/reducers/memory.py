"""Reducers of Cognitive Memory's memories: raw dialogue, insights, working memory, episodes.

Fed by the memory topic only.
"""

from __future__ import annotations

from collections.abc import Iterable

from processors.cognitive.rules.identifiers import (
    EPISODE,
    L0,
    L2,
    TOOLSET,
    WORKING,
    event_number,
    item_number,
    normalised,
    number_of,
    record_id,
)
from processors.cognitive.rules.text_quality import THRESHOLD, fidelity, reflection_warnings, warning
from processors.cognitive.rules.working_set import CAPACITY, Item, victim
from processors.frame.reducer import DOCUMENTS, Key, Outcome, Reducer, Row, Rows, at
from streams.clock import format_time
from streams.errors import Poison
from streams.event_types.cognitive import EPISODE_STORED, L0_STORED, L2_STORED, WM_ARCHIVED, WM_UPDATED
from streams.events import LoggedEvent
from streams.ids import document_label

L0_RAW, L2_INSIGHTS, L2_SOURCES = "l0_raw", "l2_insights", "l2_sources"
SLOTS, STALE, EPISODES = "working_memory_slots", "stale_memory", "episode_memory"
LRU_EVICTION, MANUAL_ARCHIVE = "LRU_EVICTION", "MANUAL_ARCHIVE"
INVALID = "invalid_argument"


def collision(table: str, number: int) -> Poison:
    """Two different rows with one id: the second goes to the dead letters."""
    return Poison(f"id_collision: {table} holds another row under the id {number}")


def blank(name: str) -> Outcome:
    """The refusal of an argument without text."""
    return Outcome("refused", INVALID, f"The argument `{name}` is blank; it needs some text.")


def _document_named(logged: LoggedEvent, kind: str, number: int) -> tuple[str, Key]:
    return DOCUMENTS, (document_label(logged.event.namespace, record_id(kind, number)),)


def _l0_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield L0_RAW, (event_number(logged.event),)
    yield _document_named(logged, L0, event_number(logged.event))


def _l0_stored(logged: LoggedEvent, rows: Rows) -> Outcome:
    data, number, moment = logged.event.data, event_number(logged.event), at(logged.event.time)
    for name in ("session_id", "speaker", "content"):
        if not data[name].strip():
            return blank(name)
    if rows.get(L0_RAW, number) is not None:
        raise collision(L0_RAW, number)
    said = {name: data[name] for name in ("session_id", "speaker", "content")}
    rows.put(L0_RAW, {"id": number, "timestamp": moment, **said, "metadata": data.get("metadata") or {}})
    about = {"session_id": data["session_id"], "role": data["speaker"]}
    rows.document(record_id(L0, number), TOOLSET, L0, data["content"], created_at=moment, **about)
    return Outcome(result={"id": number, "session_id": data["session_id"], "timestamp": format_time(logged.event.time)})


def _l2_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    number = event_number(logged.event)
    yield L2_INSIGHTS, (number,)
    yield _document_named(logged, L2, number)
    for source in logged.event.data["source_ids"]:
        yield L0_RAW, (source,)


def _l2_stored(logged: LoggedEvent, rows: Rows) -> Outcome:
    data, number, moment = logged.event.data, event_number(logged.event), at(logged.event.time)
    if not data["content"].strip():
        return blank("content")
    sources = list(dict.fromkeys(data["source_ids"]))
    unknown = [source for source in sources if rows.get(L0_RAW, source) is None]
    if unknown:
        return Outcome("refused", INVALID, f"Unknown source_ids: {unknown}")
    if rows.get(L2_INSIGHTS, number) is not None:
        raise collision(L2_INSIGHTS, number)
    score = fidelity(data["content"])
    threshold = data.get("fidelity_threshold")
    said = warning(score, THRESHOLD if threshold is None else threshold)
    coverage = data.get("source_coverage") if sources else None
    metadata = {
        "fidelity_score": score,
        "fidelity_warning": said is not None,
        "warning_message": said,
        "source_coverage": coverage,
    }
    rows.put(
        L2_INSIGHTS,
        {"id": number, "content": data["content"], "created_at": moment, "source_ids": sources, **metadata}
        | {"coverage_model": None if coverage is None else data.get("coverage_model")},
    )
    for place, source in enumerate(sources):
        rows.insert(L2_SOURCES, {"insight_id": number, "source_id": source, "place": place})
    rows.document(record_id(L2, number), TOOLSET, L2, data["content"], created_at=moment)
    return Outcome(
        result={
            "id": number,
            "fidelity_score": score,
            "timestamp": format_time(logged.event.time),
            "metadata": metadata,
        }
    )


def _wm_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield from ((SLOTS, (slot,)) for slot in range(CAPACITY))
    if logged.event.type == WM_UPDATED:
        yield _document_named(logged, WORKING, item_number(logged.event.namespace, logged.event.data["content"]))
    yield STALE, (_stale_number(logged),)


def _stale_number(logged: LoggedEvent) -> int:
    return number_of("stale", str(logged.key))


def _items(rows: Rows) -> list[Item]:
    """What is in working memory, in the order of the places."""
    found = []
    for slot in range(CAPACITY):
        row = rows.get(SLOTS, slot)
        if row is not None and row["id"] is not None:
            place = (row["offset"], row["idx"])
            found.append(
                Item(slot, row["id"], row["content"], row["importance"], row["last_accessed"], row["created_at"], place)
            )
    return found


def _wm_updated(logged: LoggedEvent, rows: Rows) -> Outcome:
    data, moment = logged.event.data, at(logged.event.time)
    content = data["content"]
    if not content.strip():
        return blank("content")
    given = data.get("importance")
    importance = 0.5 if given is None else float(given)
    number = item_number(logged.event.namespace, content)
    items = _items(rows)
    known = next((item for item in items if item.id == number), None)
    if known is not None:
        if normalised(known.content) != normalised(content):
            raise collision("working_memory", number)
        _place(rows, known.slot, number, known.content, max(known.importance, importance), moment, known.created_at)
        return Outcome(result={"added_id": number, "evicted_id": None, "archived_id": None, "refreshed": True})
    new = Item(CAPACITY, number, content, importance, moment, moment, (logged.position.offset, logged.index))
    free = next((slot for slot in range(CAPACITY) if all(item.slot != slot for item in items)), None)
    rows.document(record_id(WORKING, number), TOOLSET, WORKING, content, created_at=moment)
    if free is not None:
        _place(rows, free, number, content, importance, moment, moment)
        return Outcome(result={"added_id": number, "evicted_id": None, "archived_id": None, "refreshed": False})
    evicted = victim([*items, new])
    archived = _archive(logged, rows, evicted, LRU_EVICTION, displaced_by=number)
    if evicted is not new:
        _place(rows, evicted.slot, number, content, importance, moment, moment)
    return Outcome(result={"added_id": number, "evicted_id": evicted.id, "archived_id": archived, "refreshed": False})


def _place(
    rows: Rows,
    slot: int,
    number: int | None,
    content: str | None,
    importance: float | None,
    touched: object,
    made: object,
) -> None:
    row: Row = {"slot": slot, "id": number, "content": content, "importance": importance}
    rows.put(SLOTS, row | {"last_accessed": touched, "created_at": made})


def _archive(logged: LoggedEvent, rows: Rows, item: Item, reason: str, displaced_by: int | None) -> int:
    number = _stale_number(logged)
    if rows.get(STALE, number) is not None:
        raise collision(STALE, number)
    rows.put(
        STALE,
        {
            "id": number,
            "item_id": item.id,
            "original_content": item.content,
            "importance": item.importance,
            "reason": reason,
            "archived_at": at(logged.event.time),
            "created_at": item.created_at,
            "last_accessed": item.last_accessed,
            "displaced_by": displaced_by,
        },
    )
    return number


def _wm_archived(logged: LoggedEvent, rows: Rows) -> Outcome:
    wanted = logged.event.data["item_id"]
    item = next((item for item in _items(rows) if item.id == wanted), None)
    if item is None:
        return Outcome("refused", INVALID, f"There is no item {wanted} in working memory.")
    archived = _archive(logged, rows, item, MANUAL_ARCHIVE, displaced_by=None)
    _place(rows, item.slot, None, None, None, None, None)
    return Outcome(result={"item_id": wanted, "archived_id": archived})


def _episode_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield EPISODES, (event_number(logged.event),)
    yield _document_named(logged, EPISODE, event_number(logged.event))


def _episode_stored(logged: LoggedEvent, rows: Rows) -> Outcome:
    data, number, moment = logged.event.data, event_number(logged.event), at(logged.event.time)
    for name in ("query", "reflection"):
        if not data[name].strip():
            return blank(name)
    if rows.get(EPISODES, number) is not None:
        raise collision(EPISODES, number)
    said = {"query": data["query"], "reward": float(data["reward"]), "reflection": data["reflection"]}
    rows.put(EPISODES, {"id": number, **said, "created_at": moment})
    rows.document(
        record_id(EPISODE, number), TOOLSET, EPISODE, f"{data['query']}\n{data['reflection']}", created_at=moment
    )
    answer = {
        "id": number,
        "query": data["query"],
        "reward": said["reward"],
        "created_at": format_time(logged.event.time),
    }
    return Outcome(result=answer | {"warnings": reflection_warnings(data["reflection"])})


REDUCERS = {
    L0_STORED: Reducer(_l0_stored, _l0_reads),
    L2_STORED: Reducer(_l2_stored, _l2_reads),
    WM_UPDATED: Reducer(_wm_updated, _wm_reads),
    WM_ARCHIVED: Reducer(_wm_archived, _wm_reads),
    EPISODE_STORED: Reducer(_episode_stored, _episode_reads),
}

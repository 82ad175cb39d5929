"""Talos' facts become rows: entities, relations, merges, patterns, prunes, how significant a day was.

Fed by the derived topic only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from processors.frame.reducer import DOCUMENTS, Key, Outcome, Reducer, Rows, at
from processors.talos.rules.canonical import canonical_form
from processors.talos.rules.ontology import searchable_text
from streams.clock import parse_time
from streams.event_types.talos import (
    ENTITIES_EXTRACTED,
    ENTITIES_PRUNED,
    PATTERN_DEPRECATED,
    PATTERN_DETECTED,
    PATTERN_SIGNALLED,
    SIGNIFICANCE_RATED,
    SIMILAR_FOUND,
)
from streams.events import LoggedEvent
from streams.ids import derived_id, document_label

ENTITIES, RELATIONS, MERGES, CLUSTERS = "entities", "relations", "merges", "clusters"
PATTERN_SIGNALS, SIGNAL_EVIDENCE, PATTERN_DEPRECATIONS = "pattern_signals", "signal_evidence", "pattern_deprecations"
PRUNES, SIGNIFICANCE = "prunes", "significance"


def _extracted_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    for entity in logged.event.data["entities"]:
        yield ENTITIES, (entity["id"],)
        yield DOCUMENTS, (document_label(logged.event.namespace, entity["id"]),)
    for relation in logged.event.data["relations"]:
        yield RELATIONS, (_relation_id(relation),)


def _relation_id(relation: dict[str, str]) -> str:
    return derived_id("relation", relation["type"], relation["from"], relation["to"])


def _extracted(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    data, moment = logged.event.data, at(logged.event.time)
    source = data["source_event_id"]
    for entity in data["entities"]:
        if rows.get(ENTITIES, entity["id"]) is not None:
            continue  # a statement made again is the same entity
        properties = dict(entity.get("properties") or {})
        session_id, domain = data.get("session_id"), properties.get("domain")
        rows.put(
            ENTITIES,
            {
                "entity_id": entity["id"],
                "label": entity["label"],
                "text": entity["text"],
                "canonical_form": canonical_form(entity["text"]),
                "category": properties.get("category"),
                "session_id": session_id,
                "domain": domain,
                "confidence": entity.get("confidence"),
                "is_blocking": properties.get("blocking"),
                "properties": properties,
                "created_at": moment,
                "source_event_id": source,
            },
        )
        text = searchable_text(entity["label"], entity["text"], properties)
        rows.document(
            entity["id"], "talos", entity["label"], text, created_at=moment, session_id=session_id, domain=domain
        )
    for relation in data["relations"]:
        if rows.get(RELATIONS, _relation_id(relation)) is None:
            row = {"relation_id": _relation_id(relation), "relation_type": relation["type"]}
            row |= {
                "from_id": relation["from"],
                "to_id": relation["to"],
                "properties": relation.get("properties") or {},
            }
            rows.put(RELATIONS, row | {"created_at": moment, "source_event_id": source})
    return None


def _similar_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield MERGES, (logged.event.data["record_id"],)
    for candidate in logged.event.data["similar"]:
        yield MERGES, (candidate["record_id"],)
        yield CLUSTERS, (candidate["record_id"],)


def _similar_found(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """Merge the record into the oldest cluster among those it resembles. Each merge counts one occurrence more.

    A head is never merged itself (it was looked at before it had members), so following one link is enough.
    """
    data = logged.event.data
    record_id = data["record_id"]
    if not data["similar"] or rows.get(MERGES, record_id) is not None or rows.get(CLUSTERS, record_id) is not None:
        return None
    best = data["similar"][0]
    merged = rows.get(MERGES, best["record_id"])
    head = merged["into_id"] if merged else best["record_id"]
    if head == record_id:
        return None
    cluster = rows.get(CLUSTERS, head)
    count = (cluster["record_count"] if cluster else 1) + 1
    moment = at(logged.event.time)
    rows.put(CLUSTERS, {"canonical_id": head, "label": data["label"], "record_count": count, "last_merged_at": moment})
    rows.put(
        MERGES,
        {
            "record_id": record_id,
            "into_id": head,
            "label": data["label"],
            "category": data.get("category"),
            "how": best["how"],
            "cosine": best.get("cosine"),
            "merge_count": count,
            "merged_at": moment,
        },
    )
    return None


def _signal_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    data = logged.event.data
    yield PATTERN_SIGNALS, (data["signal_id"], data["session_id"])


def _signalled(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """The signal counts once a session."""
    data, moment = logged.event.data, at(logged.event.time)
    signal_id, session_id = data["signal_id"], data["session_id"]
    if rows.get(PATTERN_SIGNALS, signal_id, session_id) is not None:
        return None
    row = {name: data[name] for name in ("signal_id", "session_id", "description")}
    rows.put(PATTERN_SIGNALS, row | {"indicators": data.get("indicators") or [], "signalled_at": moment})
    for item in data.get("evidence") or ():
        found = {"signal_id": signal_id, "session_id": session_id, "created_at": moment}
        rows.insert(SIGNAL_EVIDENCE, found | {"relation_type": item["relation"], "node_id": item["id"]})
    return None


def _detected_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield DOCUMENTS, (document_label(logged.event.namespace, logged.event.data["pattern_id"]),)


def _detected(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """What the pattern is follows from its signals (view `patterns`); here its name becomes searchable."""
    data = logged.event.data
    rows.document(data["pattern_id"], "talos", "Pattern", data["name"], created_at=at(logged.event.time))
    return None


def _deprecated_key(logged: LoggedEvent) -> Key:
    return logged.event.data["pattern_id"], at(parse_time(logged.event.data["last_occurred_at"]))


def _deprecated_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield PATTERN_DEPRECATIONS, _deprecated_key(logged)


def _deprecated(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """Deprecate a pattern once for each last occurrence.

    Of a pattern that has occurred since, it says nothing (view `patterns`).
    """
    key = _deprecated_key(logged)
    if rows.get(PATTERN_DEPRECATIONS, *key) is None:
        row = dict(zip(("pattern_id", "last_occurred_at"), key, strict=True))
        rows.put(
            PATTERN_DEPRECATIONS,
            row | {"reason": logged.event.data["reason"], "deprecated_at": at(logged.event.time)},
        )
    return None


def _prune_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield from ((PRUNES, (record_id,)) for record_id in logged.event.data["record_ids"])


def _pruned(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    data = logged.event.data
    for record_id in data["record_ids"]:
        if rows.get(PRUNES, record_id) is None:
            rows.put(PRUNES, {"record_id": record_id, "reason": data["reason"], "pruned_at": at(logged.event.time)})
    return None


def _rated_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield SIGNIFICANCE, (date.fromisoformat(logged.event.data["day"]),)


def _rated(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """The first rating of a day stays."""
    data, day = logged.event.data, date.fromisoformat(logged.event.data["day"])
    if rows.get(SIGNIFICANCE, day) is None:
        row = {"day": day, "score": data["score"], "level": data["level"], "counts": data.get("counts") or {}}
        rows.put(SIGNIFICANCE, row | {"rated_at": at(logged.event.time)})
    return None


REDUCERS = {
    ENTITIES_EXTRACTED: Reducer(_extracted, _extracted_reads),
    SIMILAR_FOUND: Reducer(_similar_found, _similar_reads),
    PATTERN_SIGNALLED: Reducer(_signalled, _signal_reads),
    PATTERN_DETECTED: Reducer(_detected, _detected_reads),
    PATTERN_DEPRECATED: Reducer(_deprecated, _deprecated_reads),
    ENTITIES_PRUNED: Reducer(_pruned, _prune_reads),
    SIGNIFICANCE_RATED: Reducer(_rated, _rated_reads),
}

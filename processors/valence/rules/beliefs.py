"""What becomes of a stated belief: it is kept, it confirms one that is held, or nothing is new. In the order of the
log.

Pure: the rows it reads and changes are passed in (`processors/frame/reducer.py`), ids are made from the event. The
reducers of `belief_create`, `belief_supersede` and `insight_extract` share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from processors.valence.rules.confidence import (
    WEIGHTS,
    Confidence,
    ConfidenceError,
    corroboration,
    evidence_of,
    ladder,
    read_confidence,
)
from processors.valence.rules.entities import DEFAULT_TYPE, EntityError, EntityName, read_entities, same_form
from processors.valence.rules.sources import Source
from processors.valence.rules.tensions import DUPLICATE_COSINE, Claim, is_duplicate
from streams.clock import parse_time
from streams.events import Event
from streams.ids import derived_id, document_label

if TYPE_CHECKING:
    from processors.frame.reducer import Key, Row, Rows

SOURCES, BELIEFS, CHANGES, HASHES = (
    "valence_sources",
    "valence_beliefs",
    "valence_belief_changes",
    "valence_belief_hashes",
)
CORROBORATIONS, ENTITIES, NAMES, LINKS = (
    "belief_corroborations",
    "valence_entities",
    "valence_entity_names",
    "valence_belief_entities",
)
DOCUMENTS = "documents"
TOOLSET, KIND = "valence", "Belief"
MANUAL = "manual"


class DraftError(ValueError):
    """A belief that cannot be stated so. The message is a sentence, `parameter` names the argument, `allowed` what it
    may be."""

    def __init__(self, message: str, parameter: str, allowed: Any = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.allowed = allowed


@dataclass(frozen=True)
class Draft:
    """A belief as it is stated. `similar`: (belief id, cosine) of near ones, as they were found before."""

    content: str
    confidence: Confidence
    domain_path: Sequence[str] = ()
    entities: Sequence[EntityName] = ()
    valid_from: datetime | None = None
    similar: Sequence[tuple[str, float]] = ()
    extraction_method: str = MANUAL


@dataclass(frozen=True, slots=True)
class BeliefOutcome:
    """What became of a draft: the belief it is now, and `created`, `reinforced` or `unchanged`."""

    belief_id: str
    action: str
    corroboration_count: int

    @property
    def deduplicated(self) -> bool:
        return self.action != "created"

    def as_result(self) -> dict[str, Any]:
        return {
            "belief_id": self.belief_id,
            "action": self.action,
            "deduplicated": self.deduplicated,
            "corroboration_count": self.corroboration_count,
        }


def read_draft(data: Mapping[str, Any], *, content: str = "content", extraction_method: str = MANUAL) -> Draft:
    """The draft that a request's fields make. Raises DraftError naming the argument."""
    text = data[content]
    if not text.strip():
        raise DraftError(f"The argument `{content}` is blank; it needs some text.", content)
    return Draft(
        text,
        _confidence(data.get("confidence")),
        _domain_path(data.get("domain_path")),
        _entities(data.get("entities")),
        _moment(data.get("valid_from")),
        [(near["belief_id"], float(near["cosine"] or 0.0)) for near in data.get("similar") or ()],
        extraction_method,
    )


def _confidence(given: Any) -> Confidence:
    try:
        return read_confidence(given)
    except ConfidenceError as error:
        raise DraftError(f"The argument `confidence` {error}", "confidence", ["overall", *WEIGHTS]) from None


def _entities(given: Any) -> list[EntityName]:
    try:
        return read_entities(given)
    except EntityError as error:
        raise DraftError(str(error), "entities", list(error.allowed) or None) from None


def _domain_path(given: Sequence[str] | None) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in given or () if part.strip()))


def _moment(given: str | None) -> datetime | None:
    if given is None:
        return None
    try:
        return parse_time(given).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        message = f"The argument `valid_from` is {given[:40]!r}; it must be a date-time such as 2026-01-31T10:00:00Z."
        raise DraftError(message, "valid_from", "date-time") from None


def belief_id_of(event: Event) -> str:
    """The id of the belief that an event makes, if it makes one."""
    return derived_id(str(event.key), "valence.belief")


def hash_of(content: str) -> str:
    """What is equal for texts that differ in case and outer spaces only."""
    return hashlib.sha256(content.strip().casefold().encode()).hexdigest()


def draft_reads(event: Event, content: Any, entities: Any = (), similar: Any = ()) -> Iterable[tuple[str, Key]]:
    """The rows that `state` will ask for, as far as the request tells. Whatever it holds, this does not raise."""
    identity = belief_id_of(event)
    yield BELIEFS, (identity,)
    yield DOCUMENTS, (document_label(event.namespace, identity),)
    if isinstance(content, str):
        yield HASHES, (hash_of(content),)
    try:
        for named in read_entities(entities):
            yield NAMES, (named.key,)
    except EntityError:
        return
    for near in similar or ():
        yield BELIEFS, (near["belief_id"],)


def state(event: Event, rows: Rows, draft: Draft, source: Source | None) -> BeliefOutcome:
    """Keep the draft as a new belief, or count it for one that is held. `source` None: none was given."""
    links = [_resolve(event, rows, named) for named in draft.entities]
    source_id = "" if source is None else source.id_in(event.namespace)
    if source is not None:
        put_source(event, rows, source)
    known = rows.get(HASHES, hash_of(draft.content))
    held = rows.get(BELIEFS, known["belief_id"]) if known else None
    if held is not None and held["status"] == "active":
        if rows.get(CORROBORATIONS, held["belief_id"], source_id) is not None:
            rows.restate(held["belief_id"], _at(event))
            return BeliefOutcome(held["belief_id"], "unchanged", held["corroboration_count"])
        return _reinforce(event, rows, held, draft, source_id, links)
    near = _duplicate_of(rows, draft, source_id, links)
    if near is not None:
        held, cosine = near
        return _reinforce(event, rows, held, draft, source_id, (), cosine)
    return create(event, rows, draft, source_id, links)


def create(
    event: Event,
    rows: Rows,
    draft: Draft,
    source_id: str,
    links: Sequence[Mapping[str, str]],
    *,
    supersedes_id: str | None = None,
    reason: str | None = None,
) -> BeliefOutcome:
    """A new belief with its links, its first source and its text to be found by."""
    identity, moment = belief_id_of(event), _at(event)
    dimensions = draft.confidence.dimensions
    belief: Row = {
        "belief_id": identity,
        "label": document_label(event.namespace, identity),
        "content": draft.content,
        "content_hash": hash_of(draft.content),
        "overall": draft.confidence.overall,
        "overall_origin": draft.confidence.origin,
        **{name: dimensions.get(name) for name in WEIGHTS},
        "corroboration_count": 1,
        "doubt": 1.0 - evidence_of(dimensions.get("source_reliability")),
        "domain_path": list(draft.domain_path),
        "links": [],
        "source_id": source_id or None,
        "extraction_method": draft.extraction_method,
        "reason": reason,
        "status": "active",
        "supersedes_id": supersedes_id,
        "superseded_by_id": None,
        "valid_from": draft.valid_from,
        "valid_until": None,
        "created_at": moment,
        "modified_at": moment,
        "closed_at": None,
        "created_event_id": event.id,
    }
    belief["links"] = _link(rows, belief, links, moment)
    put_belief(rows, belief, "created", moment)
    rows.put(HASHES, {"content_hash": belief["content_hash"], "belief_id": identity})
    _corroborate(rows, identity, source_id, draft.content, "stated", None, moment)
    rows.document(
        identity,
        TOOLSET,
        KIND,
        draft.content,
        created_at=moment,
        session_id=None,
        domain=draft.domain_path[0] if draft.domain_path else None,
    )
    return BeliefOutcome(identity, "created", 1)


def put_belief(rows: Rows, belief: Row, change: str, moment: datetime) -> None:
    """Keep the belief as it is now, and one more row of its history."""
    rows.put(BELIEFS, belief)
    kept = ("belief_id", "content", "overall", "corroboration_count", "status", "superseded_by_id", "valid_until")
    valid_from = belief["valid_from"] or belief["created_at"]
    changed = {"valid_from": valid_from, "change": change, "changed_at": moment}
    rows.insert(CHANGES, {name: belief[name] for name in kept} | changed)


def put_source(event: Event, rows: Rows, source: Source) -> str:
    """The id of the source's row, made when it is not there."""
    identity = source.id_in(event.namespace)
    if rows.get(SOURCES, identity) is None:
        stated = {"type": source.type, "title": source.title, "url": source.url, "session_id": source.session_id}
        rows.put(SOURCES, {"source_id": identity, **stated, "created_at": _at(event)})
    return identity


def _reinforce(
    event: Event,
    rows: Rows,
    held: Row,
    draft: Draft,
    source_id: str,
    links: Sequence[Mapping[str, str]],
    cosine: float | None = None,
) -> BeliefOutcome:
    """Another source says the same: the count rises, the overall at least to its rung, CO is written."""
    moment, count = _at(event), held["corroboration_count"] + 1
    doubt = held["doubt"] * (1.0 - evidence_of(draft.confidence.dimensions.get("source_reliability")))
    changed = held | {
        "corroboration_count": count,
        "doubt": doubt,
        "corroboration": corroboration([doubt]),
        "overall": max(held["overall"], ladder(count)),
        "modified_at": moment,
    }
    changed["links"] = held["links"] + _link(rows, held, links, moment)
    put_belief(rows, changed, "reinforced", moment)
    rows.restate(held["belief_id"], moment)
    _corroborate(
        rows, held["belief_id"], source_id, draft.content, "same_words" if cosine is None else "cosine", cosine, moment
    )
    return BeliefOutcome(held["belief_id"], "reinforced", count)


def _corroborate(
    rows: Rows, belief_id: str, source_id: str, content: str, how: str, cosine: float | None, moment: datetime
) -> None:
    row = {
        "belief_id": belief_id,
        "source_id": source_id,
        "how": how,
        "cosine": cosine,
        "content": content,
        "created_at": moment,
    }
    rows.put(CORROBORATIONS, row)


def _duplicate_of(
    rows: Rows, draft: Draft, source_id: str, links: Sequence[Mapping[str, str]]
) -> tuple[Row, float] | None:
    """The nearest belief that says the same from another source. A contradiction never does, however near it is."""
    entities, subjects = _things(rows, links)
    for belief_id, cosine in sorted(draft.similar, key=lambda near: (-near[1], near[0])):
        row = rows.get(BELIEFS, belief_id) if cosine > DUPLICATE_COSINE else None
        if row is None or row["status"] != "active" or rows.get(CORROBORATIONS, belief_id, source_id) is not None:
            continue
        new = Claim(
            "", draft.content, draft.confidence.overall, row["created_at"], subjects=subjects, entities=entities
        )
        if is_duplicate(_claim_of(rows, row), new, cosine):
            return row, cosine
    return None


def _things(rows: Rows, links: Sequence[Mapping[str, str]]) -> tuple[frozenset[str], frozenset[str]]:
    """The linked entities, and those of them that are subjects, by type and form.

    Names that are merged, or will be, are one thing.
    """
    named: dict[str, str] = {}
    for link in links:
        entity = rows.get(ENTITIES, link["entity_id"])
        named[link["entity_id"]] = link["entity_id"] if entity is None else f"{entity['type']} {entity['form']}"
    return frozenset(named.values()), frozenset(named[link["entity_id"]] for link in links if link["role"] == "subject")


def _claim_of(rows: Rows, row: Mapping[str, Any]) -> Claim:
    """A row of beliefs as it is compared."""
    entities, subjects = _things(rows, row["links"])
    return Claim(
        row["belief_id"],
        row["content"],
        row["overall"],
        row["created_at"],
        row["domain_path"],
        row["valid_from"],
        row["valid_until"],
        subjects,
        entities,
    )


def _resolve(event: Event, rows: Rows, named: EntityName) -> dict[str, str]:
    """The entity of that name; made when there is none.

    It is of the type that is said, else the most linked one, else a concept.
    """
    known = rows.get(NAMES, named.key)
    by_type: dict[str, str] = dict(known["entity_ids"]) if known else {}
    if named.type is None and by_type:
        entities = [
            entity for entity in (rows.get(ENTITIES, identity) for identity in by_type.values()) if entity is not None
        ]
        best = min(entities, key=lambda entity: (-entity["link_count"], entity["created_at"], entity["entity_id"]))
        return {"entity_id": best["entity_id"], "role": named.role}
    kind = named.type or DEFAULT_TYPE
    if kind not in by_type:
        by_type[kind] = identity = derived_id(str(event.key), "valence.entity", kind, named.key)
        moment = _at(event)
        rows.put(
            ENTITIES,
            {
                "entity_id": identity,
                "name": named.name,
                "name_key": named.key,
                "form": same_form(named.name),
                "type": kind,
                "description": None,
                "link_count": 0,
                "created_at": moment,
                "modified_at": moment,
            },
        )
        rows.put(NAMES, {"name_key": named.key, "entity_ids": by_type})
    return {"entity_id": by_type[kind], "role": named.role}


def _link(
    rows: Rows, belief: Mapping[str, Any], links: Sequence[Mapping[str, str]], moment: datetime
) -> list[dict[str, str]]:
    """Link entities that are not linked in that role yet; the new links."""
    known = {(link["entity_id"], link["role"]) for link in belief["links"]}
    made: list[dict[str, str]] = []
    for link in links:
        if (link["entity_id"], link["role"]) in known:
            continue
        known.add((link["entity_id"], link["role"]))
        made.append(dict(link))
        rows.insert(LINKS, {"belief_id": belief["belief_id"], "label": belief["label"], **link})
        entity = rows.get(ENTITIES, link["entity_id"])
        if entity is not None:
            rows.change(ENTITIES, entity, link_count=entity["link_count"] + 1, modified_at=moment)
    return made


def _at(event: Event) -> datetime:
    return event.time.replace(tzinfo=None)

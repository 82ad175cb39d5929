"""Extracts entities and relations from the text of a Talos event, by rule.

It is a pure function of the event. The journal tools and the extract stage call the same function, so the ids that are
answered are those stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from processors.talos.rules.clauses import (
    Link,
    cued_labels,
    is_question,
    names_inability,
    split_clauses,
    split_sentences,
)
from processors.talos.rules.identifiers import dated_id, entry_id, named_id
from processors.talos.rules.ontology import (
    CATEGORY_LABELS,
    KNOWLEDGE_LABELS,
    LABELS,
    PRELOADED,
    domain_id,
    is_known_domain,
    is_legal,
    searchable_text,
)
from processors.talos.rules.temporal import temporal_precision
from streams.clock import format_time
from streams.events import Event, wire_type

JOURNAL_WRITTEN = wire_type("talos.journal.written")
FRICTION_LOGGED = wire_type("talos.friction.logged")
REFLECTION_WRITTEN = wire_type("talos.reflection.written")
KNOWLEDGE_IMPORTED = wire_type("talos.knowledge.imported")
EXTRACTED_FROM = frozenset({JOURNAL_WRITTEN, FRICTION_LOGGED, REFLECTION_WRITTEN, KNOWLEDGE_IMPORTED})
"""The events that yield entities."""

EXPLICIT, IMPLIED = 0.9, 0.7
MAX_ENTITIES = 64
MAX_TEXT = 20_000
"""Bounds of what one event yields: the rest of a longer text is still in its journal entry."""
MAX_READ = 100_000
"""Characters that are read for cues. A tool accepts no more; a producer's book delays no one."""

MAX_IMPORTED = 1000
"""Entities of one import; more go into more events."""

_KINDS: Mapping[str, str] = {"OperationalState": "state"}
_NAMED = frozenset({"Belief", "Limitation", "Capability"})
_NOT_EMBEDDED = frozenset({"Domain"})
_EXTRA: Mapping[str, Mapping[str, Any]] = {
    "Belief": {"source": "emerged_from_experience"},
    "Question": {"urgency": "curious"},
    "Domain": {"depth": "surface"},
}


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the knowledge graph. `properties` holds what its label has besides text and confidence, when known."""

    id: str
    label: str
    text: str
    confidence: float
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Relation:
    """A directed edge of a type of the ontology."""

    type: str
    from_id: str
    to_id: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one event yields. The first entity is the one that its category names."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()


_MAX_CACHED, _MAX_CACHED_BYTES = 64, 16 * 1024
_cache: dict[tuple[object, ...], Extraction] = {}
"""Extractions of recent events, by all that they follow from: the door, two stages and a reducer ask for the same."""


def extract(event: Event) -> Extraction:
    """The entities and relations of an entry, a friction, a reflection or an import. Nothing for any other event."""
    if event.type not in EXTRACTED_FROM:
        return Extraction()
    body = orjson.dumps(event.data)
    key = (event.type, event.namespace, event.source, event.id, event.time, body)
    found = _cache.get(key)
    if found is None:
        found = _extract(event)
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        if len(body) <= _MAX_CACHED_BYTES:
            _cache[key] = found
    return found


def _extract(event: Event) -> Extraction:
    data = event.data
    if event.type == JOURNAL_WRITTEN:
        collector = _Collector(event, CATEGORY_LABELS[data["category"]], data["content"])
        collector.read_sentences()
    elif event.type == FRICTION_LOGGED:
        properties = {"category": data["category"], "blocking": bool(data.get("blocking"))}
        collector = _Collector(event, "Friction", data["description"], properties)
    elif event.type == REFLECTION_WRITTEN:
        trigger = data.get("trigger")
        collector = _Collector(event, "Reflection", data["content"], {"trigger": trigger} if trigger else {})
        collector.read_sentences()
    else:
        return imported_knowledge(data)
    return collector.finish()


def imported_knowledge(data: Mapping[str, Any]) -> Extraction:
    """The entities and relations that an operator states.

    Each entity has the id of its statement; a relation names its ends by id or by text. What the ontology does not have
    (a label, a pair of labels) is left out, as in texts. A session is never imported.
    """
    entities: dict[str, Entity] = {}
    by_text: dict[str, str] = {}
    for item in data["entities"][:MAX_IMPORTED]:
        label, text = item["label"], item["text"].strip()[:MAX_TEXT]
        if label not in LABELS or label == "Session" or not text:
            continue
        identity = named_id(_KINDS.get(label, label.lower()), text)
        confidence = item.get("confidence")
        properties = {**_EXTRA.get(label, {}), **_timed(label, text), **(item.get("properties") or {})}
        entities.setdefault(
            identity, Entity(identity, label, text, EXPLICIT if confidence is None else float(confidence), properties)
        )
        by_text.setdefault(text, identity)
    relations: dict[tuple[str, str, str], Relation] = {}
    for item in data.get("relations") or ():
        start, end = (by_text.get(item[name], item[name]) for name in ("from", "to"))
        labels = [
            entities[node].label if node in entities else PRELOADED.get(node, ("Session",))[0] for node in (start, end)
        ]
        if start != end and is_legal(item["type"], labels[0], labels[1]):
            relations[item["type"], start, end] = Relation(item["type"], start, end, item.get("properties") or {})
    return Extraction(tuple(entities.values()), tuple(relations.values()))


def texts_to_embed(event: Event) -> list[tuple[str, str]]:
    """(record id, text) of all that should be found by meaning.

    That is the journal entry and its entities, names of domains aside.
    """
    found = (entity for entity in extract(event).entities if entity.label not in _NOT_EMBEDDED)
    entities = [(entity.id, searchable_text(entity.label, entity.text, entity.properties)) for entity in found]
    if event.type == JOURNAL_WRITTEN and entities:
        return [(entry_id(event), event.data["content"]), *entities]
    return entities


def _timed(label: str, text: str) -> dict[str, str]:
    """How precisely a knowledge node says when, if not to an instant."""
    precision = temporal_precision(text) if label in KNOWLEDGE_LABELS else "instant"
    return {} if precision == "instant" else {"temporal_precision": precision}


class _Collector:
    """Gathers the entities of one event in reading order; ids depend on that order only."""

    def __init__(self, event: Event, label: str, text: str, properties: Mapping[str, Any] | None = None) -> None:
        self._event = event
        self._main_label = label
        self._text = text.strip()
        self._entities: dict[str, Entity] = {}
        self._relations: dict[tuple[str, str, str], Relation] = {}
        self._main = self._add(label, self._text, properties=properties) if self._text else None

    def read_sentences(self) -> None:
        """Add what the cues and connectives of each sentence say."""
        sentences = split_sentences(self._text[:MAX_READ])
        for sentence in sentences:
            self._read(sentence, already_made=self._main_label if len(sentences) == 1 else None)

    def finish(self) -> Extraction:
        """Add the edges that do not depend on the words, and give everything."""
        if self._main is not None:
            self._place_in_domain()
            self._produce()
        return Extraction(tuple(self._entities.values()), tuple(self._relations.values()))

    def _read(self, sentence: str, already_made: str | None) -> None:
        clauses, links = split_clauses(sentence)
        meant = [self._read_clause(clause, already_made) for clause in clauses]
        if is_question(sentence):
            self._add("Question", sentence)
        for index, link in enumerate(links):
            if clauses[index] and clauses[index + 1]:
                self._link(link, meant[index], meant[index + 1], clauses[index + 1])

    def _read_clause(self, clause: str, already_made: str | None) -> list[Entity]:
        """The entities that the clause stands for: those of its cues, else the entry's main one."""
        found = [self._add(label, clause) for label in cued_labels(clause) if label != already_made]
        return [entity for entity in found if entity] or [entity for entity in (self._main,) if entity]

    def _link(self, link: Link, left: Sequence[Entity], right: Sequence[Entity], right_clause: str) -> None:
        if link.relation == "REVEALED":
            self._reveal(left, right_clause)
            return
        sources, targets = (right, left) if link.backwards else (left, right)
        pair = next(((a, b) for a in sources for b in targets if is_legal(link.relation, a.label, b.label)), None)
        if pair is not None:
            self._relate(link.relation, pair[0].id, pair[1].id, link.properties)

    def _reveal(self, sources: Iterable[Entity], clause: str) -> None:
        label = "Limitation" if names_inability(clause) else "Capability"
        source = next((entity for entity in sources if is_legal("REVEALED", entity.label, label)), None)
        if source is None:
            return
        revealed = self._add(label, clause.removeprefix("that "), EXPLICIT if label == "Limitation" else IMPLIED)
        if revealed is not None:
            self._relate("REVEALED", source.id, revealed.id)

    def _place_in_domain(self) -> None:
        domain = self._event.data.get("domain")
        if not domain or not domain.strip():
            return
        place = domain_id(domain)
        if not is_known_domain(domain):
            self._entities[place] = Entity(place, "Domain", domain.strip()[:MAX_TEXT], EXPLICIT, _EXTRA["Domain"])
        for entity in list(self._entities.values()):
            if is_legal("OPERATES_IN", entity.label, "Domain"):
                self._relate("OPERATES_IN", entity.id, place)
        if self._event.data.get("session_id"):
            self._relate("OPERATES_IN", self._event.data["session_id"], place)

    def _produce(self) -> None:
        session_id = self._event.data.get("session_id")
        if not session_id:
            return
        since = {"valid_from": format_time(self._event.time)}
        for entity in list(self._entities.values()):
            if is_legal("PRODUCED", "Session", entity.label):
                self._relate("PRODUCED", session_id, entity.id, since)
            if entity.properties.get("blocking"):
                self._relate("BLOCKED_BY", session_id, entity.id, {"severity": "blocking"})

    def _add(
        self, label: str, text: str, confidence: float = EXPLICIT, properties: Mapping[str, Any] | None = None
    ) -> Entity | None:
        """The entity of this text, made when it is new; None once the event has yielded as many as it may."""
        kind, text = label.lower(), text[:MAX_TEXT]
        identity = named_id(kind, text) if label in _NAMED else dated_id(kind, self._event, len(self._entities) + 1)
        if identity in self._entities:
            return self._entities[identity]
        if len(self._entities) >= MAX_ENTITIES:
            return None
        given = self._event.data.get("confidence")
        if label == "Insight" and given is not None:
            confidence = float(given)
        extra = {**_EXTRA.get(label, {}), **_timed(label, text), **(properties or {})}
        if domain := self._event.data.get("domain"):
            extra["domain"] = domain
        entity = self._entities[identity] = Entity(identity, label, text, confidence, extra)
        return entity

    def _relate(self, relation: str, from_id: str, to_id: str, properties: Mapping[str, Any] | None = None) -> None:
        if from_id != to_id:
            self._relations.setdefault((relation, from_id, to_id), Relation(relation, from_id, to_id, properties or {}))

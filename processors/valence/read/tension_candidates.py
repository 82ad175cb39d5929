"""Reads from the store the beliefs that a new one may be in tension with. The detector and the tool's answer use it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from processors.valence.read.belief_consistency import read_consistency, with_tensions
from processors.valence.read.belief_rows import read_beliefs, read_labelled
from processors.valence.rules.confidence import WEIGHTS, Confidence
from processors.valence.rules.tensions import CANDIDATE_COSINE, CANDIDATES, Claim, Finding, judge
from storage.search.records.matches import Matches
from storage.search.vectors.space import Space
from storage.statements import execute, marks
from streams.ids import document_label

if TYPE_CHECKING:
    import duckdb

Cosines = dict[int, float | None]
"""Label of a belief -> cosine; None where one has no vector."""
FIRST_MATCHES = 4 * CANDIDATES
"""How many nearest records are searched at first: some of them are not beliefs, or not active ones."""
READ_BATCH = CANDIDATES + 1
"""One of them may be the belief itself."""
MANY_LINKS = 5000
"""Of an entity with this many links not all are read, unless too few of the nearest records are among them."""
_CLAIM_COLUMNS = f"""label, belief_id, content, created_at, domain_path, valid_from, valid_until, status, links,
    corroboration_count, overall,
overall_origin, {", ".join(WEIGHTS)}"""
_OLD_PARTNERS = """
SELECT belief_b_id FROM tension_findings WHERE belief_a_id = $1 AND namespace = $2
UNION ALL SELECT belief_a_id FROM tension_findings WHERE belief_b_id = $1 AND namespace = $2"""


@dataclass(frozen=True, slots=True)
class NewBelief:
    """A belief to be compared: whether it is active, its linked entities, and what it superseded."""

    is_active: bool
    entities: frozenset[str]
    supersedes_id: str | None


@dataclass(frozen=True, slots=True)
class Proximity:
    """The neighbours of a belief's text: its unit vector, and the `nearest_records` to it."""

    vector: np.ndarray
    matches: Matches


class Conflict(NamedTuple):
    """What was found between a belief and another one."""

    finding: Finding
    other: Claim


@dataclass(frozen=True, slots=True)
class Links:
    """Beliefs that are linked to the same things: (n,) sorted labels and the offset of each link. All, or some."""

    labels: np.ndarray
    offsets: np.ndarray
    are_all: bool

    def latest_without(self, labels: Sequence[int]) -> np.ndarray:
        """The labels but for these, those that were linked last first."""
        left = ~np.isin(self.labels, labels)
        latest: np.ndarray = self.labels[left][np.argsort(-self.offsets[left], kind="stable")]
        return latest


class ActiveBeliefs:
    """The active beliefs of a namespace, as far as they were asked for. Each is read once, many with one statement."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> None:
        self.cursor = cursor
        self.namespace = namespace
        self._rows: dict[int, tuple[Any, ...] | None] = {}

    def among(self, labels: Iterable[int]) -> list[int]:
        """Those of these labels, in their order, that are active beliefs'."""
        wanted = list(labels)
        if unknown := dict.fromkeys(label for label in wanted if label not in self._rows):
            rows = read_labelled(self.cursor, _CLAIM_COLUMNS, self.namespace, unknown)
            self._rows |= dict.fromkeys(unknown) | {row[0]: row for row in rows if row[7] == "active"}
        return [label for label in wanted if self._rows[label] is not None]

    def linked(self, labels: Iterable[int], entities: Collection[str]) -> list[int]:
        """Those of these labels, in order, whose active belief is linked to one of these entities."""
        rows = [row for label in self.among(labels) if (row := self._rows[label]) is not None]
        return [row[0] for row in rows if any(link["entity_id"] in entities for link in orjson.loads(row[8]))]

    def ids(self, labels: Iterable[int]) -> dict[int, str]:
        """The ids of those of these labels that are active beliefs', by label."""
        return {label: row[1] for label in self.among(labels) if (row := self._rows[label]) is not None}

    def claims(self, labels: Collection[int]) -> dict[int, Claim]:
        """Those of these labels that are active beliefs', as they are compared."""
        rows = [row for label in self.among(labels) if (row := self._rows[label]) is not None]
        computed = [row[1] for row in rows if row[11] == "computed"]  # the others keep their overall
        standing = read_consistency(self.cursor, self.namespace, computed)
        subjects = {
            row[0]: [link["entity_id"] for link in orjson.loads(row[8]) if link["role"] == "subject"] for row in rows
        }
        canonical = _canonical(self.cursor, self.namespace, {entity for named in subjects.values() for entity in named})
        held = {}
        for (
            label,
            belief_id,
            content,
            created_at,
            domain_path,
            valid_from,
            valid_until,
            status,
            _,
            count,
            overall,
            origin,
            *dimensions,
        ) in rows:
            given = {name: value for name, value in zip(WEIGHTS, dimensions, strict=True) if value is not None}
            confidence, _ = with_tensions(Confidence(overall, origin, given), status, count, standing.get(belief_id))
            about = frozenset(canonical[entity] for entity in subjects[label])
            held[label] = Claim(
                belief_id, content, confidence.overall, created_at, domain_path, valid_from, valid_until, about
            )
        return held


def read_new_beliefs(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Collection[str]) -> dict[str, NewBelief]:
    """Those of these beliefs that there are, by id."""
    rows = read_beliefs(cursor, "belief_id, links, supersedes_id, status", namespace, ids)
    return {
        belief_id: NewBelief(
            status == "active", frozenset(link["entity_id"] for link in orjson.loads(links)), supersedes_id
        )
        for belief_id, links, supersedes_id, status in rows
    }


def find_tensions(
    active: ActiveBeliefs,
    space: Space,
    stated: Mapping[str, NewBelief],
    placed: Mapping[str, Proximity],
) -> dict[str, list[Conflict]]:
    """The conflicts of each of these beliefs with others, best score first. None of one that is not active any more.

    `placed`: those that have a vector in the space. Whatever the store says of all the others is read at once.
    """
    own = {
        document_label(active.namespace, belief_id): belief_id
        for belief_id, belief in stated.items()
        if belief.is_active
    }
    least = {
        belief_id: -1.0 if stated[belief_id].entities else CANDIDATE_COSINE
        for belief_id in own.values()
        if belief_id in placed
    }
    near = (
        match for belief_id in least for match in placed[belief_id].matches[:READ_BATCH] if match[1] >= least[belief_id]
    )
    active.among([*own, *(label for label, _ in near)])
    cosines = _candidates(active, space, own, stated, placed)
    best = {label: _best(others) for label, others in cosines.items() if others}
    held = active.claims({label for others in best.values() for label in others} | best.keys())
    found: dict[str, list[Conflict]] = {belief_id: [] for belief_id in stated}
    for label, others in best.items():
        if (new := held.get(label)) is None:
            continue  # it ended while this search ran
        judged = ((judge(held[other], new, cosines[label][other]), held[other]) for other in others)
        conflicts = [Conflict(finding, other) for finding, other in judged if finding is not None]
        found[own[label]] = sorted(conflicts, key=lambda one: (-one.finding.score, one.finding.tension_id))
    return found


def _candidates(
    active: ActiveBeliefs,
    space: Space,
    own: Mapping[int, str],
    stated: Mapping[str, NewBelief],
    placed: Mapping[str, Proximity],
) -> dict[int, Cosines]:
    """For each the active beliefs that it may be in conflict with.

    They are those near to it, the nearest about the same things, and those that what it superseded conflicted with.
    """
    cursor, namespace = active.cursor, active.namespace
    canonical = _canonical(
        cursor, namespace, frozenset[str]().union(*(stated[belief_id].entities for belief_id in own.values()))
    )
    groups = _groups(cursor, namespace, set(canonical.values()))
    found: dict[int, Cosines] = {}
    for label, belief_id in own.items():
        belief, place = stated[belief_id], placed.get(belief_id)
        others: Cosines = dict(nearest_active(active, space, place, CANDIDATE_COSINE)) if place is not None else {}
        if group := {member for entity in belief.entities for member in groups[canonical[entity]]}:
            others |= _about_the_same(active, space, group, place)
        if belief.supersedes_id is not None:
            partners = execute(cursor, _OLD_PARTNERS, [belief.supersedes_id, namespace]).fetchall()
            labels = active.among(document_label(namespace, partner) for (partner,) in partners)
            others = _with_cosines(space, labels, place) | others
        others.pop(label, None)
        found[label] = others
    return found


def _best(cosines: Cosines) -> list[int]:
    """The `CANDIDATES` with the highest cosine, those without one last."""
    return sorted(cosines, key=lambda other: (-_known(cosines[other]), other))[:CANDIDATES]


def _known(cosine: float | None) -> float:
    return -1.0 if cosine is None else cosine


def nearest_records(space: Space, vectors: np.ndarray) -> list[Matches]:
    """For each of (n, dim) unit vectors the `FIRST_MATCHES` nearest records, of any kind and namespace."""
    return space.nearest_to_each(vectors, FIRST_MATCHES, -1.0)


def nearest_active(active: ActiveBeliefs, space: Space, place: Proximity, least: float) -> dict[int, float]:
    """The active beliefs of at least this cosine, label -> cosine; at most `CANDIDATES`, the nearest.

    The index holds other records and namespaces too: it is searched for more until enough of them are beliefs.
    """
    asked, near = FIRST_MATCHES, [match for match in place.matches if match[1] >= least]
    found: dict[int, float] = {}
    seen = 0
    while True:
        some = dict(near[seen : seen + READ_BATCH])
        found |= {label: some[label] for label in active.among(some)}
        seen += READ_BATCH
        if len(found) > CANDIDATES or (seen >= len(near) and len(near) < asked):
            return found
        if seen >= len(near):
            asked *= 4
            [more] = space.nearest_to_each(place.vector[None], asked, least)
            near = more


def _about_the_same(active: ActiveBeliefs, space: Space, group: Collection[str], place: Proximity | None) -> Cosines:
    """The active beliefs that are linked to these entities.

    They are the nearest, or the latest where too few have a vector.
    """
    links = _links(active, group, at_most=MANY_LINKS)
    if (
        not links.are_all
    ):  # one that a good part of all beliefs names, as `user`: enough of what is nearest names it too
        if len(found := _linked_among(active, group, place.matches if place is not None else [])) > CANDIDATES:
            return found
        links = _links(active, group)
    return _nearest_linked(active, space, links, place)


def _linked_among(active: ActiveBeliefs, group: Collection[str], near: Matches) -> Cosines:
    """The active ones of these that are linked to one of the entities; where they are enough, the nearest."""
    found: Cosines = {}
    for start in range(0, len(near), READ_BATCH):
        some = dict(near[start : start + READ_BATCH])
        found |= {label: some[label] for label in active.linked(some, group)}
        if len(found) > CANDIDATES:
            break
    return found


def _nearest_linked(active: ActiveBeliefs, space: Space, links: Links, place: Proximity | None) -> Cosines:
    found: Cosines = {}
    near: Matches = []
    asked = READ_BATCH
    while place is not None and len(found) <= CANDIDATES:
        [near] = space.nearest_of_each(place.vector, asked, [links.labels])
        cosines = dict(near)
        found = {label: cosines[label] for label in active.among(cosines)}
        if len(near) < asked:
            break
        asked *= 4
    if len(found) > CANDIDATES:  # one of them may be the belief itself
        return found
    left = links.latest_without([label for label, _ in near])
    while len(left) and len(found) <= CANDIDATES:
        found |= dict.fromkeys(active.among(left[:asked].tolist()))
        left, asked = left[asked:], asked * 4
    return found


def _with_cosines(space: Space, labels: Sequence[int], place: Proximity | None) -> Cosines:
    if place is None or not labels:
        return dict.fromkeys(labels)
    cosines = space.similarities(place.vector, np.array(labels, np.int64)).tolist()
    return {label: None if math.isnan(cosine) else cosine for label, cosine in zip(labels, cosines, strict=True)}


def linked_to(cursor: duckdb.DuckDBPyConnection, namespace: str, entity_id: str) -> np.ndarray:
    """Labels of every belief that is linked to this entity or to one merged into it.

    (n,) sorted; of beliefs of any status.
    """
    active = ActiveBeliefs(cursor, namespace)
    return _links(active, _groups(cursor, namespace, [entity_id])[entity_id]).labels


def _groups(cursor: duckdb.DuckDBPyConnection, namespace: str, entities: Collection[str]) -> dict[str, list[str]]:
    """Each of these canonical entities with what was merged into it."""
    groups = {entity: [entity] for entity in entities}
    if groups:
        merged = execute(
            cursor,
            "SELECT canonical_id, entity_id FROM entity_resolutions "
            f"WHERE namespace = ? AND canonical_id IN ({marks(entities)})",
            [namespace, *entities],
        ).fetchall()
        for canonical_id, entity_id in merged:
            groups[canonical_id].append(entity_id)
    return groups


def _links(active: ActiveBeliefs, group: Collection[str], *, at_most: int | None = None) -> Links:
    """The links of these entities: all when they are fewer than `at_most`, else the first that many."""
    found = execute(
        active.cursor,
        'SELECT label, "offset" FROM valence_belief_entities '
        f"WHERE namespace = ? AND entity_id IN ({marks(group)}) LIMIT ?",
        [active.namespace, *group, at_most],
    ).fetchnumpy()
    labels, first = np.unique(np.asarray(found["label"], np.int64), return_index=True)
    return Links(labels, np.asarray(found["offset"], np.int64)[first], len(found["label"]) != at_most)


def _canonical(cursor: duckdb.DuckDBPyConnection, namespace: str, entities: Collection[str]) -> dict[str, str]:
    """What each of these entities goes by: itself, unless it was merged."""
    if not entities:
        return {}
    merged = execute(
        cursor,
        "SELECT entity_id, canonical_id FROM entity_resolutions "
        f"WHERE namespace = ? AND entity_id IN ({marks(entities)})",
        [namespace, *entities],
    ).fetchall()
    return {entity: entity for entity in entities} | dict(merged)

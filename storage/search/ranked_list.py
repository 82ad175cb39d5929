"""What a search has found, best first. Rows are read as far as somebody asks for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import duckdb
import numpy as np

from storage.cursor_pool import Query, Result
from storage.search.ranking.context import Scored, SearchContext
from storage.search.ranking.fusion import ordered
from storage.search.ranking.newest import read_changes
from storage.search.records.clusters import Statements
from storage.search.records.hits import TIE_DIGITS, SearchHit
from storage.search.records.label_map import ABSENT, places_in

MAX_OTHERS = 10
"""This many other records that state the same as a hit are named."""
SESSION_ROWS = 3
"""A session that has fewer candidates counts as if the others had no score."""


class QueryRunner(Protocol):
    """Runs a query with a cursor of the indexes that it belongs to."""

    def __call__(self, query: Query[Result], /) -> Result: ...


class Mention(NamedTuple):
    """A record, as (kind, id), and how often it was stated."""

    name: tuple[str, str]
    times: int


@dataclass(frozen=True)
class RankedRecords:
    """The scored candidates of one set of indexes, by number. `run` has a cursor of these indexes."""

    context: SearchContext
    scored: Scored
    run: QueryRunner

    @cached_property
    def places(self) -> Mapping[str, Mapping[int, tuple[int, float]]]:
        """side -> label -> its place on this side, from 1, and its raw score there."""
        return {
            side: {label: (place, raw) for place, (label, raw) in enumerate(matches, 1)}
            for side, matches in self.scored.sides.items()
        }

    def session(self, number: int) -> str | None:
        """The session of a candidate."""
        return self.context.records.timelines.session(int(self.scored.labels[number]))

    def read(self, numbers: np.ndarray) -> list[SearchHit]:
        """The hits of these candidates, but for those that are gone, in the same order."""
        return self.run(lambda cursor: self._hits(cursor, numbers)) if len(numbers) else []

    def mentions(self, numbers: Sequence[int]) -> list[Mention | None]:
        """Of each of these candidates its name, and how often it was stated; None for one that is gone."""
        return self.run(lambda cursor: self._mentions(cursor, numbers)) if numbers else []

    def _hits(self, cursor: duckdb.DuckDBPyConnection, numbers: np.ndarray) -> list[SearchHit]:
        documents, labels = self.context.records.documents, self.scored.labels[numbers].tolist()
        others = self._others(cursor, labels)
        known = {
            label: {**self._scores(number, label), **others[label], **self._changes(cursor, label)}
            for number, label in zip(numbers.tolist(), labels, strict=True)
        }
        found = documents.hits(cursor, self.context.query.filter.namespace, labels, known)
        return [found[label] for label in labels if label in found]

    def _mentions(self, cursor: duckdb.DuckDBPyConnection, numbers: Sequence[int]) -> list[Mention | None]:
        labels = self.scored.labels[list(numbers)].tolist()
        rows, others = self.context.records.documents.rows(cursor, labels), self._stated(labels)
        return [
            Mention((row.kind, row.record_id), each.times) if (row := rows.get(label)) is not None else None
            for label, each in zip(labels, others, strict=True)
        ]

    def _stated(self, labels: Sequence[int]) -> list[Statements]:
        """What else states the same as each of these."""
        context = self.context
        allowed, known_at = [context.allowed.labels], context.query.filter.known_at
        return context.records.statements(labels, allowed, MAX_OTHERS, known_at, excerpts=context.with_excerpts)

    def _scores(self, number: int, label: int) -> dict[str, Any]:
        scored = self.scored
        parts = {side: float(values[number]) for side, values in scored.parts.items()}
        return {
            "score": float(scored.scores[number]),
            "sides": {side: places[label] for side, places in self.places.items() if label in places},
            "parts": {side: part for side, part in parts.items() if not math.isnan(part)},
            "passage": self.context.records.passages.passage(scored.fits.get(label, label)),
            "coverage": scored.coverage.get(label),
        }

    def _others(self, cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> dict[int, dict[str, Any]]:
        """By label what else states the same as a hit, and how often it was stated."""
        context = self.context
        if not context.query.distinct:
            return {label: {} for label in labels}
        stated = self._stated(labels)
        names = context.records.documents.names_of(cursor, [each.others for each in stated])
        rows = zip(labels, names, stated, strict=True)
        return {label: {"also": also, "times": each.times} for label, also, each in rows}

    def _changes(self, cursor: duckdb.DuckDBPyConnection, label: int) -> dict[str, Any]:
        """What a hit changes, and what changes it."""
        context = self.context
        earlier, disputed_by = read_changes(cursor, context.records, context.query.filter.namespace, label)
        return {"earlier": earlier, "disputed_by": disputed_by}


class RankedList:
    """The candidates of a search, of which rows are read, best first, by one thread at a time.

    A turn that says the same as a memory is one of the others that state it. `total`: how many candidates there are.
    `degraded`: what the search lacks, as a sentence.
    """

    def __init__(
        self, memories: RankedRecords, turns: RankedRecords | None = None, degraded: str | None = None
    ) -> None:
        self.degraded = degraded
        self._memories, self._turns = memories, turns
        self._same = {} if turns is None else _same_turns(memories, turns)
        of_turns = np.empty(0, np.int64) if turns is None else np.arange(len(turns.scored.labels))
        of_turns = np.setdiff1d(of_turns, np.array(list(self._same.values()), np.int64))
        of_memories = np.arange(len(memories.scored.labels))
        scores = [memories.scored.scores, *([] if turns is None else [turns.scored.scores[of_turns]])]
        rounded = np.round(np.concatenate(scores), TIE_DIGITS)
        order = np.argsort(-rounded, kind="stable")
        self._scores, self._numbers = rounded[order], np.concatenate([of_memories, of_turns])[order]
        self._is_turn = order >= len(of_memories)
        self._next = 0
        self._read: list[SearchHit] = []
        """Hits that nobody has asked for yet: those that are tied with one that was."""

    @property
    def total(self) -> int:
        return len(self._scores)

    def sessions(self, hits: Sequence[SearchHit], most: int) -> list[str]:
        """The sessions of these hits, then the best of the others, each once.

        A session is as good as its best SESSION_ROWS candidates on average.
        """
        every = zip(self._numbers.tolist(), self._is_turn.tolist(), self._scores.tolist(), strict=True)
        best: dict[str, list[float]] = {}
        for number, is_turn, score in every:
            session = (self._turns if is_turn and self._turns else self._memories).session(number)
            if session is not None and len(scores := best.setdefault(session, [])) < SESSION_ROWS:
                scores.append(score)
        others = sorted(best, key=lambda session: sum(best[session]), reverse=True)
        shown = (hit.session_id for hit in hits if hit.session_id is not None)
        return list(dict.fromkeys([*shown, *others]))[:most]

    def read(self, count: int) -> list[SearchHit]:
        """Read the next `count` hits, or all that are left. Of equal scores the newer comes first."""
        while len(self._read) < count and self._next < self.total:
            start, stop = self._next, min(self._next + count - len(self._read), self.total)
            while stop < self.total and self._scores[stop] == self._scores[stop - 1]:
                stop += 1
            self._read += self._hits(self._numbers[start:stop], self._is_turn[start:stop])
            self._next = stop
        found, self._read = self._read[:count], self._read[count:]
        return found

    def _hits(self, numbers: np.ndarray, is_turn: np.ndarray) -> list[SearchHit]:
        hits = {hit.label: hit for hit in self._memories.read(numbers[~is_turn])}
        if self._turns is not None:
            hits = self._with_turns(hits, self._turns, numbers[is_turn])
        described = {label: (hit.created_at, hit.record_id) for label, hit in hits.items()}
        return [hits[label] for label in ordered({label: hit.score for label, hit in hits.items()}, described)]

    def _with_turns(
        self, memories: Mapping[int, SearchHit], turns: RankedRecords, numbers: np.ndarray
    ) -> dict[int, SearchHit]:
        """By label the memories, each with the turn that says the same, and the turns with these numbers."""
        labels: list[int] = turns.scored.labels.tolist()
        read = {hit.label: hit for hit in turns.read(numbers)}
        hits = dict(memories) | {labels[number]: read[labels[number]] for number in numbers if labels[number] in read}
        same = {label: self._same[label] for label in memories if label in self._same}
        for label, turn in zip(same, turns.mentions(list(same.values())), strict=True):
            if turn is not None:
                hit = hits[label]
                hits[label] = replace(hit, also=[*hit.also, turn.name], times=hit.times + turn.times)
        return hits


def _same_turns(memories: RankedRecords, turns: RankedRecords) -> dict[int, int]:
    """By label of a memory the number of the turn that says the same."""
    if not memories.context.query.distinct:
        return {}
    stated, said = (each.context.records.clusters.of_text(each.scored.labels) for each in (memories, turns))
    numbers = np.argsort(said)
    same = places_in(said[numbers], stated)
    is_same = (same != ABSENT) & (stated != ABSENT)  # what has no words states nothing
    return dict(zip(memories.scored.labels[is_same].tolist(), numbers[same[is_same]].tolist(), strict=True))

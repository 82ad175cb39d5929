"""The passages, sessions, relations and filters that searches keep in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import numpy as np

from storage.append_only import TableCounts
from storage.search.entries import DocumentEntry
from storage.search.records.backfill import (
    holds_records,
    read_passages,
    read_questions,
    read_speaker_texts,
    read_texts,
    read_timelines,
    read_user_labels,
)
from storage.search.records.clusters import Clusters, Statements
from storage.search.records.filter import Filter
from storage.search.records.filter_cache import ENDED_BY, AllowList, FilterCache
from storage.search.records.hits import DocumentRows
from storage.search.records.passages import PassageIndex, split_passages
from storage.search.records.question_share import QuestionShares
from storage.search.records.relations import FOLLOWED, Relations
from storage.search.records.speakers import Speakers, UserRecords, is_by_user
from storage.search.records.surroundings import SurroundingsFollower, SurroundingVectors
from storage.search.records.timeline import Timelines

Value = TypeVar("Value")
CACHED_VALUES = 16


class Records:
    """Passages, sessions, questions and speakers by label, and caches that follow the tables.

    One thread applies and removes; any number read, each with a cursor of its own. A cache is good for one generation:
    every commit that may change what a search finds begins the next.
    """

    def __init__(
        self, sources: Collection[tuple[str, str]] = (), roles: str = "", directory: Path | None = None
    ) -> None:
        """`sources`: (toolset, kind) of records that others are made of.

        `roles` SELECTs (namespace, record_id, role): who said a record, where a table knows. `directory`: on which disk
        what is read of documents is kept; by default the system's place for temporary files.
        """
        self._roles = roles
        self.clusters = Clusters(sources)
        self.passages = PassageIndex()
        self.timelines = Timelines()
        self.questions = QuestionShares()
        self.user_records = UserRecords()
        self.speakers = Speakers()
        self.documents = DocumentRows(directory)
        self.generation = 0
        self.contents = 0
        """Changes with what the indexes hold; not with every generation, as rows of other tables begin one too."""
        self._counts = TableCounts(*dict.fromkeys(("documents", *ENDED_BY, *FOLLOWED, SurroundingsFollower.table)))
        self._filters = FilterCache()
        self._relations = Relations(self._merge)
        self._surroundings = SurroundingsFollower()
        self._values: dict[Hashable, tuple[int, Any]] = {}
        self._clearings = 0

    def load(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Read all that the tables hold."""
        if not holds_records(cursor):
            return
        self.documents.load(cursor)
        self.questions.add(read_questions(cursor))
        self.user_records.add(read_user_labels(cursor, self._roles))
        self.speakers.add(read_speaker_texts(cursor))
        self.timelines.add(read_timelines(cursor))
        self.clusters.add(read_texts(cursor))
        for owner, passages in read_passages(cursor):
            self.passages.add(owner, passages)

    def apply(self, documents: Sequence[DocumentEntry]) -> None:
        """Take in committed documents."""
        if not documents:
            return  # what is known of clusters stays known
        self.documents.add(documents)
        self.timelines.add(documents)
        self.clusters.add(documents)
        self.questions.add((entry.label, entry.text) for entry in documents)
        self.user_records.add(entry.label for entry in documents if is_by_user(entry.text, entry.role))
        self.speakers.add((entry.label, entry.text) for entry in documents)
        for entry in documents:
            self.passages.add(entry.label, split_passages(entry.text))

    def remove(self, labels: Sequence[int]) -> list[int]:
        """Forget documents with their passages; all labels that went."""
        gone = [*labels, *self.passages.remove(labels)]
        self.documents.remove(labels)
        self.timelines.remove(labels)
        self.clusters.remove(labels)
        self.questions.remove(labels)
        self.user_records.remove(labels)
        self.speakers.remove(labels)
        return gone

    def _merge(self, pairs: Sequence[tuple[int, int]]) -> None:
        self.clusters.merge(pairs)
        self.timelines.stand_in(pairs)

    def begin_generation(self, *, has_contents: bool = True) -> None:
        """Call after each commit that may change what a search finds.

        `has_contents`: of documents or vectors, after the indexes have them.
        """
        self.contents += has_contents
        self.generation += 1

    def clear_caches(self) -> None:
        """Begin a generation that reads the tables anew, because rows have gone.

        A count cannot tell rows that went from rows that came.
        """
        self.begin_generation()
        self._clearings += 1
        self._filters, self._relations, self._values = FilterCache(), Relations(self._merge), {}
        self._surroundings = SurroundingsFollower()

    def counts(self, cursor: duckdb.DuckDBPyConnection) -> Mapping[str, int]:
        """table -> rows, of the tables that the caches follow, as of this generation."""
        return self._counts.at(cursor, self.generation)

    def allowed(self, cursor: duckdb.DuckDBPyConnection, filter: Filter) -> AllowList:
        """The records that the filter leaves."""
        generation = self.generation
        return self._filters.get(cursor, filter, generation, self._counts.at(cursor, generation))

    def follow_relations(self, cursor: duckdb.DuckDBPyConnection) -> Relations:
        """The relations, brought up to date."""
        generation, relations = self.generation, self._relations
        relations.follow(cursor, generation, self._counts.at(cursor, generation))
        return relations

    def surroundings(self, cursor: duckdb.DuckDBPyConnection, namespace: str, space: str) -> SurroundingVectors | None:
        """The vectors that dreams made of memories' surroundings in a space; None where there are none."""
        if not (rows := self._counts.at(cursor, self.generation)[SurroundingsFollower.table]):
            return None
        return self._surroundings.view(cursor, namespace, rows).get(space)

    def statements(
        self,
        labels: Sequence[int],
        allowed: Sequence[np.ndarray],
        most: int,
        known_at: datetime | None = None,
        *,
        excerpts: bool = False,
    ) -> list[Statements]:
        """What else states the same as each record, and how often it was stated (`Clusters.statements`).

        `known_at`: what was stated again later does not count.
        """
        restated, until = self._relations.restated, None if known_at is None else known_at.astimezone(UTC)

        def again(label: int) -> int:
            moments = restated.get(label, ())
            return len(moments) if until is None else sum(moment.replace(tzinfo=UTC) <= until for moment in moments)

        return self.clusters.statements(labels, allowed, most, again, excerpts=excerpts)

    def change_pairs(self, labels: np.ndarray, known_at: datetime | None = None) -> list[tuple[int, int]]:
        """(place of the newer, place of the older) of those of (n,) records of which one changes another.

        A record that states the same as another one changes the same. Where one of two statements changes the other,
        the one that was stated last is the newer: a statement that is repeated after a change holds again. `known_at`:
        only what was stated until then counts; None: everything.
        """
        newer, changing = self._relations.newer, self._relations.changing
        if not newer:
            return []
        every = enumerate(self.clusters.stating(labels))
        stating = {place: some for place, some in every if not changing.isdisjoint(some)}
        place_of = {same: place for place, some in stating.items() for same in some}
        found = {
            (place_of[other], place)
            for place, some in stating.items()
            for same in some
            for other in newer.get(same, ())
            if place_of.get(other, place) != place
        }
        if self._relations.agreed:
            found = {pair for pair in found if not self._hold_both(*(stating[place] for place in pair))}
        last = {place: self._stated_last(stating[place], known_at) for pair in found for place in pair}
        return sorted({(one, other) if last[one] >= last[other] else (other, one) for one, other in found})

    def newer_than(self, labels: np.ndarray, known_at: datetime | None = None) -> list[int]:
        """What changes one of (n,) records or of those that state the same, as `change_pairs` has it."""
        if not self._relations.newer:
            return []
        newer = (self._changed(some, known_at)[0] for some in self.clusters.stating(labels))
        return list(dict.fromkeys(other for some in newer for other in some))

    def changed(self, label: int) -> tuple[list[int], list[int]]:
        """The records that change what this one says, and those that it changes, both the latest stated last."""
        return self._changed(self.clusters.beside(label))

    def _changed(self, stating: Sequence[int], known_at: datetime | None = None) -> tuple[list[int], list[int]]:
        """What changes these records, which state the same, and what they change, as `change_pairs` has it."""
        relations = self._relations
        if relations.changing.isdisjoint(stating):
            return [], []
        own = frozenset(stating)
        found = [
            [other for same in stating for other in by_label.get(same, ()) if other not in own]
            for by_label in (relations.newer, relations.older)
        ]
        if not any(found):
            return [], []
        last = self._stated_last(stating, known_at)
        changes = {other: is_newer for is_newer, others in zip((True, False), found, strict=True) for other in others}
        beside = {other: self.clusters.beside(other) for other in changes}
        if relations.agreed:
            beside = {other: some for other, some in beside.items() if not self._hold_both(stating, some)}
        when = {other: self._stated_last(some, known_at) for other, some in beside.items()}
        in_time = sorted(when, key=when.__getitem__)
        is_later = {other: when[other] > last or (changes[other] and when[other] == last) for other in in_time}
        return [other for other in in_time if is_later[other]], [other for other in in_time if not is_later[other]]

    def _hold_both(self, stating: Sequence[int], others: Sequence[int]) -> bool:
        """Whether a resolution says that both statements hold, though one changes the other."""
        agreed = self._relations.agreed
        return any(not set(agreed.get(label, ())).isdisjoint(others) for label in stating)

    def _stated_last(self, stating: Sequence[int], known_at: datetime | None) -> int:
        return self.clusters.stated_last(stating, self._relations.restated, known_at)

    def cached(
        self,
        cursor: duckdb.DuckDBPyConnection,
        key: Hashable,
        compute: Callable[[Value | None, Mapping[str, int]], Value],
    ) -> Value:
        """The value of `compute`, kept under the key for one generation.

        `compute` is given its last value, None where that is forgotten, and the rows of `documents` and of the tables
        whose rows end a record.
        """
        generation, clearings = self.generation, self._clearings  # before: what is committed meanwhile is of the next
        last, value = self._values.get(key, (-1, None))
        if last != generation:
            value = compute(value, self._counts.at(cursor, generation))
            if self._clearings == clearings:
                # as they are now: `compute` may have searched, which keeps values too
                others = [(other, one) for other, one in self._values.items() if other != key]
                self._values = dict([*others[1 - CACHED_VALUES :], (key, (generation, value))])
        return cast(Value, value)

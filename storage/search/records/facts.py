"""Which records state the same fact: those of one canonical text, and those of one merged cluster."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from storage.search.entries import DocumentEntry
from storage.search.records.label_map import ABSENT, LabelMap, places_in

MAX_COMPARED = 64
"""Of a fact that was stated more often, only this many newest records may stand for it besides those that are found."""
_SOURCE = 1 << 61
"""Added to the age of what others are made of, so that it stands behind all of these."""


class Statements(NamedTuple):
    """What else states a fact: the other records, newest first, and how often it was stated.

    A record and what was made of it are one statement.
    """

    others: list[int]
    times: int


ALONE = Statements([], 1)


def canonical(text: str) -> str:
    """A text without case, runs of white space, and the full stop at its end."""
    return " ".join(text.split()).casefold().rstrip(".。")


def fact_of(namespace: str, text: str) -> int:
    """The 63-bit number of a text's fact; blank texts have none (ABSENT)."""
    content = canonical(text)
    if not content:
        return ABSENT
    digest = hashlib.blake2b(f"{namespace}\0{content}".encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class Facts:
    """Records by fact, in memory. One thread adds and removes; any number read.

    Of the records of a fact one stands for it: not a source where another is there, the newest of them.
    """

    def __init__(self, sources: Collection[tuple[str, str]] = ()) -> None:
        """`sources`: (toolset, kind) of records that others are made of."""
        self._sources = frozenset(sources)
        self._fact = LabelMap()
        self._age = LabelMap()
        """By label microseconds before the end of time, a source's behind all others: the lowest stands first."""
        self._first = LabelMap()
        """The first record of each fact, by fact."""
        self._records: dict[int, list[int]] = {}
        """All records of the facts that have several."""
        self._merged_into: dict[int, int] = {}
        """Facts of merged records -> the fact that they are now."""
        self._heads: dict[int, int] = {}
        """Merged records -> the record that they were merged into."""
        self._waiting: list[tuple[int, int]] = []
        """Merges of records that are not there yet."""
        self._changing = threading.Lock()

    def __len__(self) -> int:
        """How many different facts there are."""
        return len(self._first) - len(self._merged_into)

    @property
    def copies(self) -> float:
        """How many records a fact has on average, at least 1."""
        return max(1.0, len(self._fact) / max(1, len(self)))

    def add(self, entries: Iterable[DocumentEntry]) -> None:
        """Take in documents; those that are known stay."""
        with self._changing:
            for entry in entries:
                if entry.label not in self._fact and (fact := fact_of(entry.namespace, entry.text)) != ABSENT:
                    self._add(entry, fact)
            if self._waiting:
                waiting, self._waiting = self._waiting, []
                self._merge(waiting)

    def _add(self, entry: DocumentEntry, fact: int) -> None:
        self._fact.add(entry.label, fact)
        self._age.add(entry.label, _age(entry.created_at) + _SOURCE * (entry.kind in self._sources))
        if fact not in self._first:
            self._first.add(fact, entry.label)
            if fact not in self._merged_into:
                return
        self._join(self._merged_into.get(fact, fact), [entry.label])

    def _join(self, fact: int, labels: Sequence[int]) -> None:
        known = self._records.get(fact) or [label for label in [self._first.get(fact)] if label != ABSENT]
        self._records[fact] = list(dict.fromkeys([*known, *labels]))

    def merge(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Make the facts of merged records one: (label, label of the record that it was merged into) each."""
        with self._changing:
            self._merge(pairs)

    def _merge(self, pairs: Sequence[tuple[int, int]]) -> None:
        for record, head in pairs:
            facts = [self._fact.get(label) for label in (record, head)]
            if ABSENT in facts:
                self._waiting.append((record, head))
                continue
            self._heads[record] = head
            fact, into = (self._merged_into.get(one, one) for one in facts)
            if fact != into:
                moved = self._records.pop(fact, None) or [self._first.get(fact)]
                self._join(into, moved)
                for one, target in list(self._merged_into.items()):
                    if target == fact:
                        self._merged_into[one] = into
                self._merged_into[fact] = into

    def remove(self, labels: Sequence[int]) -> None:
        """Forget records."""
        with self._changing:
            facts = self.find(np.array(labels, np.int64)).tolist()
            for label, fact in zip(labels, facts, strict=True):
                if fact in self._records:
                    self._records[fact] = [other for other in self._records[fact] if other != label]
            self._fact.remove(labels)
            self._age.remove(labels)

    def find(self, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) their facts, ABSENT for what states none."""
        facts = self._fact.find(labels)
        if self._merged_into:
            into = self._merged_into
            facts = np.array([into.get(fact, fact) for fact in facts.tolist()], np.int64)
        return facts

    def representatives(self, labels: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) the records that stand for their facts, themselves where a fact has one record.

        `allowed`: sorted labels of the records that may; `labels` are among them.
        """
        facts = self.find(labels)
        records = self._records
        several = {fact for fact in facts.tolist() if fact in records}
        if not several:
            return labels
        pairs = [(fact, label) for fact in several for label in records[fact][-MAX_COMPARED:]]
        pairs += [(fact, label) for fact, label in zip(facts.tolist(), labels.tolist(), strict=True) if fact in several]
        of, stating = np.array(pairs, np.int64).T
        may = places_in(allowed, stating) != ABSENT
        of, stating = of[may], stating[may]
        order = np.lexsort((stating, self._age.find(stating), of))
        of, stating = of[order], stating[order]
        first = np.flatnonzero(np.diff(of, prepend=ABSENT))
        best = dict(zip(of[first].tolist(), stating[first].tolist(), strict=True))
        return np.array([best.get(fact, label) for fact, label in zip(facts.tolist(), labels.tolist(), strict=True)])

    def distinct(self, matches: Sequence[tuple[int, float]], allowed: np.ndarray) -> list[tuple[int, float]]:
        """One match for each fact: its best score, in the name of the record that stands for it.

        `matches` are best first, `allowed` as in `representatives`.
        """
        labels = self.representatives(np.array([label for label, _ in matches], np.int64), allowed).tolist()
        best: dict[int, float] = {}
        for label, (_, score) in zip(labels, matches, strict=True):
            best.setdefault(label, score)
        return list(best.items())

    def stating(self, labels: np.ndarray) -> list[Sequence[int]]:
        """For each of (n,) labels the records that state its fact, itself included."""
        facts, records = self.find(labels).tolist(), self._records
        return [records.get(fact) or [label] for fact, label in zip(facts, labels.tolist(), strict=True)]

    def statements(self, label: int, allowed: Sequence[np.ndarray], most: int) -> Statements:
        """The other records of a record's fact, at most `most`.

        `allowed`: sorted labels of the records that may be named, in any number of arrays; what was merged into one of
        them may be too.
        """
        (fact,) = self.find(np.array([label], np.int64)).tolist()
        every = self._records.get(fact)
        if every is None:
            return ALONE
        heads = np.array([self._heads.get(one, one) for one in every], np.int64)
        may = np.any([places_in(some, heads) != ABSENT for some in allowed], axis=0)
        stating = np.array(every, np.int64)[may]
        ages = self._age.find(stating)
        sources = int(np.count_nonzero(ages >= _SOURCE))
        times = max(1, sources, len(stating) - sources)
        order = np.lexsort((stating, ages))
        return Statements([one for one in stating[order].tolist() if one != label][:most], times)


def _age(moment: datetime | None) -> int:
    """Microseconds from a moment to the year 10000: the newest has the lowest, no moment the highest."""
    if moment is None:
        return _SOURCE - 1
    naive = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return int((datetime.max - naive).total_seconds() * 1_000_000)

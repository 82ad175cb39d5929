"""Clusters of records that state the same: by one canonical text, or because they were merged."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

import numpy as np

from storage.search.entries import DocumentEntry
from storage.search.records.label_map import ABSENT, LabelMap, places_in

MAX_COMPARED = 64
"""Of a larger cluster only this many newest records may stand for it, besides those that a search found."""
CACHED_LISTS = 8
"""Lists of allowed labels of which it is known which record stands for which."""
MAX_STANDING = 20_000
_SOURCE = 1 << 61
"""Added to the age of what others are made of, so that it stands behind all of these."""


class Statements(NamedTuple):
    """What else states the same: the other records, newest first, and how often it was stated.

    A record and what was made of it are one statement.
    """

    others: list[int]
    times: int


ALONE = Statements([], 1)


class _Standing(NamedTuple):
    """Which record stands for each, of those that are allowed, as of a version of the clusters."""

    version: int
    allowed: np.ndarray
    by_label: dict[int, int]


def canonical(text: str) -> str:
    """A text without case, runs of white space, and the full stop at its end."""
    return " ".join(text.split()).casefold().rstrip(".。")


def cluster_of(namespace: str, text: str) -> int:
    """The 63-bit number of a text's cluster; a blank text has none (ABSENT)."""
    content = canonical(text)
    if not content:
        return ABSENT
    digest = hashlib.blake2b(f"{namespace}\0{content}".encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class Clusters:
    """Records by cluster, in memory. One thread adds and removes; any number read.

    Of the records of a cluster one stands for it: not a source where another is there, the newest of them.
    """

    def __init__(self, sources: Collection[tuple[str, str]] = ()) -> None:
        """`sources`: (toolset, kind) of records that others are made of."""
        self._sources = frozenset(sources)
        self._cluster = LabelMap()
        self._age = LabelMap()
        """By label microseconds before the end of time, a source's behind all others: the lowest stands first."""
        self._first = LabelMap()
        """The first record of each cluster, by cluster."""
        self._records: dict[int, list[int]] = {}
        """All records of the clusters that have several."""
        self._heads: dict[int, int] = {}
        """Merged records -> the record that they were merged into."""
        self._merged: dict[int, list[int]] = {}
        """The records that were merged into each."""
        self._moved: dict[int, int] = {}
        """Merged records -> the cluster of their head, which is theirs now."""
        self._waiting: list[tuple[int, int]] = []
        """Merges of records that are not there yet."""
        self._changing = threading.Lock()
        self._version = 0
        self._standing: list[_Standing] = []
        """For the last lists of allowed labels. Replaced, never changed."""

    def __len__(self) -> int:
        """How many clusters there are."""
        return len(self._first)

    @property
    def copies(self) -> float:
        """How many records a cluster has on average, at least 1."""
        return max(1.0, len(self._cluster) / max(1, len(self)))

    def add(self, entries: Iterable[DocumentEntry]) -> None:
        """Take in documents; those that are known stay."""
        with self._changing:
            for entry in entries:
                if entry.label not in self._cluster and (cluster := cluster_of(entry.namespace, entry.text)) != ABSENT:
                    self._add(entry, cluster)
            if self._waiting:
                waiting, self._waiting = self._waiting, []
                self._merge(waiting)
            self._version += 1

    def _add(self, entry: DocumentEntry, cluster: int) -> None:
        self._cluster.add(entry.label, cluster)
        self._age.add(entry.label, _age(entry.created_at) + _SOURCE * (entry.kind in self._sources))
        if cluster in self._first:
            self._join(cluster, [entry.label])
        else:
            self._first.add(cluster, entry.label)

    def _join(self, cluster: int, labels: Sequence[int]) -> None:
        known = self._records.get(cluster) or [self._first.get(cluster)]
        self._records[cluster] = list(dict.fromkeys([*(one for one in known if self._of(one) == cluster), *labels]))

    def _of(self, label: int) -> int:
        return self._moved.get(label, self._cluster.get(label))

    def merge(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Move merged records to the clusters of their heads: (record, what it was merged into), by label.

        What has the same text as a merged record, but was not merged, stays: the texts of a merge may differ.
        """
        with self._changing:
            self._merge(pairs)
            self._version += 1

    def _merge(self, pairs: Sequence[tuple[int, int]]) -> None:
        for record, head in pairs:
            if ABSENT in (self._cluster.get(record), into := self._of(head)):
                self._waiting.append((record, head))
                continue
            self._heads[record] = head
            self._merged.setdefault(head, []).append(record)
            moving = self._with_merged(record)
            for one in moving:
                before = self._of(one)
                self._moved[one] = into
                if before in self._records:
                    self._records[before] = [other for other in self._records[before] if other != one]
            self._join(into, moving)

    def _head(self, label: int) -> int:
        """The record that stands for what this one was merged into, itself where it was not merged."""
        seen = {label}
        while (head := self._heads.get(label, label)) not in seen:
            seen.add(head)
            label = head
        return label

    def _with_merged(self, label: int) -> list[int]:
        """A record, and all that were merged into it."""
        found = [label]
        for one in found:
            found += [other for other in self._merged.get(one, ()) if other not in found]
        return found

    def remove(self, labels: Sequence[int]) -> None:
        """Forget records."""
        with self._changing:
            clusters = self.find(np.array(labels, np.int64)).tolist()
            for label, cluster in zip(labels, clusters, strict=True):
                if cluster in self._records:
                    self._records[cluster] = [other for other in self._records[cluster] if other != label]
            self._cluster.remove(labels)
            self._age.remove(labels)
            self._version += 1

    def find(self, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) their clusters, ABSENT for what is in none."""
        clusters = self._cluster.find(labels)
        if self._moved:
            moved = self._moved
            pairs = zip(labels.tolist(), clusters.tolist(), strict=True)
            clusters = np.array([moved.get(label, cluster) for label, cluster in pairs], np.int64)
        return clusters

    def representatives(self, labels: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) the records that stand for their clusters: themselves where they are alone.

        `allowed`: sorted labels of the records that may; `labels` are among them.
        """
        known = self._standing_among(allowed)
        asked = labels.tolist()
        missing = [label for label in asked if label not in known]
        if not missing:
            return np.array([known[label] for label in asked], np.int64)
        found, lasting = self._find_standing(missing, allowed)
        known.update({label: found[label] for label in lasting})
        return np.array([known[label] if label in known else found[label] for label in asked], np.int64)

    def _standing_among(self, allowed: np.ndarray) -> dict[int, int]:
        """label -> the record that stands for its cluster, of what was asked for since the last change."""
        version, standing = self._version, self._standing
        for each in standing:
            if each.allowed is allowed and each.version == version and len(each.by_label) < MAX_STANDING:
                return each.by_label
        new = _Standing(version, allowed, {})
        others = [each for each in standing if each.version == version and each.allowed is not allowed]
        self._standing = [*others[1 - CACHED_LISTS :], new]
        return new.by_label

    def _find_standing(self, labels: list[int], allowed: np.ndarray) -> tuple[dict[int, int], list[int]]:
        """label -> the record that stands for its cluster; and the labels that need no other label for it."""
        records = self._records
        clusters = self.find(np.array(labels, np.int64)).tolist()
        sizes = {cluster: len(records.get(cluster, ())) for cluster in clusters}
        lasting = [label for label, cluster in zip(labels, clusters, strict=True) if sizes[cluster] <= MAX_COMPARED]
        several = {cluster for cluster, size in sizes.items() if size}
        if not several:
            return dict(zip(labels, labels, strict=True)), lasting
        pairs = [(cluster, label) for cluster in several for label in records[cluster][-MAX_COMPARED:]]
        pairs += [(cluster, label) for cluster, label in zip(clusters, labels, strict=True) if cluster in several]
        of, stating = np.array(pairs, np.int64).T
        may = places_in(allowed, stating) != ABSENT
        of, stating = of[may], stating[may]
        order = np.lexsort((stating, self._age.find(stating), of))
        of, stating = of[order], stating[order]
        first = np.flatnonzero(np.diff(of, prepend=ABSENT))
        best = dict(zip(of[first].tolist(), stating[first].tolist(), strict=True))
        return {label: best.get(cluster, label) for label, cluster in zip(labels, clusters, strict=True)}, lasting

    def distinct(self, matches: Sequence[tuple[int, float]], allowed: np.ndarray) -> list[tuple[int, float]]:
        """One match for each cluster: its best score, in the name of the record that stands for it.

        `matches` are best first, `allowed` as in `representatives`.
        """
        labels = self.representatives(np.array([label for label, _ in matches], np.int64), allowed).tolist()
        best: dict[int, float] = {}
        for label, (_, score) in zip(labels, matches, strict=True):
            best.setdefault(label, score)
        return list(best.items())

    def stating(self, labels: np.ndarray) -> list[Sequence[int]]:
        """For each of (n,) labels the records of its cluster, itself included."""
        clusters, records = self.find(labels).tolist(), self._records
        return [records.get(cluster) or [label] for cluster, label in zip(clusters, labels.tolist(), strict=True)]

    def beside(self, label: int) -> Sequence[int]:
        """The records of a record's cluster, itself included."""
        return self._records.get(self._of(label)) or [label]

    def statements(self, labels: Sequence[int], allowed: Sequence[np.ndarray], most: int) -> list[Statements]:
        """The other records of each record's cluster, at most `most` of them.

        `allowed`: sorted labels of the records that may be named, in any number of arrays; what was merged into one of
        them may be too.
        """
        groups = [self._records.get(cluster, ()) for cluster in self.find(np.array(labels, np.int64)).tolist()]
        every = [one for group in groups for one in group]
        if not every:
            return [ALONE] * len(labels)
        heads = np.array([self._head(one) for one in every], np.int64)
        may = np.any([places_in(some, heads) != ABSENT for some in allowed], axis=0).tolist()
        stated = zip(self._age.find(np.array(every, np.int64)).tolist(), every, may, strict=True)
        found: list[Statements] = []
        for label, group in zip(labels, groups, strict=True):
            stating = sorted((age, one) for age, one, is_allowed in islice(stated, len(group)) if is_allowed)
            sources = sum(age >= _SOURCE for age, _ in stating)
            others = [one for _, one in stating if one != label][:most]
            found.append(Statements(others, max(1, sources, len(stating) - sources)) if group else ALONE)
        return found


def _age(moment: datetime | None) -> int:
    """Microseconds from a moment to the year 10000: the newest has the lowest, no moment the highest."""
    if moment is None:
        return _SOURCE - 1
    naive = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return int((datetime.max - naive).total_seconds() * 1_000_000)

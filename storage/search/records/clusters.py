"""Clusters of records that state the same: by one canonical text, or because they were merged.

An excerpt is a record whose text stands in a longer record of the same event, as a sentence that was extracted from an
entry stands in it: it counts as that record where the record may be found too, and no kind of record is named.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np

from storage.search.entries import DocumentEntry
from storage.search.records.label_map import ABSENT, LabelMap, places_in

MAX_COMPARED = 64
"""Of a larger cluster only this many newest records may stand for it, besides those that a search found."""
CACHED_LISTS = 8
"""Lists of allowed labels of which it is known which record stands for which."""
MAX_STANDING = 20_000
_SOURCE, _EXCERPT = 1 << 61, 1 << 62
"""Added to the age of what others are made of, so that it stands behind all of these, and of an excerpt behind both."""


class Statements(NamedTuple):
    """What else states the same: the other records, newest first, and how often it was stated.

    A record and what was made of it are one statement.
    """

    others: list[int]
    times: int


class _Standing(NamedTuple):
    """Which record stands for each, of those that are allowed, as of a version of the clusters."""

    version: int
    allowed: np.ndarray
    excerpts: bool
    by_label: dict[int, int]

    def is_of(self, version: int, allowed: np.ndarray, excerpts: bool) -> bool:
        """Whether it tells of these records, as they are now."""
        return self.version == version and self.allowed is allowed and self.excerpts == excerpts


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


def excerpts_of(entries: Sequence[DocumentEntry]) -> tuple[DocumentEntry, set[int]]:
    """The longest of the records of one event, and the labels of its excerpts.

    They stand in it word for word; a single word is a name, not an excerpt. Two records of one kind are each
    said for themselves, as the memories that one event merges.
    """
    longest = max(entries, key=lambda entry: len(entry.text))
    if len(entries) == 1 or longest.event_id is None:
        return longest, set()
    whole = canonical(longest.text)
    parts = [
        (entry.label, canonical(entry.text)) for entry in entries if entry.kind is None or entry.kind != longest.kind
    ]
    return longest, {label for label, part in parts if " " in part and part in whole and part != whole}


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
        self._whole = LabelMap()
        """By excerpt the cluster of the text that it stands in."""
        self._excerpts: dict[int, list[int]] = {}
        """By cluster the excerpts of its text."""
        self._shared: set[int] = set()
        """Records of clusters that have, or had, several, and excerpts: for every other one nothing else stands."""
        self._aside = 0
        """The clusters that began with an excerpt, and mostly have nothing else."""
        self._changing = threading.Lock()
        self._version = 0
        self._standing: list[_Standing] = []
        """For the last lists of allowed labels. Replaced, never changed."""

    def __len__(self) -> int:
        """How many clusters there are."""
        return len(self._first)

    @property
    def copies(self) -> float:
        """How many records a cluster has on average, its excerpts included; at least 1."""
        return max(1.0, len(self._cluster) / max(1, len(self) - self._aside))

    def add(self, entries: Iterable[DocumentEntry]) -> None:
        """Take in documents, those of an event one after the other; those that are known stay."""
        with self._changing:
            for _, event in groupby(entries, key=lambda entry: (entry.namespace, entry.event_id)):
                self._add_event([entry for entry in event if entry.label not in self._cluster])
            if self._waiting:
                waiting, self._waiting = self._waiting, []
                self._merge(waiting)
            self._version += 1

    def _add_event(self, entries: Sequence[DocumentEntry]) -> None:
        if not entries:
            return
        longest, excerpts = excerpts_of(entries)
        for entry in entries:
            if (cluster := cluster_of(entry.namespace, entry.text)) != ABSENT:
                whole = cluster_of(entry.namespace, longest.text) if entry.label in excerpts else ABSENT
                self._add(entry, cluster, whole)

    def _add(self, entry: DocumentEntry, cluster: int, whole: int) -> None:
        """Take in a record of a cluster; `whole`: the cluster of what it is an excerpt of, or ABSENT."""
        self._cluster.add(entry.label, cluster)
        behind = _SOURCE * (entry.kind in self._sources) + _EXCERPT * (whole != ABSENT)
        self._age.add(entry.label, _age(entry.created_at) + behind)
        if whole != ABSENT:
            self._shared.add(entry.label)
            self._whole.add(entry.label, whole)
            self._excerpts.setdefault(whole, []).append(entry.label)
        if cluster in self._first:
            self._join(cluster, [entry.label])
        else:
            self._first.add(cluster, entry.label)
            self._aside += whole != ABSENT

    def _join(self, cluster: int, labels: Sequence[int]) -> None:
        known = self._records.get(cluster) or [self._first.get(cluster)]
        joined = list(dict.fromkeys([*(one for one in known if self._of(one) == cluster), *labels]))
        self._shared.update(joined)
        self._records[cluster] = joined

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
                whole = self._whole.get(label)
                for records, number in ((self._records, cluster), (self._excerpts, whole)):
                    if number in records:
                        records[number] = [other for other in records[number] if other != label]
            self._shared.difference_update(labels)
            self._cluster.remove(labels)
            self._whole.remove(labels)
            self._age.remove(labels)
            self._version += 1

    def of_text(self, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) the clusters of their own texts (`cluster_of`), ABSENT for what is in none."""
        return self._cluster.find(labels)

    def find(self, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) their clusters, ABSENT for what is in none."""
        clusters = self._cluster.find(labels)
        if self._moved:
            moved = self._moved
            pairs = zip(labels.tolist(), clusters.tolist(), strict=True)
            clusters = np.array([moved.get(label, cluster) for label, cluster in pairs], np.int64)
        return clusters

    def representatives(self, labels: np.ndarray, allowed: np.ndarray, *, excerpts: bool = False) -> np.ndarray:
        """(n,) labels -> (n,) the records that stand for their clusters, or `labels` where all are alone.

        What stands for an excerpt is what stands for the text that it is of, where that may; with `excerpts` they are
        records like others. `allowed`: sorted labels of the records that may; `labels` are among them.
        """
        asked = labels.tolist()
        if self._shared.isdisjoint(asked):
            return labels
        known = self._standing_among(allowed, excerpts)
        missing = [label for label in asked if label not in known]
        if not missing:
            return np.array([known[label] for label in asked], np.int64)
        found, lasting = self._find_standing(missing, allowed, excerpts)
        known.update({label: found[label] for label in lasting})
        return np.array([known[label] if label in known else found[label] for label in asked], np.int64)

    def _standing_among(self, allowed: np.ndarray, excerpts: bool) -> dict[int, int]:
        """label -> the record that stands for its cluster, of what was asked for since the last change."""
        version, standing = self._version, self._standing
        for each in standing:
            if each.is_of(version, allowed, excerpts) and len(each.by_label) < MAX_STANDING:
                return each.by_label
        new = _Standing(version, allowed, excerpts, {})
        others = [each for each in standing if each.version == version and not each.is_of(version, allowed, excerpts)]
        self._standing = [*others[1 - CACHED_LISTS :], new]
        return new.by_label

    def _find_standing(
        self, labels: list[int], allowed: np.ndarray, excerpts: bool
    ) -> tuple[dict[int, int], list[int]]:
        """label -> the record that stands for its cluster; and the labels that need no other label for it."""
        records = self._records
        asked = np.array(labels, np.int64)
        wholes = asked if excerpts else self._wholes(asked, allowed)
        clusters = self.find(wholes).tolist()
        sizes = {cluster: len(records.get(cluster, ())) for cluster in clusters}
        lasting = [label for label, cluster in zip(labels, clusters, strict=True) if sizes[cluster] <= MAX_COMPARED]
        several = {cluster for cluster, size in sizes.items() if size}
        if not several:
            return dict(zip(labels, wholes.tolist(), strict=True)), lasting
        standing = list(zip(labels, wholes.tolist(), clusters, strict=True))
        pairs = [(cluster, label) for cluster in several for label in records[cluster][-MAX_COMPARED:]]
        pairs += [(cluster, whole) for _, whole, cluster in standing if cluster in several]
        of, stating = np.array(pairs, np.int64).T
        may = places_in(allowed, stating) != ABSENT
        of, stating = of[may], stating[may]
        order = np.lexsort((stating, self._age.find(stating), of))
        of, stating = of[order], stating[order]
        first = np.flatnonzero(np.diff(of, prepend=ABSENT))
        best = dict(zip(of[first].tolist(), stating[first].tolist(), strict=True))
        return {label: best.get(cluster, whole) for label, whole, cluster in standing}, lasting

    def _wholes(self, labels: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) the same, but for excerpts the allowed records whose text they stand in."""
        if not len(self._whole):
            return labels
        wholes = self._whole.find(labels)
        places = np.flatnonzero(wholes != ABSENT)
        if not len(places):
            return labels
        found = labels.copy()
        pairs = [(place, label) for place in places.tolist() for label in self._of_cluster(int(wholes[place]))]
        at, stating = np.array(pairs, np.int64).reshape(-1, 2).T
        may = places_in(allowed, stating) != ABSENT
        found[at[may]] = stating[may]
        return found

    def _of_cluster(self, cluster: int) -> Sequence[int]:
        """The records of a cluster, of many the newest; none where there is no such cluster any more."""
        if several := self._records.get(cluster):
            return several[-MAX_COMPARED:]
        first = self._first.get(cluster)
        return [first] if first != ABSENT and self._of(first) == cluster else []

    def distinct(
        self, matches: Sequence[tuple[int, float]], allowed: np.ndarray, *, excerpts: bool = False
    ) -> list[tuple[int, float]]:
        """One match for each cluster: its best score, in the name of the record that stands for it.

        `matches` are best first, `allowed` and `excerpts` as in `representatives`.
        """
        found = np.array([label for label, _ in matches], np.int64)
        labels = self.representatives(found, allowed, excerpts=excerpts)
        if labels is found:
            return list(matches)
        best: dict[int, float] = {}
        for label, (_, score) in zip(labels.tolist(), matches, strict=True):
            best.setdefault(label, score)
        return list(best.items())

    def stating(self, labels: np.ndarray) -> list[Sequence[int]]:
        """For each of (n,) labels the records of its cluster, itself included, and the excerpts of these."""
        clusters, records, excerpts = self.find(labels).tolist(), self._records, self._excerpts
        return [
            [*(records.get(cluster) or [label]), *excerpts.get(cluster, ())]
            for cluster, label in zip(clusters, labels.tolist(), strict=True)
        ]

    def beside(self, label: int) -> Sequence[int]:
        """The records of a record's cluster, itself included, and the excerpts of these."""
        cluster = self._of(label)
        return [*(self._records.get(cluster) or [label]), *self._excerpts.get(cluster, ())]

    def stated_last(
        self, labels: Sequence[int], again: Mapping[int, Sequence[datetime]], known_at: datetime | None = None
    ) -> int:
        """When the latest of these records was stated: the later, the higher.

        `again`: by label the times when it was stated once more. `known_at`: what was stated later does not count.
        """
        ages = (self._age.find(np.array(labels, np.int64)) & (_SOURCE - 1)).tolist()
        ages += [_age(moment) for label in labels for moment in again.get(label, ())]
        known = ages if known_at is None else [age for age in ages if age >= _age(known_at)]
        return -min(known, default=_SOURCE)

    def sources_of(self, labels: Sequence[int]) -> dict[int, int]:
        """By label the source that says the same and is of the same moment: what the record was made of."""
        asked = np.array(labels, np.int64)
        texts, clusters, ages = (
            found.tolist() for found in (self.of_text(asked), self.find(asked), self._age.find(asked))
        )
        sources = {cluster: self._sources_in(cluster) for cluster in {*texts, *clusters}}
        rows = zip(labels, texts, clusters, ages, strict=True)
        found = ((label, sources[text].get(age, sources[cluster].get(age))) for label, text, cluster, age in rows)
        return {label: source for label, source in found if source is not None}

    def _sources_in(self, cluster: int) -> dict[int, int]:
        """The sources of a cluster by the age that other records of their moment have."""
        records = np.array(self._records.get(cluster, ()), np.int64)
        ages = self._age.find(records)
        is_source = (ages >= _SOURCE) & (ages < _EXCERPT)
        return dict(zip((ages[is_source] - _SOURCE).tolist(), records[is_source].tolist(), strict=True))

    def statements(
        self,
        labels: Sequence[int],
        allowed: Sequence[np.ndarray],
        most: int,
        again: Callable[[int], int],
        *,
        excerpts: bool = False,
    ) -> list[Statements]:
        """The other records of each record's cluster with their excerpts, at most `most` of them.

        `allowed`: sorted labels of the records that may be named, in any number of arrays; what was merged into one of
        them may be too. `again`: how often a record was stated once more. `excerpts` as in `representatives`.
        """
        clusters = self.find(np.array(labels, np.int64)).tolist()
        groups = [
            [*(self._records.get(cluster) or [label]), *(() if excerpts else self._excerpts.get(cluster, ()))]
            for label, cluster in zip(labels, clusters, strict=True)
        ]
        if all(len(group) == 1 for group in groups):
            return [Statements([], 1 + again(label)) for label in labels]
        every = np.array([one for group in groups for one in group], np.int64)
        heads = np.array([self._head(one) for one in every.tolist()], np.int64)
        may = np.any([places_in(some, heads) != ABSENT for some in allowed], axis=0).tolist()
        wholes = self._whole.find(every).tolist()
        stated = zip(self._age.find(every).tolist(), every.tolist(), wholes, may, strict=True)
        found: list[Statements] = []
        for label, cluster, group in zip(labels, clusters, groups, strict=True):
            stating = sorted(
                (age, one, whole) for age, one, whole, is_allowed in islice(stated, len(group)) if is_allowed
            )
            own = [age for age, _, whole in stating if whole != cluster]
            sources = [age - _SOURCE for age in own if _SOURCE <= age < _EXCERPT]
            theirs = frozenset(sources)  # moments: what was made of a source is of the same
            others = [age for age in own if not _SOURCE <= age < _EXCERPT and age % _SOURCE not in theirs]
            times = max(1, len(sources) + len(others)) + again(label)
            also = [one for _, one, _ in stating if one != label]
            found.append(Statements(also[:most], times + sum(map(again, also))))
        return found


def _age(moment: datetime | None) -> int:
    """Microseconds from a moment to the year 10000: the newest has the lowest, no moment the highest."""
    if moment is None:
        return _SOURCE - 1
    naive = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return int((datetime.max - naive).total_seconds() * 1_000_000)

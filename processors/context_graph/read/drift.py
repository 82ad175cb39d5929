"""What drift is measured on: the memories of a goal, those of a timeframe, and past corrections.

A memory counts when it was stored, and as what it said then: one that was merged still does, and what it became is no
second memory. Searches do not count, so that a correction cannot raise what it is judged by.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.goals import Purposes, central_places, purpose_of
from processors.context_graph.rules.drift import LEAST, Baseline, Severity, WindowDrift, baseline_of, drift_of, scalar
from processors.context_graph.rules.drift_series import Bucket, Course, Timeframe, course, epoch_us
from processors.context_graph.rules.goals import Goal
from processors.context_graph.rules.groups import VIEW_COUNT
from processors.context_graph.rules.memories import TOOLSET
from processors.context_graph.rules.views.alignment import alignments
from processors.context_graph.rules.views.centre import centre
from processors.context_graph.rules.views.fingerprint import Fingerprint
from storage.statements import dicts, execute

if TYPE_CHECKING:
    import duckdb

MOST_BASELINE = 300
"""Memories among which a goal was found, as far as they are compared: where there are more, _RUNS runs of them."""
_RUNS = 5
MOST_OF_BUCKET = 32
"""This many memories of a bucket make its mean at most, chosen by their labels, which are hashes."""
FOLDS = 5
"""The time in which a goal was found is cut into this many stretches, each compared with the centre of the others."""
MOST_KEPT = 20_000
"""Purpose vectors in memory, of all namespaces: 2 MB."""


class DriftCache:
    """Purpose vectors and baselines that will not change any more. Any number of threads."""

    def __init__(self) -> None:
        self._vectors: OrderedDict[tuple[Any, ...], np.ndarray] = OrderedDict()
        self._baselines: OrderedDict[tuple[Any, ...], Baseline] = OrderedDict()
        self._lock = threading.Lock()

    def vectors(self, goal: tuple[Any, ...], ids: Sequence[str]) -> dict[str, np.ndarray]:
        """Those of these memories that are here."""
        with self._lock:
            return {one: self._vectors[goal, one] for one in ids if (goal, one) in self._vectors}

    def keep_vectors(self, goal: tuple[Any, ...], vectors: Mapping[str, np.ndarray]) -> None:
        """Remember these; of very many the oldest go."""
        with self._lock:
            self._vectors.update({(goal, one): vector for one, vector in vectors.items()})
            while len(self._vectors) > MOST_KEPT:
                self._vectors.popitem(last=False)

    def baseline(self, goal: tuple[Any, ...]) -> Baseline | None:
        with self._lock:
            return self._baselines.get(goal)

    def keep_baseline(self, goal: tuple[Any, ...], baseline: Baseline) -> None:
        """Remember it; of very many the oldest goes."""
        with self._lock:
            self._baselines[goal] = baseline
            while len(self._baselines) > 256:
                self._baselines.popitem(last=False)


class StoredMemories(NamedTuple):
    """Memories as they came, in the order of the log, a column each.

    (n,) ids, labels, microseconds since 1970, and whether each is a member of the goal.
    """

    ids: np.ndarray
    labels: np.ndarray
    at_us: np.ndarray
    is_member: np.ndarray

    def chosen(self, places: np.ndarray | slice) -> StoredMemories:
        """Those at these places, or of this mask."""
        return StoredMemories(*(column[places] for column in self))

    def central(self, most: int) -> list[str]:
        """The ids of at most this many, those of the lowest labels."""
        found: list[str] = self.ids[central_places(self.labels, most)].tolist()
        return found


@dataclass(frozen=True)
class Observation:
    """The state of a namespace at a time. `memories`: how many were stored in the timeframe; `all_memories`: ever."""

    goal: Goal
    timeframe: Timeframe
    at: datetime
    baseline: Baseline
    drift: WindowDrift
    course: Course
    buckets: list[Bucket]
    memories: int
    all_memories: int

    @property
    def is_sufficient(self) -> bool:
        """Whether enough was stored in the timeframe, and for the goal, to tell drift."""
        return self.memories >= LEAST and not self.goal.is_provisional

    @property
    def severity(self) -> Severity:
        """The severity that is told and acted on: none while too little was stored to tell."""
        return self.drift.severity if self.is_sufficient else "none"


@dataclass(frozen=True)
class DriftReader:
    """Reads the drift of one namespace from its goal. It is for one read on one thread; the caches are shared.

    `until`: memories from then on are not there yet.
    """

    reader: FingerprintReader
    purposes: Purposes
    cache: DriftCache
    goal: Goal
    until: datetime | None = None

    def observe(self, timeframe: Timeframe, now: datetime) -> Observation | None:
        """The state at a time; None where no memory of the goal, or no other, can be compared yet."""
        stored = self._stored()
        baseline = self._baseline(stored)
        if baseline is None:
            return None
        within = stored.chosen(stored.at_us >= epoch_us(timeframe.start(now)))
        window = self._window(within if len(within.ids) else stored, timeframe.window)
        rows = self.purpose_vectors(window)
        if not rows:
            return None
        drift = drift_of(baseline, np.array(list(rows.values())))
        buckets = self._buckets(within, timeframe, now)
        trend = course(buckets, baseline.scalar_error)
        return Observation(self.goal, timeframe, now, baseline, drift, trend, buckets, len(within.ids), len(stored.ids))

    def against_goal(self, ids: Sequence[str]) -> tuple[WindowDrift, Baseline] | None:
        """How far these memories have drifted from the goal; None where none can be compared."""
        baseline = self.cache.baseline(self.key) or self._baseline(self._stored())
        rows = self.purpose_vectors(ids)
        return (drift_of(baseline, np.array(list(rows.values()))), baseline) if baseline and rows else None

    def purpose_vectors(self, ids: Sequence[str]) -> dict[str, np.ndarray]:
        """By memory its [13] alignments with the goal; a memory that has no vector yet is left out."""
        towards = purpose_of(self.reader, self.purposes, self.goal)
        if towards is None or not ids:
            return {}
        known = self.cache.vectors(self.key, ids)
        found = self._fingerprints([one for one in ids if one not in known])
        if found:
            rows = alignments(towards, found).astype(np.float64)
            fresh = {str(one.memory_id): row for one, row in zip(found, rows, strict=True)}
            self.cache.keep_vectors(self.key, fresh)
            known |= fresh
        return known

    @cached_property
    def _central(self) -> list[str]:
        return self.purposes.central(self.reader.namespace, self.goal)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """What purpose vectors are a function of, beside the memory."""
        return self.reader.namespace, self.reader.spaces, *self._central

    def _fingerprints(self, ids: Sequence[str]) -> list[Fingerprint]:
        """Those that have all that they will have."""
        has_vectors = self.reader.indexes.spaces.live is not None
        found = self.reader.stored(ids) if ids else []
        return [one for one in found if one is not None and (one.vector is not None) == has_vectors]

    def _stored(self) -> StoredMemories:
        """Every memory, in the order of the log."""
        columns = execute(
            self.reader.cursor,
            "SELECT d.record_id, d.label, epoch_us(d.created_at) AS at_us, "
            "m.memory_id IN (SELECT unnest($3::VARCHAR[])) AS is_member FROM documents d JOIN context_memories m "
            "ON m.namespace = d.namespace AND m.memory_id = d.record_id "
            "WHERE d.namespace = $1 AND d.toolset = $2 AND (m.merged_from IS NULL OR is_member) "
            'ORDER BY d."offset", d.label',
            [self.reader.namespace, TOOLSET, list(self.goal.member_ids)],
        ).fetchnumpy()
        stored = StoredMemories(*(np.asarray(columns[name]) for name in ("record_id", "label", "at_us", "is_member")))
        return stored if self.until is None else stored.chosen(stored.at_us < epoch_us(self.until))

    def _window(self, stored: StoredMemories, most: int) -> list[str]:
        """The last memories; only those after the goal's where they are enough."""
        places = np.flatnonzero(stored.is_member)
        later = stored.ids[places[-1] + 1 if len(places) else 0 :]
        window: list[str] = (later if len(later) >= LEAST else stored.ids)[-most:].tolist()
        return window

    def _baseline(self, stored: StoredMemories) -> Baseline | None:
        """Of the memories among which the goal was found: from the first of its members to the last."""
        places = np.flatnonzero(stored.is_member)
        if not len(places):
            return None
        if (known := self.cache.baseline(self.key)) is not None:
            return known
        among = stored.ids[places[0] : places[-1] + 1].tolist()
        runs = self._unbiased(among, _runs(among))
        counts = [len(run) for run in runs]
        if not sum(counts):
            return None
        found = baseline_of([run for run in runs if len(run)])
        if sum(counts) == min(len(among), MOST_BASELINE):  # else some have no vectors yet
            self.cache.keep_baseline(self.key, found)
        return found

    def _unbiased(self, among: Sequence[str], runs: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """[n, 13] purpose vectors of each run, a memory against the centre of what lies at other times.

        `among`: the memories of the goal, in the order of the log. They are cut into FOLDS stretches of time: what is
        said later is as far from the centre as a stretch is from that of the others, while a memory whose own task
        is in the centre is nearer. Against the goal itself where there is one stretch only.
        """
        chosen = set(self._central)
        places = [place for place, one in enumerate(among) if one in chosen]
        stretches = [part for part in np.array_split(places, FOLDS) if len(part)]
        if len(stretches) < 2:
            rows = self.purpose_vectors([one for run in runs for one in run])
        else:
            ends = np.array([part[0] for part in stretches[1:]])
            fold = {one: int(np.searchsorted(ends, place, side="right")) for place, one in enumerate(among)}
            rows = self._held_out(fold, [among[place] for place in places], [one for run in runs for one in run])
        return [np.array([rows[one] for one in run if one in rows]).reshape(-1, VIEW_COUNT) for run in runs]

    def _held_out(self, fold: Mapping[str, int], central: Sequence[str], ids: Sequence[str]) -> dict[str, np.ndarray]:
        """By memory its [13] alignments with the centre of the central memories of other folds."""
        fingerprints = {str(one.memory_id): one for one in self._fingerprints(list(dict.fromkeys([*central, *ids])))}
        found: dict[str, np.ndarray] = {}
        for number in sorted(set(fold.values())):
            others = [fingerprints[one] for one in central if one in fingerprints and fold[one] != number]
            own = [one for one in ids if one in fingerprints and fold[one] == number]
            if others and own:
                rows = alignments(centre(others), [fingerprints[one] for one in own]).astype(np.float64)
                found |= dict(zip(own, rows, strict=True))
        return found

    def _buckets(self, within: StoredMemories, timeframe: Timeframe, now: datetime) -> list[Bucket]:
        places = timeframe.places(now, within.at_us)
        members = [within.chosen(places == number) for number in range(timeframe.buckets)]
        chosen = [every.central(MOST_OF_BUCKET) for every in members]
        rows = self.purpose_vectors([one for ids in chosen for one in ids])
        found = []
        for every, ids in zip(members, chosen, strict=True):
            known = [rows[one] for one in ids if one in rows]
            found.append(Bucket(float(scalar(np.array(known)).mean()) if known else None, len(every.ids)))
        return found


def _runs(ids: Sequence[str]) -> list[Sequence[str]]:
    """All of them as one run, or of very many runs at even distances."""
    if len(ids) <= MOST_BASELINE:
        return [ids]
    length = MOST_BASELINE // _RUNS
    return [ids[start : start + length] for start in np.linspace(0, len(ids) - length, _RUNS).astype(int)]


def observed(
    cursor: duckdb.DuckDBPyConnection, namespace: str, since: datetime
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the timer observed since a time, and the corrections since then, oldest first."""
    moment = since.astimezone(UTC).replace(tzinfo=None)
    observations = execute(
        cursor,
        "SELECT observed_at, severity FROM context_drift_observations WHERE namespace = ? AND observed_at >= ? "
        "ORDER BY observed_at, event_id",
        [namespace, moment],
    )
    told = dicts(observations)
    corrections = execute(
        cursor,
        "SELECT corrected_at, strategy, severity, trend, factor, target_alignment, alignment_before, alignment_after, "
        "is_forced, is_automatic FROM context_correction_history WHERE namespace = ? AND corrected_at >= ? "
        "ORDER BY version",
        [namespace, moment],
    )
    return told, dicts(corrections)

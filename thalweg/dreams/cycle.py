"""One dream: NREM replays and prunes edges, REM makes new ones.

It goes in slices of some milliseconds on a reader thread, rests twice as long as each took, and waits while others are
called, but not for ever. What it changes it publishes in batches, whose ids are functions of the dream and their
number: a dream that ends between two leaves a whole graph.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, TypeVar

import duckdb
import numpy as np

from mcp_ingress.activity import Activity
from mcp_ingress.toolsets.context_graph.dreams import Dream
from processors.context_graph.read import dream_slices as slices
from processors.context_graph.read import dreams as stored
from processors.context_graph.read.consolidation import find_groups
from processors.context_graph.read.edges import edges_among, read_edges
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.goal_alignments import GoalAlignments
from processors.context_graph.read.goals import Purposes
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.read.surroundings import read_bare, read_repeated, read_surroundings
from processors.context_graph.rules.co_recall import REM, asked_again, co_recalled
from processors.context_graph.rules.consolidation import MIN_SIMILARITY, SIMILARITY
from processors.context_graph.rules.dream_ids import SOURCE, fact_id
from processors.context_graph.rules.edges import EdgeChange
from processors.context_graph.rules.hebb import replay
from processors.context_graph.rules.hyperbolic import LEAP, walk
from processors.context_graph.rules.idleness import MOST_WAIT_S, QUIET_S
from processors.context_graph.rules.leaps import MOST_NAMES, QUERIES, Bond, leaps, names_in
from processors.context_graph.rules.shortcuts import candidates
from processors.context_graph.stages.relate import DIGITS, SIMILAR, THETA_EDGE
from processors.embedding.model import Embedder, encode_documents
from processors.frame.job import APPLY_WAIT_S
from processors.frame.stage import ENVELOPE_BYTES
from processors.memory.vector_facts import encode_vector
from streams.codec import encode, in_parts
from streams.event_types.context_dreams import DREAM_PROGRESSED
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from streams.event_types.context_ends import MEMORIES_MERGED
from streams.event_types.context_surroundings import QUESTIONS_REPEATED, SURROUNDINGS_EMBEDDED
from streams.events import Event
from streams.failpoints import hit
from streams.log.base import RECORD_BYTES
from streams.positions import Freshness
from streams.topics import DERIVED, MEMORY
from thalweg.process.running import Running

NREM_S, REM_S = 180.0, 120.0
"""How long each phase lasts at most."""
SLICE_S = 0.01
"""How long a slice is to last, about: the next one is made shorter or longer by what this one took."""
BATCH = 200
"""Changes of edges in one event."""
MERGES_A_DAY, MERGED_OF = 50, 300
"""Groups that dreams merge in a day at most; of how many memories, those stored last, and all near them."""
MERGE_S = 5.0
"""How long the comparing of these takes at most. It yields to callers, and ends when the dream is woken."""
MOST_SURROUNDED, SURROUNDED = 5_000, 16
"""Memories whose surroundings a dream makes vectors of at most: more than its time is enough for; and in one event."""
DAY = timedelta(days=1)
WALKS = 10
"""Of one slice."""
Result = TypeVar("Result")
Item = TypeVar("Item")
Steps = AsyncGenerator[float, None]
"""Seconds that each step has taken. A step raises Woken."""


class Woken(Exception):
    """The dream was woken while it read or published."""


class Cycle:
    """The work of a dream that began at `started_at`, to be stepped through until it is woken."""

    def __init__(self, running: Running, dream: Dream, started_at: datetime) -> None:
        self._running, self._dream, self._as_of = running, dream, started_at
        self._largest = min(RECORD_BYTES, running.log.largest(DERIVED.name)) - ENVELOPE_BYTES
        self._batches = 0
        self._replayed: list[str] = []
        self._running_on: set[asyncio.Task[Any]] = set()
        self._patience_s = MOST_WAIT_S
        self._chance = np.random.default_rng(seed_of(dream.dream_id))

    async def nrem(self) -> Steps:
        """Measure anew what a former model measured, and replay the memories that matter most.

        Edges between these grow, wear or go.
        """
        async for took_s in self._measure():
            yield took_s
        replayed = await self._read(slices.read_replayed, self._as_of)
        self._replayed = [one.memory_id for one in replayed]
        self._report(nrem=True, memories_replayed=len(replayed))
        yield 0.0
        edges = await self._read(edges_among, self._replayed)
        yield 0.0
        activations = {one.memory_id: one.activation for one in replayed}
        for some in _chunks(edges, BATCH):
            yield await self._publish(replay(some, activations))

    async def _measure(self) -> Steps:
        """Measure anew how near memories are that a former model found near; what is far by this one's goes."""
        model = self._running.store.indexes.model
        if model is None:
            return
        read = functools.partial(slices.read_measured, self._running.store.indexes)
        measured = await self._run(lambda cursor: read(cursor, self._dream.namespace, model.space))
        yield 0.0
        for some in _chunks(measured, BATCH):
            began = time.perf_counter()
            weighed = [(one, other, round(max(0.0, min(1.0, cosine)), DIGITS)) for one, other, cosine in some]
            near = [
                {"source_id": one, "target_id": other, "kind": SIMILAR, "weight": weight, "space": model.space}
                for one, other, weight in weighed
                if weight >= THETA_EDGE
            ]
            for part in in_parts(near, self._largest):
                await self._put_next(EDGES_FOUND, {"edges": part})
            far = [
                EdgeChange(one, other, SIMILAR, weight, is_removed=True)
                for one, other, weight in weighed
                if weight < THETA_EDGE
            ]
            if far:
                await self._publish(far)
            yield time.perf_counter() - began

    async def rem(self) -> Steps:
        """Walk among the memories, join what is far apart and shares something, and shorten trodden paths."""
        bonds: list[Bond] = []
        starts = await self._read(slices.read_starts, self._replayed[:QUERIES])
        ids = [memory_id for memory_id, _ in starts]
        yield 0.0
        bonds += await self._read(slices.read_shared_causes, frozenset(ids))
        yield 0.0
        bonds += await self._read(slices.read_recalled_together, ids, self._as_of)
        yield 0.0
        names = [(memory_id, name) for memory_id, text in starts for name in names_in(text)[:MOST_NAMES]]
        async for found, took_s in self._sliced(names, lambda some: self._read(slices.read_named, some, self._as_of)):
            bonds += found
            yield took_s
        known = list(dict.fromkeys([*ids, *(bond.other for bond in bonds)]))
        placed, points = await self._run(
            lambda cursor: slices.read_points(self._running.store.indexes, self._dream.namespace, known)
        )
        yield 0.0
        async for took_s in self._walk(points, sum(one in set(ids) for one in placed)):
            yield took_s
        found_leaps = leaps(bonds, dict(zip(placed, points, strict=True)), await self._joined(known))
        self._report(average_semantic_leap=_mean([leap.distance for leap in found_leaps]))
        for some in _chunks(found_leaps, BATCH):
            yield await self._publish([leap.change for leap in some], [leap.evidence for leap in some])
        async for took_s in self._trodden():
            yield took_s
        async for took_s in self._merge():
            yield took_s
        async for took_s in self._surround():
            yield took_s

    async def _walk(self, points: np.ndarray, starts: int) -> Steps:
        """Walk from the first points; what is told of it is shown only."""
        passed, walks, blind = np.full(len(points), np.inf), 0, 0
        for place in range(0, starts, WALKS):
            some = points[place : min(place + WALKS, starts)]
            began = time.perf_counter()
            nearest, near = await self._run(
                functools.partial(lambda cursor, some: walk(some, points, self._chance), some=some)
            )
            passed = np.minimum(passed, near)
            walks, blind = walks + len(some), blind + int((nearest >= LEAP).sum())
            coverage = round(float((passed < LEAP).mean()), 6)
            self._report(queries_generated=walks, blind_spots_found=blind, exploration_coverage=coverage)
            yield time.perf_counter() - began

    async def _trodden(self) -> Steps:
        """Shortcuts of paths that searches walk again and again, and edges between what they return together."""
        walks = await self._read(slices.read_traversals, self._as_of)
        edges = await self._read(edges_among, {one for walk in walks for one in walk.path})
        yield 0.0
        found = candidates(walks, edges, made_at=await self._read(slices.read_shortcut_times))
        self._report(nrem=True, shortcut_candidates=len(found))
        for trodden in _chunks(found, BATCH):
            yield await self._publish([one.change for one in trodden], [{"path": list(one.path)} for one in trodden])
        recalls = await self._read(slices.read_recalls, self._as_of)
        edges = await self._read(read_edges, [REM])
        yield 0.0
        together = await self._run(lambda cursor: co_recalled(recalls, edges))
        for some in _chunks(together, BATCH):
            yield await self._publish(some)
        known = await self._read(read_repeated)
        for repeated in _chunks(asked_again(recalls, known), BATCH):
            await self._tell_of(QUESTIONS_REPEATED, {"query_vector_ids": list(repeated)})
            yield 0.0

    async def _merge(self) -> Steps:
        """Merge what says the same as a memory that was stored lately; at most this many groups a day."""
        if not self._running.settings.merge_in_dreams:
            return
        left = MERGES_A_DAY - await self._read(stored.count_merges, self._as_of - DAY, self._as_of)
        if left > 0 and self._running.store.indexes.spaces.live is not None:
            began = time.perf_counter()
            found = await self._run(functools.partial(self._duplicates, left))
            yield time.perf_counter() - began
            if found["groups"]:
                await self._put(self._event(MEMORIES_MERGED, found, ""), MEMORY.name)

    def _duplicates(self, most_groups: int, cursor: duckdb.DuckDBPyConnection) -> dict[str, Any]:
        running, services = self._running, self._running.services
        cache = services.part(FingerprintCache)
        reader = FingerprintReader(cursor, running.store.indexes, services.embedder, cache, self._dream.namespace)
        until = time.monotonic() + MERGE_S
        return find_groups(
            reader,
            services.part(Purposes),
            services.part(GoalAlignments),
            SIMILARITY,
            MERGED_OF,
            MIN_SIMILARITY,
            is_over=lambda: self._dream.woken.is_set() or time.monotonic() > until,
            largest=self._largest,
            most_groups=most_groups,
            with_near=True,
        )

    async def _surround(self) -> Steps:
        """Make vectors of memories with what was said around them, of those that have none, the newest first.

        Not with a model over the network: nobody has asked for what that costs.
        """
        embedder, indexes = self._running.services.embedder, self._running.store.indexes
        if embedder is None or embedder.info.is_remote:
            return
        namespace, about = self._dream.namespace, {"space": embedder.info.space, "dim": embedder.info.dim}
        bare = await self._read(read_bare, self._as_of, embedder.info.space, MOST_SURROUNDED)
        yield 0.0
        for some in _chunks(bare, SURROUNDED):
            read = functools.partial(read_surroundings, indexes=indexes, namespace=namespace, memories=some)
            made = list[dict[str, Any]]()
            for one in await self._run(read):
                began, vector = time.perf_counter(), one.vector
                if vector is None:
                    vector = await self._unless_woken(_encoded(embedder, one.text))
                made.append({"memory_id": one.memory_id, "vector": encode_vector(vector)})
                yield time.perf_counter() - began
            for part in in_parts(made, self._largest):
                await self._tell_of(SURROUNDINGS_EMBEDDED, {**about, "surroundings": part})
            yield 0.0

    async def _joined(self, ids: Sequence[str]) -> set[tuple[str, str]]:
        """Pairs of these that have an edge, whatever its kind and direction."""
        edges = await self._read(edges_among, ids)
        return {(min(pair), max(pair)) for edge in edges for pair in [(edge.source_id, edge.target_id)]}

    async def _sliced(
        self, items: Sequence[Item], work: Callable[[Sequence[Item]], Any]
    ) -> AsyncIterator[tuple[Any, float]]:
        """Work on the items, as many at once as take about a slice's time."""
        place, count = 0, 1
        while place < len(items):
            began = time.perf_counter()
            found = await work(items[place : place + count])
            took_s = time.perf_counter() - began
            place += count
            count = max(1, count // 2) if took_s > SLICE_S else count + 1
            yield found, took_s

    async def _read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        namespace = self._dream.namespace
        return await self._run(lambda cursor: query(cursor, namespace, *arguments))

    async def _run(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        return await self._unless_woken(self._running.store.reader.run(query))

    async def _publish(self, changes: Sequence[EdgeChange], evidence: Sequence[Mapping[str, Any]] = ()) -> float:
        """Put changes of edges on the log and wait until they are kept; how many seconds that took."""
        began = time.perf_counter()
        told = [_plain(change) for change in changes]
        told = [one | {"evidence": why} for one, why in zip(told, evidence, strict=True)] if evidence else told
        for part in in_parts(told, self._largest):
            await self._tell_of(EDGES_CHANGED, {"changes": part})
        return time.perf_counter() - began

    async def _tell_of(self, event_type: str, data: Mapping[str, Any]) -> None:
        """Put what this dream did on the log, and wait until it is kept."""
        await self._put_next(event_type, {"dream_id": self._dream.dream_id, **data})

    async def _put_next(self, event_type: str, data: Mapping[str, Any]) -> None:
        """Put the next of several events on the log, and wait until it is kept."""
        self._batches += 1
        await self._put(self._event(event_type, data, str(self._batches)))

    async def tell(self) -> None:
        """Leave on the log how far the dream is."""
        dream = self._dream
        data = {"dream_id": dream.dream_id, "state": dream.state, "report": dream.report.to_json()}
        await self._put(self._event(DREAM_PROGRESSED, data, dream.state))

    async def _unless_woken(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What this returns. Raises Woken as soon as the dream is woken; what runs then ends by itself (`settled`)."""
        task, woken = asyncio.ensure_future(work), asyncio.ensure_future(self._dream.woken.wait())
        self._running_on.add(task)
        task.add_done_callback(self._running_on.discard)
        await asyncio.wait([task, woken], return_when=asyncio.FIRST_COMPLETED)
        woken.cancel()
        if self._dream.woken.is_set():
            raise Woken
        return task.result()

    async def rest(self, seconds: float) -> bool:
        """Do nothing for a while, and until nobody calls any namespace; whether the dream was woken.

        For the second it waits MOST_WAIT_S at most in all.
        """
        activity = self._running.services.part(Activity)
        is_woken = await self._woken_within(seconds)
        while not is_woken and self._patience_s > 0 and (left_s := QUIET_S - activity.since_call_s()) > 0:
            began = time.monotonic()
            is_woken = await self._woken_within(min(left_s, self._patience_s))
            self._patience_s -= time.monotonic() - began
        return is_woken

    async def _woken_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._dream.woken.wait(), seconds)
        return self._dream.woken.is_set()

    async def settled(self) -> None:
        """Wait for what went on when the dream was woken: a slice of a read, an event on its way to the log."""
        await asyncio.gather(*self._running_on, return_exceptions=True)

    async def _put(self, event: Event, topic: str = DERIVED.name) -> None:
        """Put an event on the log and wait until it is kept."""
        log, applied = self._running.log, self._running.store.applied
        token = Freshness.after(await self._unless_woken(log.publish([encode(topic, event)])))
        hit("mid_dream")
        await self._unless_woken(applied.wait(token, timeout_s=APPLY_WAIT_S))

    def _event(self, event_type: str, data: Mapping[str, Any], about: str) -> Event:
        dream, now = self._dream, self._running.clock.now()
        identity = fact_id(event_type, dream.namespace, dream.dream_id, about)
        return Event(identity, SOURCE, event_type, dream.namespace, now, data)

    def _report(self, *, nrem: bool = False, **values: Any) -> None:
        report = self._dream.report
        self._dream.report = report.with_nrem(**values) if nrem else report.with_rem(**values)


def seed_of(dream_id: str) -> int:
    """What its chance begins with: a function of its id, so that it can be dreamt again."""
    return int.from_bytes(hashlib.blake2b(dream_id.encode(), digest_size=8).digest(), "big")


async def _encoded(embedder: Embedder, text: str) -> np.ndarray:
    """The vector of a text, made off the event loop."""
    vectors = await asyncio.get_running_loop().run_in_executor(None, encode_documents, embedder, [text])
    vector: np.ndarray = vectors[0]
    return vector


def _plain(change: EdgeChange) -> dict[str, Any]:
    return {name: value for name, value in asdict(change).items() if name != "is_removed" or value}


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 6) if values else 0.0


def _chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))

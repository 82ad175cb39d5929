"""The spaces of vectors of a running node: which one answers, and the building of another beside it.

The registry (table `spaces`) says what is to be done, so that a node that was killed goes on where it was: what a space
lacks is asked of the store, embedded, published as facts, applied, and asked again until nothing is missing. Then one
event switches. Until then, and while a model does not load, the former space answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import duckdb

from processors.embedding.model import Embedder, ModelInfo
from processors.frame.job import Job
from processors.memory.reembedding import failed_labels
from storage.statements import dicts
from streams.codec import encode
from streams.errors import Refused, ThalwegError, Unavailable
from streams.event_types.spaces import SPACE_DROPPED, SPACE_REGISTERED, SPACE_SWITCHED, SYSTEM
from streams.events import Event
from streams.ids import derived_id
from streams.positions import Freshness
from streams.topics import DERIVED, MEMORY
from thalweg.process.running import Running
from thalweg.spaces.filling import Filling

SOURCE = "thalweg:spaces"
SWITCH_S = 1.0
"""How long the former index of vectors is kept for queries that the former model has encoded."""
FEW = 64
"""A pass that found at most this many texts is the last before the switch; what comes meanwhile follows after it."""
Row = dict[str, Any]


class Spaces:
    """One for each node. `run` until cancelled; `register` and `drop` are what the operator asks for."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._job = Job("embedding spaces", running.log, running.store.applied, self._follow)
        self._filling = Filling(running, self._job)
        self._loaded: dict[str, Embedder] = {}
        self._repaired: tuple[str, int] | None = None
        self._completed: tuple[str, int] | None = None
        self.run = self._job.run

    async def status(self) -> dict[str, Any]:
        """The space that answers, how far a building is, and what stands in its way.

        `partial`: how many long texts still lack passages; `failed`: how many texts get no vectors, because model or
        log refused them (`embedding_failures` says why); `turns`: how many of captured sessions' turns wait for theirs.
        """
        live = await self._running.store.reader.run(live_space)
        failed = (
            len(await self._running.store.reader.run(lambda cursor: failed_labels(cursor, live["space"])))
            if live
            else 0
        )
        at = self._job.progress
        building = {"space": at.subject, "done": at.done, "total": at.total} if at else None
        counts = {"partial": self._filling.partial, "failed": failed, "turns": self._filling.turns}
        return {"live": live["space"] if live else None, "building": building, "problem": self._job.problem, **counts}

    async def report(self) -> dict[str, Any]:
        """The status, and every space with what it holds."""
        rows = await self._running.store.reader.run(
            lambda cursor: dicts(cursor.execute("FROM embedding_spaces ORDER BY registered_at, space"))
        )
        return {**await self.status(), "spaces": rows}

    async def register(self, model: str) -> str:
        """Have this model's space built; its name. Raises Refused, or EmbedderUnavailable for the model."""
        rows = await self._registry()
        if self._running.embedder is None or not self._running.runners:
            raise Refused("This node does not embed; start it with an embedder and the role `all`.")
        building = next((row for row in rows if row["state"] == "building"), None)
        embedder = await self._load(model)
        space = embedder.info.space
        if building is not None and building["space"] != space:
            raise Refused(
                f"{building['space']} is being built; wait for it, or `thalweg reembed --drop {building['space']}`."
            )
        if any(row["state"] == "live" and row["space"] == space for row in rows):
            raise Refused(f"{space} is the live space already.")
        if building is None:
            await self._publish([self._registration(model, embedder.info)])
        self._job.wake()
        return space

    async def drop(self, space: str | None) -> list[str]:
        """Give up one space, or all that are kept; the names of those dropped. Raises Refused."""
        rows = {row["space"]: row["state"] for row in await self._registry()}
        if space is not None and rows.get(space) not in ("building", "kept"):
            is_live = rows.get(space) == "live"
            raise Refused(
                f"{space} is the live space: switch to another first."
                if is_live
                else f"There is no space {space} to drop."
            )
        chosen = [space] if space is not None else [name for name, state in rows.items() if state == "kept"]
        await self._publish([self._event(SPACE_DROPPED, {"space": name}) for name in chosen])
        return chosen

    async def _registry(self) -> list[Row]:
        return await self._running.store.reader.run(
            lambda cursor: dicts(cursor.execute("FROM spaces ORDER BY registered_at, space"))
        )

    async def _follow(self) -> None:
        running = self._running
        if running.embedder is None:
            return
        rows = await self._registry()
        live = next((row for row in rows if row["state"] == "live"), None)
        if live is None:
            if running.runners:
                name, info = running.settings.embedder, running.embedder.info
                await self._publish(
                    [self._registration(name, info), self._event(SPACE_SWITCHED, {"space": info.space})]
                )
            return
        unable: ThalwegError | None = None
        if live["space"] != running.embedder.info.space:
            try:
                await self._answer_from(await self._load_registered(live))
            except ThalwegError as error:  # another space can be built nevertheless, which is the way out
                unable = error
        building = next((row for row in rows if row["state"] == "building"), None)
        if building is not None and running.runners:
            await self._build(building)
            return  # another answers now
        if unable is not None:
            raise unable
        if self._repaired != (live["space"], running.store.indexes.spaces.vectors_of_other_models) and running.runners:
            await self._repair(live)
        if self._completed != (live["space"], running.store.indexes.spaces.partly_embedded) and running.runners:
            await self._complete(live)
        if running.runners and live["space"] == running.embedder.info.space:
            unsearched = sorted(running.store.indexes.unsearched)
            if await self._filling.embed_turns(live, running.embedder, unsearched):
                self._job.wake()  # to look first whether something else is to be done, then for more turns
        self._forget([row["embedder"] for row in rows if row["state"] == "live"])

    async def _build(self, row: Row) -> None:
        embedder = await self._load_registered(row)
        filled = self._filling.fill(row, embedder, enough=FEW)
        if await self._job.while_wanted(filled, lambda: self._is_in(row["space"], "building")):
            await asyncio.to_thread(self._running.store.indexes.prepare, embedder.info)
            await self._publish([self._event(SPACE_SWITCHED, {"space": row["space"]})])
            self._job.wake()
            await self._answer_from(embedder)

    async def _repair(self, row: Row) -> None:
        """Embed what another model embedded: before a switch was known, or by a process of other settings."""
        running = self._running
        foreign = running.store.indexes.spaces.vectors_of_other_models
        reached = await running.log.end_offsets([MEMORY.name, DERIVED.name])
        await self._job.wait_applied(Freshness(reached).on_topic(MEMORY.name), ["embed"])
        # a store that is replayed seems to lack what comes later
        await self._job.wait_applied(Freshness(await running.log.end_offsets([DERIVED.name])))
        assert running.embedder is not None
        filled = self._filling.repair(row, running.embedder, reached)
        await self._job.while_wanted(filled, lambda: self._is_in(row["space"], "live"))
        self._repaired = row["space"], foreign

    async def _complete(self, row: Row) -> None:
        """Embed the passages of long texts that did not come with them."""
        running = self._running
        partial = running.store.indexes.spaces.partly_embedded
        assert running.embedder is not None
        completed = self._filling.complete(row, running.embedder)
        if await self._job.while_wanted(completed, lambda: self._is_wanted(row["space"])):
            self._completed = row["space"], partial

    async def _is_wanted(self, space: str) -> bool:
        """Whether the space answers and no other is to be built, which goes first."""
        states = {row["space"]: row["state"] for row in await self._registry()}
        return states.get(space) == "live" and "building" not in states.values()

    async def _is_in(self, space: str, state: str) -> bool:
        return any(row["space"] == space and row["state"] == state for row in await self._registry())

    async def _answer_from(self, embedder: Embedder) -> None:
        """Searches and new memories use this model from now on; its space is live in the store already."""
        running = self._running
        await asyncio.to_thread(running.store.indexes.switch, embedder.info)
        running.use(embedder)
        await asyncio.sleep(SWITCH_S)
        await asyncio.to_thread(running.store.indexes.drop_other_spaces)

    async def _load(self, name: str) -> Embedder:
        if name not in self._loaded:
            loaded = await asyncio.to_thread(self._running.models.load, name)
            if loaded is None:
                raise Refused("`none` is not a model; name one.")
            self._loaded[name] = loaded
        return self._loaded[name]

    async def _load_registered(self, row: Row) -> Embedder:
        embedder = await self._load(row["embedder"])
        _check_same(row, embedder.info)
        return embedder

    def _forget(self, names: Sequence[str]) -> None:
        self._loaded = {name: loaded for name, loaded in self._loaded.items() if name in names}

    def _registration(self, name: str, info: ModelInfo) -> Event:
        return self._event(SPACE_REGISTERED, {"embedder": name, **asdict(info)})

    def _event(self, event_type: str, data: dict[str, Any]) -> Event:
        """What is asked for a second time is another request: its time is part of its id."""
        now = self._running.clock.now()
        return Event(
            derived_id(SOURCE, event_type, data["space"], now.isoformat()), SOURCE, event_type, SYSTEM, now, data
        )

    async def _publish(self, events: Sequence[Event]) -> None:
        await self._job.publish([encode(DERIVED.name, event) for event in events])


def _check_same(row: Row, info: ModelInfo) -> None:
    if (info.space, info.revision, info.dim) != (row["space"], row["revision"], row["dim"]):
        raise Unavailable(
            f"The model {row['embedder']!r} is not the one that made {row['space']} "
            f"(revision {row['revision']}, now {info.revision}); its vectors would not be comparable."
        )


def live_space(cursor: duckdb.DuckDBPyConnection) -> Row | None:
    """The registered space that answers, None in a store that has none yet."""
    return next(iter(dicts(cursor.execute("FROM spaces WHERE state = 'live'"))), None)

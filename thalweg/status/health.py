"""The status of a node: how far each part is, and whether it moves. Red when anything is behind, stuck or dead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress.credentials import CredentialFile
from storage.disk import low_sentence
from streams.errors import Unavailable
from streams.topics import MEMORY
from thalweg.control.dead_letters import count_states
from thalweg.dreams.dreamer import Dreamer
from thalweg.process.running import Running
from thalweg.spaces.spaces import Spaces
from thalweg.status.status import Status, stages_status
from thalweg.terminal.topics import missing_otlp_topics

RECENT_S = 3600.0
"""For this long a producer whose record lay on a wrong partition is a problem of now."""
SOURCES_SHOWN = 10
_MISPLACED = (
    "SELECT source, sum(records) FROM misplaced_records GROUP BY source "
    "ORDER BY list_contains(?, source) DESC, 2 DESC, 1 LIMIT ?"
)


async def node_status(running: Running, spaces: Spaces, dreamer: Dreamer) -> Status:
    """Look at every part now."""
    settings, lag = running.settings, running.lag
    await lag.observe()
    topics, seen = lag.topics(settings.behind_s), lag.stages(settings.behind_s)
    causes = lag.causes(topics, seen)
    up_s = running.clock.monotonic() - running.up_since
    stages, stage_problems = stages_status(running.runners, seen, causes, up_s)
    misplaced = await _misplaced(running)
    indexes = running.store.indexes.state() | {"features": running.store.indexes.features.state()}
    vectors = await spaces.status()
    problems = [*causes.values(), *stage_problems, *await _surroundings(running)]
    problems += [misplaced_sentence(producer) for producer in misplaced if producer["is_recent"]]
    problems += [
        f"the {name} index is {state}" for name, state in _index_states(indexes).items() if state not in _FINE_INDEXES
    ]
    if vectors["problem"]:
        problems.append(f"embedding spaces: {vectors['problem']}")
    views = running.store.indexes.views.state()
    problems += [f"the view {view}: {each['problem']}" for view, each in views["building"].items() if each["problem"]]
    return Status(
        settings=settings,
        started_at=running.started_at,
        embedder=running.embedder.info if running.embedder else None,
        problems=problems,
        topics=topics,
        stages=stages | {name: seen.get(name, {}) for name in lag.elsewhere},
        of_node={
            "http": running.http,
            "spaces": vectors,
            "views": views,
            "dreams": await dreamer.status(),
            "materialiser": vars(running.store.materialiser.counters),
            "indexes": indexes,
            "dead_letters": await running.store.reader.run(count_states),
            "misplaced": misplaced,
            "door": running.door.status(),
            "clients": running.socket.clients,
        },
    )


async def _surroundings(running: Running) -> list[str]:
    """What is wrong with what the node stands on: its log, the topics of others, its disk, its spool."""
    problems = []
    try:
        await running.log.end_offsets([MEMORY.name])
    except Unavailable as error:
        problems.append(f"the log is down: {error.message}")
    if running.settings.otlp_topics and (absent := missing_otlp_topics(running.store.followed)):
        problems.append(absent)
    if (full := low_sentence(running.settings.home)) is not None:
        problems.append(full)
    if isinstance(running.credentials, CredentialFile):
        running.credentials.refresh()
        problems += [running.credentials.problem] if running.credentials.problem else []
    if not running.services.spool.is_empty:
        problems.append("writes are spooled: the log did not take them")
    return problems


async def _misplaced(running: Running) -> list[dict[str, Any]]:
    """Sources of records on other partitions than their keys', those of now first, then those of most."""
    now = running.clock.monotonic()
    recent = [source for source, at in running.store.materialiser.misplaced_at.items() if now - at < RECENT_S]
    rows = await running.store.reader.run(lambda cursor: cursor.execute(_MISPLACED, [recent, SOURCES_SHOWN]).fetchall())
    return [{"source": source, "records": int(count), "is_recent": source in recent} for source, count in rows]


def misplaced_sentence(producer: Mapping[str, Any]) -> str:
    """Whose records lie on other partitions than their keys', and what to do about it."""
    return (
        f"the producer {producer['source']} puts records on other partitions than their keys' "
        f"({producer['records']} so far): they are applied, but not in order with the others of their namespace. "
        "Set its partitioner to Kafka's murmur2: docs/producers.md says how in each language"
    )


_FINE_INDEXES = ("ready", "none")


def _index_states(indexes: dict[str, Any]) -> dict[str, str]:
    return {name: state["state"] for name, state in indexes.items() if isinstance(state, dict) and "state" in state}

"""No answer takes more than 6,000 tokens, and whatever is left out of one can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import pytest

from mcp_ingress.door import Answer, Door, Request, Visitor
from mcp_ingress.fitting.fit import MAX_CHARACTERS, MAX_TEXT
from mcp_ingress.inventory import find_tools
from mcp_ingress.resource import find_resources
from mcp_ingress.server import wire_answer
from mcp_ingress.toolsets.memory.resources.memory import FIELDS
from processors.inner_voice.config import InnerVoiceConfig
from processors.memory.stages.embed import Embed
from streams.codec import decode, encode
from streams.events import Event, wire_type
from streams.log.base import Log, Outgoing
from streams.positions import Position
from streams.topics import MEMORY
from tests.talos.making import NOON
from tests.valence.conftest import BeliefNode
from tests.valence_kb.test_transcripts import IntoStore
from thalweg.importing.importer import import_files

NEEDLE = "The spare key of the boathouse hangs behind the blue barometer."
CLUSTERS = ("👩‍👩‍👧‍👦", "🇩🇪", "🇫🇷", "e\u0301", "👍🏽", "각", "क्\u200dष", "\r\n", "🏴\U000e0067\U000e0062\U000e007f")
EMOJI = "".join(CLUSTERS) * 100
BREAKS = set(accumulate((len(cluster) for cluster in CLUSTERS * 100), initial=0))
PROSE = " ".join(f"Truck {number} whines in winter until its gearbox is warm." for number in range(110))
TEXTS = (
    PROSE[:3000] + " " + NEEDLE + " " + PROSE[3000:],
    "箱子里的齿轮在冬天会响，等它热了就好。" * 200,
    EMOJI,
    "x" * 20_000,
    '\x01"\\\n' * 1000,
)
BOOK = PROSE * 30
WORD = "x" * 100_000
ASKED = "Where is the spare key of the boathouse?"
ROWS = 500
TRANSCRIPT = "7d0c2f4e-5b1a-4c7e-9f36-2a8e41b7c905"


class Library(BeliefNode):
    """A node whose every text is embedded, with its passages, as the stage does it."""

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        positions = await super().publish(records, timeout_s=timeout_s)
        for outgoing in records:
            if outgoing.topic == MEMORY.name:
                await self.embedded(decode(self.store.record(outgoing)))
        return positions

    async def embedded(self, logged: Sequence[Any]) -> None:
        accepted = [each for each in logged if each.event.type in Embed.accepts]
        self._keep(*(fact for facts in await Embed(self.embedder).facts(accepted) for fact in facts))


class Reader:
    """Calls through the door; each answer is held against what an answer may be."""

    def __init__(self, node: Library) -> None:
        self.node = node
        self.inventory, self.resources = find_tools(), find_resources()
        self.door = Door(node.services, self.inventory, self.resources, rate_limit=1e6)
        self.visitor = Visitor(self.door.local, node.connection)
        self.asked: set[str] = set()
        self.passages: list[tuple[str, str, dict[str, int]]] = []
        """Of each text that was shown in part its address, what was shown, and the place of that."""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.door.call(self.visitor, Request(tool, arguments))
        self.asked.add(tool)
        assert not answer.is_error, (tool, str(answer.body)[:500])
        jsonschema_rs.validate(dict(self.inventory.tools[tool].output_schema), answer.body)
        return self._held(tool, answer)

    async def read(self, uri: str) -> dict[str, Any]:
        answer = await self.door.read(self.visitor, uri, {})
        self.asked.add(uri.partition("?")[0])
        assert not answer.is_error, (uri, str(answer.body)[:500])
        return self._held(uri, answer)

    def _held(self, name: str, answer: Answer) -> dict[str, Any]:
        [shown] = wire_answer(answer).content
        assert len(shown.text) <= MAX_CHARACTERS, (name, len(shown.text))  # type: ignore[union-attr]
        assert json.loads(shown.text) == answer.body  # type: ignore[union-attr]
        self.passages += _passages(answer.body)
        return answer.body

    async def whole(self, uri: str) -> str:
        """All pages of a resource, read on until there is no next one."""
        text, joint = "", "&" if "?" in uri else "?"
        following: str | None = f"{uri}{joint}offset=0"
        while following is not None:
            [page] = (await self.read(following))["contents"]
            assert page["passage"] == {"start": len(text), "end": len(text) + len(page["content"])}
            text += page["content"]
            assert page.get("more", False) == (len(text) < page["characters"])
            following = page.get("next")
        return text


def _passages(value: Any) -> Iterator[tuple[str, str, dict[str, int]]]:
    if isinstance(value, dict):
        for text, shown in value.items():
            place = value.get(f"{text}_passage", value.get("passage"))
            address = value.get(f"{text}_whole", value.get("whole"))
            if isinstance(shown, str) and address and place and len(shown) == place["end"] - place["start"]:
                yield address, shown, place
        for item in value.values():
            yield from _passages(item)
    elif isinstance(value, list):
        for item in value:
            yield from _passages(item)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    node = Library(tmp_path)
    node.services.parts[InnerVoiceConfig] = InnerVoiceConfig(is_enabled=True)
    yield Reader(node)
    node.close()


def event(short: str, number: int | str, **data: Any) -> Event:
    return Event(f"{short}-{number}", "producer", wire_type(short), "default", NOON, data)


async def fill(reader: Reader) -> dict[str, Any]:
    """Every kind of memory with texts of every sort, by every tool that writes; the ids to ask for."""
    ids: dict[str, Any] = {"talos": "2026-01-05-long"}
    await reader.call("session_open", session_id=ids["talos"], goal=PROSE)
    session = await reader.call("session_start", platform="api", project_context=PROSE, metadata={"a": [PROSE] * 9})
    ids["session"] = session["session_id"]
    for number, text in enumerate(TEXTS):
        about = [{"name": f"Gear {number} " + PROSE[:3000], "type": "tool"}, {"name": "Gear", "type": "tool"}]
        await reader.call("remember", text=f"{text[:90_000]} Mind that.", about=PROSE[:200])
        await reader.call("journal_write", content=text, category="insight", domain=PROSE, session_id=ids["talos"])
        await reader.call("friction_log", description=text, category="tooling", session_id=ids["talos"])
        await reader.call("friction_log", description=text, category="tooling")
        await reader.call("reflect", content=text)
        stated = await reader.call("belief_create", content=text, entities=about, domain_path=[PROSE, "tech"] * 20)
        ids.setdefault("belief", stated["belief"]["id"])
        said = {"session_id": ids["session"], "content": text}
        await reader.call("exchange_add", role="user", **said, tool_uses=[{"name": "Bash", "input": PROSE}] * 9)
        await reader.call("insight_extract", **{**said, "content": f"{text[:90_000]} So it is."})
        noted = await reader.call("pattern_record", type="preference", description=text, evidence=[ids["session"]])
        ids["pattern"] = noted["pattern_id"]
        await reader.call("store_raw_dialogue", session_id="s", speaker="user", content=text, metadata={"k": [PROSE]})
        await reader.call("compress_to_l2_insight", content=text, source_ids=[])
        await reader.call("store_episode", query=text, reward=0.5, reflection=f"Problem: {text} Lesson: {text}")
        await reader.call("update_working_memory", content=text, importance=0.1)
        tagged = {"tags": [f"{number} {PROSE}"[:100]] * 2, "rationale": PROSE[:3000]}
        await reader.call("store_memory", content=f"{text}{number}", **tagged)
        await reader.call("inject_context", content=f"{number}{text}", rationale=PROSE)
        await reader.call("manage_teleological_profile", action="create", name=f"{number} {PROSE}"[:200])
    for number in range(12):
        await reader.call("update_working_memory", content=f"{number} {PROSE}", importance=0.9)
    await reader.call("pattern_reinforce", pattern_id=ids["pattern"], session_id=ids["session"])
    for content in (f"Redis is fast. {PROSE[:2500]}", f"Redis is not fast. {PROSE[:2500]}"):
        ids["opposed"] = (await reader.call("belief_create", content=content, entities=about))["belief"]["id"]
    book = event("talos.journal.written", "book", content=BOOK, category="observation")
    await reader.node.publish([encode(MEMORY.name, book)])
    await reader.call("journal_write", content=WORD, category="observation")
    await reader.call("belief_create", content=WORD)
    goals = [
        event("talos.session.opened", n, session_id=f"2026-01-06-{n}", goal=f"Goal {n}. {PROSE[:200]}")
        for n in range(90)
    ]
    reader.node.store.apply(*(reader.node.store.record(encode(MEMORY.name, each)) for each in goals))
    return ids


async def import_turns(node: Library, folder: Path) -> None:
    """A transcript of ROWS turns, the first of them long."""
    turns = [f"Turn {n}. {PROSE if n < 3 else PROSE[:90]}" for n in range(ROWS)]
    lines = [
        {
            "type": "user",
            "sessionId": TRANSCRIPT,
            "uuid": f"00000000-0000-4000-8000-{n:012}",
            "timestamp": f"2026-01-05T10:{n // 60:02}:{n % 60:02}.000Z",
            "message": {"role": "user", "content": turn},
        }
        for n, turn in enumerate(turns)
    ]
    path = folder / "turns.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    await import_files(cast(Log, IntoStore(node)), "claude-code", [path], namespace="default", clock=node.clock)


async def ask_the_graph(reader: Reader) -> None:
    """What Context Graph tells of itself, for as much as it gives."""
    await reader.call("get_memetic_status")
    await reader.call("utl_status")
    for tool in ("get_kuramoto_sync", "get_neuromodulation_state", "get_workspace_status", "get_ego_state"):
        await reader.call(tool)
    await reader.call("get_consciousness_state")
    await reader.call("get_steering_feedback")
    await reader.call("get_amortized_shortcuts", limit=100)
    await reader.call("trigger_dream", force=True)
    await reader.call("abort_dream")
    await reader.call("adjust_coupling", new_K=2)
    await reader.call("adjust_neuromodulator", modulator="dopamine", delta=0)
    await reader.call("get_threshold_status", embedder_id=1)
    await reader.call("get_calibration_metrics")
    await reader.call("trigger_recalibration", level=2)
    await reader.call("get_dream_status")
    await reader.call("get_graph_manifest")
    await reader.call("auto_bootstrap_north_star", confidence_threshold=0)
    await reader.call("discover_sub_goals", min_confidence=0, max_goals=20)
    await reader.call("get_pruning_candidates", limit=1000, min_staleness_days=0, min_alignment=1)
    await reader.call("trigger_consolidation", max_memories=10_000, min_similarity=0)
    await reader.call("get_alignment_drift", timeframe="30d", include_history=True)
    await reader.call("trigger_drift_correction", force=True)
    await reader.call("get_autonomous_status", include_metrics=True, include_history=True, history_count=100)


async def ask(reader: Reader, ids: dict[str, Any]) -> None:
    """Every tool and resource that reads, for as much as it gives."""
    for query in (ASKED, "冬天的齿轮", "👍🏽", "x" * 50):
        for detail in ("text", "index"):
            await reader.call("recall", query=query, max_tokens=5500, detail=detail)
        await reader.call("journal_query", query=query, limit=100)
        await reader.call("belief_query", query=query, limit=100, include_superseded=True)
        await reader.call("hybrid_search", query_text=query, top_k=100)
        await reader.call("search_graph", query=query, topK=100)
        found = await reader.call("search_teleological", query_content=query, max_results=400, min_similarity=0)
        if found["results"]:
            about = {"query_vector_id": found["results"][0]["id"], "result_vector_id": found["results"][0]["id"]}
            await reader.call("update_synergy_matrix", **about, feedback="relevant")
            await reader.call("fuse_embeddings", memory_id=found["results"][0]["id"])
            await reader.call("trigger_workspace_broadcast", memory_id=found["results"][0]["id"], force=True)
            await reader.call("omni_infer", source=found["results"][0]["id"], direction="abduction")
        asked = {"content": query, "compute_tucker": True, "include_per_embedder": True}
        await reader.call("compute_teleological_vector", **asked)
        await reader.call("manage_teleological_profile", action="list")
        await reader.call("inner_voice.retrieve", query=query, top_k=50, floor=0.0)
        await reader.read(f"memory://l2-insights?query={query}&top_k=100")
        await reader.read(f"memory://episode-memory?query={query}&min_similarity=0&top_k=100")
    await reader.call("pattern_check", session_id=ids["talos"], context=PROSE)
    await ask_the_graph(reader)
    await reader.call("graph_query", cypher="MATCH (n) RETURN n.id, n.name LIMIT 1000")
    for belief in (ids["belief"], ids["opposed"]):
        await reader.call("belief_get", belief_id=belief, include_history=True, include_tensions=True)
    [entity, *_] = (await reader.call("entity_search", query="gear", limit=100))["entities"]
    await reader.call("entity_get", entity_id=entity["id"], include_beliefs=True, belief_limit=100)
    await reader.call("sessions")
    for session in (TRANSCRIPT, ids["session"], ids["talos"]):
        await reader.call("sessions", id=session)
    listed = await reader.call("exchange_list", session_id=TRANSCRIPT)
    assert listed["total_count"] == ROWS and listed["more"]
    await reader.call("exchange_list", session_id=ids["session"])
    await reader.call("session_get", session_id=ids["session"], include_exchanges=True, exchange_limit=1000)
    await reader.call("session_list", limit=100)
    await reader.call("session_find_by_room", external_room_id="none")
    await reader.call("pattern_list", limit=100)
    [tension, *_] = (await reader.call("tension_list", limit=100))["tensions"]
    for uri in ("l0-raw?limit=1000", "l0-raw", "l2-insights?top_k=100", "working-memory", "stale-memory?limit=1000"):
        await reader.read(f"memory://{uri}")
    await reader.call("tension_resolve", tension_id=tension["id"], resolution=PROSE, action="keep_both")
    await reader.call("tension_list", limit=100)
    superseded = {"new_content": f"It is quick. {PROSE}", "reason": PROSE}
    await reader.call("belief_supersede", old_belief_id=ids["opposed"], **superseded)
    kept = (await reader.call("remember", text=f"The gear is blue. {PROSE}"))["id"]
    await reader.call("correct", id=kept, text=f"The gear is green. {PROSE}", reason=PROSE)
    await reader.call("session_end", session_id=ids["session"], summary=PROSE, themes=[PROSE, "oil"] * 30)
    await reader.call("session_get", session_id=ids["session"])
    await reader.call("session_close", session_id=ids["talos"], summary=PROSE)
    await reader.call("ping")


NOT_ASKED = {"store_dual_judge_scores", "get_golden_test_results"}
"""Figures of an evaluation set, of at most fifty documents."""


@pytest.mark.process  # it writes and reads a store of huge rows with every tool
async def test_no_answer_takes_more_than_6000_tokens_and_what_is_left_out_can_be_read(
    reader: Reader, tmp_path: Path
) -> None:
    ids = await fill(reader)
    await import_turns(reader.node, tmp_path)
    await ask(reader, ids)
    known = {row[0] for row in reader.node.store.sql("SELECT text FROM documents")}
    known |= {row[0] for row in reader.node.store.sql("SELECT reflection FROM episode_memory")} | {PROSE, WORD, *TEXTS}
    kept = reader.node.store.sql("SELECT unnest([content, rationale]) FROM context_memories")
    known |= {text for (text,) in kept}
    known |= {f"Turn {number}. {PROSE}" for number in range(3)}
    wholes = {uri: await reader.whole(uri) for uri, *_ in list(reader.passages)}
    assert all(text in known and len(text) > MAX_TEXT for text in wholes.values())
    for uri, shown, place in reader.passages:
        assert shown == wholes[uri][place["start"] : place["end"]], uri
        assert wholes[uri] != EMOJI or {*place.values()} <= BREAKS, uri
    assert reader.inventory.tools.keys() - NOT_ASKED == {name for name in reader.asked if "://" not in name}
    assert {uri.rpartition("/")[0] if "thalweg" in uri else uri for uri in reader.asked if "://" in uri} == set(
        reader.resources.resources
    )
    assert {uri.partition("field=")[2] or "content" for uri in wholes} >= {*FIELDS} - {"description"}


def test_the_fields_that_can_be_read_are_those_that_the_toolsets_declare() -> None:
    declared = {field for toolset in find_tools().toolsets.values() for field in toolset.texts}
    assert {*FIELDS} == declared

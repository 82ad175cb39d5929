"""Every toolset's memories are read as their domain declares it.

Embedded, tagged, private, ended, and by whom they were said.

The story below goes through the real tools; what a retrieval counts is compared with SQL that shares nothing with it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processors.embedding.hashing import HashingEmbedder
from processors.inner_voice.config import InnerVoiceConfig
from processors.memory.reembedding import facts_of, missing_labels, read_texts
from processors.memory.registry import KINDS, ROLES, SOURCES, TEXTS, texts_to_embed
from processors.memory.stages.embed import encode_texts
from storage.search.records.records import Records
from streams.codec import encode
from streams.log.base import RECORD_BYTES
from streams.topics import DERIVED, MEMORY
from tests.talos.making import make_event
from tests.talos.node import SmallNode


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[SmallNode]:
    """A node in which every toolset remembers something, some of it private, merged, archived or superseded.

    All embedded.
    """
    node = SmallNode(tmp_path, HashingEmbedder())
    node.services.parts[InnerVoiceConfig] = InnerVoiceConfig(is_enabled=True)
    await _tell_talos(node)
    await _tell_valence(node)
    await _tell_cognitive_memory(node)
    _embed_all(node)
    yield node
    node.close()


async def _tell_talos(node: SmallNode) -> None:
    await node.call("session_open", session_id="2026-01-05-tides", goal="Mend the tide gauge")
    for _ in range(2):
        await node.call("journal_write", content="I believe tide gauges drift.", category="observation", domain="sea")
    await node.call("journal_write", content="A private tide.", category="reflection", domain="Private")
    await node.call("friction_log", description="The tide gauge sticks", category="tooling")


async def _tell_valence(node: SmallNode) -> None:
    for metadata in ({}, {"is_private": True}, {"tags": ["PRIVATE"]}):
        session = await node.call("session_start", platform="api", metadata=metadata)
        for role in ("user", "assistant", "system"):
            await node.call(
                "exchange_add",
                session_id=session["session_id"],
                role=role,
                content=f"Tides, says the {role} {metadata}.",
            )
    await node.call(
        "insight_extract", session_id=session["session_id"], content="Tides are lunar.", domain_path=["sea", "moon"]
    )
    old = await node.call("belief_create", content="Tides come daily.", domain_path=["sea"])
    await node.call(
        "belief_supersede", old_belief_id=old["belief"]["id"], new_content="Tides come twice daily.", reason="measured"
    )
    await node.call("pattern_record", type="topic_recurrence", description="Tides come up again and again")


async def _tell_cognitive_memory(node: SmallNode) -> None:
    said: list[dict[str, Any]] = [
        {},
        {"is_private": True},
        {"tags": ["Private", "sea"]},
        {"tags": "private"},
        {"tags": ["sea"]},
    ]
    for number, metadata in enumerate(said):
        speaker = ("user", "assistant", "thermometer")[number % 3]
        await node.call(
            "store_raw_dialogue", session_id="s", speaker=speaker, content=f"Raw tide {number}.", metadata=metadata
        )
    await node.call("compress_to_l2_insight", content="Tides, compressed.", source_ids=[])
    await node.call("store_episode", query="tide?", reward=1, reflection="Problem: tide. Lesson: moon.")
    for number in range(11):
        await node.call("update_working_memory", content=f"Tide in mind {number}", importance=0.5)


async def _tell_context_graph(node: SmallNode) -> None:
    tide = {"content": "/photos/tide.jpg", "modality": "image", "rationale": "The tide at dawn", "tags": ["sea"]}
    for memory in (
        tide,
        {"content": '{"tide": "low"}', "modality": "structured"},
        {"content": "Tides.", "tags": ["a"]},
    ):
        await node.call("store_memory", **memory)
    assert node.store.sql("SELECT count(*) FROM context_memories WHERE searched IS NOT NULL") == [(2,)]


def _embed_all(node: SmallNode) -> None:
    cursor, embedder = node.store.database.cursor(), HashingEmbedder()
    texts = read_texts(cursor, missing_labels(cursor, embedder.info.space)[0])
    encoded = encode_texts(embedder, [missing.text for missing in texts])
    for group in facts_of(embedder.info, "test", texts, encoded, RECORD_BYTES):
        for fact in group:
            node._apply(node.store.record(encode(DERIVED.name, fact)))


async def test_what_users_said_is_known_as_it_comes_and_as_it_is_loaded(told: SmallNode) -> None:
    cursor, loaded = told.store.database.cursor(), Records(SOURCES, ROLES)
    loaded.load(cursor)
    known = dict(cursor.execute("SELECT label, text FROM documents").fetchall())
    labels = np.array(sorted(known), np.int64)
    for records in (told.indexes.records, loaded):
        said = sorted({known[label] for label in labels[records.user_records.among(labels)].tolist()})
        assert said[:2] == ["Raw tide 0.", "Raw tide 3."]
        assert len(said) == 5 and all(text.startswith("Tides, says the user") for text in said[2:])


async def test_what_is_embedded_as_it_comes_is_what_is_embedded_when_a_space_is_filled(tmp_path: Path) -> None:
    node = SmallNode(tmp_path)
    for tell in (_tell_talos, _tell_valence, _tell_cognitive_memory, _tell_context_graph):
        await tell(node)
    cursor = node.store.database.cursor()
    filled = {
        missing.record_id: missing.text for missing in read_texts(cursor, missing_labels(cursor, "a new space")[0])
    }
    as_it_comes = {
        found: text for event in node.published if event.type in TEXTS for found, text in texts_to_embed(event)
    }
    assert {found: as_it_comes.get(found) for found in filled} == filled
    node.close()


async def found(node: SmallNode, **arguments: Any) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    answer = await node.call("inner_voice.retrieve", query="tide", floor=0, top_k=50, **arguments)
    return {snippet["id"][2:]: snippet for snippet in answer["snippets"]}, answer["diagnostics"]


def counted(node: SmallNode, condition: str) -> int:
    return int(node.store.sql(f"SELECT count(*) FROM documents d WHERE {condition}")[0][0])


_LIVE = """ AND record_id NOT IN (SELECT memory_id FROM memories WHERE NOT is_live) AND (kind <> 'working_memory'
OR record_id IN (SELECT memory_id FROM memories WHERE kind = 'working_memory' AND is_live))"""
_THOUGHTS = (
    "kind IN ('JournalEntry', 'Reflection', 'Friction', 'Exchange', 'raw_dialogue', 'l2_insight', 'episode', "
    "'working_memory')"
)
_KNOWN = """(kind IN ('Goal', 'Persona', 'Protocol', 'Domain', 'Belief', 'Decision', 'Observation', 'Pattern')
OR kind = 'Insight')"""
_PRIVATE = """ AND text NOT LIKE '%rivate tide%' AND text NOT LIKE '%is_private%' AND text NOT LIKE '%PRIVATE%'
AND text NOT IN ('Raw tide 1.', 'Raw tide 2.', 'Raw tide 3.')"""


async def test_the_counts_are_those_of_sql(told: SmallNode) -> None:
    assert {toolset for (toolset,) in told.store.sql("SELECT DISTINCT toolset FROM documents")} == {
        "talos",
        "valence",
        "cognitive_memory",
    }
    assert set(told.store.sql("SELECT DISTINCT toolset, kind FROM documents")) <= set(KINDS)
    toolsets = told.store.sql("SELECT DISTINCT toolset FROM documents ORDER BY ALL")
    assert told.store.sql("SELECT DISTINCT toolset FROM memories ORDER BY ALL") == toolsets
    snippets, seen = await found(told)
    assert seen["thought_candidates"] == counted(told, _THOUGHTS + _LIVE + _PRIVATE) == 20
    assert seen["kg_candidates"] == counted(told, _KNOWN + _LIVE + " AND kind <> 'Domain'")
    assert {(snippet["table"], snippet["text"]) for snippet in snippets.values()} >= {
        ("kg_entities", "Talos"),
        ("kg_entities", "LBRP"),
    }
    assert "Robbie" not in {snippet["text"] for snippet in snippets.values()}, "no table is named for people"
    assert seen["k_ret"] == len(snippets) and (seen["k_req"], seen["dim"], seen["model"]) == (
        50,
        384,
        HashingEmbedder().info.model_id,
    )
    _, everything = await found(told, include_private=True)
    assert everything["thought_candidates"] == counted(told, _THOUGHTS + _LIVE) == seen["thought_candidates"] + 11
    _, tagged = await found(told, include_tags=["SEA"])
    # and raw dialogue, not the private
    assert tagged["thought_candidates"] == counted(told, "domain = 'sea' AND kind = 'JournalEntry'") + 1
    # and the insight of a session
    assert tagged["kg_candidates"] == counted(told, "domain = 'sea' AND kind <> 'JournalEntry'" + _LIVE) + 1
    _, none = await found(told, mix=0.0)
    assert (none["kg_candidates"], none["thought_candidates"]) == (0, seen["thought_candidates"])


async def test_the_rows_that_are_gone_or_private_are_never_returned_and_the_others_say_whom_they_come_from(
    told: SmallNode,
) -> None:
    snippets = (await found(told, mix=0.0))[0] | (await found(told, mix=1.0))[0]
    gone = {record_id for (record_id,) in told.store.sql("SELECT memory_id FROM memories WHERE NOT is_live")}
    assert gone and not gone & set(snippets)
    texts = {
        snippet["text"]: (snippet["table"], snippet["origin"], snippet["trust_tier"]) for snippet in snippets.values()
    }
    assert (
        "Tides come daily." not in texts
        and "Tide in mind 0" not in texts
        and not any("rivate" in text for text in texts)
    )
    expected = {
        "Raw tide 0.": ("thoughts", "human", "green"),
        "Raw tide 4.": ("thoughts", "model", "red"),
        "Tides, says the user {}.": ("thoughts", "human", "green"),
        "Tides, says the assistant {}.": ("thoughts", "model", "red"),
        "Tides, says the system {}.": ("thoughts", "tool", "amber"),
        "Tides, compressed.": ("thoughts", "model", "red"),
        "Tide in mind 5": ("thoughts", "model", "red"),
        "tide?\nProblem: tide. Lesson: moon.": ("thoughts", "model", "red"),
        "The tide gauge sticks": ("thoughts", "logged", "green"),
        "Mend the tide gauge": ("kg_entities", "tool", "green"),
        "Tides come twice daily.": ("kg_observations", "tool", "green"),
        "Tides come up again and again": ("kg_observations", "tool", "green"),
        "Tides are lunar.": ("kg_observations", "tool", "green"),
    }
    assert {text: texts.get(text) for text in expected} == expected


async def test_what_an_operator_imports_is_a_snippet_with_its_name_and_its_description(told: SmallNode) -> None:
    entities = [
        {
            "label": "Persona",
            "text": "Navigator",
            "properties": {"purpose": "Reads the tide before the course is set."},
        },
        {"label": "Sutra", "text": "Begin with the tide", "properties": {"number": 1}},
    ]
    imported = make_event(
        "talos.knowledge.imported", {"entities": entities}, event_id="import", time=told.clock.time, namespace="default"
    )
    told.process([told.store.record(encode(MEMORY.name, imported))])
    _embed_all(told)
    snippets, _ = await found(told, mix=1.0)
    known = {snippet["text"]: snippet["source_type"] for snippet in snippets.values()}
    assert known["Navigator: Reads the tide before the course is set."] == known["Begin with the tide"] == "kg_entity"

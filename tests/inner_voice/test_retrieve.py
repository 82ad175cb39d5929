"""inner_voice.retrieve through the real door over a real store.

The acceptance list, and the defects that it must not have.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from mcp import Client

from mcp_ingress.door import Request, Visitor
from mcp_ingress.inventory import find_tools
from mcp_ingress.server import build_server
from mcp_ingress.services import Limits
from mcp_ingress.toolsets.inner_voice.eligible import RowFilter, find_eligible
from storage.search.index_set import IndexSet
from storage.vector_codec import stored_vector
from streams.errors import EmbedderUnavailable
from streams.ids import record_label
from tests.inner_voice.rig import MODEL, Rig


def ids(answer: dict[str, Any]) -> list[str]:
    return [snippet["id"] for snippet in answer["snippets"]]


async def test_the_gate_is_off_by_default_and_comes_before_the_arguments(tmp_path: Path) -> None:
    rig = Rig(tmp_path, is_enabled=False)
    assert await rig.code() == await rig.code(query="x") == await rig.code(nonsense=1) == "feature_disabled"
    rig.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": " \n"},
        {"query": 5},
        {"query": "x", "top_k": "5"},
        {"query": "x", "top_k": 2.5},
        {"query": "x", "mix": float("nan")},
        {"query": "x", "floor": float("inf")},
        {"query": "x", "include_tags": "draft"},
        {"query": "x", "limit": 5},
    ],
)
async def test_what_cannot_be_asked_is_invalid(rig: Rig, arguments: dict[str, Any]) -> None:
    assert await rig.code(**arguments) == "invalid_params"


async def test_out_of_range_values_are_clamped(rig: Rig) -> None:
    answer = await rig.ask(top_k=500, floor=-3, mix=7)
    assert (answer["diagnostics"]["k_req"], answer["diagnostics"]["floor_used"]) == (50, 0.0)
    assert (await rig.ask(top_k=-1))["diagnostics"]["k_req"] == 1


async def test_the_answer_is_exactly_that_of_the_specification(rig: Rig) -> None:
    rig.remember("I should have looked at the data first.", 0.71)
    answer = await rig.ask()
    [snippet] = answer["snippets"]
    assert set(answer) == {"snippets", "diagnostics"}
    assert snippet | {"content_hash": ""} == {
        "id": "t:r0001",
        "table": "thoughts",
        "source_type": "thought",
        "origin": "logged",
        "trust_tier": "green",
        "created_at": "2026-01-05T00:01:00Z",
        "text": "I should have looked at the data first.",
        "score": 0.71,
        "content_hash": "",
        "span_start": 0,
        "span_end": 39,
    }
    jsonschema_rs.validate(dict(find_tools().tools["inner_voice.retrieve"].output_schema), answer)
    diagnostics = answer["diagnostics"]
    assert isinstance(diagnostics.pop("latency_ms"), int)
    assert diagnostics == {
        "provider": "numpy",
        "model": "test-8",
        "dim": 8,
        "k_req": 10,
        "k_ret": 1,
        "kg_candidates": 0,
        "thought_candidates": 1,
        "floor_used": 0.25,
    }


async def test_a_row_of_another_dimension_is_neither_returned_nor_counted(rig: Rig) -> None:
    rig.remember("anything", 1.0, dim=4)
    rig.remember("not embedded yet", is_embedded=False)
    answer = await rig.ask("anything")
    assert (answer["snippets"], answer["diagnostics"]["thought_candidates"], answer["diagnostics"]["reason"]) == (
        [],
        0,
        "no_candidates",
    )


async def test_candidates_are_the_most_similar_and_counts_are_before_the_cut(rig: Rig) -> None:
    for number in range(200):
        rig.remember(f"thought {number}", 1.0 if number == 57 else 0.3)
    answer = await rig.ask(top_k=1)
    assert ids(answer) == ["t:r0058"] and answer["diagnostics"]["thought_candidates"] == 200


async def test_private_thoughts_appear_only_when_asked_for(rig: Rig) -> None:
    rig.remember("A secret.", domain="Private")
    rig.remember("A known thing.", kind="Insight", domain="private")
    assert ids(await rig.ask()) == ["o:r0002"]
    assert set(ids(await rig.ask(include_private=True))) == {"t:r0001", "o:r0002"}


async def test_tags_compare_without_case_and_hold_for_thoughts_and_knowledge_alike(rig: Rig) -> None:
    rig.remember("A draft thought.", domain="Draft")
    rig.remember("A draft insight.", kind="Insight", domain="dRAFT")
    rig.remember("A goal.", kind="Goal", domain="STRASSE")
    rig.remember("A plain thought.")
    assert set(ids(await rig.ask(exclude_tags=["draft"]))) == {"e:r0003", "t:r0004"}
    assert set(ids(await rig.ask(include_tags=["DRAFT"]))) == {"t:r0001", "o:r0002"}
    assert ids(await rig.ask(include_tags=["straße"])) == ["e:r0003"]
    nobody = await rig.ask(include_tags=["nobody has this"])
    assert (
        nobody["snippets"] == []
        and nobody["diagnostics"]["reason"] == "no_candidates"
        and nobody["diagnostics"]["no_results"] is True
    )


async def test_the_same_text_as_thought_and_as_belief_is_one_snippet_and_its_slot_is_filled_again(rig: Rig) -> None:
    rig.remember("Water is wet.", 0.6)
    rig.remember("water  is WET.", 0.6, kind="Belief")
    rig.remember("Another thought.", 0.4)
    assert ids(await rig.ask(top_k=2, mix=0.5)) == ["o:r0002", "t:r0003"]


async def test_a_source_that_mix_leaves_out_is_not_asked_not_even_to_fill_up(rig: Rig) -> None:
    rig.remember("A thought.", 0.9)
    rig.remember("An insight.", 0.9, kind="Insight")
    only_thoughts, only_knowledge = await rig.ask(mix=0), await rig.ask(mix=1.0)
    assert (ids(only_thoughts), only_thoughts["diagnostics"]["kg_candidates"]) == (["t:r0001"], 0)
    assert (ids(only_knowledge), only_knowledge["diagnostics"]["thought_candidates"]) == (["o:r0002"], 0)


async def test_the_floor_adapts_for_a_starving_source_and_says_what_was_used(rig: Rig) -> None:
    rig.remember("A thought.", 0.2)
    rig.remember("Another, too far away.", 0.1)
    rig.remember("An insight.", 0.4, kind="Insight")
    answer = await rig.ask()
    assert ids(answer) == ["o:r0003", "t:r0001"] and answer["diagnostics"]["floor_used"] == 0.2
    far = await rig.ask(mix=0, exclude_tags=["nothing"], floor=0.9)
    assert far["diagnostics"]["floor_used"] == 0.2


async def test_what_the_floor_excludes_is_said_to_be_excluded_by_it(rig: Rig) -> None:
    rig.remember("Far away.", 0.1)
    answer = await rig.ask()
    assert answer["snippets"] == []
    assert (answer["diagnostics"]["reason"], answer["diagnostics"]["floor_used"]) == ("floor_excluded_all", 0.15)
    assert answer["diagnostics"]["thought_candidates"] == 1


async def test_merged_rows_and_those_of_other_namespaces_are_absent(rig: Rig) -> None:
    rig.store.sql(
        "INSERT INTO entities SELECT 'r9', 'Insight', 'x', 'x', NULL, NULL, NULL, NULL, NULL, NULL, now(), '', "
        "'default', 't', 0, 0, 0, ''"
    )
    rig.store.sql(
        "INSERT INTO merges VALUES ('r9', 'r1', 'Insight', NULL, 'cosine', .9, 2, now(), 'default', 't', 0, 0, '')"
    )
    rig.remember("Merged.", kind="Insight", record_id="r9")
    rig.remember("Elsewhere.", namespace="other")
    assert (await rig.ask())["diagnostics"]["reason"] == "no_candidates"


async def test_roles_and_paths_of_other_toolsets_count_as_soon_as_their_tables_are_there(rig: Rig) -> None:
    for number, (identity, role) in enumerate((("x1", "user"), ("x2", "assistant")), 1):
        rig.store.sql(
            "INSERT INTO vkb_exchanges VALUES (?, 's1', ?, ?, '', 0, NULL, now(), 'default', 't', 0, 0, '')",
            identity,
            number,
            role,
        )
    rig.store.sql(
        "INSERT INTO valence_beliefs BY NAME SELECT 'b1' AS belief_id, 0 AS label, '' AS content, "
        "'' AS content_hash, .7 AS overall, 'default' AS overall_origin, 1 AS corroboration_count, 0 AS doubt, "
        "['tech', 'Sea'] AS domain_path, '[]' AS links, 'manual' AS extraction_method, 'active' AS status, "
        "now() AS created_at, now() AS modified_at, '' AS created_event_id, "
        "'default' AS namespace, 't' AS topic, 0 AS partition, 0 AS \"offset\", 0 AS idx, '' AS event_id"
    )
    for identity, kind in (("x1", "Exchange"), ("x2", "Exchange"), ("b1", "Belief")):
        rig.remember(f"Text of {identity}.", kind=kind, toolset="valence", record_id=identity)
    rig.remember("Of tomorrow.", kind="note", toolset="tomorrow", record_id="n1")
    found = {snippet["id"]: (snippet["origin"], snippet["trust_tier"]) for snippet in (await rig.ask())["snippets"]}
    assert found == {
        "t:x1": ("human", "green"),
        "t:x2": ("model", "red"),
        "o:b1": ("tool", "green"),
        "t:n1": ("model", "red"),
    }
    assert ids(await rig.ask(include_tags=["sea"])) == ["o:b1"]


async def test_a_long_text_is_cut_and_hashed_in_full(rig: Rig) -> None:
    rig.remember("One sentence here. " * 60)
    rig.remember("One sentence here. " * 61)
    snippets = (await rig.ask())["snippets"]
    assert len(snippets) == 2 and snippets[0]["text"] == snippets[1]["text"] and len(snippets[0]["text"]) <= 800
    assert snippets[0]["text"].endswith("here.") and snippets[0]["span_end"] == len(snippets[0]["text"])


async def test_a_failing_embedder_is_said_and_no_other_is_tried(rig: Rig) -> None:
    rig.embedder.fault = EmbedderUnavailable("The model is gone.")
    assert await rig.code(query="x") == "embedder_unavailable"
    rig.embedder.fault = RuntimeError("secret path")
    answer = await rig.answer(query="x")
    assert answer.body["code"] == "embedder_unavailable" and "secret" not in answer.text
    rig.embedder.fault, rig.embedder.dim = None, 5
    assert "Embedding dimension 5 does not match the active dimension 8." in (await rig.answer(query="x")).text
    rig.services.embedder = None
    assert await rig.code(query="x") == "embedder_unavailable"


async def test_a_store_that_is_down_is_a_db_error(rig: Rig) -> None:
    rig.reader.is_down = True
    assert await rig.code(query="x") == "db_error"


async def test_an_answer_that_may_lack_the_callers_writes_says_so_and_another_does_not(rig: Rig) -> None:
    rig.remember("A thought.")
    rig.services.limits = Limits(0.01, 0.01, 0.01)
    behind = await rig.door.call(
        Visitor(rig.door.local),
        Request("inner_voice.retrieve", {"query": "x"}, {"thalweg/freshness": {"thalweg.memory.v1": {"0": 9}}}),
    )
    assert behind.body["diagnostics"]["stale"] is True and ids(behind.body) == ["t:r0001"]
    assert "stale" not in (await rig.ask())["diagnostics"]


async def test_what_is_unexpected_is_an_internal_error_that_shows_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object) -> None:
        raise RuntimeError("a secret path")

    monkeypatch.setattr("mcp_ingress.toolsets.inner_voice.retrieve.fetch_candidates", defect)
    answer = await rig.answer(query="x")
    assert answer.is_error and answer.body["code"] == "internal_error" and "secret" not in answer.text


async def test_a_write_is_seen_by_the_next_retrieval(rig: Rig) -> None:
    rig.remember("A thought.")
    assert (await rig.ask())["diagnostics"]["thought_candidates"] == 1
    rig.remember("Another one.")
    rig.store.sql("INSERT INTO prunes VALUES ('r0001', 'test', now(), 'default', 't', 0, 0, '')")
    rig.indexes.apply([], [])
    assert ids(await rig.ask()) == ["t:r0002"]


async def test_what_may_be_found_follows_every_write_as_a_fresh_look_finds_it(rig: Rig, tmp_path: Path) -> None:
    rig.remember("In the beginning.", kind="Insight")
    cursor, fresh = rig.store.database.cursor(), IndexSet(tmp_path / "fresh", rig.store.database.cursor, None)
    vector = (
        "INSERT INTO embeddings SELECT label, 'text/test-8', record_id, 'test-8', 'float32', 8, false, ?, namespace, "
    )
    steps: list[Callable[[], object]] = [
        lambda: rig.remember("A thought.", record_id="t1"),
        lambda: rig.remember("Not embedded yet.", record_id="t2", is_embedded=False),
        lambda: rig.remember("Private.", record_id="t3", domain="private"),
        lambda: rig.remember("Elsewhere.", namespace="other"),
        lambda: rig.store.sql("INSERT INTO prunes VALUES ('t1', 'test', now(), 'default', 't', 0, 0, '')"),
        lambda: rig.store.sql(
            f"{vector} 't', 0, 0, '', NULL, NULL FROM documents WHERE record_id = 't2'", stored_vector(np.eye(8)[1])
        ),
        lambda: rig.indexes.apply([], [(record_label("default\0t2"), np.eye(1, 8, dtype=np.float32)[0])]),
        lambda: rig.store.sql("DELETE FROM prunes"),
    ]
    for number, step in enumerate(steps):
        step()
        rig.indexes.apply([], [])
        if number == 5:  # the table has the vector and the index has not: no fresh look is that quick
            continue
        for row_filter in (RowFilter("default"), RowFilter("default", include_private=True), RowFilter("other")):
            fresh.records.clear_caches()
            found, expected = (find_eligible(cursor, indexes, MODEL, row_filter) for indexes in (rig.indexes, fresh))
            assert {table: some.tolist() for table, some in found.items()} == {
                table: some.tolist() for table, some in expected.items()
            }, number


async def test_no_log_leaves_the_name_and_what_came_of_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="mcp_ingress")
    loud, quiet = Rig(tmp_path / "a"), Rig(tmp_path / "b", is_quiet=True)
    loud.remember("A memorable text.")
    await loud.ask("a secret question")
    assert "thought_candidates" in caplog.text and "r0001" in caplog.text
    assert "secret" not in caplog.text and "memorable" not in caplog.text
    assert "secret" not in str(loud.records()) and loud.records()[0]["input_bytes"] > 0
    caplog.clear()
    await quiet.ask("a secret question")
    assert not caplog.text and quiet.records() == [{"tool": "inner_voice.retrieve", "outcome": "ok"}]
    loud.close()
    quiet.close()


async def test_the_schema_that_a_node_lists_has_its_effective_defaults(tmp_path: Path) -> None:
    for number, config in enumerate(({}, {"top_k": 4, "mix": 0.5})):
        rig = Rig(tmp_path / str(number), **config)
        async with Client(build_server(rig.door, "0"), mode="legacy") as client:
            [listed] = [tool for tool in (await client.list_tools()).tools if tool.name == "inner_voice.retrieve"]
            answer = (await client.call_tool("inner_voice.retrieve", {"query": "x"})).structured_content or {}
        properties = listed.input_schema["properties"]
        expected = {"top_k": 10, "mix": 0.6} | config
        assert {name: properties[name]["default"] for name in expected} == expected
        assert answer["diagnostics"]["k_req"] == expected["top_k"], "and they are what a call without them gets"
        rig.close()


async def test_what_changes_an_earlier_memory_is_retrieved_before_it_and_both_say_so(rig: Rig) -> None:
    rig.remember("The gauge is in the harbour", 0.9, record_id="old")
    rig.remember("The gauge is in the river", 0.4, record_id="new")
    rig.remember("The lamp is on the pier", 0.6, record_id="other")
    rig.store.sql("INSERT INTO memory_changes VALUES ('new', 'old', .9, 'm', now(), 'default', 't', 0, 0, '')")
    rig.indexes.records.begin_generation()
    snippets = (await rig.ask(floor=0.0, mix=0.0))["snippets"]
    assert [snippet["id"].rpartition(":")[2] for snippet in snippets] == ["new", "old", "other"]
    assert [other["id"] for other in snippets[0]["earlier"]] == ["old"]
    assert [other["id"] for other in snippets[1]["disputed_by"]] == ["new"]

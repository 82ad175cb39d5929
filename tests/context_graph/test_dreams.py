"""A dream on a whole node: what it makes of edges, what its report says, and what wakes it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.activity import Activity
from mcp_ingress.door import Visitor
from streams import failpoints
from streams.event_types.context_dreams import DREAM_REQUESTED
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from tests.context_graph.sleeper import Sleeper
from tests.patience import SOON_S
from tests.schema import migrated_home
from thalweg.process.node import Node
from thalweg.settings import Settings


async def test_a_forced_dream_wears_an_edge_that_nobody_used(sleeper: Sleeper) -> None:
    [one] = await sleeper.remember("the invoices are rounded")
    sleeper.visitor = Visitor(sleeper.node.running.door.local)  # of two connections, so that time joins them not either
    [other] = await sleeper.remember("lunch tastes of garlic")
    await sleeper.join((one, other, "similar", 0.5))
    assert await sleeper.rows("SELECT count(*) FROM context_edges") == [(1,)]
    dreamt = await sleeper.call("trigger_dream", force=True)
    assert (dreamt["triggered"], dreamt["completed"], dreamt["current_state"]) == (True, True, "Awake")
    report = dreamt["report"]
    assert (report["completed"], report["wake_reason"]) == (True, "cycle_complete")
    nrem = report["nrem_report"]
    assert (nrem["memories_replayed"], nrem["edges_weakened"], nrem["edges_strengthened"]) == (2, 1, 0)
    assert nrem["average_weight_delta"] == pytest.approx(-0.0005)
    assert await sleeper.rows("SELECT weight FROM context_edges WHERE kind = 'similar'") == [(pytest.approx(0.4995),)]
    status = await sleeper.call("get_dream_status")
    assert (status["state"], status["completed_cycles"], status["is_dreaming"]) == ("Awake", 1, False)
    assert (status["gpu_usage"], status["gpu_available"]) == (0.0, False)
    assert status["time_since_last_dream_secs"] < 60
    assert status["last_report"] == report
    assert status["scheduler"]["trigger_decision"] == "waits for more idle time"
    assert (await sleeper.call("abort_dream"))["aborted"] is False
    assert await sleeper.rows("SELECT count(*) FROM context_dreams WHERE aborted_at IS NOT NULL") == [(0,)]


async def test_the_report_counts_what_is_on_the_log(sleeper: Sleeper) -> None:
    texts = [f"note {n} of Grafana and the port {n}" for n in range(4)] + [
        "breakfast was late",
        "the train to Oslo left",
    ]
    ids = await sleeper.remember(*texts)
    for n in range(5):
        await sleeper.recall(f"q{n}", ids[:2])
    await sleeper.join(
        (ids[0], ids[1], "similar", 0.6),
        (ids[2], ids[3], "similar", 0.7),
        (ids[3], ids[5], "similar", 0.05),
        (ids[4], ids[0], "causal", 0.8),
        (ids[4], ids[5], "causal", 0.8),
    )
    report = (await sleeper.call("trigger_dream", force=True))["report"]
    changes = await sleeper.rows("SELECT kind, weight, weight_before, is_removed FROM context_edge_changes")
    kept_changes = sorted((kind, weight, is_removed) for kind, weight, _, is_removed in changes)
    told = [change for event in await sleeper.logged(EDGES_CHANGED) for change in event.data["changes"]]
    assert kept_changes == sorted((one["kind"], one["weight"], one.get("is_removed", False)) for one in told)
    known = [change for change in changes if change[2] is not None]
    kept = [weight - before for _, weight, before, is_removed in known if not is_removed]
    nrem, rem = report["nrem_report"], report["rem_report"]
    assert nrem["edges_strengthened"] == sum(delta > 0 for delta in kept) > 0
    assert nrem["edges_weakened"] == sum(delta < 0 for delta in kept) > 0
    assert nrem["edges_pruned"] == sum(change[3] for change in known) == 1
    made = [change for change in changes if change[2] is None]
    assert rem["new_edges_created"] == sum(change[0] == "rem" for change in made) > 0
    assert report["shortcuts_created"] == sum(change[0] == "shortcut" for change in made)
    shared = await sleeper.rows("SELECT evidence ->> 'shared' FROM context_edges WHERE kind = 'rem' ORDER BY 1")
    assert ("cause",) in shared
    assert 0 < rem["queries_generated"] <= 100
    assert 0 < rem["exploration_coverage"] <= 1


async def test_nobody_dreams_while_somebody_works(sleeper: Sleeper) -> None:
    await sleeper.remember("one")
    activity, now = sleeper.node.running.services.part(Activity), [sleeper.node.clock.monotonic() + 100.0]
    activity._monotonic = lambda: now[0]
    for _ in range(9):
        now[0] += 1.0
        activity.note("default")
    now[0] += 1.0
    refused = await sleeper.call("trigger_dream")
    assert (refused["success"], refused["triggered"], refused["report"]) == (True, False, None)
    assert "0.15" in refused["reason"]
    assert refused["activity_level"] == 0.15
    assert await sleeper.rows("SELECT count(*) FROM context_dreams") == [(0,)]
    assert (await sleeper.call("trigger_dream", force=True))["triggered"]
    now[0] += 60.0
    assert (await sleeper.call("trigger_dream"))["triggered"]


async def test_the_log_decides_which_of_two_dreams_begins(sleeper: Sleeper) -> None:
    await sleeper.remember("one")
    both = await asyncio.gather(*(sleeper.call("trigger_dream", force=True) for _ in range(2)))
    begun = [one for one in both if one["triggered"]]
    late = [one for one in both if not one["triggered"]]
    assert len(begun) == 1
    assert late[0]["reason"] == "already_dreaming"
    assert late[0]["dream_id"] == begun[0]["dream_id"]


async def slow(monkeypatch: pytest.MonkeyPatch, sleeper: Sleeper) -> None:
    """Have each slice of a dream take a while, and there be many."""
    ids = await sleeper.remember(*(f"memory {n} of Kafka{n}" for n in range(12)))
    await sleeper.join(*((ids[n], ids[m], "similar", 0.6) for n in range(12) for m in range(n)))
    monkeypatch.setattr("thalweg.dreams.cycle.BATCH", 1)
    monkeypatch.setattr("thalweg.dreams.dreamer.LEAST_REST_S", 0.02)


async def dreaming(sleeper: Sleeper) -> asyncio.Task[dict[str, Any]]:
    asked = asyncio.ensure_future(sleeper.call("trigger_dream", force=True))
    async with asyncio.timeout(SOON_S):
        while not await sleeper.rows("SELECT 1 FROM context_edge_changes LIMIT 1"):
            await asyncio.sleep(0.005)
    return asked


async def test_a_call_that_recalls_wakes_a_dream_and_a_status_does_not(
    sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    await slow(monkeypatch, sleeper)
    asked = await dreaming(sleeper)
    status = await sleeper.call("get_memetic_status")
    assert status["utl"]["consolidationPhase"] == "NREM"
    during = await sleeper.call("get_dream_status")
    assert (during["state"], during["is_dreaming"]) == ("NREM", True)
    assert during["scheduler"]["trigger_decision"] == "waits for the end of the dream that runs"
    sleeper.visitor = Visitor(sleeper.node.running.door.local)  # another client, whose calls wait for nobody
    await sleeper.call("search_graph", query="Kafka3")
    dreamt = await asked
    assert (dreamt["triggered"], dreamt["completed"], dreamt["current_state"]) == (True, False, "Awake")
    assert dreamt["report"]["wake_reason"] == "external_query"
    assert dreamt["report"]["wake_latency_ms"] < 100
    changed = await sleeper.rows("SELECT count(*) FROM context_edge_changes")
    nrem = dreamt["report"]["nrem_report"]
    assert changed == [(nrem["edges_weakened"] + nrem["edges_strengthened"],)]
    assert 0 < nrem["edges_weakened"] < 66


async def test_an_abort_answers_the_partial_report(sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    await slow(monkeypatch, sleeper)
    asked = await dreaming(sleeper)
    sleeper.visitor = Visitor(sleeper.node.running.door.local)
    aborted = await sleeper.call("abort_dream")
    assert (aborted["aborted"], aborted["mandate_met"], aborted["reason"]) == (True, True, "manual_abort")
    assert (aborted["previous_state"], aborted["current_state"]) == ("NREM", "Awake")
    assert aborted["report"]["completed"] is False
    assert aborted["report"]["wake_reason"] == "manual_abort"
    assert (await asked)["report"] == aborted["report"]
    assert (await sleeper.call("get_dream_status"))["completed_cycles"] == 0


async def test_a_dream_of_a_former_process_is_finished(tmp_path: Path) -> None:
    settings = Settings(home=migrated_home(tmp_path / "home"), embedder="none", partitions=1)
    node = Node(settings)
    await node.start()
    first = Sleeper(node)
    await first.remember("one")
    first.dreams.look = None
    for task in node._critical:
        if task.get_name() == "dreams":
            task.cancel()
    await first.tell(DREAM_REQUESTED, {"activity": 0.0})
    [(dream_id,)] = await first.rows("SELECT dream_id FROM context_dreams")
    await first.tell(
        EDGES_CHANGED,
        {"dream_id": dream_id, "changes": [{"source_id": "a", "target_id": "b", "kind": "rem", "weight": 0.3}]},
    )
    await node.stop()
    node = Node(settings)
    await node.start()
    second = Sleeper(node)
    async with asyncio.timeout(SOON_S):
        while not await second.rows("SELECT 1 FROM context_dream_cycles WHERE state = 'Awake'"):
            await asyncio.sleep(0.01)
    last = (await second.call("get_dream_status"))["last_report"]
    assert (last["wake_reason"], last["completed"]) == ("error", False)
    assert last["rem_report"]["new_edges_created"] == 1
    assert (await second.call("trigger_dream", force=True))["completed"]
    await node.stop()


async def test_a_dream_that_fails_ends_itself_and_its_node_dreams_again(
    sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    await slow(monkeypatch, sleeper)
    for name, value in (("_name", "mid_dream"), ("_left", 5), ("_kind", "raise")):
        monkeypatch.setattr(failpoints, name, value)
    report = await sleeper.dreamt()
    assert (report["wake_reason"], report["completed"]) == ("error", False)
    assert report["nrem_report"]["completed"] is False

    of_dream = "FROM context_dream_cycles WHERE dream_id = (SELECT min_by(dream_id, started_at) FROM context_dreams)"
    assert await sleeper.rows(f"SELECT state, wake_reason, is_complete {of_dream}") == [("Awake", "error", False)]
    kept = await sleeper.rows("SELECT count(*), count(DISTINCT dream_id) FROM context_edge_changes")
    counted = report["nrem_report"]["edges_weakened"] + report["nrem_report"]["edges_strengthened"]
    assert kept == [(counted, 1)] and 0 < counted < 66
    weights = await sleeper.rows("SELECT count(*) FROM context_edges WHERE kind = 'similar' AND weight < 0.6")
    assert weights[0][0] >= counted, "what it published before stands in the graph"
    last = (await sleeper.node.control.status()).to_json()["dreams"]
    assert (last["dreaming"], last["last"]["dream"]["wake_reason"]) == ({}, "error")

    monkeypatch.undo()
    assert (await sleeper.dreamt())["wake_reason"] == "cycle_complete"
    assert (await sleeper.call("get_dream_status"))["completed_cycles"] == 1


async def test_it_dreams_by_itself_once_it_is_idle_and_not_again_for_nothing(
    sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.dreams.dreamer.IDLE_LOOK_S", 0.0)
    await sleeper.remember("one")
    activity = sleeper.node.running.services.part(Activity)
    activity._began -= 599.0
    assert sleeper.dreams.look is not None
    sleeper.dreams.look()
    await asyncio.sleep(0.1)
    assert await sleeper.rows("SELECT count(*) FROM context_dreams") == [(0,)]
    activity._began -= 2.0
    sleeper.dreams.look()
    async with asyncio.timeout(SOON_S):
        while not await sleeper.rows("SELECT 1 FROM context_dream_cycles WHERE is_complete"):
            await asyncio.sleep(0.01)
    assert await sleeper.rows("SELECT cause FROM context_dreams") == [("idle",)]
    monkeypatch.setattr("processors.context_graph.rules.idleness.COOLDOWN_S", 0.0)
    for _ in range(3):
        sleeper.dreams.look()
        await asyncio.sleep(0.05)
    assert await sleeper.rows("SELECT count(*) FROM context_dreams") == [(1,)]
    status = (await sleeper.node.control.status()).to_json()["dreams"]
    assert (status["dreaming"], status["when_idle"]) == ({}, True)
    assert status["last"]["dream"]["wake_reason"] == "cycle_complete"


async def test_a_dream_merges_what_says_the_same_and_counts_it(sleeper: Sleeper) -> None:
    await sleeper.remember("The build of the shop is green.", "the build of the shop is green", "Oslo is far away.")
    report = (await sleeper.call("trigger_dream", force=True))["report"]
    assert report["nrem_report"]["memories_merged"] == 1
    assert await sleeper.rows("SELECT count(*), count(DISTINCT merged_into) FROM context_ends") == [(2, 1)]
    again = (await sleeper.call("trigger_dream", force=True))["report"]
    assert again["nrem_report"]["memories_merged"] == 0
    assert again["nrem_report"]["memories_replayed"] == 2
    last = (await sleeper.node.control.status()).to_json()["dreams"]["last"]
    assert last["consolidation"]["merged"] == 2


async def test_a_dream_merges_what_was_said_again_long_after(sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.dreams.cycle.MERGED_OF", 2)
    [old, *_, new] = await sleeper.remember(
        "The build of the shop is green.",
        "Oslo is far away.",
        "Invoices are rounded half to even.",
        "The parser reads one line.",
        "the build of the shop is green",
    )
    assert (await sleeper.dreamt())["nrem_report"]["memories_merged"] == 1
    assert {row[0] for row in await sleeper.rows("SELECT memory_id FROM context_ends")} == {old, new}


async def test_what_tends_memories_wakes_no_dream(sleeper: Sleeper) -> None:
    tools = sleeper.node.running.door.inventory.tools
    own = {name for name, tool in tools.items() if tool.toolset == "context_graph" and tool.is_activity}
    assert {"store_memory", "inject_context", "search_graph", "search_teleological", "omni_infer"} <= own
    assert {"compute_teleological_vector", "fuse_embeddings"} <= own
    assert not own & {"trigger_dream", "abort_dream", "get_dream_status", "trigger_consolidation", "utl_status"}
    assert {"recall", "remember", "journal_write", "belief_query"} <= {n for n, t in tools.items() if t.is_activity}


OTHERS = [
    "The build of the shop is green.",
    "Invoices are rounded half to even.",
    "Oslo is far away from here.",
    "The parser reads one line at a time.",
]


async def test_a_dream_beside_a_consolidation_merges_nothing_twice(sleeper: Sleeper) -> None:
    texts = OTHERS
    await sleeper.remember(*texts, *(text.lower() for text in texts))
    beside = Sleeper(sleeper.node)
    report, _ = await asyncio.gather(sleeper.dreamt(), beside.call("trigger_consolidation"))
    assert report["wake_reason"] == "cycle_complete", "upkeep wakes nobody"
    ended = await sleeper.rows(
        "SELECT count(*), count(DISTINCT memory_id), count(DISTINCT merged_into) FROM context_ends"
    )
    assert ended == [(8, 8, 4)]
    of_dream = await sleeper.rows(
        "SELECT count(*) FROM context_ends e SEMI JOIN events v ON v.event_id = e.event_id "
        "AND v.source = 'thalweg:dreams'"
    )
    assert of_dream == [(2 * report["nrem_report"]["memories_merged"],)]


async def test_dreams_merge_so_many_groups_a_day_and_no_more(sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.dreams.cycle.MERGES_A_DAY", 2)
    texts = OTHERS[:3]
    await sleeper.remember(*texts, *(text.lower() for text in texts))
    assert [(await sleeper.dreamt())["nrem_report"]["memories_merged"] for _ in range(2)] == [2, 0]


async def test_a_dream_measures_edges_of_a_former_model_anew_and_its_status_counts_them(sleeper: Sleeper) -> None:
    one, near, far = await sleeper.remember(
        "The build of the shop is green.", "The build of the shop is green again.", "Oslo lies far away."
    )
    pairs = [sorted(pair) for pair in ((one, near), (one, far), (one, "without-vector"))]
    told = [{"source_id": a, "target_id": b, "kind": "similar", "weight": 0.2, "space": "former:1"} for a, b in pairs]
    await sleeper.tell(EDGES_FOUND, {"edges": told})
    assert (await sleeper.call("get_dream_status"))["edges_of_former_space"] == 3
    report = await sleeper.dreamt()
    assert (await sleeper.call("get_dream_status"))["edges_of_former_space"] == 1, "it waits for its vector"
    live = sleeper.node.running.store.indexes.model
    assert live is not None
    [(source, target, weight)] = await sleeper.rows(
        f"SELECT source_id, target_id, weight FROM context_edges WHERE kind = 'similar' AND space = '{live.space}'"
    )
    assert [source, target] == pairs[0] and weight > 0.5
    gone = await sleeper.rows("SELECT source_id, target_id FROM context_edges WHERE is_removed AND space = 'former:1'")
    assert (gone, report["nrem_report"]["edges_pruned"]) == ([tuple(pairs[1])], 1)
    assert (await sleeper.dreamt())["nrem_report"]["edges_pruned"] == 0

"""Two namespaces of one node that hold every kind of record, said in the same words but for a mark of each.

Both are filled by the same steps under the same request ids, and what callers name themselves (sessions, rooms,
dialogues, queries) has the same name on both sides once: nothing but the namespace keeps their rows apart.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from processors.context_graph.rules.thresholds import FIRST_OBSERVED
from processors.frame.stage import Stage, StageParts, stage_types
from processors.memory.rules.plain_kind import PLAIN_KINDS
from processors.valence.timers.age_patterns import AGE_PATTERNS
from streams.clock import SystemClock
from streams.codec import encode
from streams.event_types.cognitive import GOLDEN_SET_IMPORTED, GROUND_TRUTH_IMPORTED, WM_ARCHIVED
from streams.events import Event, event_types, wire_type
from streams.positions import Freshness
from tests.patience import PATIENCE_S
from tests.security.graph_edges import cause_events, drift_events, night_events, walk_events
from tests.security.side import Side
from thalweg.example import session_path
from thalweg.importing.importer import import_files
from thalweg.process.node import Node

WORDS = "gearbox whines in winter"
ROOM = "!workshop:example.org"
LONG = " ".join(f"The gearbox of truck {number} whines in winter until it is warm." for number in range(80))
MANY_WORDS = " ".join(f"part{number}" for number in range(100))
"""Before the words of a query: what says them is found, what means them is not, so that the judges differ."""
GOLDEN_WORDS = [3] * 20 + [12] * 20 + [30] * 10
"""Words of the golden queries: the shares that a golden set has."""


class EagerNode(Node):
    """The real node, whose stages do not wait for company: what they gather changes no fact."""

    def _stages(self, parts: StageParts) -> list[Stage]:
        stages = super()._stages(parts)
        for stage in stages:
            stage.linger_s = 0.02
        return stages


async def fill(side: Side, folder: Path) -> None:
    """Every kind of record, by every way in which it comes."""
    await _long_ago(side)
    await _observed(side, folder)
    await _talos(side)
    await _conversation(side)
    await _beliefs(side)
    await _cognitive(side)
    await _core(side)
    await _context_graph(side)
    await settle(side.node)
    await AGE_PATTERNS.publish_due(side.node.running.store.reader, side.node.log, side.node.clock.now())
    await _again(side)
    await settle(side.node)
    await _injected(side)


async def settle(node: Node) -> None:
    """Wait until everything that was published is applied, records of answered calls included, with all that every
    stage makes of it.
    """
    stages = [stage.name for stage in stage_types()]
    while True:
        assert await node.running.door.publisher.flushed(PATIENCE_S), "records of calls do not reach the log"
        ends = Freshness(await node.log.end_offsets(node.running.store.followed))
        assert await node.running.store.applied.wait(ends, timeout_s=PATIENCE_S, stages=stages), (
            "the stages do not come to rest"
        )
        if Freshness(await node.log.end_offsets(node.running.store.followed)) == ends:
            return


async def _publish(side: Side, *events: Event) -> None:
    await side.node.log.publish([encode(event_types()[event.type].topic, event) for event in events])


async def _long_ago(side: Side) -> None:
    """What has lapsed by now: a Talos pattern that does not occur any more, observations that became an insight, what
    is doubted, an old pattern.
    """
    events = []
    for number in range(3):
        old = f"2020-01-0{number + 1}-{side.mark}"
        noted = {"description": side.say("The old drill sticks."), "category": "tooling", "session_id": old}
        events += [
            side.event("talos.session.opened", number, 100, session_id=old, goal=side.say("Drill")),
            side.event("talos.friction.logged", number, 100, **noted),
            side.event("talos.session.closed", number, 100, session_id=old),
        ]
    for number in range(2):
        entry = {"content": side.say("The oil gauge drifts."), "category": "observation"}
        events.append(side.event("talos.journal.written", number, 9, **entry))
    doubted = {"content": side.say("Perhaps the moon turns the gears."), "category": "insight", "confidence": 0.1}
    events.append(side.event("talos.journal.written", 9, 9, **doubted))
    await _publish(side, *events)
    await settle(side.node)
    later = []
    for number in range(10, 21):
        since = f"2020-02-{number}-{side.mark}"
        later.append(side.event("talos.session.opened", number, 3, session_id=since, goal=side.say("Rest")))
        later.append(side.event("talos.session.closed", number, 3, session_id=since))
    noticed = {
        "type": "preference",
        "description": side.say("Greases by hand."),
        "evidence": [side.say("the first jar")],
        "confidence": 0.8,
    }
    later += [side.event("valence.pattern.recorded", number, 20 * number, **noticed) for number in (1, 5)]
    await _publish(side, *later)
    await settle(side.node)


async def _observed(side: Side, folder: Path) -> None:
    """Telemetry: a transcript, a hook, OTLP, and the agent's own; one event of it comes twice with two bodies."""
    transcript = folder / f"{side.namespace}.jsonl"
    lines = session_path().read_text().replace("tidewatch", f"{side.mark}-watch")
    asked = next(line for line in map(json.loads, lines.splitlines()) if line["type"] == "user")
    long = asked | {"uuid": f"long-{side.mark}", "message": {"role": "user", "content": side.say(LONG)}}
    transcript.write_text(f"{lines.rstrip()}\n{json.dumps(long)}\n")
    await import_files(side.node.log, "claude-code", [transcript], namespace=side.namespace, clock=SystemClock())
    trace = side.mark.encode().hex().ljust(32, "0")
    about = {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": side.mark}}]}}
    span = {
        "traceId": trace,
        "spanId": trace[:16],
        "name": side.say("turn"),
        "startTimeUnixNano": "1767225600000000000",
    }
    log = {"timeUnixNano": "1767225600000000000", "body": {"stringValue": side.say("turned")}, "traceId": trace}
    metric = {
        "name": side.say("turns"),
        "gauge": {"dataPoints": [{"timeUnixNano": "1767225600000000000", "asDouble": 1.5}]},
    }
    signals = [
        {"resourceSpans": [{**about, "scopeSpans": [{"spans": [span]}]}]},
        {"resourceLogs": [{**about, "scopeLogs": [{"logRecords": [log]}]}]},
        {"resourceMetrics": [{**about, "scopeMetrics": [{"metrics": [metric]}]}]},
    ]
    otlp = folder / f"{side.namespace}-otlp.jsonl"
    otlp.write_text("\n".join(map(json.dumps, signals)))
    await import_files(side.node.log, "otlp-json", [otlp], namespace=side.namespace, clock=SystemClock())
    side.know("run", "7d0c2f4e-5b1a-4c7e-9f36-2a8e41b7c905")
    prompt = {"session_id": side.know("run", f"run-{side.mark}"), "cwd": side.mark, "prompt": side.say("Listen to it.")}
    await side.control("hook", event="UserPromptSubmit", input=base64.b64encode(json.dumps(prompt).encode()).decode())
    talos = {
        f"talos.{name}": value
        for name, value in {"session.id": f"{_today(side)}-both-3", "from": "calm", "to": side.mark}.items()
    }
    for value in (side.mark, "again"):
        await _publish(
            side, side.event("session.state_change", 1, 0, attributes={**talos, "talos.state.trigger": value})
        )
    failed = {"space": "another", "record_ids": [side.mark], "reason": side.say("too long")}
    await _publish(side, side.event("memory.embedding_failed", 1, 0, **failed))
    late = {"space": "another", "model_id": "late", "dim": 2, "trained": True, "tries": 2}
    await _publish(
        side, side.event("memory.embedded", 1, 0, **late, vectors=[{"record_id": side.mark, "vector": "AACAPwAAAAA="}])
    )


async def _injected(side: Side) -> None:
    """A session starts, and is told of the others."""
    start = json.dumps({"session_id": f"late-{side.mark}", "cwd": side.mark, "source": "startup"}).encode()
    request = {"event": "SessionStart", "answer": True, "timeout_s": PATIENCE_S}
    await side.control("hook", **request, input=base64.b64encode(start).decode())
    await settle(side.node)
    given = "SELECT record_ids[1] FROM injections WHERE namespace = ?"
    rows = await side.node.running.store.reader.run(lambda cursor: cursor.execute(given, [side.namespace]).fetchall())
    side.know("injected", rows[0][0])


def _today(side: Side) -> str:
    return side.node.clock.now().date().isoformat()


async def _talos(side: Side) -> None:
    """Sessions with entries of every category, and a friction that three of them have met."""
    for number in range(4):
        session = side.know("talos_session", f"{_today(side)}-{side.mark if number < 3 else 'both'}-{number}")
        about = {"persona": side.say("mechanic"), "protocol": side.say("listen first"), "human": side.say("Jo")}
        await side.ok("session_open", session_id=session, goal=side.say("Find what whines"), **about)
        noted = {"description": side.say(f"The {WORDS}."), "category": "tooling", "session_id": session}
        side.know("record", (await side.ok("friction_log", **noted))["friction_id"])
        if number in (1, 2):  # in two sessions: not yet a pattern
            await side.ok(
                "friction_log", description=side.say("The clutch slips."), category="tooling", session_id=session
            )
        if number == 0:
            for category in ("insight", "observation", "reflection", "experience", "decision"):
                entry = {
                    "content": side.say(f"I realized that the {WORDS} because of {category}."),
                    "category": category,
                }
                side.know("record", (await side.ok("journal_write", domain="trucks", **entry))["entry_id"])
            await side.ok(
                "reflect", content=side.say(f"What would stop what {WORDS}?"), trigger=side.mark, session_id=session
            )
            await side.ok("journal_write", content=side.say(LONG), category="experience")
            await _corrected(side)
        if number < 3:
            await side.ok("session_close", session_id=session, goal_achieved=False, summary=side.say("It still whines"))


async def _corrected(side: Side) -> None:
    """An entry that was corrected, and then taken back."""
    entry = {"content": side.say("The jack is on shelf 1."), "category": "observation"}
    old = side.know("record", (await side.ok("journal_write", **entry))["entry_id"])
    for kind, data in (
        ("corrected", {"content": side.say("The jack is on shelf 2."), "reason": side.say("It was moved")}),
        ("retracted", {"reason": side.say("It was lent")}),
    ):
        asked = {"type": wire_type(f"talos.journal.{kind}"), "data": {"entry_id": old, **data}}
        decided = await side.control("request", **asked)
        assert decided["status"] == "applied", decided
        old = side.know("record", decided["result"]["entry_id"])


async def _conversation(side: Side) -> None:
    side.know("room", ROOM)
    metadata = {"tags": [side.mark], "note": side.say("after work")}
    about = {"platform": "matrix", "project_context": side.say("trucks"), "metadata": metadata}
    for number in range(2):
        session = side.know(
            "conversation", (await side.ok("session_start", external_room_id=ROOM, **about))["session_id"]
        )
        for role in ("user", "assistant"):
            said = {
                "role": role,
                "content": side.say(f"The {WORDS}, says the {role}."),
                "tool_uses": [{"name": side.mark}],
            }
            side.know("record", (await side.ok("exchange_add", session_id=session, **said))["exchange_id"])
        drawn = {
            "content": f"The lamp of the {side.mark} truck is {'not ' * number}on at noon",
            "domain_path": ["trucks", side.mark],
        }
        about_lamp = {"entities": [{"name": f"lamp {side.mark}", "type": "tool"}]}
        side.know("record", (await side.ok("insight_extract", session_id=session, **drawn, **about_lamp))["insight_id"])
        await settle(side.node)
    await side.ok(
        "session_end",
        session_id=side.ids["conversation"][0],
        summary=side.say("It was the cold"),
        themes=[side.say("cold")],
    )
    noticed = {"type": "habit", "description": side.say(f"Waits until it {WORDS}."), "evidence": [side.say("twice")]}
    for number in range(2):
        description = noticed | {"description": noticed["description"] + " Again." * number}
        side.know("pattern", (await side.ok("pattern_record", **description))["pattern_id"])
    await side.ok("pattern_reinforce", pattern_id=side.ids["pattern"][0], session_id=side.ids["conversation"][0])


async def _beliefs(side: Side) -> None:
    """Beliefs of two entities that turn out to be one, one superseded, a tension that is open and one that is
    resolved."""
    source = {"source_type": "document", "source_ref": side.say("manual"), "domain_path": ["trucks", side.mark]}
    for number, name in enumerate(("gearbox", "gear box")):
        entities = [
            {"name": f"{name} {side.mark}", "type": "tool"},
            {"name": "winter", "type": "concept", "role": "context"},
        ]
        stated = await side.ok(
            "belief_create", content=side.say(f"The {WORDS}, in truck {number}."), entities=entities, **source
        )
        side.know("belief", stated["belief"]["id"])
        for linked in stated["belief"]["entities"]:
            side.know("entity", linked["entity"]["id"])
    for subject in ("heater", "brake"):
        for verb in ("is on", "is not on"):
            entities = [{"name": f"{subject} {side.mark}", "type": "tool"}]
            content = f"The {subject} of the {side.mark} truck {verb} at night"
            stated = await side.ok(
                "belief_create",
                content=content,
                entities=entities,
                source_ref=f"{verb} {side.mark}",
                domain_path=[side.mark],
            )
            side.know("belief", stated["belief"]["id"])
        await settle(side.node)
    for tension in (await side.ok("tension_list"))["tensions"]:
        side.know("tension", tension["id"])
    assert len(side.ids["tension"]) >= 2, "the beliefs contradict each other in no way"
    ended = {"resolution": side.say("both were measured"), "action": "keep_both"}
    await side.ok("tension_resolve", tension_id=side.ids["tension"].pop(), **ended)
    new = {"new_content": f"The heater of the {side.mark} truck is never on at night", "reason": side.say("measured")}
    side.know(
        "belief", (await side.ok("belief_supersede", old_belief_id=side.ids["belief"][3], **new))["new_belief"]["id"]
    )


async def _cognitive(side: Side) -> None:
    for dialogue in (side.know("dialogue", "dialogue-both"), side.know("dialogue", f"dialogue-{side.mark}")):
        said = {"speaker": side.mark, "content": side.say(f"The {WORDS}."), "metadata": {"tags": [side.mark]}}
        side.know("number", (await side.ok("store_raw_dialogue", session_id=dialogue, **said))["id"])
    drawn = {"content": side.say(f"Everybody says that the {WORDS}."), "source_ids": side.ids["number"][:2]}
    side.know("number", (await side.ok("compress_to_l2_insight", **drawn))["id"])
    for number in range(12):
        item = side.know(
            "item",
            (await side.ok("update_working_memory", content=side.say(f"item {number}"), importance=0.5))["added_id"],
        )
    await side.control("request", type=WM_ARCHIVED, data={"item_id": item})
    lesson = {
        "query": side.say(f"Why does it say that the {WORDS}?"),
        "reward": 0.5,
        "reflection": side.say("Problem: cold. Lesson: wait."),
    }
    await side.ok("store_episode", **lesson)
    for number in (side.know("query", 42), side.know("query", 43 + len(side.mark))):
        truth = {
            "id": number,
            "query": side.say(f"{WORDS} {number}"),
            "session_id": dialogue,
            "expected_docs": side.ids["number"][:1],
        }
        await side.control("request", type=GROUND_TRUTH_IMPORTED, data=truth)
    queries = [
        {
            "query": " ".join([side.mark, f"n{number}", *["whines"] * (words - 2)]),
            "session_id": f"g{number}",
            "expected_docs": [1, 2],
        }
        for number, words in enumerate(GOLDEN_WORDS + ([12] if side.mark == "austral" else []))
    ]
    await side.control("request", type=GOLDEN_SET_IMPORTED, data={"queries": queries, "file": f"{side.mark}.jsonl"})
    side.know("document", len(side.mark))
    documents = [
        {"id": side.ids["document"][0], "content": side.say(f"{MANY_WORDS} {WORDS}")},
        {"id": 9, "content": side.say("Rain fell.")},
    ]
    await side.ok("store_dual_judge_scores", query_id=42, query=side.say(WORDS), docs=documents)
    await side.ok("get_golden_test_results")


async def _core(side: Side) -> None:
    """One of each kind with the few tools, one that contradicts another, one corrected and one taken back."""
    said = {kind: side.say(f"The {kind} is that the {WORDS}.") for kind in PLAIN_KINDS}
    ids = {
        kind: side.know("remembered", (await side.ok("remember", text=text, kind=kind, about=side.mark))["id"])
        for kind, text in said.items()
    }
    await settle(side.node)
    assert (await side.ok("remember", text=side.say("The winch of the truck lifts 3 tons.")))["id"]
    await settle(side.node)
    changed = await side.ok("remember", text=side.say("The winch of the truck lifts 5 tons."))
    assert changed["contradicts"], changed
    for kind in ("fact", "goal"):
        side.know("remembered", (await side.ok("correct", id=ids[kind], text=side.say(f"Another {kind}.")))["id"])
    for kind in ("preference", "question"):
        await side.ok("correct", id=ids[kind], retract=True, reason=side.say("It was hearsay"))


async def _context_graph(side: Side) -> None:
    """Memories, one of them kept twice, and what a search returned of them."""
    for modality in ("text", "code", "text"):
        content = {"content": side.say(f"The {WORDS}, noted as {modality}."), "modality": modality, "tags": [side.mark]}
        kept = await side.ok("store_memory", **content, rationale=side.say("for the workshop"))
        side.know("graph_memory", side.know("record", kept["fingerprintId"]))
    again = {"content": side.say(f"{WORDS} again"), "rationale": side.say("for the next one")}
    side.know("record", (await side.ok("inject_context", **again))["fingerprintId"])
    told = {"query_vector_id": side.mark, "tool": "search_graph", "session_id": side.mark}
    told["results"] = [{"memory_id": kept["fingerprintId"], "similarity": 0.5, "alignments": [0.5] * 13}]
    await _publish(side, side.event("context.memory.recalled", 1, 0, **told))
    await side.ok("trigger_dream", force=True)  # before what is walked often, which it would make a shortcut
    await side.ok("abort_dream")
    await _publish(side, *walk_events(side, told), *cause_events(side, WORDS), *night_events(side, side.mark))
    named = {"action": "create", "name": side.say(f"weights of trucks {side.mark}")}
    profile = side.know("profile", (await side.ok("manage_teleological_profile", **named))["profile"]["profile_id"])
    await side.ok("manage_teleological_profile", action="read", profile_id=profile)
    side.know("vector", (await side.ok("fuse_embeddings", memory_id=kept["fingerprintId"]))["vector_id"])
    computed = await side.ok("compute_teleological_vector", content=side.say(f"The {WORDS}, computed."))
    side.know("vector", computed["vector"]["id"])
    about = {"query_vector_id": kept["fingerprintId"], "result_vector_id": kept["fingerprintId"]}
    await side.ok("update_synergy_matrix", **about, feedback="relevant")
    found = await side.ok("search_graph", query=side.say(WORDS))
    for row in (*[found["results"][0]] * FIRST_OBSERVED, found["results"][-1]):  # so that a threshold follows
        about["query_vector_id"], about["result_vector_id"] = found["query_vector_id"], row["fingerprintId"]
        await side.ok("update_synergy_matrix", **about, feedback="relevant")
    await side.ok("trigger_recalibration", level=1)
    for words in (f"The {WORDS}, kept for good.", f"The {WORDS}, really kept for good."):
        side.know("record", (await side.ok("store_memory", content=side.say(words)))["fingerprintId"])
    [merged] = (await side.ok("trigger_consolidation", min_similarity=0.85))["merged"]
    side.know("graph_memory", side.know("record", merged["memory_id"]))
    for number in ("first", "second"):  # themes are looked for in three memories at least, and some were merged
        told = side.say(f"The {number} of the {WORDS} that came later.")
        side.know("record", (await side.ok("store_memory", content=told))["fingerprintId"])
    north_star = await side.ok("auto_bootstrap_north_star", confidence_threshold=0)
    side.know("goal", north_star["bootstrap_result"]["goal_id"])
    for goal in (await side.ok("discover_sub_goals", min_confidence=0))["discovered_goals"]:
        side.know("goal", goal["goal_id"])
    await _publish(side, *drift_events(side))
    await side.ok("adjust_coupling", new_K=3), await side.ok("adjust_neuromodulator", modulator="dopamine", delta=1.5)
    for memory_id in side.ids["graph_memory"]:  # one loses against another
        await side.ok("trigger_workspace_broadcast", memory_id=memory_id, force=True)


async def _again(side: Side) -> None:
    """The ids of what nobody was told by a tool: patterns that stages found, what was extracted, old patterns."""

    def query(cursor: Any) -> dict[str, list[str]]:
        found = {}
        for kind, select in {
            "record": "SELECT record_id FROM documents WHERE namespace = ? AND toolset IN ('talos', 'valence')",
            "pattern": "SELECT pattern_id FROM vkb_patterns WHERE namespace = ?",
            "talos_pattern": "SELECT pattern_id FROM patterns WHERE namespace = ?",
        }.items():
            found[kind] = [value for (value,) in cursor.execute(f"{select} ORDER BY 1", [side.namespace]).fetchall()]
        return found

    for kind, values in (await side.node.running.store.reader.run(query)).items():
        side.ids[kind] = sorted({*side.ids.get(kind, ()), *values})

"""What a client asks of its own namespace, by every tool that reads, every resource and every request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tests.security.side import Side
from tests.security.two_namespaces import ROOM, WORDS


def own_reads(side: Side) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls of every tool that reads, each of which finds something of its own namespace."""
    first = {kind: values[0] for kind, values in side.ids.items()}
    yield "journal_query", {"query": WORDS, "limit": 50}
    yield (
        "journal_query",
        {"query": "recurring friction of the old drill", "entity_types": ["Pattern", "Friction", "Goal"]},
    )
    yield "pattern_check", {"session_id": side.ids["talos_session"][-1], "context": WORDS}
    yield "graph_query", {"cypher": "MATCH (n) RETURN n.id, n.name LIMIT 1000"}
    yield "graph_query", {"cypher": "MATCH (a)-[r]->(b) RETURN a.id, r, b.id LIMIT 1000"}
    yield "belief_query", {"query": WORDS, "include_superseded": True, "limit": 50}
    yield "belief_query", {"query": WORDS, "entity_id": first["entity"]}
    for belief in side.ids["belief"]:
        yield "belief_get", {"belief_id": belief, "include_history": True, "include_tensions": True}
    yield "entity_search", {"query": "gear"}
    yield "entity_get", {"entity_id": first["entity"], "include_beliefs": True}
    yield "tension_list", {}
    yield "tension_list", {"entity_id": side.ids["entity"][-1]}
    yield "session_list", {}
    for session in (first["conversation"], first["run"]):
        yield "session_get", {"session_id": session, "include_exchanges": True}
        yield "exchange_list", {"session_id": session}
    yield from (
        ("session_find_by_room", {"external_room_id": ROOM, **which}) for which in ({}, {"status": "completed"})
    )
    yield from (("pattern_list", about) for about in ({}, {"type": "preference"}, {"status": "fading"}))
    yield from (("hybrid_search", {"query_text": text, "top_k": 50}) for text in (WORDS, "evrybody sayz"))
    yield from (("search_graph", {"query": text, "topK": 50}) for text in (WORDS, "notd as kode"))
    yield "get_amortized_shortcuts", {"min_confidence": 0}
    yield "search_teleological", {"query_content": WORDS, "max_results": 400, "min_similarity": 0}
    for vector in (*side.ids["vector"], side.ids["graph_memory"][0]):
        yield "search_teleological", {"query_vector_id": vector, "max_results": 400, "min_similarity": 0}
    cause, effect, *_ = 2 * side.ids["graph_memory"][:2]  # nobody has one, what is merged follows
    for direction in ("abduction", "bridge", "forward", "backward", "bidirectional"):
        yield "omni_infer", {"source": cause, "target": effect, "direction": direction}
    yield from ((tool, {}) for tool in ("utl_status", "get_graph_manifest", "get_memetic_status"))
    yield "get_pruning_candidates", {"limit": 1000, "min_staleness_days": 0, "min_alignment": 1}
    yield "trigger_consolidation", {"min_similarity": 0, "max_memories": 10_000}
    yield "get_autonomous_status", {"include_metrics": True, "include_history": True}
    yield "get_alignment_drift", {"include_history": True}
    yield from ((tool, {}) for tool in ("get_kuramoto_sync", "get_neuromodulation_state", "get_ego_state"))
    yield from ((tool, {}) for tool in ("get_workspace_status", "get_consciousness_state", "get_steering_feedback"))
    yield from ((tool, {}) for tool in ("utl_status", "get_graph_manifest", "get_memetic_status", "get_dream_status"))
    yield from (
        ("inner_voice.retrieve", {"query": WORDS, "top_k": 50, "floor": 0.0, "mix": mix}) for mix in (0.0, 0.5, 1.0)
    )
    yield "inner_voice.retrieve", {"query": WORDS, "include_tags": ["trucks", side.mark], "include_private": True}
    yield "recall", {"query": WORDS, "max_tokens": 5_000}
    yield "recall", {"query": WORDS, "detail": "text", "kind": "decision", "about": side.mark}
    yield "recall", {"query": "The winch of the truck lifts tons", "as_of": side.node.clock.now().isoformat()}
    yield from (("sessions", about) for about in ({}, {"query": WORDS}, {"id": first["run"]}))
    yield "sessions", {"id": first["talos_session"]}
    yield "ping", {}


def own_resources(side: Side) -> Iterator[str]:
    """URIs of every resource, each of which holds something of its own namespace."""
    yield from ("memory://working-memory", "memory://stale-memory", "memory://stale-memory?reason=MANUAL_ARCHIVE")
    yield from ("memory://l0-raw", f"memory://l0-raw?session_id={side.ids['dialogue'][0]}")
    yield from ("memory://l2-insights", f"memory://l2-insights?query={quote(WORDS)}")
    yield f"memory://episode-memory?query={quote(WORDS)}&min_similarity=0"
    yield from (f"thalweg://memory/{record}" for record in (side.ids["record"][0], side.ids["belief"][0]))


def own_requests(side: Side) -> Iterator[tuple[str, dict[str, Any]]]:
    """Control requests that are about a namespace."""
    yield "search", {"query": WORDS, "limit": 100}
    yield "search", {"query": WORDS, "limit": 100, "sessions": True}
    yield "search", {"query": WORDS, "limit": 100, "valid_at": side.node.clock.now().isoformat()}
    yield from (
        ("why", {"query": WORDS, "record_id": record})
        for record in (
            side.ids["record"][0],
            side.ids["talos_session"][0],
            side.ids.get("injected", side.ids["record"])[0],
        )
    )
    yield "agreement", {}


async def ask_all(side: Side) -> None:
    for tool, arguments in own_reads(side):
        await side.call(tool, **arguments)
    for uri in own_resources(side):
        await side.read(uri)
    for command, request in own_requests(side):
        await side.control(command, **request)

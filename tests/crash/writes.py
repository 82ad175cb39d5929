"""What the callers of a load ask for.

Each tool that writes, what it is given, and which row has to be there once it was answered ok.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

THINGS = ["the cache", "a reader", "the parser", "our schema", "that index", "the queue"]
FAULTS = ["is stale", "blocks on the writer", "loses its place", "needs a retry", "drifts", "is slow"]
RECENT = 20
TRUTH = [101, 102, 103]
"""Queries of the ground truth, which `tests/crash/sources.py` imports."""


@dataclass
class Known:
    """What all callers know of what the others wrote: each of it may be taken up by several of them at once."""

    ids: dict[str, list[Any]] = field(default_factory=dict)
    """By kind the last that were answered."""
    number: count[int] = field(default_factory=count)

    def learn(self, kind: str, *identities: Any) -> None:
        self.ids[kind] = [*self.ids.get(kind, ())[-RECENT:], *identities]

    def pick(self, kind: str, chance: random.Random) -> Any:
        """One of that kind, or None while there is none."""
        return chance.choice(self.ids[kind]) if self.ids.get(kind) else None

    def take(self, kind: str) -> Any:
        """One of that kind, and from then on no other caller gets it; or None."""
        try:
            return self.ids.get(kind, []).pop()
        except IndexError:
            return None


Arguments = Callable[[Known, random.Random], dict[str, Any] | None]


@dataclass(frozen=True)
class Write:
    """How a tool is called. `arguments`: None while what it works on is not there.

    `id_at`: where in the answer the id stands that is then among `rows`, a query; `learns`: the kind that others may
    take up, under this id.
    """

    arguments: Arguments
    id_at: str
    rows: str
    weight: int = 10
    learns: str | None = None
    refusals: tuple[str, ...] = ()
    """Codes with which a caller may be refused that was not the first."""


def sentence(chance: random.Random) -> str:
    return f"{chance.choice(THINGS)} {chance.choice(FAULTS)} in case {chance.randrange(200)}"


def with_id(kind: str, name: str, more: Callable[[random.Random], dict[str, Any]]) -> Arguments:
    """Arguments, one of them by this name an id of that kind."""

    def arguments(known: Known, chance: random.Random) -> dict[str, Any] | None:
        identity = known.pick(kind, chance)
        return None if identity is None else {name: identity, **more(chance)}

    return arguments


def belief(known: Known, chance: random.Random) -> dict[str, Any]:
    """Now and then the contrary of one that is held: so tensions come about."""
    thing = chance.choice(THINGS)
    stated = f"{thing} is {chance.choice(('on', 'not on'))}"
    return {"content": stated, "source_ref": f"s{chance.randrange(20)}", "entities": [{"name": thing}]}


def closing(known: Known, chance: random.Random) -> dict[str, Any] | None:
    session_id = known.take("open session")
    return None if session_id is None else {"session_id": session_id, "goal_achieved": chance.random() < 0.5}


def judgement(known: Known, chance: random.Random) -> dict[str, Any] | None:
    if not known.ids.get("belief"):  # then the ground truth, which lies before it on the log, is applied
        return None
    documents = [{"id": number, "content": sentence(chance)} for number in (1, 2, 3)]
    return {"query_id": chance.choice(TRUTH), "query": sentence(chance), "docs": documents}


def correction(known: Known, chance: random.Random) -> dict[str, Any] | None:
    """Of an entry that several may correct at once: another text, or none any more."""
    identity = known.pick("memory", chance)
    change = {"retract": True} if chance.random() < 0.3 else {"text": f"I realized that {sentence(chance)}."}
    return None if identity is None else {"id": identity, **change}


def profile(known: Known, chance: random.Random) -> dict[str, Any]:
    """A new one now and then; else other weights for one that several may change at once."""
    identity = known.pick("profile", chance)
    weights = [chance.randrange(1, 9) for _ in range(13)]
    if identity is None or chance.random() < 0.1:
        return {"action": "create", "name": f"load {next(known.number)}", "embedder_weights": weights}
    return {"action": "update", "profile_id": identity, "embedder_weights": weights}


def rating(known: Known, chance: random.Random) -> dict[str, Any] | None:
    """Two memories, as if the one had been searched with and the other been found."""
    query, result = known.pick("fingerprint", chance), known.pick("fingerprint", chance)
    judged = {"query_vector_id": query, "result_vector_id": result, "feedback": "relevant"}
    return None if query is None else judged


SUPERSEDED = "ALREADY_SUPERSEDED"
RESOLVED = (SUPERSEDED, "TENSION_ALREADY_RESOLVED", "TENSION_NOT_FOUND")
"""The last of these: a node that was started again has not heard of a tension yet that the one before had."""

CORRECTED = ("already_corrected", "already_retracted", "unchanged", "not_found")
"""The last: a node that was started again has not applied an entry yet that the one before had."""
UNAPPLIED = ("invalid_argument",)
"""A node that was started again has not applied a memory yet that the one before had."""

WRITES: Mapping[str, Write] = {
    # the core
    "remember": Write(
        lambda known, chance: {"text": f"I realized that {sentence(chance)}.", "kind": "lesson"},
        "id",
        "SELECT entry_id FROM journal",
        learns="memory",
    ),
    "correct": Write(correction, "id", "SELECT entry_id FROM journal", weight=15, learns="memory", refusals=CORRECTED),
    # Talos
    "session_open": Write(
        lambda known, chance: {"session_id": f"2026-01-05-load-{next(known.number)}", "goal": sentence(chance)},
        "session_id",
        "SELECT session_id FROM talos_sessions",
        weight=4,
        learns="open session",
    ),
    "session_close": Write(
        closing, "session_id", "SELECT session_id FROM talos_sessions WHERE ended_at IS NOT NULL", weight=4
    ),
    "friction_log": Write(
        lambda known, chance: {"description": sentence(chance), "category": "tooling"},
        "friction_id",
        "SELECT entity_id FROM entities",
        weight=20,
    ),
    "journal_write": Write(
        lambda known, chance: {"content": f"I realized that {sentence(chance)}.", "category": "insight"},
        "entry_id",
        "SELECT entry_id FROM talos_journal",
        weight=20,
        learns="memory",
    ),
    "reflect": Write(
        lambda known, chance: {"content": f"Looking back, {sentence(chance)}."},
        "reflection_id",
        "SELECT entity_id FROM entities",
        weight=5,
    ),
    # Valence: conversations
    "session_start": Write(
        lambda known, chance: {"platform": "api"},
        "session_id",
        "SELECT session_id FROM vkb_sessions",
        weight=4,
        learns="conversation",
    ),
    "session_end": Write(
        with_id("conversation", "session_id", lambda chance: {"summary": sentence(chance)}),
        "session_id",
        "SELECT session_id FROM vkb_sessions WHERE ended_at IS NOT NULL",
        weight=2,
    ),
    "exchange_add": Write(
        with_id("conversation", "session_id", lambda chance: {"role": "user", "content": sentence(chance)}),
        "exchange_id",
        "SELECT exchange_id FROM vkb_exchanges",
    ),
    "insight_extract": Write(
        with_id("conversation", "session_id", lambda chance: {"content": f"It was seen that {sentence(chance)}"}),
        "insight_id",
        "SELECT insight_id FROM vkb_session_insights",
        weight=5,
    ),
    "pattern_record": Write(
        lambda known, chance: {"type": "preference", "description": sentence(chance)},
        "pattern_id",
        "SELECT pattern_id FROM vkb_patterns",
        weight=3,
        learns="pattern",
    ),
    "pattern_reinforce": Write(
        with_id("pattern", "pattern_id", lambda chance: {}),
        "pattern_id",
        "SELECT pattern_id FROM vkb_patterns",
        weight=3,
    ),
    # Valence: beliefs
    "belief_create": Write(belief, "belief.id", "SELECT belief_id FROM valence_beliefs", weight=15, learns="belief"),
    "belief_supersede": Write(
        with_id(
            "belief",
            "old_belief_id",
            lambda chance: {"new_content": f"{chance.choice(THINGS)} is at {chance.randrange(20)}", "reason": "load"},
        ),
        "new_belief.id",
        "SELECT belief_id FROM valence_beliefs",
        learns="belief",
        refusals=(SUPERSEDED,),
    ),
    "tension_resolve": Write(
        with_id("tension", "tension_id", lambda chance: {"resolution": "load", "action": "supersede_a"}),
        "tension_id",
        "SELECT tension_id FROM tension_resolutions",
        weight=5,
        refusals=RESOLVED,
    ),
    # Context Graph: few sentences, so that the same content comes from several callers at once
    "store_memory": Write(
        lambda known, chance: {"content": sentence(chance), "tags": [chance.choice(THINGS)]},
        "fingerprintId",
        "SELECT memory_id FROM context_memories",
        weight=15,
        learns="fingerprint",
    ),
    "inject_context": Write(
        lambda known, chance: {"content": sentence(chance), "rationale": "load", "importance": chance.random()},
        "fingerprintId",
        "SELECT memory_id FROM context_memories",
        weight=15,
    ),
    # what becomes one is decided beside the same memories being stored again; the number is one of those there are
    "trigger_consolidation": Write(
        lambda known, chance: {"max_memories": 200, "min_similarity": chance.choice((0.6, 0.85))},
        "consolidation_result.merged_groups",
        "SELECT unnest(range(0, count(DISTINCT merged_into) + 1)) FROM context_ends",
        weight=3,
    ),
    "manage_teleological_profile": Write(
        profile, "profile_id", "SELECT profile_id FROM context_profiles", weight=3, learns="profile"
    ),
    "compute_teleological_vector": Write(
        lambda known, chance: {"content": sentence(chance)},
        "vector.id",
        "SELECT vector_id FROM context_vectors",
        weight=3,
    ),
    "fuse_embeddings": Write(
        with_id("fingerprint", "memory_id", lambda chance: {}),
        "vector_id",
        "SELECT vector_id FROM context_vectors",
        weight=3,
        refusals=UNAPPLIED,
    ),
    "update_synergy_matrix": Write(
        rating,
        "version",
        "SELECT unnest(range(1, version + 1)) FROM context_synergy",
        weight=3,
        refusals=UNAPPLIED,
    ),
    "trigger_recalibration": Write(
        lambda known, chance: {"level": chance.randint(1, 4)},
        "recalibration_id",
        "SELECT event_id FROM outcomes",
        weight=1,
    ),
    # several bootstrap at once, and one of them makes the goal under which themes are found
    "auto_bootstrap_north_star": Write(
        lambda known, chance: {"confidence_threshold": 0} if known.ids.get("fingerprint") else None,
        "bootstrap_result.goal_id",
        "SELECT goal_id FROM context_goals",
        weight=2,
        learns="goal",
        refusals=("bootstrap_error",),
    ),
    "discover_sub_goals": Write(
        with_id("goal", "parent_goal_id", lambda chance: {"min_confidence": 0, "max_goals": 3}),
        "discovery_metadata.parent_goal_id",
        "SELECT goal_id FROM context_goals",
        weight=2,
        refusals=("subgoal_error",),
    ),
    "trigger_drift_correction": Write(
        lambda known, chance: {"force": True},
        "version",
        "SELECT version FROM context_correction_history",
        weight=1,
        refusals=("drift_corrector_error",),
    ),
    "adjust_coupling": Write(
        lambda known, chance: {"new_K": round(10 * chance.random(), 6)},
        "new_K",
        "SELECT (result->>'$.new_K')::DOUBLE FROM outcomes",  # the table keeps the last one only
        weight=1,
    ),
    "adjust_neuromodulator": Write(
        lambda known, chance: {"modulator": "dopamine", "delta": round(chance.uniform(-1, 1), 6)},
        "delta_requested",
        "SELECT (result->>'$.delta_requested')::DOUBLE FROM outcomes",
        weight=1,
    ),
    "trigger_workspace_broadcast": Write(
        with_id("fingerprint", "memory_id", lambda chance: {"force": True}),
        "memory_id",
        "SELECT memory_id FROM context_broadcasts",
        weight=2,
    ),
    "trigger_dream": Write(
        lambda known, chance: {"force": True}, "dream_id", "SELECT dream_id FROM context_dreams", weight=2
    ),
    "abort_dream": Write(
        lambda known, chance: {},
        "dream_id",
        "SELECT dream_id FROM context_dreams UNION ALL SELECT NULL",  # while nothing dreams
        weight=2,
    ),
    # Cognitive Memory
    "store_raw_dialogue": Write(
        lambda known, chance: {"session_id": "load", "speaker": "user", "content": sentence(chance)},
        "id",
        "SELECT id FROM l0_raw",
        learns="dialogue",
    ),
    "compress_to_l2_insight": Write(
        with_id("dialogue", "source_ids", lambda chance: {"content": f"In short, {sentence(chance)}"}),
        "id",
        "SELECT id FROM l2_insights",
        weight=5,
    ),
    "update_working_memory": Write(
        lambda known, chance: {"content": sentence(chance), "importance": round(chance.random(), 2)},
        "added_id",
        "SELECT id FROM working_memory_slots UNION ALL SELECT item_id FROM stale_memory",
    ),
    "store_episode": Write(
        lambda known, chance: {"query": sentence(chance), "reward": 0.5, "reflection": "Problem: load. Lesson: wait."},
        "id",
        "SELECT id FROM episode_memory",
        weight=5,
    ),
    "store_dual_judge_scores": Write(judgement, "query_id", "SELECT query_id FROM judge_runs", weight=3),
    "get_golden_test_results": Write(
        lambda known, chance: {} if known.ids.get("belief") else None,
        "date",
        "SELECT strftime(date, '%Y-%m-%d') FROM model_drift_log",
        weight=1,
    ),
}


def arguments_of(tool: str, known: Known, chance: random.Random) -> dict[str, Any] | None:
    """The arguments of a call, or None while there is nothing to call it on."""
    arguments = WRITES[tool].arguments(known, chance)
    if arguments is not None and "source_ids" in arguments:
        arguments["source_ids"] = [arguments["source_ids"]]
    return arguments

"""Requests of the Cognitive Memory toolset and of its operators, on the memory topic."""

from typing import Any

from streams.event_types import FILLED, NUMBER, OPTIONAL, TEXT, UNIT, array, obj
from streams.events import EventType, wire_type
from streams.topics import MEMORY

L0_STORED = wire_type("cm.l0.stored")
L2_STORED = wire_type("cm.l2.stored")
WM_UPDATED = wire_type("cm.wm.updated")
WM_ARCHIVED = wire_type("cm.wm.archived")
EPISODE_STORED = wire_type("cm.episode.stored")
JUDGE_SCORED = wire_type("cm.judge.scored")
GOLDEN_COMPLETED = wire_type("cm.golden.completed")
GROUND_TRUTH_IMPORTED = wire_type("cm.ground_truth.imported")
GOLDEN_SET_IMPORTED = wire_type("cm.golden_set.imported")

_REQUEST = {"request_id": OPTIONAL}
_ID: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 2**53 - 1}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_INTEGERS = array({"type": "integer"})
_REWARD: dict[str, Any] = {"type": "number", "minimum": -1, "maximum": 1}
_SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
_SCORED = obj({"id": {"type": "integer"}, "judge1": UNIT, "judge2": UNIT})
_CLASS = obj({"count": _COUNT, "precision_at_5": UNIT})
_ASKED = obj(
    {"query": FILLED, "expected_docs": _INTEGERS, "session_id": FILLED}, {"id": {**_ID, "type": ["integer", "null"]}}
)

EVENT_TYPES = (
    EventType(
        L0_STORED,
        MEMORY.name,
        "A line of raw dialogue was stored.",
        obj(
            {"session_id": FILLED, "speaker": FILLED, "content": FILLED},
            {"metadata": {"type": ["object", "null"]}, **_REQUEST},
        ),
    ),
    EventType(
        L2_STORED,
        MEMORY.name,
        "Dialogue was compressed to an insight.",
        obj(
            {"content": FILLED, "source_ids": _INTEGERS},
            {"source_coverage": NUMBER, "coverage_model": OPTIONAL, "fidelity_threshold": UNIT, **_REQUEST},
        ),
    ),
    EventType(
        WM_UPDATED,
        MEMORY.name,
        "Something was put into working memory, or touched there.",
        obj({"content": FILLED}, {"importance": UNIT, **_REQUEST}),
    ),
    EventType(
        WM_ARCHIVED, MEMORY.name, "An operator archived an item of working memory.", obj({"item_id": _ID}, {**_REQUEST})
    ),
    EventType(
        EPISODE_STORED,
        MEMORY.name,
        "An episode was stored: a query, its reward, the lesson.",
        obj({"query": FILLED, "reward": _REWARD, "reflection": FILLED}, {**_REQUEST}),
    ),
    EventType(
        JUDGE_SCORED,
        MEMORY.name,
        "Two judges (`mode` single: the first alone) scored documents for a query of the ground truth; "
        "a missing judgement is null.",
        obj(
            {
                "query_id": _ID,
                "query": FILLED,
                "documents": array(_SCORED),
                "judge1_model": FILLED,
                "judge2_model": FILLED,
            },
            {
                "mode": {"enum": ["dual", "single", "spot", None]},
                "input_tokens": _COUNT,
                "output_tokens": _COUNT,
                "cost_usd": NUMBER,
                **_REQUEST,
            },
        ),
    ),
    EventType(
        GOLDEN_COMPLETED,
        MEMORY.name,
        "The golden test set was run.",
        obj(
            {
                "date": FILLED,
                "precision_at_5": _SHARE,
                "queries_tested": {"type": "integer", "minimum": 1},
                "query_breakdown": obj({"short": _CLASS, "medium": _CLASS, "long": _CLASS}),
            },
            {"embedding_model": {"type": ["string", "null"]}, "avg_retrieval_time_ms": NUMBER, **_REQUEST},
        ),
    ),
    EventType(
        GROUND_TRUTH_IMPORTED,
        MEMORY.name,
        "An operator imported a query of the ground truth.",
        obj(
            {"id": _ID, "query": FILLED, "expected_docs": _INTEGERS, "session_id": FILLED},
            {"metadata": {"type": ["object", "null"]}, **_REQUEST},
        ),
    ),
    EventType(
        GOLDEN_SET_IMPORTED,
        MEMORY.name,
        "An operator imported the golden test set, all of it.",
        obj({"queries": array(_ASKED)}, {"file": TEXT, **_REQUEST}),
    ),
)

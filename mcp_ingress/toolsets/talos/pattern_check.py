"""pattern_check: find the patterns that fit a session, and how urgent its state is.

It also lists the signals that are about to become a pattern.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.talos import answers
from mcp_ingress.toolsets.talos.queries import PatternEvidence, read_context, read_evidence
from processors.talos.rules.significance import rate, relevance
from streams.errors import Refused

THRESHOLD_FOR_PATTERN = 3
LEAST_RELEVANCE = 0.3
MOST_PATTERNS = 20
WITHOUT_MODEL: dict[str, Any] = {
    "degraded": True,
    "message": "No embedder answers: patterns are ranked by indicators and occurrences only.",
}
"""What an answer says when no meaning could be compared."""


async def check_patterns(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Read the session's state, rank the patterns by meaning, indicators and occurrences."""
    session_id = str(answers.checked_session_id(arguments["session_id"]))
    with_emerging = bool(arguments.get("include_emerging", True))
    is_fresh = await call.fresh("extract", "dedup", "patterns")
    known = await call.find(functools.partial(read_context, namespace=call.namespace, session_id=session_id))
    if known is None:
        raise Refused(f"There is no session {session_id}; session_open starts one.", code="session_not_found")
    patterns = [pattern for pattern in known.patterns if with_emerging or pattern["status"] != "emerging"]
    about = " ".join(part for part in ((arguments.get("context") or "").strip(), *known.texts) if part)
    read = functools.partial(read_evidence, namespace=call.namespace, session_id=session_id, now=call.clock.now())
    names = [pattern["name"] for pattern in patterns]
    # the model on one core, the store on another
    cosines, evidence = await asyncio.gather(call.cosines(about, names), call.read(read))
    answer = {
        "success": True,
        "matching_patterns": _matching(patterns, cosines, evidence.indicators),
        **_rated(evidence, with_emerging),
    }
    return answer | ({} if is_fresh else {"stale": True}) | (WITHOUT_MODEL if cosines is None else {})


def _rated(evidence: PatternEvidence, with_emerging: bool) -> dict[str, Any]:
    rating = rate(evidence.counts)
    signals = evidence.signals if with_emerging else []
    signals = [signal | {"threshold_for_pattern": THRESHOLD_FOR_PATTERN} for signal in signals]
    return {"emerging_signals": signals, "significance": {"score": rating.score, "level": rating.level}}


def _matching(patterns: list[dict[str, Any]], cosines: list[float] | None, now: set[str]) -> list[dict[str, Any]]:
    """The patterns from the least relevance up, best first, ties by id."""
    ranked = []
    for number, pattern in enumerate(patterns):
        indicators = pattern["indicators"]
        score = relevance(
            cosines[number] if cosines else 0.0,
            len(now.intersection(indicators)),
            len(indicators),
            pattern["total_occurrences"],
        )
        if score >= LEAST_RELEVANCE:
            ranked.append(pattern | {"relevance": round(score, 6)})
    return sorted(ranked, key=lambda pattern: (-pattern["relevance"], pattern["id"]))[:MOST_PATTERNS]


TOOL = Tool(
    name="pattern_check",
    toolset="talos",
    title="Check for patterns",
    description="Analyze current session context against known patterns. "
    "Returns matching patterns and emerging signals.",
    kind="read",
    handler=check_patterns,
    memory_operation="search_memory",
    truncation=Truncation({"matching_patterns": {"name": "{id}"}}, query="context"),
    input_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "Current session identifier"},
            "context": {"type": "string", "description": "Optional additional context for matching"},
            "include_emerging": {
                "type": "boolean",
                "description": "Include patterns with status='emerging'",
                "default": True,
            },
        },
        "required": ["session_id"],
    },
    output_schema=writes.output_schema(
        {
            "matching_patterns": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "name": {"type": "string"},
                        "status": {"enum": ["emerging", "confirmed"]},
                        "relevance": {"type": "number", "minimum": 0, "maximum": 1},
                        "last_occurred": {"type": "string"},
                        "total_occurrences": {"type": "integer"},
                        "indicators": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": [
                        "id",
                        "name",
                        "status",
                        "relevance",
                        "last_occurred",
                        "total_occurrences",
                        "indicators",
                    ],
                },
            },
            "emerging_signals": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "description": {"type": "string"},
                        "occurrences": {"type": "integer"},
                        "threshold_for_pattern": {"const": THRESHOLD_FOR_PATTERN},
                    },
                    "required": ["description", "occurrences", "threshold_for_pattern"],
                },
            },
            "significance": {
                "type": "object",
                "properties": {
                    "score": {"type": "integer"},
                    "level": {"enum": ["URGENT", "ATTENTION", "REVIEW", "MONITOR", "STABLE"]},
                },
                "required": ["score", "level"],
            },
        }
    ),
)

"""DreamReport: what a dream did. What it changed is counted from what was kept of it, the rest it says itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from processors.context_graph.rules.hebb import clusters

DIGITS = 6


@dataclass(frozen=True, slots=True)
class NremReport:
    """`compression_ratio`: edges before the dream by edges after it. Durations in milliseconds."""

    memories_replayed: int = 0
    edges_strengthened: int = 0
    edges_weakened: int = 0
    edges_pruned: int = 0
    clusters_consolidated: int = 0
    compression_ratio: float = 1.0
    shortcut_candidates: int = 0
    memories_merged: int = 0
    duration_ms: float = 0.0
    completed: bool = False
    average_weight_delta: float = 0.0


@dataclass(frozen=True, slots=True)
class RemReport:
    """`queries_generated`: walks; `blind_spots_found`: those that ended far from every memory.

    `exploration_coverage`: share of the memories that a walk came near; `average_semantic_leap`: the mean distance of
    the ends of the new edges. `surroundings_embedded`: memories whose surroundings got a vector.
    """

    queries_generated: int = 0
    blind_spots_found: int = 0
    new_edges_created: int = 0
    average_semantic_leap: float = 0.0
    exploration_coverage: float = 0.0
    surroundings_embedded: int = 0
    duration_ms: float = 0.0
    completed: bool = False


@dataclass(frozen=True, slots=True)
class DreamReport:
    """`completed`: the cycle came to its own end. `peak_gpu_usage` is 0: nothing here uses one."""

    started_at: str
    completed: bool = False
    nrem_report: NremReport = field(default_factory=NremReport)
    rem_report: RemReport = field(default_factory=RemReport)
    total_duration_ms: float = 0.0
    wake_reason: str | None = None
    shortcuts_created: int = 0
    peak_gpu_usage: float = 0.0
    wake_latency_ms: float | None = None
    ended_at: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As the tools answer it."""
        return asdict(self)

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> DreamReport:
        """A report as it was told; what it does not say is as if nothing was done."""
        nrem = NremReport(**_named(NremReport, told.get("nrem_report") or {}))
        rem = RemReport(**_named(RemReport, told.get("rem_report") or {}))
        return cls(**{"started_at": "", **_named(cls, told), "nrem_report": nrem, "rem_report": rem})

    def with_nrem(self, **values: Any) -> DreamReport:
        return replace(self, nrem_report=replace(self.nrem_report, **values))

    def with_rem(self, **values: Any) -> DreamReport:
        return replace(self, rem_report=replace(self.rem_report, **values))


def _named(kind: type[Any], told: Mapping[str, Any]) -> dict[str, Any]:
    return {each.name: told[each.name] for each in fields(kind) if told.get(each.name) is not None}


class KeptChange(NamedTuple):
    """A change of an edge as it was kept. `weight_before` is None where there was no such edge."""

    source_id: str
    target_id: str
    kind: str
    weight: float
    weight_before: float | None
    is_removed: bool


def counted(report: DreamReport, changes: Iterable[KeptChange], edges_after: int) -> DreamReport:
    """The report with the counts of these changes. `edges_after`: how many edges there are now."""
    all_changes = list(changes)
    known = [one for one in all_changes if one.weight_before is not None]
    pruned = [one for one in known if one.is_removed]
    kept = [(one, one.weight - one.weight_before) for one in known if not one.is_removed and one.weight_before]
    stronger = [one for one, delta in kept if delta > 0]
    made = [one for one in all_changes if one.weight_before is None and not one.is_removed]
    edges_before = edges_after - len(made) + len(pruned)
    moved = [delta for _, delta in kept if delta]
    return replace(
        report.with_nrem(
            edges_strengthened=len(stronger),
            edges_weakened=sum(delta < 0 for delta in moved),
            edges_pruned=len(pruned),
            clusters_consolidated=clusters((one.source_id, one.target_id) for one in stronger),
            compression_ratio=round(max(edges_before, 0) / edges_after, DIGITS) if edges_after else 1.0,
            average_weight_delta=round(sum(moved) / len(moved), DIGITS) if moved else 0.0,
        ).with_rem(new_edges_created=sum(one.kind == "rem" for one in made)),
        shortcuts_created=sum(one.kind == "shortcut" for one in made),
    )

"""What `thalweg status` shows of a node or worker: it is red as soon as it names a problem."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from processors.embedding.model import ModelInfo
from processors.frame.stage import StageRunner
from streams.clock import format_time
from thalweg.settings import Settings

START_S = 30.0
"""A stage that has not started after this many seconds is dead."""
_NOT_SEEN = {"applied": 0, "lag": 0, "oldest_s": 0.0}


@dataclass(frozen=True, kw_only=True)
class Status:
    """The state of a process; `problems` has a sentence for each thing that is wrong."""

    settings: Settings
    started_at: datetime
    embedder: ModelInfo | None
    problems: Sequence[str]
    topics: Mapping[str, Any] = field(default_factory=dict)
    stages: Mapping[str, Any] = field(default_factory=dict)
    of_node: Mapping[str, Any] = field(default_factory=dict)
    """What only a node has: its doors, store, indexes and spaces."""

    def to_json(self) -> dict[str, Any]:
        """`status` is green or red, `problems` says why; then which process it is and how far each part is."""
        model = self.embedder
        return {
            "status": "red" if self.problems else "green",
            "problems": list(self.problems),
            "broker": self.settings.broker_url,
            "role": self.settings.role,
            "home": str(self.settings.home),
            "started_at": format_time(self.started_at),
            "embedder": {"model_id": model.model_id, "dim": model.dim, "trained": model.trained} if model else None,
            "topics": self.topics,
            "stages": self.stages,
            **self.of_node,
        }


def stages_status(
    runners: Sequence[StageRunner], lags: Mapping[str, Mapping[str, Any]], causes: Collection[str], up_s: float
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Each stage's progress, and a sentence for each that is dead or waits for what it needs.

    `lags`: what is known of each one's lag; `causes`: the parts that others wait for; `up_s`: seconds since the start.
    """
    stages, problems = {}, []
    for runner in runners:
        name = runner.stage.name
        stage = dict(lags.get(name, _NOT_SEEN))
        if _is_dead(runner, up_s):
            stage["state"] = "dead"
            problems.append(f"stage {name} is dead: {runner.failure or 'nothing runs it'}")
        elif runner.waiting and name in causes:
            problems.append(f"stage {name} waits: {runner.waiting}")
        elif runner.life == "starting":
            stage["state"] = "starting"
        stages[name] = stage | {
            "processed": runner.processed,
            "buried": runner.buried,
            "busy_s": round(runner.busy_s, 3),
            "failure": runner.failure,
        }
    return stages, problems


def _is_dead(runner: StageRunner, up_s: float) -> bool:
    """Nothing runs the stage, or it takes longer to start than any start takes. Without a lag nobody would notice."""
    if runner.life == "starting":
        return up_s > START_S
    return runner.life == "dead" or runner.failure is not None

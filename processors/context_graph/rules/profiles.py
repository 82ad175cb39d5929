"""Profiles: weights of the thirteen views for a task, with how they are fused."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import Any

from processors.context_graph.rules.fusion import METHODS
from processors.context_graph.rules.groups import GROUPS, VIEW_COUNT
from streams.clock import format_time

MAX_PROFILES = 100
"""Profiles of a namespace; those of the system are not counted."""
MAX_ID, MAX_NAME = 64, 200
DEFAULT_FUSION = "hierarchical"
EQUAL = tuple([1.0 / VIEW_COUNT] * VIEW_COUNT)
SIZES = {group: float(len(members)) for group, members in GROUPS.items()}
_PRINTED = {
    "code_implementation": ".057 .023 .057 .057 .170 .034 .283 .057 .091 .023 .057 .057 .034",
    "research": ".187 .047 .075 .075 .167 .019 .028 .047 .093 .019 .037 .187 .019",
    "creative": ".090 .056 .079 .079 .056 .034 .022 .056 .135 .224 .045 .090 .034",
    "analysis": ".132 .055 .033 .033 .110 .033 .033 .055 .164 .055 .132 .132 .033",
    "debugging": ".080 .080 .020 .040 .220 .080 .250 .030 .020 .020 .060 .040 .060",
    "documentation": ".220 .020 .020 .060 .080 .060 .100 .060 .040 .050 .120 .100 .070",
    "semantic_search": ".28 .05 .05 .05 .10 .04 .18 .05 .05 .05 .03 .05 .02",
    "causal_reasoning": ".15 .03 .03 .03 .40 .03 .10 .08 .03 .05 .03 .02 .02",
    "code_search": ".15 .02 .02 .15 .05 .05 .35 .02 .02 .05 .05 .05 .02",
    "temporal_navigation": ".12 .22 .22 .22 .03 .02 .03 .02 .03 .03 .02 .02 .02",
    "fact_checking": ".10 .02 .02 .02 .18 .10 .05 .05 .02 .05 .35 .02 .02",
}
"""System profiles as they were published, rounded; E1 to E13."""
TASK_TYPES = ("code_implementation", "research", "creative", "analysis", "debugging", "documentation", "custom")


class ProfileError(ValueError):
    """A profile that cannot be used; the message is a sentence, `field` names the argument."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Profile:
    """A profile. Weights and priorities sum to 1."""

    profile_id: str
    name: str
    task_type: str
    embedder_weights: tuple[float, ...]
    group_priorities: Mapping[str, float]
    fusion_strategy: str = DEFAULT_FUSION
    is_system: bool = False


def normalised(field: str, numbers: Sequence[float]) -> tuple[float, ...]:
    """The numbers over their sum.

    Raises ProfileError unless all are finite, none negative, and one positive.
    """
    if any(isinstance(number, bool) or not math.isfinite(number) or number < 0 for number in numbers):
        raise ProfileError(field, f"The argument `{field}` takes finite numbers from 0 upwards only.")
    largest = max(numbers, default=0.0)
    if largest <= 0:
        raise ProfileError(field, f"The argument `{field}` has no number above 0, so that nothing would be weighed.")
    scaled = [number / largest for number in numbers]  # so that huge numbers do not sum to infinity
    return tuple(round(number / sum(scaled), 12) for number in scaled)


def view_weights(numbers: Sequence[float], field: str = "embedder_weights") -> tuple[float, ...]:
    """Thirteen weights that sum to 1. Raises ProfileError."""
    if len(numbers) != VIEW_COUNT:
        raise ProfileError(
            field,
            f"The argument `{field}` has {len(numbers)} weights; it takes {VIEW_COUNT}, one for each of E1 to E13.",
        )
    return normalised(field, numbers)


def priorities(given: Mapping[str, float] | None) -> dict[str, float]:
    """Six priorities that sum to 1: by default by the number of views; a group that is not named has 0."""
    asked = SIZES if given is None else {group: given.get(group, 0.0) for group in GROUPS}
    return dict(zip(GROUPS, normalised("group_priorities", list(asked.values())), strict=True))


def _system(profile_id: str, weights: Sequence[float]) -> Profile:
    task = profile_id if profile_id in TASK_TYPES else "custom"
    name = profile_id.replace("_", " ").capitalize()
    return Profile(profile_id, name, task, view_weights(weights), priorities(None), is_system=True)


SYSTEM: Mapping[str, Profile] = {
    profile_id: _system(profile_id, weights)
    for profile_id, weights in (
        *((name, [float(number) for number in printed.split()]) for name, printed in _PRINTED.items()),
        ("custom", EQUAL),
        ("balanced", EQUAL),
    )
}
"""The thirteen profiles that are always there and never change."""


def id_from_name(name: str) -> str:
    """The id of a profile that was created without one. Raises ProfileError where the name has no letter or digit."""
    slug = re.sub(r"[\W_]+", "_", name.casefold()).strip("_")[:MAX_ID]
    if not slug:
        raise ProfileError("name", "The argument `name` has no letter or digit to make an id of: give a `profile_id`.")
    return slug


def created(fields: Mapping[str, Any]) -> Profile:
    """The profile that a caller asks for by `profile_id`, `name` and what else it gave. Raises ProfileError."""
    task = fields.get("task_type") or "custom"
    weights = fields.get("embedder_weights")
    strategy = fields.get("fusion_strategy") or DEFAULT_FUSION
    return Profile(
        profile_id=fields["profile_id"],
        name=fields["name"],
        task_type=_known("task_type", task, TASK_TYPES),
        embedder_weights=SYSTEM[task].embedder_weights if weights is None else view_weights(weights),
        group_priorities=priorities(fields.get("group_priorities")),
        fusion_strategy=_known("fusion_strategy", strategy, METHODS),
    )


def updated(profile: Profile, fields: Mapping[str, Any]) -> Profile:
    """The profile with what a caller changes. Another task brings its weights, unless weights are given."""
    task = fields.get("task_type")
    weights: Sequence[float] = profile.embedder_weights
    if task is not None and task != profile.task_type:
        weights = SYSTEM[_known("task_type", task, TASK_TYPES)].embedder_weights
    if fields.get("embedder_weights") is not None:
        weights = fields["embedder_weights"]
    return created(
        {
            "profile_id": profile.profile_id,
            "name": fields.get("name") or profile.name,
            "task_type": task or profile.task_type,
            "embedder_weights": weights,
            "group_priorities": fields.get("group_priorities") or profile.group_priorities,
            "fusion_strategy": fields.get("fusion_strategy") or profile.fusion_strategy,
        }
    )


def profile_of(row: Mapping[str, Any]) -> Profile:
    """The profile of a row of `context_profiles`; `group_priorities` as an object."""
    names = ("profile_id", "name", "task_type", "group_priorities", "fusion_strategy")
    return Profile(**{name: row[name] for name in names}, embedder_weights=tuple(row["embedder_weights"]))


def shown(profile: Profile, created_at: Any = None, updated_at: Any = None) -> dict[str, Any]:
    """A profile as answers have it; those of the system have no times."""

    def told(moment: Any) -> str | None:
        return None if moment is None else format_time(moment.replace(tzinfo=UTC))

    return {
        **asdict(profile),
        "embedder_weights": list(profile.embedder_weights),
        "created_at": told(created_at),
        "updated_at": told(updated_at),
    }


def missing(profile_id: str) -> str:
    """The sentence about a profile that is not there."""
    return f"There is no profile {profile_id[:MAX_ID]!r}: the action `list` names those there are."


def _known(field: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise ProfileError(field, f"The argument `{field}` is one of {', '.join(choices)}, not {value[:40]!r}.")
    return value

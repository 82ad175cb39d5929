"""What a session shows that others may show too: pure, over what is known of the session.

The patterns stage publishes the signals of closed sessions; `pattern_check` asks which indicators hold now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from processors.talos.rules.identifiers import named_id

MANY_CALLS = 20
LONG_SESSION_S = 10_800


class Cluster(NamedTuple):
    """Records of one label that say the same.

    `canonical_id`, `text` and `first_session_id` are the oldest record's; `record_ids` are those of the session at
    hand.
    """

    label: str
    canonical_id: str
    text: str
    first_session_id: str | None
    record_ids: tuple[str, ...]


class SessionState(NamedTuple):
    """What is known of a session. `followed`: (state, friction category logged while it lasted)."""

    status: str
    duration_s: int
    goal_achieved: bool | None
    busy_tools: list[str]
    frictions: list[tuple[str, str]]
    clusters: list[Cluster] = []
    followed: list[tuple[str, str]] = []

    @property
    def friction_categories(self) -> list[str]:
        return sorted({category for _, category in self.frictions if category})


class Signal(NamedTuple):
    """`evidence`: (relation, node id); `also` another session that showed it first."""

    description: str
    indicators: list[str]
    evidence: list[tuple[str, str]] = []
    also: str | None = None

    @property
    def signal_id(self) -> str:
        return named_id("pattern", self.description)


def signals(state: SessionState) -> Iterator[Signal]:
    """Everything that the session shows, each once."""
    for tool in state.busy_tools:
        for category in state.friction_categories:
            indicators = [f"{tool} called more than {MANY_CALLS} times", f"{category} friction logged"]
            evidence = [("TRIGGERED_BY", named_id("tool", tool)), *_frictions(state, category)]
            yield Signal(
                f"Tool {tool} called >{MANY_CALLS} times correlates with {category} friction", indicators, evidence
            )
    if state.duration_s > LONG_SESSION_S and state.goal_achieved is not True:
        yield Signal(
            "Session longer than 3 hours without achieving its goal",
            ["session duration > 3 hours", "goal not achieved"],
        )
    for name, category in dict.fromkeys(state.followed):
        evidence = [("TRIGGERED_BY", named_id("state", name)), *_frictions(state, category)]
        yield Signal(
            f"State {name} is followed by {category} friction",
            [f"state {name}", f"{category} friction logged"],
            evidence,
        )
    for cluster in state.clusters:
        yield _recurring(cluster)


def _frictions(state: SessionState, category: str) -> list[tuple[str, str]]:
    return [("INDICATES", friction_id) for friction_id, found in state.frictions if found == category]


def _recurring(cluster: Cluster) -> Signal:
    """A cluster is one signal under the words of its oldest record, whose session showed it first."""
    ids = dict.fromkeys((cluster.canonical_id, *cluster.record_ids))
    relations = ("MANIFESTATION_OF", "INDICATES") if cluster.label == "Friction" else ("CRYSTALLIZED_INTO",)
    evidence = [(relation, record_id) for record_id in ids for relation in relations]
    kind = cluster.label.lower()
    return Signal(
        f"Recurring {kind}: {cluster.text}",
        [f"{kind} {cluster.canonical_id} occurs again"],
        evidence,
        cluster.first_session_id,
    )


def indicators_now(state: SessionState) -> set[str]:
    """Every indicator that holds in the session as it is."""
    found = {f"{tool} called more than {MANY_CALLS} times" for tool in state.busy_tools}
    found |= {f"{category} friction logged" for category in state.friction_categories}
    found |= {f"state {name}" for name, _ in state.followed}
    if state.duration_s > LONG_SESSION_S:
        found.add("session duration > 3 hours")
    if state.goal_achieved is not True:
        found.add("goal not achieved")
    found |= {f"{cluster.label.lower()} {cluster.canonical_id} occurs again" for cluster in state.clusters}
    return found

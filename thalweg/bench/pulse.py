"""`thalweg bench pulse`: whether the pulse of Context Graph tells when the matter changes, over MCP.

For each ordered pair of a data set's conversations a node of its own is given 400 turns of the one and then 200 of the
other by inject_context. What an agent reads in each answer counts: how often it was Open while the matter stayed the
same, and after how many memories of the other conversation the entropy rose above the cut. Beside it stands the
control: how often it does so within as many memories where nothing changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

from processors.context_graph.rules.johari import CUT
from streams.errors import Refused, Unavailable
from thalweg.bench.recall_sets import Conversation, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import SocketClient, running_node, scratch_directory

FIRST, SECOND = 400, 200
"""Turns of the two conversations of a pair."""
SETTLED = 100
"""Turns after which the pulse is judged."""
NOTICED_WITHIN = 10
OPEN, NOT_OPEN = Target(70.0, at_least=True), Target(10.0, at_least=True)
Pulses = list[dict[str, Any]]


def measure_pulse(dataset: str, embedder: str) -> Report:
    """Inject each pair of conversations and report what the pulses said. Raises Refused for less than two."""
    report = Report("pulse", {"dataset": Path(dataset).name, "embedder": embedder})
    conversations = list(read_set(dataset))
    if len(conversations) < 2:
        raise Refused(f"The pulse is measured on two conversations at least; {dataset} has {len(conversations)}.")
    for (one, first), (two, second) in permutations(enumerate(conversations), 2):
        begun = asyncio.run(_inject(first, second, embedder))
        _report(report, f"{one}_to_{two}", begun, min(FIRST, len(first.turns)))
    return report


async def _inject(first: Conversation, second: Conversation, embedder: str) -> Pulses:
    """The pulse of each answer."""
    turns = [*first.turns[:FIRST], *second.turns[:SECOND]]
    with scratch_directory() as directory, running_node(directory / "home", embedder=embedder):
        client = await SocketClient.open(directory / "home")
        try:
            await client.greet()
            return [await _pulse(client, turn.text) for turn in turns]
        finally:
            client.close()


async def _pulse(client: SocketClient, text: str) -> dict[str, Any]:
    arguments = {"content": text, "rationale": "It was said."}
    answer = await client.request("tools/call", {"name": "inject_context", "arguments": arguments})
    body = answer["structuredContent"]
    if not body["success"] or body.get("pending"):
        raise Unavailable(f"The node did not decide an `inject_context` in time: {body.get('message', 'pending')}")
    pulse: dict[str, Any] = answer["_cognitive_pulse"]
    return pulse


def _report(report: Report, name: str, pulses: Pulses, changed: int) -> None:
    same, other = pulses[SETTLED:changed], pulses[changed:]
    is_open = 100 * sum(pulse["quadrant"] == "Open" for pulse in same) / len(same)
    report.add(f"{name}_open", is_open, "%", OPEN)
    report.add(f"{name}_not_open", 100 - is_open, "%", NOT_OPEN)
    report.add(f"{name}_noticed_after", noticed_after(other), "memories", Target(NOTICED_WITHIN))
    is_novel = [pulse["entropy"] > CUT for pulse in same]
    report.add(f"{name}_novel_without_change", 100 * sum(is_novel) / len(is_novel), "%")
    windows = [any(is_novel[start : start + NOTICED_WITHIN]) for start in range(len(is_novel) - NOTICED_WITHIN + 1)]
    report.add(f"{name}_noticed_without_change", 100 * sum(windows) / len(windows), "%")


def noticed_after(pulses: Sequence[dict[str, Any]]) -> int:
    """Which memory raised the entropy above the cut, from 1; one more than there are where none did."""
    places = (place for place, pulse in enumerate(pulses, 1) if pulse["entropy"] > CUT)
    return next(places, len(pulses) + 1)

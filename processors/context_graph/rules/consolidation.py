"""Which memories become one, and what the one says.

Two become one when they are near, of one modality, say the same (`restatements`) and fit the strategy. Those that hang
together are a group, unless two of them do not say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson

from processors.context_graph.rules.ends import merged_id_of
from processors.context_graph.rules.restatements import restate, said
from processors.talos.rules.canonical import canonical_form

SIMILARITY, TEMPORAL, SEMANTIC = "similarity", "temporal", "semantic"
MIN_SIMILARITY = 0.85
TOGETHER = timedelta(hours=24)
"""By `temporal` memories of one group were stored within this."""
LEAST_ALIGNMENT, SAME_ALIGNMENT = 0.5, 0.05
"""How near to the goal `semantic` wants both, and how much two that become one may differ in it."""
SEPARATOR = " | "
MAX_MEMBERS = 50
MAX_TEXT = 1 << 20
"""Bytes of a merged text, as of any memory."""


class LivingMemory(NamedTuple):
    """A living memory as it is compared. `created_at` is UTC without a zone; `merged_from`: it was made by a merge.

    A tuple, which is made in a fifth of the time of other records: there may be very many.
    """

    memory_id: str
    label: int
    content: str
    modality: str
    tags: Sequence[str]
    importance: float
    rationale: str | None
    created_at: datetime
    merged_from: Sequence[str] | None = None

    @property
    def parts(self) -> list[str]:
        """The texts that it is made of."""
        return [self.content] if self.merged_from is None else self.content.split(SEPARATOR)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories, and their cosine."""

    first: LivingMemory
    second: LivingMemory
    similarity: float


@dataclass(slots=True)
class Group:
    """Memories that become one. `similarity`: the lowest cosine by which it hangs together; `pairs`: how many do."""

    members: list[LivingMemory]
    similarity: float
    pairs: int = 1


def say_the_same(one: LivingMemory, other: LivingMemory, ordinary: frozenset[str]) -> bool:
    """Whether every text of the one restates every text of the other."""
    if one.modality != other.modality:
        return False
    told = {said(part, one.modality, ordinary) for part in (*one.parts, *other.parts)}
    return len(told) == 1 and all(restate(a, b) for a in one.parts for b in other.parts)


def fits(strategy: str, one: LivingMemory, other: LivingMemory, alignments: Mapping[str, float] | None) -> bool:
    """Whether two memories that say the same may become one. `alignments`: with the goal, by memory; None without."""
    if strategy == TEMPORAL and abs(one.created_at - other.created_at) > TOGETHER:
        return False
    if alignments is None:
        return strategy != SEMANTIC
    first, second = alignments.get(one.memory_id, 0.0), alignments.get(other.memory_id, 0.0)
    is_near = strategy != SEMANTIC or min(first, second) >= LEAST_ALIGNMENT
    return is_near and abs(first - second) <= SAME_ALIGNMENT + 1e-9


def grouped(pairs: Iterable[Pair], same: Callable[[LivingMemory, LivingMemory], bool]) -> list[Group]:
    """The groups that pairs hang together in; `same` is asked of members that no pair names."""
    of: dict[str, Group] = {}
    known = set()
    for pair in sorted(pairs, key=lambda one: (-one.similarity, one.first.memory_id, one.second.memory_id)):
        one, other = pair.first, pair.second
        known.add(frozenset((one.memory_id, other.memory_id)))
        first = of.get(one.memory_id) or Group([one], pair.similarity, 0)
        second = of.get(other.memory_id) or Group([other], pair.similarity, 0)
        if first is not second:
            if len(first.members) + len(second.members) > MAX_MEMBERS or not all(
                frozenset((a.memory_id, b.memory_id)) in known or same(a, b)
                for a in first.members
                for b in second.members
            ):
                continue
            first.members += second.members
            first.pairs += second.pairs
            of |= dict.fromkeys((member.memory_id for member in first.members), first)
        first.pairs += 1
        first.similarity = pair.similarity
    return list({id(group): group for group in of.values()}.values())


def merged_text(members: Sequence[LivingMemory]) -> str:
    """The texts of the members, oldest first, each once, whatever its case and punctuation."""
    texts: dict[str, str] = {}
    for member in sorted(members, key=_age):
        for part in member.parts:
            texts.setdefault(canonical_form(part) or part, part)
    return SEPARATOR.join(texts.values())


def event_group(namespace: str, group: Group) -> dict[str, Any] | None:
    """A group as its event has it; None where its text would be longer than a memory may be."""
    members = sorted(group.members, key=_age)
    content = merged_text(members)
    if len(content.encode()) > MAX_TEXT:
        return None
    sources = [member.memory_id for member in members]
    rationales = dict.fromkeys(member.rationale for member in members if member.rationale)
    return {
        "memory_id": merged_id_of(namespace, sources),
        "content": content,
        "modality": members[0].modality,
        "importance": max(member.importance for member in members),
        "tags": list(dict.fromkeys(tag for member in members for tag in member.tags)),
        "rationale": SEPARATOR.join(rationales) or None,
        "merged_from": sources,
        "similarity": round(group.similarity, 6),
        "pairs": group.pairs,
    }


def fitting(groups: Iterable[dict[str, Any]], largest: int) -> list[dict[str, Any]]:
    """As many of the groups, in order, as fit into an event of this many bytes."""
    kept, size = list[dict[str, Any]](), 0
    for group in groups:
        size += len(orjson.dumps(group)) + 1
        if size > largest:
            break
        kept.append(group)
    return kept


def _age(memory: LivingMemory) -> tuple[datetime, str]:
    return memory.created_at, memory.memory_id

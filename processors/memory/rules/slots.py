"""The parts of a statement in any order: what it is about, and what is said with which relation.

`Uploads above 20 MB are rejected` and `Uploads are rejected above 50 MB` have the same parts but for one value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from processors.memory.rules.statement import STATEMENTS, is_content, measure
from processors.memory.rules.words import word_set

HEAD = ""
"""The relation of what stands before the first one: the subject, mostly."""
_RELATIONS = word_set(
    "be in on at with by as to under over through via into from be abov below until after befor for of off "
    "has hav had use must can"
)
_SAME = {
    "through": "with",
    "via": "with",
    "has": "be",
    "hav": "be",
    "had": "be",
    "use": "with",
    "must": "be",
    "can": "be",
}
"""What relates a value alike: `the index has 4 shards`, `there are 4 shards`; `sent through X`, `sent with X`."""


class Slot(NamedTuple):
    """The meaningful words that follow one relation, as stems."""

    relation: str
    words: tuple[str, ...]


class Difference(NamedTuple):
    """What each of two statements says that the other one does not, slot by slot, and what both say."""

    shared: frozenset[str]
    older: Sequence[Slot]
    newer: Sequence[Slot]


@lru_cache(maxsize=8192)
def slots_of(words: tuple[str, ...]) -> tuple[Slot, ...]:
    """The slots of a statement's stems; of relations in a row (`is in`) the last one counts."""
    found, relation, content = list[Slot](), HEAD, list[str]()
    for word in words:
        if word in _RELATIONS:
            if content:
                found.append(Slot(relation, tuple(content)))
            relation, content = _SAME.get(word, word), []
        elif is_content(word):
            content.append(word)
    return (*found, Slot(relation, tuple(content))) if content else tuple(found)


def difference(older: tuple[str, ...], newer: tuple[str, ...], empty: Collection[str]) -> Difference:
    """How two statements differ by their stems. `empty`: words that mean nothing by themselves."""
    shared = meant(older) & meant(newer)
    known = shared.union(empty)
    return Difference(shared, _without(slots_of(older), known), _without(slots_of(newer), known))


@lru_cache(maxsize=STATEMENTS)
def meant(words: tuple[str, ...]) -> frozenset[str]:
    """The meaningful words of a statement's stems: those in its slots."""
    return frozenset(word for slot in slots_of(words) for word in slot.words)


def _without(slots: Sequence[Slot], known: Collection[str]) -> list[Slot]:
    found = list[Slot]()
    for slot in slots:
        if left := tuple([word for word in slot.words if word not in known]):
            found.append(Slot(_relation(slot.relation, left), left))
    return found


def _relation(relation: str, words: Sequence[str]) -> str:
    """`is on 3 May` and `is 3 May` say the same."""
    return "be" if relation == "on" and all(map(measure, words)) else relation

"""Which earlier records say the same as a new one. The stage supplies the candidates, the derived reducer merges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from processors.memory.rules.change import changes
from processors.talos.rules.canonical import canonical_form, is_negated

SIMILAR_COSINE = 0.85


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """What is compared: an entity. `cosine` is that to the new record, None when either has no vector of the model."""

    record_id: str
    label: str
    text: str
    category: str | None = None
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Similar:
    """An earlier record that says the same, and how that was seen."""

    record_id: str
    how: Literal["canonical_form", "cosine"]
    cosine: float | None = None


def similar_records(new: EntityRecord, candidates: Iterable[EntityRecord]) -> list[Similar]:
    """The candidates that say the same as `new`, best first.

    Those of equal canonical form come first, then by falling cosine, then by id.

    They have the same label (a Friction also the same category), and an equal canonical form or a cosine of at least
    .85, unless exactly one of the two is negated, or the new one gives another value for what the other says (a
    friction with other values is the same friction). The record itself is never among them.
    """
    form, negated = canonical_form(new.text), is_negated(new.text)
    found = []
    for candidate in candidates:
        if candidate.record_id == new.record_id or candidate.label != new.label:
            continue
        if new.label == "Friction" and candidate.category != new.category:
            continue
        if form and canonical_form(candidate.text) == form:
            found.append(Similar(candidate.record_id, "canonical_form", candidate.cosine))
        elif (
            candidate.cosine is not None
            and candidate.cosine >= SIMILAR_COSINE
            and is_negated(candidate.text) == negated
            and (new.label == "Friction" or not changes(candidate.text, new.text))
        ):
            found.append(Similar(candidate.record_id, "cosine", candidate.cosine))
    return sorted(found, key=_rank)


def _rank(similar: Similar) -> tuple[bool, float, str]:
    return similar.how != "canonical_form", -(similar.cosine or 0.0), similar.record_id

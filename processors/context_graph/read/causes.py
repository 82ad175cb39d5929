"""Finds causes of a memory, and its effects, among the memories that were there before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from processors.context_graph.read.fingerprints import FingerprintReader, PlacedTokens
from processors.context_graph.rules.cause_links import (
    DENIED,
    CausalClaim,
    CausalLink,
    CausalText,
    Part,
    evidence,
    is_denied,
    link,
    similarity,
    surpassed,
    tells,
    told_by,
)
from processors.context_graph.rules.causes import read_causes
from processors.context_graph.rules.memories import TOOLSET
from storage.search.question import matter_of
from storage.search.records.filter import Filter
from storage.search.vectors.token_vectors import Tokens, unit
from storage.search.words.analyzer import query_terms
from storage.search.words.bm25 import rarity
from streams.ids import document_label

if TYPE_CHECKING:
    from storage.search.records.filter_cache import AllowList

PROSE = ("text", "mixed", "image", "audio")
"""Modalities whose content is sentences."""
NEAR = 24
"""Memories that are near to the whole of a new one, by its vector and by its words."""
NEAR_CLAIM = 12
"""Memories that have the most words of a stated part."""
FEWEST = 100
"""Memories of a store in which rarity says something."""
MOST_CLAIMS = 16
"""This many stated parts of a memory are looked for."""
MOST_TEXTS = 512
"""Texts that are kept while the memories of a batch are compared: neighbours have neighbours in common."""
Place = tuple[int, int]
"""Of a memory in the log: offset and label."""


class CauseFinder:
    """Compares memories of one namespace with those before them. It is for one read on one thread."""

    def __init__(self, reader: FingerprintReader, pause: Callable[[], None] = lambda: None) -> None:
        """`pause`: called after each piece of work; of a call, which somebody waits for, it does nothing."""
        self._reader, self._pause = reader, pause
        self._allowed: AllowList = reader.indexes.records.allowed(
            reader.cursor, Filter(reader.namespace, toolsets=(TOOLSET,), kinds=PROSE)
        )
        self._rarity: dict[str, float] = {}
        self._texts: dict[int, tuple[Place, CausalText]] = {}
        """By label those that were read last."""
        self._states: dict[int, bool] = {}
        """By label whether a memory states a cause or an effect."""

    def read_ahead(self, memory_ids: Iterable[str]) -> None:
        """Read these memories at once, because `links` is about to be asked for each."""
        labels = np.array([document_label(self._reader.namespace, one) for one in memory_ids], np.int64)
        self._placed(self._allowed.of(labels).tolist())

    def links(self, memory_id: str) -> list[CausalLink]:
        """The links of a memory with those before it, and the denials of what was linked. None without token vectors.

        Of several between the same two the surest is told.
        """
        label = document_label(self._reader.namespace, memory_id)
        mine = self._allowed.of(np.array([label], np.int64)).tolist()
        for place, own in self._placed(mine):
            return self._links(place, own)
        return []

    def reasons(self, question: str, tokens: Tokens) -> list[str]:
        """The memories that state why, of what a question asks about, best first. `tokens`: the question's."""
        terms, kept = frozenset(query_terms(matter_of(question))), tokens.content
        asked = Part(tokens.vectors[kept], self._weights(tokens.ids[kept]), terms)
        self._read_rarities(terms)
        found = []
        for _, stating in self._placed(self._with_words([question], NEAR)):
            best = max((similarity(asked, part, self._rarity) for part in stating.effects), default=0.0)
            if best > 0:
                found.append((best, stating.memory_id))
        return [memory_id for _, memory_id in sorted(found, reverse=True)]

    def _links(self, place: Place, own: CausalText) -> list[CausalLink]:
        texts = [own.text, *(own.text[slice(*claim.where)] for claim in own.claims[:MOST_CLAIMS])]
        near = self._near(place[1]) | self._with_words(texts[:1], NEAR) | self._with_words(texts[1:], NEAR_CLAIM)
        others = self._earlier(near if own.claims or own.denials else self._stating(near), place)
        found = [*self._by_own(own, others), *self._by_others(own, others, place), *self._denied(own, others)]
        best: dict[tuple[str, str], CausalLink] = {}
        for one in sorted(found, key=lambda one: (-one.confidence, -one.similarity)):
            best.setdefault((one.cause_id, one.effect_id), one)
        return list(best.values())

    def _by_own(self, own: CausalText, others: Sequence[CausalText]) -> Iterable[CausalLink]:
        """What a memory states of earlier ones, unless one of them denies it."""
        for claim in own.claims[:MOST_CLAIMS]:
            self._pause()
            rarities = self._rarities(claim)
            for other, value in told_by(claim, others, rarities):
                if value > 0 and not any(is_denied(own, claim.statement, one, rarities) for one in others):
                    yield link(own, claim, other, value)

    def _by_others(self, own: CausalText, others: Sequence[CausalText], place: Place) -> Iterable[CausalLink]:
        """What earlier memories state of this one, where none tells it better."""
        for stating in others:
            for claim in stating.claims[:MOST_CLAIMS]:
                self._pause()
                rarities = self._rarities(claim)
                value = tells(claim, own, rarities)
                if not value or is_denied(stating, claim.statement, own, rarities):
                    continue
                rivals = self._earlier(self._with_words([stating.text[slice(*claim.where)]], NEAR_CLAIM), place)
                rivals = [one for one in rivals if one.memory_id != stating.memory_id]
                told = told_by(claim, [own, *rivals], rarities)
                if told[0][1] > 0:
                    yield link(stating, claim, own, value)
                    yield from (surpassed(link(stating, claim, one, 0.0)) for one, rest in told[1:] if rest == 0)

    def _denied(self, own: CausalText, others: Sequence[CausalText]) -> Iterable[CausalLink]:
        """What a memory takes back: the links that a denied statement has made, with a weight of 0."""
        for stating in others if own.denials else ():
            for claim in stating.claims[:MOST_CLAIMS]:
                self._pause()
                rarities = self._rarities(claim)
                if (sentence := is_denied(stating, claim.statement, own, rarities)) is not None:
                    told = told_by(claim, [one for one in others if one is not stating], rarities)
                    for one in (link(stating, claim, other, 0.0) for other, value in told if value > 0):
                        yield CausalLink(one.cause_id, one.effect_id, 0.0, DENIED, evidence(own, sentence, "denied"))

    def _near(self, label: int) -> set[int]:
        live = self._reader.indexes.spaces.live
        vectors = {} if live is None else live.vectors(np.array([label], np.int64))
        if live is None or label not in vectors:
            return set()
        return {found for found, _ in live.nearest(vectors[label], NEAR + 1, self._allowed).matches}

    def _with_words(self, texts: Sequence[str], most: int) -> set[int]:
        words, cursor = self._reader.indexes.words, self._reader.cursor
        found: set[int] = set()
        for text in texts:
            found.update(label for label, _ in words.search(cursor, text, self._allowed, most, alone=False).matches)
            self._pause()
        return found

    def _stating(self, labels: Iterable[int]) -> set[int]:
        """Those that state causes.

        No others bear on a memory that states nothing, and to read the tokens of all takes longest.
        """
        unread = [label for label in labels if label not in self._states]
        for label, row in self._reader.indexes.records.documents.rows(self._reader.cursor, unread).items():
            self._states[label] = bool(read_causes(row.text).statements)
            self._pause()
        return {label for label in labels if self._states.get(label)}

    def _earlier(self, labels: Iterable[int], place: Place) -> list[CausalText]:
        """The memories with these labels that were on the log before."""
        return [one for other, one in self._placed(set(labels) - {place[1]}) if other < place]

    def _placed(self, labels: Iterable[int]) -> list[tuple[Place, CausalText]]:
        """Those of these memories that have their tokens, by label, with their places."""
        asked = sorted(labels)
        known = {label: self._texts[label] for label in asked if label in self._texts}
        for placed in self._reader.placed([label for label in asked if label not in known]):
            known[placed.label] = (placed.position, placed.label), self._text(placed)
            self._pause()
        if len(self._texts) > MOST_TEXTS:
            self._texts.clear()
        self._texts |= known
        return [known[label] for label in asked if label in known]

    def _text(self, placed: PlacedTokens) -> CausalText:
        rows = unit(placed.codes.astype(np.float32))
        return CausalText(placed.memory_id, placed.text, placed.starts, rows, self._weights(placed.ids))

    def _weights(self, ids: np.ndarray) -> np.ndarray:
        live = self._reader.indexes.spaces.live
        assert live is not None  # the tokens are in it
        return live.tokens.rarity(ids.astype(np.int64))

    def _rarities(self, claim: CausalClaim) -> dict[str, float]:
        """Of the terms of a claim and of its statement's other part."""
        return self._read_rarities(claim.part.terms | (claim.other.terms if claim.other is not None else frozenset()))

    def _read_rarities(self, terms: frozenset[str]) -> dict[str, float]:
        if missing := terms - self._rarity.keys():
            found, _ = self._reader.indexes.words.rarities([*missing, ""], self._reader.namespace)
            self._rarity |= shares(found, missing)
        return self._rarity


def shares(rarities: Mapping[str, float], terms: Iterable[str]) -> dict[str, float]:
    """The rarity of terms, 1 of one that a single memory has. `rarities`: theirs, and under "" that of an unknown one.

    A store of a few memories is weighed as one of FEWEST, in which nearly all others have none of these terms.
    """
    count = math.exp(rarities[""]) / 2 - 1
    having = {term: (count + 1) / math.exp(rarities[term]) - 0.5 for term in terms}
    all_memories = max(round(count), FEWEST)
    rarest = rarity(all_memories, 1)
    return {term: min(1.0, rarity(all_memories, max(0, round(held))) / rarest) for term, held in having.items()}

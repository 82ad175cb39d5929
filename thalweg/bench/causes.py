"""`thalweg bench causes`: whether edges from cause to effect are right, and whether they answer "why".

A fixture has chains of memories, each the cause of the next, and others beside them that are not. All are written to
one store in an order that has nothing to do with the chains, and each is compared with those before it, as the stage
does it. Beside abduction stands what the cosine finds: of a whole memory, and of the words alone by which it states a
cause. Of conversations the questions that ask why are answered: by the statements whose effect is what is asked, and
by the cosine alone.
"""

from __future__ import annotations

import re
import tomllib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from processors.context_graph.read.causes import CauseFinder
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.rules.cause_links import CausalLink
from processors.context_graph.rules.causes import read_causes
from processors.context_graph.rules.edges import Edge
from processors.context_graph.rules.inference import abduce
from processors.embedding.model import Embedder, encode_query
from streams.errors import Refused
from streams.ids import document_label
from thalweg.bench.recall_sets import Conversation, Turn, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.views import TurnStore, turn_store

FIRST = 3
"""A cause is found when it is among this many."""
PRECISION, DIRECTION = Target(80.0, at_least=True), Target(90.0, at_least=True)
ABDUCTION, GAIN = Target(60.0, at_least=True), Target(15.0, at_least=True)
_WHY = re.compile(r"\s*why\b", re.IGNORECASE)
_START = datetime(2026, 3, 2, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Memory:
    """A memory of a fixture: its chain, its place there or None beside it, and what the chain is."""

    text: str
    chain: int
    place: int | None
    kind: str
    part: str

    @property
    def name(self) -> str:
        return f"{self.chain}/{'beside' if self.place is None else self.place}/{zlib.crc32(self.text.encode())}"


def measure_causes(path: Path, embedder: Embedder, name: str) -> Report:
    """Find the edges of a fixture (*.toml) or of a data set of conversations. Raises Refused for neither."""
    report = Report("causes", {"data": path.name, "embedder": name})
    if path.suffix == ".toml":
        _measure_chains(report, read_chains(path), embedder)
    else:
        _measure_questions(report, list(read_set(str(path))), embedder)
    return report


def read_chains(path: Path) -> list[_Memory]:
    """The memories of a fixture. Raises Refused for a file without chains."""
    chains: list[dict[str, Any]] = tomllib.loads(path.read_text()).get("chain", [])
    if not chains:
        raise Refused(f"The file {path.name!r} has no chains of causes.")
    found = []
    for number, chain in enumerate(chains):
        about = chain["kind"], chain.get("set", "unseen")
        found += [_Memory(text, number, place, *about) for place, text in enumerate(chain["memories"])]
        found += [_Memory(other["text"], number, None, *about) for other in chain.get("others", ())]
    return sorted(found, key=lambda one: zlib.crc32(one.text.encode()))


def _measure_chains(report: Report, memories: Sequence[_Memory], embedder: Embedder) -> None:
    by_name = {one.name: one for one in memories}
    turns = [Turn(one.name, None, _START + timedelta(minutes=at), one.text) for at, one in enumerate(memories)]
    with turn_store(embedder, "text") as store:
        links = found_links(store, embedder, Conversation("chains", turns, []))
        labels = np.array([document_label("chains", one.name) for one in memories], np.int64)
        live = store.engine.spaces.live
        vectors = {} if live is None else live.vectors(labels)
    rows = np.stack([vectors[label] for label in labels.tolist()]) if vectors else np.empty((0, 0), np.float32)
    cosines = {one.name: _nearest(memories, rows @ rows[at], at) for at, one in enumerate(memories) if vectors}
    stated = _near_stated(memories, rows, embedder) if vectors else {}
    edges = [Edge(one.cause_id, one.effect_id, "causal", one.similarity, one.confidence) for one in links]
    for part in dict.fromkeys(one.part for one in sorted(memories, key=lambda one: one.chain)):
        chains = [one for one in memories if one.part == part]
        own = [one for one in edges if by_name[one.source_id].part == part or by_name[one.target_id].part == part]
        _report(report, part, chains, own, edges, cosines, stated)
        for kind in dict.fromkeys(one.kind for one in sorted(chains, key=lambda one: one.chain)):
            some = [one for one in chains if one.kind == kind]
            of_kind = [one for one in own if by_name[one.target_id].kind == kind]
            _report(report, f"{part}_{kind}", some, of_kind, edges, cosines, stated, has_targets=False)


def found_links(store: TurnStore, embedder: Embedder, conversation: Conversation) -> list[CausalLink]:
    """Write the turns as memories, and compare each with those before it. What is denied later is left out."""
    for turn in conversation.turns:
        store.writer.write(conversation.name, turn)
    store.engine.maintain()
    reader = FingerprintReader(store.cursor, store.engine, embedder, FingerprintCache(), conversation.name)
    finder = CauseFinder(reader)
    best: dict[tuple[str, str], CausalLink] = {}
    for turn in conversation.turns:
        for one in finder.links(turn.turn_id):
            known = best.get((one.cause_id, one.effect_id))
            if known is None or one.confidence > known.confidence:
                best[one.cause_id, one.effect_id] = one
    return [one for one in best.values() if one.similarity > 0]


def _nearest(memories: Sequence[_Memory], similarities: np.ndarray, at: int) -> list[str]:
    """The names of the memories that are nearest to the one at this place. `similarities`: (n,) of all."""
    order = np.argsort(-similarities, kind="stable").tolist()
    return [memories[place].name for place in order if place != at][:FIRST]


def _near_stated(memories: Sequence[_Memory], rows: np.ndarray, embedder: Embedder) -> dict[str, list[str]]:
    """By each memory that states a cause the names of those nearest to these words. `rows`: the (n, dim) vectors."""
    found = {}
    for at, one in enumerate(memories):
        statements = [stated for stated in read_causes(one.text).statements if not stated.is_denied]
        if causes := [one.text[slice(*stated.cause)] for stated in statements if stated.cause is not None]:
            found[one.name] = _nearest(memories, (embedder.encode(causes) @ rows.T).max(0), at)
    return found


def _report(
    report: Report,
    name: str,
    memories: Sequence[_Memory],
    found: Sequence[Edge],
    edges: Sequence[Edge],
    nearest: dict[str, list[str]],
    near_stated: dict[str, list[str]],
    *,
    has_targets: bool = True,
) -> None:
    """What of the edges that were found is right. An edge over several links of its chain is right too.

    Asked is of each memory for its cause, among the first FIRST and as the very first, and of the last of three or more
    memories for the first, its root.
    """
    places = {one.name: (one.chain, one.place) for one in memories if one.place is not None}
    ends = {(one, places.get(one.source_id), places.get(one.target_id)) for one in found}
    same = [(cause[1], effect[1]) for _, cause, effect in ends if cause and effect and cause[0] == effect[0]]
    right = [1 for cause, effect in same if cause < effect]
    by_place = {place: one for one, place in places.items()}
    stated = [(by_place[chain, place - 1], one) for one, (chain, place) in places.items() if place]
    known = {(one.source_id, one.target_id) for one in edges}
    targets = (PRECISION, DIRECTION, ABDUCTION, GAIN) if has_targets else (None,) * 4
    report.add(f"{name}_edges", len(found), "")
    report.add(f"{name}_precision", _share(len(right), len(found)), "%", targets[0])
    report.add(f"{name}_direction", _share(len(right), len(same)), "%", targets[1])
    report.add(f"{name}_recall", _share(sum(pair in known for pair in stated), len(stated)), "%")
    last = {chain: one for one, (chain, place) in sorted(places.items(), key=lambda each: each[1])}
    roots = [(by_place[chain, 0], one) for chain, one in last.items() if places[one][1] > 1]
    likely = {effect: [one.path.ids[0] for one in abduce(edges, effect, {})] for effect in places}
    found_by_words = sum(cause in near_stated.get(effect, []) for cause, effect in stated)
    report.add(f"{name}_cosine_of_stated", _share(found_by_words, len(stated)), "%", bare=True)
    for pairs, most, suffix, limits in (
        (stated, FIRST, "", targets[2:]),
        (stated, 1, "_first", (None, None)),
        (roots, FIRST, "_root", (None, None)),
    ):
        abduced = _share(sum(cause in likely[effect][:most] for cause, effect in pairs), len(pairs))
        near = _share(sum(cause in nearest.get(effect, [])[:most] for cause, effect in pairs), len(pairs))
        report.add(f"{name}_abduction{suffix}", abduced, "%", limits[0])
        report.add(f"{name}_cosine{suffix}", near, "%", bare=True)
        report.add(f"{name}_gain{suffix}", abduced - near, "points", limits[1])


def _share(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _measure_questions(report: Report, conversations: Iterable[Conversation], embedder: Embedder) -> None:
    """The share of the questions with "why" that find a right turn, and the edges between turns."""
    stated, near, asked, edges, turns = 0, 0, 0, 0, 0
    for conversation in conversations:
        with turn_store(embedder, "text") as store:
            links = found_links(store, embedder, conversation)
            edges, turns = edges + len(links), turns + len(conversation.turns)
            reader = FingerprintReader(store.cursor, store.engine, embedder, FingerprintCache(), conversation.name)
            finder = CauseFinder(reader)
            names = {document_label(conversation.name, turn.turn_id): turn.turn_id for turn in conversation.turns}
            for question in conversation.questions:
                if not _WHY.match(question.text) or not question.turns:
                    continue
                vector, tokens = encode_query(embedder, question.text)
                asked += 1
                live = store.engine.spaces.live
                best = [] if live is None else live.nearest(vector, FIRST).matches
                near += any(names[label] in question.turns for label, _ in best)
                reasons = [] if tokens is None else finder.reasons(question.text, tokens)[:FIRST]
                stated += any(one in question.turns for one in reasons)
    report.add("turns", turns, "")
    report.add("edges", edges, "")
    report.add("why_questions", asked, "")
    report.add("why_by_statement", _share(stated, asked), "%")
    report.add("why_by_cosine", _share(near, asked), "%", bare=True)

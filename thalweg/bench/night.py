"""`thalweg bench night`: what a dream brings to searches that were made again and again.

Of each conversation the questions with several gold turns are asked five times, then a dream joins what was recalled
together (`processors/context_graph/rules/co_recall.py`), makes vectors of the surroundings of all turns and notes what
was asked again and again (`processors/context_graph/read/surroundings.py`), and all questions are asked again: as they
were, without their stop words, and with their words in another order. The control is the same search without the dream.
Then the other questions are asked five times too, and another dream follows: so that a dream which only helps questions
with several answers shows as what it is.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from processors.context_graph.read.surroundings import is_repeated, read_bare, read_repeated, read_surroundings, widened
from processors.context_graph.rules.co_recall import Recall, asked_again, co_recalled
from processors.context_graph.rules.edges import Edge
from processors.context_graph.rules.memories import TOOLSET, query_vector_id
from processors.context_graph.rules.surroundings import REPEATED_QUESTIONS, SURROUNDINGS
from processors.embedding.model import Embedder, encode_documents, encode_query
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.search import search
from storage.search.words.analyzer import STOP_WORDS
from storage.vector_codec import stored_vector
from streams.ids import document_label
from streams.topics import DERIVED
from thalweg.bench.recall_sets import Conversation, Question, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.views import TurnStore, turn_store

CUT = 10
ASKED = 5
BATCH = 16
"""Turns whose surroundings are encoded at once."""
_AT = datetime(2026, 1, 5, 3)
_NIGHT = _AT.replace(tzinfo=UTC)
_PUNCTUATION = "?.,!\"'"
GAIN, LOSS = Target(5.0, at_least=True), Target(-0.5, at_least=True)
Found = dict[str, list[str]]
"""Question -> ids of its first results."""


def _plain(text: str) -> str:
    return text


def _without_stop_words(text: str) -> str:
    words = [word.strip(_PUNCTUATION) for word in text.split()]
    return " ".join(word for word in words if word.lower() not in STOP_WORDS) or text


def _in_another_order(text: str) -> str:
    words = [word.strip(_PUNCTUATION) for word in text.split()]
    return " ".join(sorted(words, key=lambda word: zlib.crc32(f"{word} {text}".encode())))


WORDINGS: Mapping[str, Callable[[str], str]] = {
    "same_words": _plain,
    "no_stop_words": _without_stop_words,
    "another_order": _in_another_order,
}


@dataclass
class _Gains:
    """Points of R@10 that each question gains, by (night, wording, questions) and conversation."""

    points: dict[tuple[str, str, str], list[list[float]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, night: str, wording: str, asked: Sequence[tuple[Question, Sequence[str], Sequence[str]]]) -> None:
        """`asked`: each question with its results before and after."""
        by_kind: dict[str, list[float]] = {"several": [], "one": []}
        for question, before, after in asked:
            gained = 100 * (_recall(question, after) - _recall(question, before))
            by_kind["several" if len(question.turns) > 1 else "one"].append(gained)
        for kind, gains in by_kind.items():
            self.points[night, wording, kind].append(gains)


def measure_night(dataset: str, embedder: Embedder, name: str, questions: int | None = None) -> Report:
    """Ask a data set's questions before and after dreams, and report what R@10 gains."""
    report = Report("night", {"dataset": Path(dataset).name, "embedder": name, "questions": questions or "all"})
    gains, before = _Gains(), defaultdict[str, list[float]](list)
    with turn_store(embedder, "text") as store:
        for conversation in read_set(dataset):
            asked = [question for question in conversation.questions if question.turns][:questions]
            _measure(store, conversation, asked, gains, before)
    for kind, recalls in before.items():
        report.add(f"{kind}_gold_r{CUT}", 100 * float(np.mean(recalls)), "%")
    for (night, wording, kind), conversations in gains.points.items():
        every = [gain for some in conversations for gain in some]
        if not every:
            continue
        target = {"several": GAIN, "one": LOSS}[kind] if (night, wording) == ("asked_several", "same_words") else None
        about = f"{night}_{wording}_{kind}"
        report.add(f"{about}_gain", float(np.mean(every)), "points", target)
        means = [float(np.mean(some)) for some in conversations if some]
        report.add(f"{about}_least", min(means), "points")
        report.add(f"{about}_most", max(means), "points")
        report.add(f"{about}_better", sum(gain > 0 for gain in every), "questions")
        report.add(f"{about}_worse", sum(gain < 0 for gain in every), "questions")
    return report


def _measure(
    store: TurnStore,
    conversation: Conversation,
    asked: Sequence[Question],
    gains: _Gains,
    recalls: dict[str, list[float]],
) -> None:
    store.asker(conversation)
    control = {wording: _ask(store, conversation.name, asked, say) for wording, say in WORDINGS.items()}
    several = [question for question in asked if len(question.turns) > 1]
    for question in asked:
        kind = "several" if len(question.turns) > 1 else "one"
        recalls[kind].append(_recall(question, control["same_words"][question.text]))
    edges: list[Edge] = []
    for night, repeated in (("asked_several", several), ("asked_all", asked)):
        found = _ask(store, conversation.name, repeated, _plain)
        edges += _dream(store, conversation.name, found, edges)
        for wording, say in WORDINGS.items():
            after = _ask(store, conversation.name, asked, say)
            rows = [(one, control[wording][one.text], after[one.text]) for one in asked]
            gains.add(night, wording, rows)


def _ask(store: TurnStore, namespace: str, questions: Sequence[Question], say: Callable[[str], str]) -> Found:
    """The first results of each question, in these words, as `search_graph` finds them."""
    found: Found = {}
    space = store.embedder.info.space
    for question in questions:
        text = say(question.text)
        vector, tokens = encode_query(store.embedder, text)
        query = Query(text, vector, Filter(namespace, toolsets=(TOOLSET,)), CUT, tokens, space)
        if is_repeated(store.cursor, namespace, text, lambda table, key: True):
            query = widened(query)
        found[question.text] = [hit.record_id for hit in search(store.cursor, store.engine, query).hits]
    return found


def _dream(store: TurnStore, namespace: str, found: Found, edges: Sequence[Edge]) -> list[Edge]:
    """What a dream makes of it that each question was asked ASKED times; the edges that it made."""
    recalls = [
        Recall(query_vector_id(namespace, text), tuple(ids), (0.0,) * len(ids), _AT)
        for text, ids in found.items()
        for _ in range(ASKED)
    ]
    changes = co_recalled(recalls, edges)
    event_id = f"night-{len(edges)}"
    for change in changes:
        _keep(store, "context_edge_changes", namespace, event_id, asdict(change) | {"changed_at": _NIGHT})
    for query_id in asked_again(recalls, read_repeated(store.cursor, namespace)):
        _keep(store, REPEATED_QUESTIONS, namespace, event_id, {"query_vector_id": query_id, "repeated_at": _NIGHT})
    _surround(store, namespace, event_id)
    store.engine.apply((), ())
    return [Edge(one.source_id, one.target_id, one.kind, one.weight, one.confidence) for one in changes]


def _surround(store: TurnStore, namespace: str, event_id: str) -> None:
    """Make the vectors of surroundings that turns have not."""
    space, turns = store.embedder.info.space, store.engine.records.counts(store.cursor)["documents"]
    bare = read_bare(store.cursor, namespace, datetime.max, space, turns)
    for start in range(0, len(bare), BATCH):
        found = read_surroundings(store.cursor, store.engine, namespace, bare[start : start + BATCH])
        vectors = encode_documents(store.embedder, [one.text for one in found])
        for one, encoded in zip(found, vectors, strict=True):
            label, vector = document_label(namespace, one.memory_id), encoded if one.vector is None else one.vector
            row = {"memory_id": one.memory_id, "label": label, "space": space, "vector": stored_vector(vector)}
            _keep(store, SURROUNDINGS, namespace, event_id, row | {"embedded_at": _NIGHT})


def _keep(store: TurnStore, table: str, namespace: str, event_id: str, row: Mapping[str, object]) -> None:
    origin = {"topic": DERIVED.name, "partition": 0, "offset": 0, "event_id": event_id}
    whole = {**row, "dream_id": "night", "namespace": namespace, **origin}
    names = ", ".join(f'"{column}"' for column in whole)
    store.cursor.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(whole))})", list(whole.values()))


def _recall(question: Question, found: Sequence[str]) -> float:
    return len(question.turns.intersection(found)) / len(question.turns)

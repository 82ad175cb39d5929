"""`thalweg bench recall`: the share of the right turns found, beside plain BM25 and dense search.

Each conversation of a data set is a namespace of one store, written as the materialiser writes; each question is
asked of its own. R@k = |first k and gold| / |gold|; MRR = 1 / rank of the first gold hit among the first 10.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from processors.embedding.model import Embedder, encode_query
from processors.memory.stages.embed import encode_passages, encode_texts
from processors.memory.vector_facts import decode_vector
from storage.database import Database
from storage.migrate import migrate
from storage.search.entries import DocumentEntry, PassageOf, VectorEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.records.passages import EMBEDDED_PASSAGES, FIRST_PASSAGES, passage_label, split_passages
from storage.search.search import search
from storage.search.sessions import search_sessions
from storage.writer import Changes, Writer
from streams.clock import SystemClock
from streams.errors import Refused
from streams.ids import document_label
from streams.topics import DERIVED, MEMORY
from thalweg.bench.recall_sets import Conversation, Question, Turn, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import scratch_directory
from thalweg.process.model import load_model
from thalweg.settings import load

DEPTH = 10
CUTS = (5, 10)
QUERY_P95 = Target(30.0)
TARGETS = {
    ("session", 5): Target(92.0, at_least=True),
    ("session", 10): Target(97.0, at_least=True),
    ("turn", 5): Target(75.0, at_least=True),
    ("turn", 10): Target(85.0, at_least=True),
}
"""For LoCoMo's questions as a whole, with the default model."""
Ranked = list[str]


def load_for_recall(name: str) -> Embedder:
    """The embedder, from the data directory's cache when it is there.

    Raises Refused for `none`: there is nothing to compare.
    """
    settings = load({})
    embedder = load_model(settings, name)
    if embedder is None:
        raise Refused("Recall is measured with an embedder: minilm, hashing, or the name of a model.")
    return embedder


def measure_recall(
    dataset: str, embedder: Embedder, name: str, questions: int | None = None, embedded: float = 1.0
) -> Report:
    """Write the data set turn by turn, ask its questions each way, and report the recall.

    `questions`: at most this many, None for all; `embedded`: the share of the turns that have vectors, evenly spread; 0
    for words alone.
    """
    report = Report(
        "recall",
        {"dataset": Path(dataset).name, "embedder": name, "questions": questions or "all", "embedded": embedded},
    )
    results = _Results()
    with scratch_directory() as directory:
        database = Database(directory)
        try:
            migrate(database.cursor(), SystemClock().now())
            engine = IndexSet(directory / "indexes", database.cursor, embedder.info)
            engine.open({})
            store = TurnWriter(Writer(database), engine, embedder)
            cursor = database.cursor()
            for conversation in read_set(dataset):
                if questions is not None and results.questions >= questions:
                    break
                for number, turn in enumerate(conversation.turns):
                    store.write(
                        conversation.name, turn, is_embedded=int((number + 1) * embedded) > int(number * embedded)
                    )
                engine.maintain()
                rest = None if questions is None else questions - results.questions
                _ask(conversation, conversation.questions[:rest], engine, cursor, embedder, results)
            engine.close(save=False)
        finally:
            database.close()
    is_locomo = any(kind == "multi-hop" for _, _, kind in results.scores)
    _report(report, results, store.durations_ms, TARGETS if is_locomo and embedded == 1 else {})
    return report


@dataclass
class _Results:
    """`scores`: (ranking, level, kind of question) -> a row of R@5, R@10, MRR a question."""

    scores: dict[tuple[str, str, str], list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))
    durations_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    questions: int = 0

    def score(self, ranking: str, level: str, question: Question, ranked: Ranked, gold: frozenset[str]) -> None:
        if gold:
            row = score(ranked, gold)
            for kind in ("all", question.kind):
                self.scores[ranking, level, kind].append(row)


def score(ranked: Sequence[str], gold: frozenset[str]) -> tuple[float, ...]:
    """R@5, R@10 and the reciprocal rank of the first gold hit."""
    recalls = [len(gold.intersection(ranked[:cut])) / len(gold) for cut in CUTS]
    return (*recalls, next((1 / rank for rank, item in enumerate(ranked[:DEPTH], 1) if item in gold), 0.0))


class TurnWriter:
    """Writes turns one at a time, as an agent does, and notes how long each took.

    A turn is encoded, committed and searchable before the next one.
    """

    def __init__(
        self, writer: Writer, engine: IndexSet, embedder: Embedder, kind: tuple[str, str] = ("bench", "turn")
    ) -> None:
        """`kind`: toolset and kind of what is written."""
        self._toolset, self._kind = kind
        self._writer, self._engine, self._embedder = writer, engine, embedder
        self._offset = 0
        self.durations_ms: list[float] = []

    def write(self, namespace: str, turn: Turn, *, is_embedded: bool = True) -> None:
        started = time.perf_counter()
        label, moment = document_label(namespace, turn.turn_id), turn.at.replace(tzinfo=None)
        about = {
            "label": label,
            "record_id": turn.turn_id,
            "toolset": self._toolset,
            "kind": self._kind,
            "session_id": turn.session,
            "domain": None,
        }
        document = about | {"text": turn.text, "created_at": moment, **self._origin(namespace, MEMORY.name)}
        rows = list(self._embedded(namespace, turn, label)) if is_embedded else []
        tables = {"documents": [document], "embeddings": rows[:1], "passages": rows[1:]}
        self._writer.commit(Changes(appended={table: made for table, made in tables.items() if made}))
        entries = [_entry(row) for row in rows]
        self._engine.apply([DocumentEntry(label, namespace, turn.text, turn.session, moment)], entries)
        self._offset += 1
        self.durations_ms.append((time.perf_counter() - started) * 1000)

    def _embedded(self, namespace: str, turn: Turn, label: int) -> Iterator[dict[str, Any]]:
        encoded = encode_texts(self._embedder, [turn.text])[turn.text]
        rest = split_passages(turn.text)[FIRST_PASSAGES:EMBEDDED_PASSAGES]
        passages = [*encoded.get("first", ()), *(encode_passages(self._embedder, turn.text, rest) if rest else ())]
        return self._rows(namespace, turn, label, encoded, passages)

    def _rows(
        self, namespace: str, turn: Turn, label: int, encoded: dict[str, Any], passages: Sequence[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        info, origin = self._embedder.info, self._origin(namespace, DERIVED.name)
        model = {"space": info.space, "record_id": turn.turn_id, "model_id": info.model_id, "dim": info.dim, **origin}
        about = {
            "label": label,
            "dtype": info.dtype,
            "is_trained": info.trained,
            "passages": encoded.get("passages"),
            **model,
        }
        yield about | {"vector": decode_vector(encoded["vector"]), "tokens": encoded.get("tokens")}
        for passage in passages:
            number, start, end = passage["passage"].values()
            place = {"number": number, "char_start": start, "char_end": end}
            numbers = {"vector": decode_vector(passage["vector"]), "tokens": passage.get("tokens")}
            yield {"label": passage_label(label, number), "owner_label": label, **model, **place, **numbers}

    def _origin(self, namespace: str, topic: str) -> dict[str, Any]:
        return {
            "namespace": namespace,
            "topic": topic,
            "partition": 0,
            "offset": self._offset,
            "event_id": f"event-{self._offset}",
        }


def _entry(row: dict[str, Any]) -> VectorEntry:
    place = (
        PassageOf(row["owner_label"], row["number"], row["char_start"], row["char_end"])
        if "owner_label" in row
        else None
    )
    return VectorEntry(row["label"], row["vector"], row["space"], row["model_id"], row["tokens"], place)


def _ask(
    conversation: Conversation,
    questions: Sequence[Question],
    engine: IndexSet,
    cursor: duckdb.DuckDBPyConnection,
    embedder: Embedder,
    results: _Results,
) -> None:
    chosen = Filter(conversation.name)
    sessions = {turn.turn_id: turn.session for turn in conversation.turns}
    turns = {document_label(conversation.name, turn.turn_id): turn.turn_id for turn in conversation.turns}
    for question in questions:
        started = time.perf_counter()
        vector, tokens = encode_query(embedder, question.text)
        encoded = time.perf_counter()
        hits = search(cursor, engine, Query(question.text, vector, chosen, DEPTH, tokens)).hits
        results.durations_ms["query"].append((time.perf_counter() - started) * 1000)
        results.durations_ms["query_encode"].append((encoded - started) * 1000)
        ranked = {"thalweg": [hit.record_id for hit in hits]}
        allowed = engine.records.allowed(cursor, chosen)
        by_words = engine.words.search(cursor, question.text, allowed, DEPTH).matches
        ranked["bm25"] = [turns[label] for label, _ in by_words]
        ranked["dense"] = [turns[label] for label, _ in engine.space().nearest(vector, DEPTH, allowed).matches]
        by_session = {
            way: list(dict.fromkeys(name for turn in order if (name := sessions[turn])))
            for way, order in ranked.items()
        }
        started = time.perf_counter()
        sessions_found = search_sessions(cursor, engine, Query(question.text, vector, chosen, DEPTH, tokens))
        results.durations_ms["query_sessions"].append((time.perf_counter() - started) * 1000)
        by_session["thalweg"] = [hit.session_id for hit in sessions_found.sessions]
        for way, order in ranked.items():
            results.score(way, "turn", question, order, question.turns)
            results.score(way, "session", question, by_session[way], question.sessions)
        results.questions += 1


def _report(
    report: Report, results: _Results, stored_ms: Sequence[float], targets: Mapping[tuple[str, int], Target]
) -> None:
    for way, level, kind in sorted(results.scores, key=lambda key: (key[0] != "thalweg", key[2] != "all")):
        rows = results.scores[way, level, kind]
        means = np.mean(rows, axis=0)
        for cut, value in zip(CUTS, means, strict=False):
            wanted = targets.get((level, cut)) if (way, kind) == ("thalweg", "all") else None
            report.add(f"{way}_{level}_{kind}_r{cut}", 100 * float(value), "%", wanted, bare=way != "thalweg")
        report.add(f"{way}_{level}_{kind}_mrr", float(means[-1]), "", bare=way != "thalweg")
    report.add("questions", results.questions, "")
    report.add_quantiles("store", stored_ms)
    for name, durations in results.durations_ms.items():
        report.add_quantiles(name, durations, p95=QUERY_P95 if name == "query" else None)

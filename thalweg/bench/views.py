"""The thirteen views: how well each ranks turns of conversations, and what they cost.

Recall is of each view alone, of their mean, and of a weighted mix whose weights are chosen on the other conversations.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

import duckdb
import numpy as np

from mcp_ingress.toolsets.context_graph.embedders import views_of, with_models
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.read.view_models import ViewInput
from processors.context_graph.rules.memories import TOOLSET
from processors.context_graph.rules.views.alignment import alignments, view_alignments
from processors.context_graph.rules.views.catalogue import VIEWS, View
from processors.context_graph.rules.views.centre import centre
from processors.context_graph.rules.views.fingerprint import Fingerprint
from processors.context_graph.rules.views.outputs import common
from processors.embedding.model import Embedder, encode_query
from processors.embedding.query import EncodedQuery
from processors.embedding.view_model import ViewEncoder
from storage.database import Database
from storage.migrate import migrate
from storage.search.index_set import IndexSet
from storage.search.records.filter import Filter
from storage.search.vectors.vector_file import text_digest
from storage.search.vectors.view_spaces import ViewSpaces
from storage.writer import Writer
from streams.clock import SystemClock
from streams.ids import document_label
from thalweg.bench.functions import read_functions
from thalweg.bench.recall import TurnWriter
from thalweg.bench.recall_sets import Conversation, Question, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import scratch_directory
from thalweg.views.filling import BATCH, add_vectors
from thalweg.views.image_folder import ImageFolder

CUT = 10
WRONG_LETTERS = 0.1
CANDIDATES = 400
CENTRE = 50
ROUNDS = 20
VIEWS_MS = Target(35.0)
E7_GAIN = Target(5.0, at_least=True)
WORDS = "the river bends around a hill because its bed of clay gives way and so every spring the farmers move"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_STEPS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question's (n, 13) alignments with the turns, whether each of (n,) is gold, and BM25's ranking."""

    views: np.ndarray
    gold: np.ndarray
    keywords: list[int]


def measure_views(
    dataset: str,
    embedder: Embedder,
    name: str,
    questions: int | None = None,
    models: Mapping[int, ViewEncoder] = MappingProxyType({}),
) -> Report:
    """Write a data set, align its questions with the turns of their conversation, report recall and cost.

    `models`: of views that have one of their own; what these take is of all turns.
    """
    report = Report("views", {"dataset": Path(dataset).name, "embedder": name, "questions": questions or "all"})
    asked: list[list[_Asked]] = []
    typed: list[list[_Asked]] = []
    with turn_store(embedder, "text") as store:
        own = OwnModels(store.engine.views, models)
        for conversation in read_set(dataset):
            own.encode(conversation)
            of = store.asker(conversation)
            chosen = [one for one in conversation.questions if one.turns][:questions]
            asked.append([of.ask(one, one.text) for one in chosen])
            typed.append([of.ask(one, with_typos(one.text)) for one in chosen])
            if len(asked) == 1:
                _time(report, of)
        made = with_models(views_of(embedder), store.engine.views, embedder.info.space)
        own.report(report)
    report.add("available_views", sum(view.available for view in made), "")
    _report(report, made, asked, typed)
    return report


def measure_functions(directory: Path, embedder: Embedder, name: str) -> Report:
    """Store the functions of transcripts, ask for some by the words of their names, with E7 and without."""
    functions = read_functions(directory)
    report = Report("views", {"functions": directory.name, "embedder": name, "stored": len(functions.turns)})
    with turn_store(embedder, "code") as store:
        of = store.asker(functions)
        asked = [of.ask(one, one.text) for one in functions.questions]
    report.add("questions", len(asked), "")
    every, content = np.ones(len(VIEWS)), np.array([view.basis != "time" for view in VIEWS], float)
    code = np.array([view.embedder == 7 for view in VIEWS])
    for label, weights in (
        ("E7", code.astype(float)),
        ("E12", np.eye(len(VIEWS))[11]),
        ("mean", every),
        ("mean_without_E7", every * ~code),
        ("content", content),
        ("content_without_E7", content * ~code),
    ):
        report.add(f"{label}_r10", _recall(asked, weights), "%")
    report.add("bm25_r10", _keywords(asked), "%", bare=True)
    report.add("gain_by_E7", _recall(asked, every) - _recall(asked, every * ~code), "points", E7_GAIN)
    return report


class OwnModels:
    """The models of views in a bench: what they encode serves at once, and what that took is counted."""

    def __init__(self, views: ViewSpaces, models: Mapping[int, ViewEncoder]) -> None:
        self._models = models
        self._spaces = {view: views.open(view, model) for view, model in models.items()}
        self._cpu_s = dict.fromkeys(models, 0.0)
        self._empty = {view: space.file.size for view, space in self._spaces.items()}
        for view, space in self._spaces.items():
            views.serve(view, space)

    def encode(self, conversation: Conversation) -> None:
        """Encode all turns by every model, BATCH at a time."""
        turns = conversation.turns
        for view, space in self._spaces.items():
            began = time.process_time()
            for start in range(0, len(turns), BATCH):
                inputs = [
                    ViewInput(document_label(conversation.name, turn.turn_id), turn.text, text_digest(turn.text))
                    for turn in turns[start : start + BATCH]
                ]
                add_vectors(space, self._models[view], inputs, ImageFolder(None))
            self._cpu_s[view] += time.process_time() - began

    def report(self, report: Report) -> None:
        """Bytes on the disk and CPU time of a memory, by view."""
        for view, space in self._spaces.items():
            count = max(1, len(space.file))
            report.add(f"E{view}_bytes_a_memory", (space.file.size - self._empty[view]) / count, "bytes")
            report.add(f"E{view}_cpu_ms_a_memory", 1000 * self._cpu_s[view] / count, "ms")


@dataclass(frozen=True)
class TurnStore:
    """A store in a scratch directory, where all is written as memories of one modality."""

    cursor: duckdb.DuckDBPyConnection
    engine: IndexSet
    writer: TurnWriter
    embedder: Embedder

    def asker(self, conversation: Conversation) -> QuestionAsker:
        """Write all turns; what then asks about them."""
        for turn in conversation.turns:
            self.writer.write(conversation.name, turn)
        self.engine.maintain()
        return QuestionAsker(self.cursor, self.engine, self.embedder, conversation)


@contextmanager
def turn_store(embedder: Embedder, modality: str) -> Iterator[TurnStore]:
    with scratch_directory() as directory:
        database = Database(directory)
        try:
            migrate(database.cursor(), SystemClock().now())
            engine = IndexSet(directory / "indexes", database.cursor, embedder.info)
            engine.open({})
            writer = TurnWriter(Writer(database), engine, embedder, (TOOLSET, modality))
            yield TurnStore(database.cursor(), engine, writer, embedder)
            engine.close(save=False)
        finally:
            database.close()


class QuestionAsker:
    """Aligns questions with all turns of a conversation."""

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, engine: IndexSet, embedder: Embedder, conversation: Conversation
    ) -> None:
        self._cursor, self._engine, self._embedder = cursor, engine, embedder
        self.reader = FingerprintReader(cursor, engine, embedder, FingerprintCache(), conversation.name)
        self.ids = [turn.turn_id for turn in conversation.turns]
        self._at = conversation.turns[-1].at + timedelta(hours=1)
        self._namespace = conversation.name
        self.memories = [one for one in self.reader.stored(self.ids) if one is not None]

    def query(self, text: str) -> Fingerprint:
        """The fingerprint of a question, asked an hour after the last turn."""
        vector, tokens = encode_query(self._embedder, text)
        encoded = EncodedQuery(vector, tokens, self._embedder.info.space)
        return self.reader.of_text(self.reader.unencoded(text, self._at), encoded)

    def ask(self, question: Question, text: str) -> _Asked:
        """The question in these words."""
        views = alignments(self.query(text), self.memories)
        allowed = self._engine.records.allowed(self._cursor, Filter(self._namespace))
        found = self._engine.words.search(self._cursor, text, allowed, CUT).matches
        places = {document_label(self._namespace, one): place for place, one in enumerate(self.ids)}
        return _Asked(
            views, np.array([one in question.turns for one in self.ids], bool), [places[label] for label, _ in found]
        )


def with_typos(text: str) -> str:
    """The text with a tenth of its letters replaced by others, the same ones in each run."""
    letters = []
    for place, letter in enumerate(text):
        drawn = zlib.crc32(f"{place} {text}".encode())
        is_wrong = letter.isalpha() and drawn % 1000 < 1000 * WRONG_LETTERS
        letters.append(_LETTERS[drawn // 1000 % len(_LETTERS)] if is_wrong else letter)
    return "".join(letters)


def _recall(asked: Sequence[_Asked], weights: np.ndarray) -> float:
    """Percent of gold among the first CUT, by the weighted mean of z-scores."""
    return 100 * float(np.mean([_found(one, np.argsort(-_mixed(one.views, weights), kind="stable")) for one in asked]))


def _found(one: _Asked, order: np.ndarray | list[int]) -> float:
    return float(one.gold[order[:CUT]].sum() / one.gold.sum())


def _mixed(views: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n,) the weighted sum of the columns at mean 0 and deviation 1; NaN counts as the mean."""
    used = views[:, weights > 0].astype(np.float64)
    mean = np.nanmean(np.where(np.isnan(used).all(0), 0, used), axis=0)
    spread = np.where(np.isnan(used), 0, used - mean)
    deviation = np.sqrt((spread**2).mean(0)) + 1e-9
    mixed: np.ndarray = (spread / deviation) @ weights[weights > 0]
    return mixed


def chosen_weights(asked: Sequence[_Asked]) -> np.ndarray:
    """Weights by coordinate ascent from E12 and E13, each step kept when recall rises."""
    weights = np.zeros(len(VIEWS))
    weights[[11, 12]] = 1.0
    best = _recall(asked, weights)
    for _ in range(2):
        for number in range(len(VIEWS)):
            for step in _STEPS:
                tried = weights.copy()
                tried[number] = step
                if tried.any() and (reached := _recall(asked, tried)) > best + 1e-9:
                    weights, best = tried, reached
    return weights


def _report(
    report: Report, made: Sequence[View], asked: Sequence[Sequence[_Asked]], typed: Sequence[Sequence[_Asked]]
) -> None:
    every = [one for some in asked for one in some]
    every_typed = [one for some in typed for one in some]
    report.add("questions", len(every), "")
    single = np.eye(len(VIEWS))
    for number, view in enumerate(made):
        if view.available:  # the others rank nothing
            report.add(f"{view.label}_r10", _recall(every, single[number]), "%")
    report.add("bm25_r10", _keywords(every), "%", bare=True)
    report.add("mean_r10", _recall(every, np.ones(len(VIEWS))), "%")
    if len(asked) > 1:
        for held_out, own in enumerate(asked):
            weights = chosen_weights([one for number, some in enumerate(asked) if number != held_out for one in some])
            report.settings[f"weights_{held_out}"] = {
                view.label: float(weight) for view, weight in zip(VIEWS, weights, strict=True) if weight
            }
            report.add(f"mix_{held_out}_r10", _recall(own, weights), "%")
    report.add("E9_with_typos_r10", _recall(every_typed, single[8]), "%")
    if made[11].available:
        report.add("E12_with_typos_r10", _recall(every_typed, single[11]), "%")
    report.add("bm25_with_typos_r10", _keywords(every_typed), "%", bare=True)
    lost = _keywords(every) - _keywords(every_typed)
    fall = _recall(every, single[8]) - _recall(every_typed, single[8])
    report.add("E9_fall_by_typos", fall, "points", Target(lost / 2))


def _keywords(asked: Sequence[_Asked]) -> float:
    return 100 * float(np.mean([_found(one, one.keywords) for one in asked]))


def _time(report: Report, of: QuestionAsker) -> None:
    """Time a text of 24 words and one of 256 pieces, with the model's pass, and CANDIDATES alignments."""
    for label, words in (("24_words", 24), ("256_pieces", 220)):
        durations = []
        for number in range(ROUNDS):
            text = " ".join([str(number), *(WORDS.split() * 12)[: words - 1]])
            started = time.perf_counter()
            of.query(text)
            durations.append((time.perf_counter() - started) * 1000)
        report.add_quantiles(f"views_of_{label}", durations, p95=VIEWS_MS)
    query, memories = of.query("what bends around the hill, and why?"), (of.memories * CANDIDATES)[:CANDIDATES]
    goal = centre(of.memories[:CENTRE])
    ids = (of.ids * CANDIDATES)[:CANDIDATES]
    parts: Mapping[str, Callable[[], object]] = {
        "read_400_first": lambda: replace(of.reader, cache=FingerprintCache()).stored(ids),
        "read_400": lambda: of.reader.stored(ids),
        "align_400": lambda: alignments(query, memories),
        "align_400_with_centre": lambda: alignments(goal, memories),
        "centre_of_50": lambda: centre(of.memories[:CENTRE]),
        "common_space": lambda: common(query, query.moment.at),
    }
    for name, run in parts.items():
        durations = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            run()
            durations.append((time.perf_counter() - started) * 1000)
        report.add_quantiles(name, durations)
    for view in VIEWS:
        started = time.perf_counter()
        for _ in range(ROUNDS):
            view_alignments(view.embedder, query, memories)
        report.add(f"{view.label}_align_400_ms", (time.perf_counter() - started) * 1000 / ROUNDS, "ms")

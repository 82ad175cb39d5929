"""`thalweg bench dials`: what each modulator makes of the answers to a data set's questions.

The turns of each conversation are written as memories, and each question is asked as `search_graph` asks, at the levels
named: they do not decay here. With serotonin at 0 the first view alone says the order, at 1 all that compare what is
said. With dopamine the answer's sessions and the results that stand behind it are counted. With noradrenaline as a
search without a row raises it, the questions are counted that such a search answers, and that it answers then.

A follow-up is a question without the names of those who speak, asked after the turn before its first answer was
broadcast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from processors.context_graph.read.attention import Attention, attended
from processors.context_graph.read.nearness import nearness_of
from processors.context_graph.rules.memories import TOOLSET
from processors.context_graph.rules.modulators import MISSED_NORADRENALINE, NORADRENALINE, Levels
from processors.embedding.model import Embedder, encode_query
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.records.hits import SearchHit
from storage.search.records.speakers import speaker_of
from storage.search.search import search
from thalweg.bench.recall_sets import Conversation, Question, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.views import QuestionAsker, TurnStore, turn_store

FIRST = 10
LEAST_SIMILARITY = 0.7
LATER_S = 5.0
"""Until an agent asks again."""
TURNED, FOLLOWED = Target(15.0, at_least=True), Target(3.0, at_least=True)
SEROTONIN, DOPAMINE = (0.0, 0.25, 0.5, 0.75, 1.0), (1.0, 2.0, 3.0, 4.0, 5.0)


def measure_dials(dataset: str, embedder: Embedder, name: str) -> Report:
    """R@10, results and sessions at each level, for each conversation. `name`: of the embedder."""
    report = Report("dials", {"dataset": dataset.rpartition("/")[2], "embedder": name})
    for conversation in read_set(dataset):
        with turn_store(embedder, "text") as store:
            asker = store.asker(conversation)
            asked = [_TurnedQuestion(store, asker, conversation, question) for question in conversation.questions]
            _report(report, conversation.name, [one for one in asked if one.question.turns])
            followed = [
                (_TurnedQuestion(store, asker, conversation, question), before)
                for question, before in follow_ups(conversation)
            ]
            _report_broadcast(report, conversation.name, followed)
    return report


def follow_ups(conversation: Conversation) -> Iterator[tuple[Question, str]]:
    """Each question without the speakers' names, and the id of the turn before its first answer."""
    names = {name for turn in conversation.turns if (name := speaker_of(turn.text)) is not None}
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})(?:['’]s)?\b\s*", re.IGNORECASE)
    pairs = [(one, other) for one, other in pairwise(conversation.turns) if one.session == other.session is not None]
    before = {other.turn_id: one.turn_id for one, other in pairs}
    places = {turn.turn_id: place for place, turn in enumerate(conversation.turns)}
    for question in conversation.questions:
        first = min(question.turns, key=places.__getitem__, default=None)
        if names and first in before:
            yield replace(question, text=named.sub("", question.text)), before[first]


class _TurnedQuestion:
    """A question, what the engine finds for it, and what is made of that at other levels."""

    def __init__(self, store: TurnStore, asker: QuestionAsker, conversation: Conversation, question: Question) -> None:
        vector, tokens = encode_query(store.embedder, question.text)
        chosen = Filter(conversation.name, toolsets=(TOOLSET,))
        query = Query(question.text, vector, chosen, FIRST, tokens, store.embedder.info.space)
        away = Attention(Levels(serotonin=0.0)).deep(query)
        self.question = question
        self.hits = search(store.cursor, store.engine, away).hits
        near = nearness_of(store.engine, query, [hit.label for hit in self.hits])
        self.similarities = np.array([near[hit.label].similarity for hit in self.hits])
        self._reader, self._query = asker.reader, asker.query(question.text)

    def at(self, attention: Attention) -> tuple[Sequence[SearchHit], float | None]:
        """The first hits that attention gives, and how many stand behind the answer."""
        hits, behind = attended(self._reader, attention, self.hits, lambda: self._query)
        return hits[:FIRST], behind

    def recall(self, attention: Attention) -> float:
        """The share of the gold turns among the first hits, in percent."""
        found = {hit.record_id for hit in self.at(attention)[0]}
        return 100 * len(found & self.question.turns) / len(self.question.turns)

    def answers(self, least: float) -> bool:
        """Whether a row is similar enough."""
        return bool((self.similarities >= least).any())


def _report(report: Report, name: str, asked: Sequence[_TurnedQuestion]) -> None:
    recalls = {
        level: float(np.mean([one.recall(Attention(Levels(serotonin=level))) for one in asked])) for level in SEROTONIN
    }
    for level, recall in recalls.items():
        report.add(f"{name}_serotonin_{level:g}_recall", recall, "%")
    report.add(f"{name}_serotonin_0_to_1", recalls[1.0] - recalls[0.0], "points", TURNED)
    for level in DOPAMINE:
        found = [one.at(Attention(Levels(dopamine=level))) for one in asked]
        sessions = [len({hit.session_id for hit in hits}) for hits, _ in found]
        behind = [count for _, count in found if count is not None]
        report.add(f"{name}_dopamine_{level:g}_sessions", float(np.mean(sessions)), "sessions")
        if behind:
            report.add(f"{name}_dopamine_{level:g}_behind", float(np.mean(behind)), "results")
    raised = replace(Levels(), noradrenaline=NORADRENALINE.baseline + MISSED_NORADRENALINE)
    empty = [one for one in asked if not one.answers(LEAST_SIMILARITY)]
    report.add(f"{name}_empty", 100 * len(empty) / len(asked), "%")
    for label, levels in (("at_once", raised), ("later", raised.later(LATER_S))):
        least = Attention(levels).near_enough(LEAST_SIMILARITY)
        answered = sum(one.answers(least) for one in empty)
        report.add(f"{name}_answered_{label}", 100 * answered / max(1, len(empty)), "%")


def _report_broadcast(report: Report, name: str, asked: Sequence[tuple[_TurnedQuestion, str]]) -> None:
    if not asked:
        return
    alone = float(np.mean([one.recall(Attention()) for one, _ in asked]))
    after = float(np.mean([one.recall(Attention(broadcast_id=before)) for one, before in asked]))
    report.add(f"{name}_follow_ups", len(asked), "")
    report.add(f"{name}_follow_up_recall", alone, "%")
    report.add(f"{name}_follow_up_recall_after_broadcast", after, "%")
    report.add(f"{name}_broadcast_gain", after - alone, "points", FOLLOWED)

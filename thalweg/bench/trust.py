"""`thalweg bench trust`: whether the relevance of a row is the probability that it is right.

Each conversation of the data sets is written to a store, and its questions are asked as `search_graph` asks. A row is
right when it is one of the turns that answer. What was never said are questions of other conversations, and those that
a bundled set has for it. Reported are, for each conversation, the expected calibration error over ten bins, rows near
0.7, the first rows, and how often an answer says `nothing_relevant`, rightly and wrongly.

Stores of a few turns of a conversation are asked, too (`_few_`): what is in them, what another one has, a rare word
that they have, and one that they lack.

`--fit` fits the weights, too: for each conversation on all others, and on all together. The bundled weights are fitted
on the bundled sets alone: what is measured on other sets is unseen.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from processors.context_graph.read.nearness import nearness_of
from processors.context_graph.rules.calibration import OFFSETS, ece_of, fitted
from processors.context_graph.rules.memories import TOOLSET
from processors.embedding.model import Embedder, encode_query
from processors.memory.rules.relevance import FIRST, WEIGHTS, evidence_of, is_nothing
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.search import search
from thalweg.bench.recall_sets import BUILT_IN, Conversation, Question, Turn, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.views import TurnStore, turn_store

BUNDLED = "bundled"
ECE, CAUGHT = Target(0.08), Target(80.0, at_least=True)
NEVER_ASKED = 200
NEVER_SHARE = 0.3
"""What questions on what was never said count in a fit, of all questions of a conversation."""
SAME_MATTER = frozenset({"messages", "notes"})
"""Both are made of the same texts: a question of the one is answered by the other."""
JUDGED = 400
FEW, FEW_STORES = (3, 15), 100
"""Turns of a small store, and how many there are of a conversation."""
RARE = 3
"""In at most this many turns of all conversations a rare word stands."""
RIDGE = 1e-4
ROUNDS = 60
_SEED = 1


@dataclass(frozen=True, slots=True)
class AskedRows:
    """The (n, 4) evidence on the rows of a question (1, late, ahead, ln rank), and (n,) which are right."""

    conversation: str
    kind: str
    evidence: np.ndarray
    is_right: np.ndarray
    similarities: np.ndarray
    is_few: bool = False
    """Whether a store of a few turns was asked."""

    @property
    def is_never(self) -> bool:
        """Whether it is about what was never said."""
        return self.kind.startswith("never")

    def relevance(self, weights: np.ndarray) -> np.ndarray:
        """(n,) by these weights."""
        return np.asarray(1 / (1 + np.exp(-(self.evidence @ weights))))


def measure_trust(dataset: str, embedder: Embedder, name: str, *, fit: bool = False) -> Report:
    """Ask all questions, and report how far relevance can be trusted. `name`: of the embedder."""
    report = Report("trust", {"dataset": Path(dataset).name, "embedder": name, "fit": fit})
    everything = list(_answers(dataset, embedder))
    answers = [each for each in everything if not each.is_few]
    names = list(dict.fromkeys(each.conversation for each in answers))
    for conversation in names:
        own = [each for each in answers if each.conversation == conversation]
        others = [each for each in answers if each.conversation != conversation]
        weights = fitted_weights(others) if fit and others else np.array(WEIGHTS)
        _report(report, conversation, own, weights)
        few = [each for each in everything if each.is_few and each.conversation == conversation]
        _report_few(report, f"{conversation}_few", few, weights)
    if fit:
        for label, value in zip(("one", "late", "ahead", "ln_rank"), fitted_weights(answers), strict=True):
            report.add(f"weight_{label}", float(value), "")
    for conversation in names[1:]:
        judged = [each for each in answers if each.conversation == names[0] and not each.is_never]
        asked = [each for each in answers if each.conversation == conversation and not each.is_never]
        _report_judging(report, f"{names[0]}_to_{conversation}", judged, asked)
    return report


def _answers(dataset: str, embedder: Embedder) -> Iterator[AskedRows]:
    sets = BUILT_IN if dataset == BUNDLED else (dataset,)
    conversations = [conversation for each in sets for conversation in read_set(each)]
    words = Counter(word for each in conversations for turn in each.turns for word in _words(turn))
    rare = [word for word, turns in words.items() if turns <= RARE]
    with turn_store(embedder, "text") as store:
        small = {conversation.name: _small_stores(conversation) for conversation in conversations}
        for conversation in conversations:
            for name, turns in ((conversation.name, conversation.turns), *small[conversation.name].items()):
                for turn in turns:
                    store.writer.write(name, turn)
        store.engine.maintain()
        for conversation in conversations:
            for question in conversation.questions:
                if question.turns:
                    yield _answer(store, conversation, question, question.kind)
            for question in conversation.unanswered:
                yield _answer(store, conversation, question, f"never_{question.kind}")
            others = _of_others(conversation, conversations)
            for question in others:
                yield _answer(store, conversation, question, "never_of_others", are_none_right=True)
            for number, (name, turns) in enumerate(small[conversation.name].items()):
                part = Conversation(name, turns, [])
                for question, kind in _few_questions(part, conversation.questions, others, rare, number):
                    answer = _answer(store, part, question, kind, are_none_right=kind.startswith("never"))
                    yield replace(answer, conversation=conversation.name, is_few=True)


def _words(turn: Turn) -> set[str]:
    return set(re.findall("[a-z]{4,}", turn.text.lower()))


def _small_stores(conversation: Conversation) -> dict[str, list[Turn]]:
    """By namespace a few successive turns, of which one answers a question; FEW_STORES at most."""
    chance = random.Random(_SEED)
    ids = [turn.turn_id for turn in conversation.turns]
    asked = [question for question in conversation.questions if not question.turns.isdisjoint(ids)]
    stores: dict[str, list[Turn]] = {}
    for number, question in enumerate(chance.sample(asked, min(FEW_STORES, len(asked)))):
        size, right = chance.randint(*FEW), chance.choice([at for at, one in enumerate(ids) if one in question.turns])
        start = max(0, min(right - chance.randrange(size), len(ids) - size))
        stores[f"{conversation.name}~{number}"] = conversation.turns[start : start + size]
    return stores


def _few_questions(
    part: Conversation, questions: Sequence[Question], others: Sequence[Question], rare: Sequence[str], number: int
) -> Iterator[tuple[Question, str]]:
    """What a small store is asked, with the kind: a question and a word that it has, and that it lacks."""
    chance = random.Random(number)
    ids = {turn.turn_id for turn in part.turns}
    yield chance.choice([each for each in questions if not each.turns.isdisjoint(ids)]), "question"
    if others:
        yield chance.choice(others), "never_question"
    known: dict[str, set[str]] = {}
    for turn in part.turns:
        for word in _words(turn):
            known.setdefault(word, set()).add(turn.turn_id)
    for kind, words in (
        ("word", [word for word in rare if word in known]),
        ("never_word", [word for word in rare if word not in known]),
    ):
        if words:
            word = chance.choice(words)
            yield Question(word, kind, frozenset(known.get(word, ())), frozenset()), kind


def _of_others(conversation: Conversation, conversations: Sequence[Conversation]) -> list[Question]:
    """Questions of other conversations, at most NEVER_ASKED."""
    asked = [
        question
        for each in conversations
        if each is not conversation and not {each.name, conversation.name} <= SAME_MATTER
        for question in (*each.questions, *each.unanswered)
    ]
    return random.Random(_SEED).sample(asked, min(NEVER_ASKED, len(asked)))


def _answer(
    store: TurnStore, conversation: Conversation, question: Question, kind: str, *, are_none_right: bool = False
) -> AskedRows:
    vector, tokens = encode_query(store.embedder, question.text)
    chosen = Filter(conversation.name, toolsets=(TOOLSET,))
    query = Query(question.text, vector, chosen, FIRST, tokens)
    hits = search(store.cursor, store.engine, query).hits
    known = [(hit, row) for hit, row in zip(hits, evidence_of(hits), strict=True) if row is not None]
    near = nearness_of(store.engine, query, [hit.label for hit, _ in known])
    right = frozenset() if are_none_right else question.turns
    stated = [{hit.record_id, *(identity for _, identity in hit.also)} for hit, _ in known]
    return AskedRows(
        conversation.name,
        kind,
        np.array([(1.0, *row) for _, row in known]).reshape(-1, len(WEIGHTS)),
        np.array([not right.isdisjoint(each) for each in stated], bool),
        np.array([near[hit.label].similarity for hit, _ in known]),
    )


def fitted_weights(answers: Sequence[AskedRows]) -> np.ndarray:
    """(4,) logistic weights. Each conversation counts the same, and NEVER_SHARE of it what was never said."""
    evidence = np.concatenate([each.evidence for each in answers])
    is_right = np.concatenate([each.is_right for each in answers]).astype(np.float64)
    groups: dict[tuple[str, bool], int] = {}
    for each in answers:
        groups[each.conversation, each.is_never] = groups.get((each.conversation, each.is_never), 0) + 1
    shares = {True: NEVER_SHARE, False: 1 - NEVER_SHARE}
    counts = np.concatenate(
        [
            np.full(len(each.is_right), shares[each.is_never] / groups[each.conversation, each.is_never])
            for each in answers
        ]
    )
    counts /= counts.mean()
    scale = np.maximum(evidence.std(axis=0), 1e-9)
    scale[0] = 1.0
    scaled = evidence / scale
    ridge = RIDGE * len(scaled) * np.diag([0.0, *np.ones(len(WEIGHTS) - 1)])
    weights = np.zeros(len(WEIGHTS))
    for _ in range(ROUNDS):
        said = 1 / (1 + np.exp(-(scaled @ weights)))
        slopes = counts * said * (1 - said) + 1e-9
        step = scaled.T @ (counts * (is_right - said)) - ridge @ weights
        weights = weights + np.linalg.solve((scaled * slopes[:, None]).T @ scaled + ridge, step)
    return np.asarray(weights / scale)


def _report(report: Report, name: str, answers: Sequence[AskedRows], weights: np.ndarray) -> None:
    asked = [each for each in answers if not each.is_never]
    said = np.concatenate([each.relevance(weights) for each in asked])
    is_right = np.concatenate([each.is_right for each in asked])
    report.add(f"{name}_questions", len(asked), "")
    report.add(f"{name}_ece", ece_of(said, is_right), "", ECE)
    for label, chosen in (("rows_of_6_to_8_tenths", (said >= 0.6) & (said < 0.8)), ("rows_from_3_tenths", said >= 0.3)):
        if chosen.any():
            report.add(f"{name}_{label}", int(chosen.sum()), "")
            report.add(f"{name}_{label}_said", 100 * float(said[chosen].mean()), "%")
            report.add(f"{name}_{label}_right", 100 * float(is_right[chosen].mean()), "%")
    first = [(each.relevance(weights)[0], each.is_right[0]) for each in asked if len(each.is_right)]
    report.add(f"{name}_first_row_said", 100 * float(np.mean([value for value, _ in first])), "%")
    report.add(f"{name}_first_row_right", 100 * float(np.mean([right for _, right in first])), "%")
    for kind in sorted({each.kind for each in answers if each.is_never}):
        never = [each for each in answers if each.kind == kind]
        report.add(f"{name}_{kind}_questions", len(never), "")
        target = None if kind == "never_near" else CAUGHT
        report.add(f"{name}_{kind}_said_nothing", _nothing_share(never, weights), "%", target)
    report.add(f"{name}_said_nothing_wrongly", _nothing_share(asked, weights), "%")
    found = [each for each in asked if each.is_right.any()]
    report.add(f"{name}_said_nothing_of_found", _nothing_share(found, weights), "%")


def _report_few(report: Report, name: str, answers: Sequence[AskedRows], weights: np.ndarray) -> None:
    """Report how far relevance can be trusted in stores of a few turns."""
    if not answers:
        return
    said = np.concatenate([each.relevance(weights) for each in answers])
    is_right = np.concatenate([each.is_right for each in answers])
    behind = np.concatenate([np.arange(len(each.is_right)) for each in answers]) > 0
    report.add(f"{name}_log_loss", float(-np.log(np.where(is_right, said, 1 - said)).mean()), "")
    likely = behind & (said >= 0.5)
    report.add(f"{name}_other_rows_from_half", int(likely.sum()), "")
    if likely.any():
        report.add(f"{name}_other_rows_from_half_right", 100 * float(is_right[likely].mean()), "%")
    asked, never = ([each for each in answers if each.is_never is is_never] for is_never in (False, True))
    report.add(f"{name}_said_nothing_wrongly", _nothing_share(asked, weights), "%")
    if never:
        report.add(f"{name}_never_said_nothing", _nothing_share(never, weights), "%", CAUGHT)


def _nothing_share(answers: Sequence[AskedRows], weights: np.ndarray) -> float:
    """Of these answers the share in per cent that says `nothing_relevant`."""
    return 100 * float(np.mean([is_nothing(each.relevance(weights).tolist()) for each in answers]))


def _report_judging(report: Report, name: str, judged: Sequence[AskedRows], asked: Sequence[AskedRows]) -> None:
    """What JUDGED rows of one conversation teach of another: of the raw similarity, and of relevance."""
    weights = np.array(WEIGHTS)
    taught = np.concatenate([each.is_right for each in judged])[:JUDGED]
    is_right = np.concatenate([each.is_right for each in asked])
    said = {
        "similarity": [np.concatenate([each.similarities for each in some]) for some in (judged, asked)],
        "relevance": [np.concatenate([each.relevance(weights) for each in some]) for some in (judged, asked)],
    }
    for label, (known, values) in said.items():
        report.add(f"{name}_{label}_ece", ece_of(values, is_right), "")
        for way, offsets in (("temperature", np.zeros(1)), ("level_2", OFFSETS)):
            learned = fitted(known[:JUDGED], taught, offsets=offsets)
            if learned is not None:
                corrected = np.array([learned.corrected(float(value)) for value in values])
                report.add(f"{name}_{label}_ece_after_{way}", ece_of(corrected, is_right), "")

"""Whether judges agree: the report for operators, the Wilcoxon test beside it, and when one judge is enough."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processors.cognitive.config import CognitiveConfig
from processors.cognitive.reports import agreement_report, bias
from processors.cognitive.rules.judging import Corpus, Document, Judgement
from processors.cognitive.rules.staging import DUAL, MIN_RUNS, SINGLE, SPOT, Run, next_mode
from processors.cognitive.rules.wilcoxon import signed_rank
from tests.cognitive.node import CognitiveNode, opened
from tests.cognitive.test_tools import truth
from tests.processors.harness import event

HOLLANDER = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]
"""Darwin's maize, differences of fifteen pairs: the statistic is 24, p is .0413 (Fisher 1935)."""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[CognitiveNode]:
    async with opened(tmp_path) as node:
        yield node


def test_the_signed_rank_test_gives_the_published_numbers() -> None:
    statistic, p = signed_rank(HOLLANDER, [0] * len(HOLLANDER))
    assert (statistic, round(p, 5)) == (24.0, 0.04126)
    assert signed_rank([1, 2], [1, 2]) == (0.0, 1.0) and signed_rank([0.7] * 5, [0.3] * 5) == (0.0, 2 / 2**5)
    assert signed_rank([1, 1, 2, -1], [0] * 4)[0] == 2.0  # three ties share the mean of their ranks
    many = [1.0 + number for number in range(60)]
    assert signed_rank(many, [0.0] * 60)[1] < 1e-9  # beyond 50 pairs by the normal approximation
    alternating = [float((-1) ** number * (1 + number // 2)) for number in range(60)]
    assert signed_rank(alternating, [0.0] * 60)[1] > 0.9


def test_a_milder_judge_moves_the_threshold_by_the_difference_of_the_medians() -> None:
    assert bias([0.7] * 9, [0.3] * 9) is None
    found = bias([0.7] * 10, [0.3] * 10)
    assert found is not None and found["n"] == 10 and found["p"] < 0.05 and found["threshold"] == 0.9
    fair = bias([0.7, 0.3] * 6, [0.3, 0.7] * 6)
    assert fair is not None and fair["p"] > 0.05 and fair["threshold"] is None


def scored(node: CognitiveNode, query_id: int, one: list[float], other: list[float], first: int = 1) -> None:
    documents = [
        {"id": first + place, "judge1": a, "judge2": b} for place, (a, b) in enumerate(zip(one, other, strict=True))
    ]
    data = {"query_id": query_id, "query": "q", "documents": documents, "judge1_model": "a", "judge2_model": "b"}
    node.store.publish(event("cm.judge.scored", data, id=f"scored-{query_id}"))


def report(node: CognitiveNode) -> dict[str, Any]:
    return agreement_report(node.store.database.cursor(), "default")


async def test_a_ground_truth_is_accepted_by_both_means_of_kappa_else_the_report_says_where_the_judges_differ(
    node: CognitiveNode,
) -> None:
    assert report(node)["summary"] == "Nothing is judged yet." and report(node)["macro_kappa"] is None
    for number in (1, 2):
        truth(node, number)
    scored(node, 1, [1.0, 0.0, 0.7], [0.7, 0.3, 1.0])
    agreed = report(node)
    assert agreed["accepted"] and agreed["macro_kappa"] == agreed["micro_kappa"] == 1.0 and agreed["differing"] == []
    scored(node, 2, [1.0] * 10, [0.5] * 9 + [0.7], first=100)
    found = report(node)
    assert not found["accepted"] and [line["query_id"] for line in found["differing"]] == [2]
    assert [line["document_id"] for line in found["differing_documents"]] == list(range(100, 109))
    assert found["wilcoxon"]["n"] == 13 and found["wilcoxon"]["p"] < 0.05 and found["wilcoxon"]["threshold"] == 1.0


def runs(*modes: tuple[str, float | None]) -> list[Run]:
    return [Run(mode, kappa) for mode, kappa in modes]


def test_ten_queries_of_kappa_85_make_one_judge_enough_and_a_bad_spot_check_ends_that() -> None:
    agreed = runs(*[(DUAL, 0.85)] * MIN_RUNS)
    requests = [f"request-{number}" for number in range(2000)]
    assert next_mode(agreed[1:], "r") == DUAL and next_mode([], "r") == DUAL
    assert next_mode([Run(DUAL, 0.84), *agreed[1:]], "r") == DUAL
    assert next_mode([Run(DUAL, None), *agreed[1:]], "r") == DUAL  # what says nothing does not count
    modes = [next_mode(agreed, request) for request in requests]
    assert set(modes) == {SINGLE, SPOT} and 0.03 < modes.count(SPOT) / len(modes) < 0.07
    assert (
        next_mode([Run(SINGLE, None), *agreed], "r") != DUAL
        and next_mode([Run(SPOT, 0.70), Run(SINGLE, None), *agreed], "r") != DUAL
    )
    fallen = [Run(SPOT, 0.69), Run(SINGLE, None), *agreed]
    assert next_mode(fallen, "r") == DUAL
    assert next_mode([Run(DUAL, 1.0), *fallen], "r") == DUAL  # ten new ones are needed
    assert next_mode([*agreed, *fallen], "r") != DUAL


class CountingJudge:
    """Agrees with everybody, and counts how often it is asked."""

    def __init__(self, model: str) -> None:
        self.model, self.asked = model, 0

    async def judge(self, query: str, documents: list[Document], corpus: Corpus) -> Judgement:
        self.asked += 1
        return Judgement([1.0 if document.id % 2 else 0.0 for document in documents])


async def test_the_second_judge_is_spared_while_both_agree_and_its_scores_are_missing_not_made_up(
    node: CognitiveNode,
) -> None:
    truth(node, 42)
    one, other = CountingJudge("one"), CountingJudge("other")
    node.services.parts[CognitiveConfig] = replace(
        node.services.part(CognitiveConfig), judges=(one, other), is_staged=True
    )
    docs = [{"id": 1, "content": "a"}, {"id": 2, "content": "b"}]
    answers = [
        await node.ok("store_dual_judge_scores", query_id=42, query="q", docs=docs) for _ in range(MIN_RUNS + 12)
    ]
    assert all(answer["mode"] == DUAL and answer["kappa"] == 1.0 for answer in answers[:MIN_RUNS])
    single = [answer for answer in answers if answer["mode"] == SINGLE]
    assert len(single) >= 6 and one.asked == len(answers) and other.asked == len(answers) - len(single)
    for answer in single:
        assert (answer["judge1_score"], answer["evaluated_documents"]) == (0.5, 2)
        assert answer["judge2_score"] is answer["judge2_scores"] is answer["kappa"] is answer["agreement"] is None
    rows = node.store.sql("SELECT mode, count(*) FROM judge_runs GROUP BY mode")
    assert dict(rows)[SINGLE] == len(single)

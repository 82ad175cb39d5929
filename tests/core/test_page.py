"""Which rows of a recall are shown where not all of them fit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import orjson
import pytest

from mcp_ingress.toolsets.core.page import FRAME, INDEX, LEAST_READ, ROWS_READ, TEXT, Page
from processors.memory.rules.relevance import UNCHANGED
from storage.search.records.hits import SearchHit

IDS = [f"00000000-0000-0000-0000-00000000000{number}" for number in range(10)]


class Rows(Page):
    """A page whose rows are those of the test, by the number of the hit."""

    def shown(self, *rows: dict[str, Any]) -> list[dict[str, Any]]:
        hits = [SearchHit(number, str(number), "Belief", "valence", None, None, "", datetime(2026, 1, 5))
                for number in range(len(rows))]  # fmt: skip
        self.given.extend(rows)
        left = iter(hits)

        def read(count: int) -> list[SearchHit]:
            self.asked.append(count)
            return list(islice(left, count))

        return self.fitted(None, None, "default", read, UNCHANGED).rows  # type: ignore[arg-type]

    given: list[dict[str, Any]] = []
    asked: list[int] = []

    def _rows(self, cursor: Any, stored: Any, namespace: str, hits: Sequence[SearchHit], relevance: Any) -> Any:
        return [self.given[hit.label] for hit in hits]


@pytest.fixture(autouse=True)
def empty() -> None:
    Rows.given.clear()
    Rows.asked.clear()


def row(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {"id": IDS[number], "kind": "fact", "text": text, "at": "2026-01-05", "score": 0.5, "why": "words", **more}


def alike(count: int) -> tuple[list[dict[str, Any]], int]:
    """Rows of one size, and this size as a page counts it."""
    texts = (f"Ann deploys what Bob has tested on day {number:02} of each month." for number in range(count))
    rows = [{**row(0, text), "id": f"{number:036}"} for number, text in enumerate(texts)]
    return rows, len(orjson.dumps(rows[0])) + 1


def page(characters: int, detail: str = INDEX) -> Rows:
    return Rows("when do we deploy", detail, (characters + FRAME) // 4)


def test_the_newest_truth_is_cut_and_not_passed_over_for_what_it_changes() -> None:
    newer = row(0, "We deploy on Thursdays at ten, no longer on Tuesdays as before.", earlier=[IDS[1]])
    older = row(1, "We deploy on Tuesdays.", disputed_by=[IDS[0]])
    [first] = page(220).shown(newer, older)
    assert first["id"] == IDS[0] and first["text"].startswith("We deploy on Thursdays") and len(first["text"]) >= 40
    assert len(orjson.dumps(first)) < 220


def test_a_row_that_is_too_large_is_passed_over_and_with_it_what_it_disputes() -> None:
    rows = row(0, "Ann deploys."), row(1, "x" * 120), row(2, "Bob does.", disputed_by=[IDS[1]]), row(3, "Cid tests.")
    assert [each["id"] for each in page(320).shown(*rows)] == [IDS[0], IDS[3]]


def test_ids_of_others_go_before_the_text_is_shorter_than_can_be_read() -> None:
    [first] = page(200).shown(row(0, "We deploy on Thursdays.", earlier=IDS[1:4], also=IDS[4:7], disputed_by=[IDS[8]]))
    assert first["text"] == "We deploy on Thursdays." and first["disputed_by"] == [IDS[8]]
    assert not {"earlier", "also"} & first.keys()


def test_a_passage_that_was_cut_says_so() -> None:
    [first] = page(240, TEXT).shown(row(0, "We deploy on Thursdays. " * 40))
    assert first["truncated"] is True and len(orjson.dumps(first)) < 260


def test_behind_the_first_no_more_hits_are_read_than_may_fit_of_the_smallest_row() -> None:
    rows, size = alike(60)
    shown = page((ROWS_READ + 6) * size + 3).shown(*rows)
    assert len(shown) == ROWS_READ + 6
    assert Rows.asked == [ROWS_READ, 6]


def test_a_last_row_is_looked_for_among_a_few_hits() -> None:
    rows, size = alike(60)
    assert len(page((ROWS_READ + 1) * size + 3).shown(*rows)) == ROWS_READ + 1
    assert Rows.asked == [ROWS_READ, LEAST_READ]


def test_no_hits_are_no_rows() -> None:
    assert page(240).shown() == []

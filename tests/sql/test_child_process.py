"""A child process that answers one query ends in a sentence, whatever ends it."""

from __future__ import annotations

import pytest

from storage.child_process import QueryChild
from streams.errors import Refused, Unavailable

LIMITS = {"timeout_s": 20.0, "memory_mb": 100, "cpu_s": 20}


def child(module: str) -> QueryChild:
    return QueryChild(module, subject="The graph", shorten="match less", timeout_code="late", memory_code="large")


def test_a_child_that_fails_is_said_to_be_unavailable_with_its_last_line() -> None:
    with pytest.raises(Unavailable, match=r"^The graph cannot be asked: .*No module named storage\.absent$"):
        child("storage.absent").ask({}, **LIMITS)


def test_a_child_that_does_not_answer_in_time_is_killed() -> None:
    with pytest.raises(Refused, match=r"longer than 0\.2 s and was ended: match less\.$") as refused:
        child("http.server").ask({}, **{**LIMITS, "timeout_s": 0.2})
    assert refused.value.error_code == "late"


@pytest.mark.parametrize(("size_mb", "answered"), [(20, True), (4_000, False)])
def test_a_child_keeps_to_its_memory(size_mb: int, answered: bool) -> None:
    asked = child("tests.sql.greedy_child")
    if answered:
        assert asked.ask({"size_mb": size_mb}, **LIMITS) == {"size_mb": size_mb}
        return
    with pytest.raises(Refused, match="broke its limit of 100 MB") as refused:
        asked.ask({"size_mb": size_mb}, **LIMITS)
    assert refused.value.error_code == "large"


@pytest.mark.process
def test_a_child_keeps_to_its_processor_time() -> None:
    with pytest.raises(Refused, match="used up its share of processor time") as refused:
        child("tests.sql.greedy_child").ask({"forever": True}, **{**LIMITS, "cpu_s": 1})
    assert refused.value.error_code == "late"

"""`thalweg search` and `thalweg why` on a node that runs: people see why each hit was found, and why another was not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.node_process import Client, NodeProcess
from thalweg.show_search import highlighted

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


SAID = {
    "2026-01-05-harbour": ["The crane at the quay was inspected.", "Its hook has a crack of two millimetres."],
    "2026-01-06-bakery": ["The oven holds its heat badly.", "Rye needs a longer rise than wheat."],
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    home = tmp_path_factory.mktemp("home")
    node = NodeProcess(home, SURR_ENABLE_INNER_VOICE="1").start()
    client = Client(home)
    client.call("journal_write", {"content": "The tide gauges drifted.", "category": "insight", "domain": "sea"})
    client.call("journal_write", {"content": "The parser lost a sign.", "category": "observation", "domain": "tech"})
    node.settle()
    for mix, source_type in ((0.6, "kg_observation"), (0.0, "thought")):  # what was extracted from an entry says the same
        answer = client.call("inner_voice.retrieve", {"query": "tide gauges", "floor": 0.1, "mix": mix})
        assert {snippet["source_type"] for snippet in answer["snippets"]} == {source_type}
    for session, said in SAID.items():
        client.call("session_open", {"session_id": session, "goal": f"Work on {session[11:]}"})
        for content in said:
            client.call("journal_write", {"content": content, "category": "observation", "session_id": session})
    node.settle()
    client.close()
    yield Program(home)
    assert node.stop() == 0


def test_every_hit_says_which_side_found_it(program: Program) -> None:
    answer = program("search", "tide gauge", "--json", "--kind", "Insight").json()
    [hit] = answer["hits"]
    assert hit["text"] == "The tide gauges drifted." and hit["domain"] == "sea"
    assert hit["sides"]["vector"]["rank"] == hit["sides"]["keyword"]["rank"] == 1
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=1e-5)
    assert program("why", hit["record_id"], "--query", "tide gauge", "--kind", "Insight", "--json").json()["parts"] == hit["parts"]
    shown = program("search", "tide gauge").out
    assert "The tide gauges drifted." in shown and "vector #1 (cosine" in shown and "BM25" in shown and "vector +0." in shown


def test_a_session_is_found_by_what_its_records_say_together_and_says_why(program: Program) -> None:
    answer = program("search", "crack in the hook of the crane", "--sessions", "--json").json()
    first = answer["sessions"][0]
    assert (first["session_id"], first["source"], first["goal"]) == ("2026-01-05-harbour", "talos", "Work on harbour")
    assert answer["total"] == 2 and first["started_at"].endswith("Z")
    assert sum(first["parts"].values()) == pytest.approx(first["score"], abs=1e-5) and set(first["parts"]) == {"best", "keyword", "late"}
    assert {hit["session_id"] for hit in first["hits"]} == {"2026-01-05-harbour"} and len(first["hits"]) <= first["records"]
    assert all(sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=1e-5) for hit in first["hits"])
    shown = program("search", "crack in the hook of the crane", "--sessions").out
    assert "Work on harbour" in shown and "best +0." in shown and "Its hook has a crack" in shown and "records compared" in shown
    assert program("search", "rye", "--sessions", "--session", "2026-01-05-harbour", "--json").json()["total"] == 1
    assert "Nothing was found" in program("search", "rye", "--sessions", "--as-of", "2020-01-01").out


def test_filters_leave_out_and_why_says_so(program: Program) -> None:
    record_id = program("search", "tide", "--json", "--tag", "SEA", "--toolset", "talos").json()["hits"][0]["record_id"]
    assert program("search", "tide", "--json", "--tag", "tech", "--domain", "sea").json()["hits"] == []
    assert program("search", "tide", "--json", "--as-of", "2020-01-01").json()["hits"] == []
    assert program("why", record_id, "--query", "tide", "--json").json()["verdict"] == "returned"
    said = program("why", record_id, "--query", "tide", "--domain", "tech", "--before", "2020-01-01")
    assert "filtered" in said.out and "domains" in said.out and "created_before" in said.out


def test_what_cannot_be_asked_is_one_sentence(program: Program, tmp_path: Path) -> None:
    assert program("search", " ").code == 1 and "blank" in program("search", " ").err
    wrong = program("search", "tide", "--from", "yesterday")
    assert wrong.code == 1 and "yesterday" in wrong.err and "Traceback" not in wrong.err
    assert program("why", "x").code == 2
    assert "No node runs" in Program(tmp_path)("search", "tide").err


def test_the_words_that_were_asked_for_are_emphasised_whatever_their_ending() -> None:
    text = highlighted("The gauges drifted, a gauge stood.", "gauge drifting")
    assert [text.plain[span.start : span.end] for span in text.spans] == ["gauges", "drifted", "gauge"]

"""`thalweg search` and `thalweg why` on a running node: people see why a hit was found, and why another was not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.program import Program, Said
from tests.node_process import Client, NodeProcess
from tests.patience import SOON_S
from thalweg.terminal.show_search import highlighted

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

SAID = {
    "2026-01-05-harbour": ["The crane at the quay was inspected.", "Its hook has a crack of two millimetres."],
    "2026-01-06-bakery": ["The oven holds its heat badly.", "Rye needs a longer rise than wheat."],
}

LONG = (
    " ".join(f"The mill on hill number {number} grinds quietly." for number in range(80))
    + " The submarine surfaced near the buoy."
)


class Searching(Program):
    """Asks again when the node was held up for so long that it went on without its model."""

    def __call__(self, *arguments: str, **env: str) -> Said:
        until = time.monotonic() + SOON_S
        while (
            "The embedder did not answer" in (said := super().__call__(*arguments, **env)).out
            and time.monotonic() < until
        ):
            pass
        return said


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    home = tmp_path_factory.mktemp("home")
    node = NodeProcess(home, SURR_ENABLE_INNER_VOICE="1").start()
    client = Client(home)
    client.call("journal_write", {"content": "The tide gauges drifted.", "category": "insight", "domain": "sea"})
    client.call("journal_write", {"content": "The parser lost a sign.", "category": "observation", "domain": "tech"})
    node.settle()
    for mix, source_type in (
        (0.6, "kg_observation"),
        (0.0, "thought"),
    ):  # what was extracted from an entry says the same
        answer = client.call("inner_voice.retrieve", {"query": "tide gauges", "floor": 0.1, "mix": mix})
        assert {snippet["source_type"] for snippet in answer["snippets"]} == {source_type}
    for session, said in SAID.items():
        client.call("session_open", {"session_id": session, "goal": f"Work on {session[11:]}"})
        for content in said:
            client.call("journal_write", {"content": content, "category": "observation", "session_id": session})
    old = client.call(
        "belief_create", {"content": "The ferry leaves at eight", "confidence": 0.9, "domain_path": ["sea"]}
    )["belief"]
    later = {"old_belief_id": old["id"], "new_content": "The ferry leaves at nine", "reason": "new timetable"}
    client.call("belief_supersede", later)
    client.call("journal_write", {"content": LONG, "category": "observation"})
    node.settle()
    client.close()
    yield Searching(home)
    assert node.stop() == 0


def test_every_hit_says_which_side_found_it(program: Program) -> None:
    answer = program("search", "tide gauge", "--json", "--kind", "Insight").json()
    [hit] = answer["hits"]
    assert hit["text"] == "The tide gauges drifted." and hit["domain"] == "sea"
    assert hit["sides"]["vector"]["rank"] == hit["sides"]["keyword"]["rank"] == 1
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=1e-5)
    assert (
        program("why", hit["record_id"], "--query", "tide gauge", "--kind", "Insight", "--json").json()["parts"]
        == hit["parts"]
    )
    shown = program("search", "tide gauge").out
    assert (
        "The tide gauges drifted." in shown
        and "vector #1 (cosine" in shown
        and "BM25" in shown
        and "vector +0." in shown
    )


def test_a_session_is_found_by_what_its_records_say_together_and_says_why(program: Program) -> None:
    answer = program("search", "crack in the hook of the crane", "--sessions", "--json").json()
    first = answer["sessions"][0]
    assert (first["session_id"], first["source"], first["goal"]) == ("2026-01-05-harbour", "talos", "Work on harbour")
    assert answer["total"] == 2 and first["started_at"].endswith("Z")
    assert sum(first["parts"].values()) == pytest.approx(first["score"], abs=1e-5) and set(first["parts"]) == {
        "best",
        "keyword",
        "late",
    }
    assert {hit["session_id"] for hit in first["hits"]} == {"2026-01-05-harbour"} and len(first["hits"]) <= first[
        "records"
    ]
    assert all(sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=1e-5) for hit in first["hits"])
    shown = program("search", "crack in the hook of the crane", "--sessions").out
    assert (
        "Work on harbour" in shown
        and "best +0." in shown
        and "Its hook has a crack" in shown
        and "records compared" in shown
    )
    assert program("search", "rye", "--sessions", "--session", "2026-01-05-harbour", "--json").json()["total"] == 1
    assert "Nothing was found" in program("search", "rye", "--sessions", "--as-of", "2020-01-01").out
    why = program("why", "2026-01-05-harbour", "--query", "crack in the hook of the crane", "--json").json()
    assert (why["verdict"], why["place"], why["parts"]) == ("returned", 1, first["parts"])
    second = program("why", "2026-01-06-bakery", "--query", "crack in the hook of the crane", "--limit", "1")
    assert "outranked" in second.out and "session 2 of 2" in second.out
    left_out = program("why", "2026-01-05-harbour", "--query", "crack", "--domain", "sea", "--json").json()
    assert (left_out["verdict"], left_out["filtered_by"]) == ("filtered", ["domains"])


def test_what_was_superseded_is_found_only_when_a_moment_is_by_user_at_which_it_held(program: Program) -> None:
    now = program("search", "ferry leaves", "--kind", "Belief", "--json").json()
    [new] = now["hits"]
    assert new["text"] == "The ferry leaves at nine" and now["total"] == 1
    then = new["created_at"].replace("Z", "+00:00")
    before = str(datetime.fromisoformat(then) - timedelta(microseconds=1))
    for option in ("--as-of", "--valid-at"):
        [old] = program("search", "ferry leaves", "--kind", "Belief", option, before, "--json").json()["hits"]
        assert old["text"] == "The ferry leaves at eight"
    said = program("why", old["record_id"], "--query", "ferry leaves").out
    assert "superseded" in said and new["record_id"] in said
    assert (
        program("why", old["record_id"], "--query", "ferry leaves", "--as-of", before, "--json").json()["verdict"]
        == "returned"
    )


def test_a_long_text_is_shown_by_the_passage_that_fits_best_and_says_where_it_stands(program: Program) -> None:
    [hit] = program("search", "submarine near the buoy", "--kind", "JournalEntry", "--limit", "1", "--json").json()[
        "hits"
    ]
    passage = LONG[hit["passage"]["start"] : hit["passage"]["end"]]
    assert hit["text"] == LONG and "submarine" in passage and len(passage) < len(LONG)
    shown = program("search", "submarine near the buoy", "--kind", "JournalEntry", "--limit", "1").out
    assert "The submarine surfaced near the buoy." in shown and f"to {hit['passage']['end']} of {len(LONG)}" in shown


def test_an_entity_leaves_what_it_was_found_in_and_what_is_related_to_it(program: Program) -> None:
    [entity] = program("search", "tide gauges", "--kind", "Insight", "--json").json()["hits"]
    found = program("search", "tide gauges parser crane", "--entity", entity["record_id"], "--json").json()["hits"]
    assert {(hit["kind"], hit["text"]) for hit in found} == {("Insight", entity["text"]), ("Domain", "sea")}
    assert [other["kind"] for hit in found for other in hit.get("also", ())] == ["JournalEntry"]


def test_filters_leave_out_and_why_says_so(program: Program) -> None:
    record_id = program("search", "tide", "--json", "--tag", "SEA", "--toolset", "talos").json()["hits"][0]["record_id"]
    assert program("search", "tide", "--json", "--tag", "tech", "--domain", "sea").json()["hits"] == []
    [entry] = program("search", "sign", "--json", "--tag", "Observation").json()["hits"]
    assert (entry["kind"], entry["text"]) == ("JournalEntry", "The parser lost a sign."), "a category is a tag"
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


def test_a_search_waits_for_a_write_with_its_vector(program: Program) -> None:
    client = Client(program.home)
    for number, freshness in enumerate(("token", "now")):
        written = client.call(
            "journal_write", {"content": f"The lighthouse keeper counts {number} gulls.", "category": "observation"}
        )
        token = json.dumps(written["freshness"]) if freshness == "token" else "now"
        answer = program("search", f"lighthouse keeper {number} gulls", "--freshness", token, "--json").json()
        by_vector = [hit for hit in answer["hits"] if "vector" in hit["sides"]]
        # what is found in an entry stands for it, as soon as it is found
        found = [
            one for hit in by_vector for one in (hit["record_id"], *(other["id"] for other in hit.get("also", ())))
        ]
        assert written["entry_id"] in found
        assert "stale" not in answer
    client.close()
    nonsense = program("search", "gulls", "--freshness", "later")
    assert nonsense.code == 2 and "neither `now` nor a token" in nonsense.err

"""The few tools over the real `thalweg mcp`: what core keeps the other toolsets find, and what was said is recalled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.e2e.program import Program
from tests.e2e.test_agent import answered, over_stdio
from thalweg.example import session_path

pytestmark = pytest.mark.timeout(300)

SAID = {
    "fact": "The staging gateway listens on port 8080.",
    "decision": "Wir haben entschieden, das Gateway dienstags auszuliefern.",
    "preference": "L'utilisatrice préfère les tests avant le code du gateway.",
    "question": "Which certificate does the gateway use?",
}


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = (await answered(client, tool, arguments)).structured_content
    assert answer is not None and answer.get("success", True), (tool, answer)
    return answer


async def test_what_core_remembers_the_other_toolsets_find_and_what_others_keep_core_recalls(tmp_path: Path) -> None:
    program = Program(tmp_path / "home", SURR_ENABLE_INNER_VOICE="1")
    try:
        async with over_stdio(program) as client:
            ids = {kind: (await told(client, "remember", text=text))["id"] for kind, text in SAID.items()}
            assert {row["kind"]: row["id"] for row in (await told(client, "recall", query="gateway"))["results"]} == ids
            beliefs = (await told(client, "belief_query", query="gateway"))["beliefs"]
            assert {belief["id"] for belief in beliefs} == {ids["fact"], ids["preference"]}
            entries = (await told(client, "journal_query", query="gateway"))["results"]
            assert {SAID["decision"], SAID["question"]} <= {row["content"] for row in entries}
            snippets = (await told(client, "inner_voice.retrieve", query="gateway", floor=0.0))["snippets"]
            assert set(SAID.values()) <= {snippet["text"] for snippet in snippets}
            changed = await told(client, "remember", text="The staging gateway listens on port 8443.")
            assert [row["id"] for row in changed["contradicts"]] == [ids["fact"]]
            await told(client, "correct", id=ids["fact"], retract=True, reason="It was moved.")
            held = (await told(client, "belief_get", belief_id=ids["fact"]))["belief"]
            assert held["status"] == "archived"
            imported = program("import", "claude-code", str(session_path()))
            assert imported.code == 0, imported.err
            listed = (await told(client, "sessions", project="tidewatch"))["sessions"]
            [session] = [each for each in listed if "parent" not in each]
            course = await told(client, "sessions", id=session["id"])
            first = next(line for line in course["lines"] if line["who"] == "user")
            turns = (await told(client, "recall", query=first["text"], kind="turn", detail="text"))["results"]
            assert (turns[0]["session"], turns[0]["role"]) == (session["id"], "user")
            assert course["tools"] and session["tokens"] > 0 and session["tool_calls"] > 0
    finally:
        program("stop")

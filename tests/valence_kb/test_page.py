"""The SQL of docs/valence-sessions.md answers what the page prints."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sql.test_questions import as_text, printed_rows
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent
from tests.valence_kb.test_transcripts import import_example

PAGE = (Path(__file__).parents[2] / "docs" / "valence-sessions.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"```sql\n([^`]*)```\n\n((?:\|.*\n)+)", PAGE)


async def test_each_worked_question_gives_the_columns_and_rows_that_the_page_prints(agent: Agent, node: SmallNode) -> None:
    session_id = await agent.session(platform="matrix", external_room_id="!room:example.com")
    await agent.say(session_id, "Deploy with blue green from now on")
    await agent.say(session_id, "Noted", role="assistant")
    pattern_id = (await agent.call("pattern_record", type="preference", description="Prefers blue green deployments"))["pattern_id"]
    await agent.call("pattern_reinforce", pattern_id=pattern_id, session_id=session_id)
    insight = await agent.call("insight_extract", session_id=session_id, content="Deployments use blue green")
    await agent.call("belief_supersede", old_belief_id=insight["belief_id"], new_content="Deployments use canaries", reason="safer")
    await import_example(node)
    assert len(QUESTIONS) == 4
    for sql, answer in QUESTIONS:
        cursor = node.store.database.cursor()
        found = cursor.execute(sql)
        columns, rows = printed_rows(answer)
        assert [column[0] for column in found.description or ()] == columns
        assert [[as_text(value) for value in row] for row in found.fetchall()] == rows

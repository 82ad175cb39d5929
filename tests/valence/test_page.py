"""docs/valence.md: each of its questions is answered by the schema that there is; and its groups can be chosen alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcp_ingress.inventory import find_tools
from streams.errors import SettingsError
from tests.processors.harness import Store, event

PAGE = (Path(__file__).parents[2] / "docs" / "valence.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)


def test_every_question_of_the_page_runs() -> None:
    store = Store()
    store.publish(event("valence.belief.created", {"content": "The port is 1"}))
    answers = [store.sql(question) for question in QUESTIONS]
    assert len(answers) == 5 and answers[0] == [("The port is 1",)] and answers[3][0][0] == "The port is 1"


def test_either_group_can_be_chosen_alone() -> None:
    tools = find_tools()
    substrate, conversations = (set(tools.select([name]).tools) for name in ("valence.substrate", "valence.vkb"))
    assert len(substrate) == 8 and not substrate & conversations
    assert substrate | conversations == set(tools.select(["valence"]).tools)
    assert set(tools.select(["valence.substrate"], read_only=True).tools) == {
        "belief_query",
        "belief_get",
        "entity_get",
        "entity_search",
        "tension_list",
    }
    with pytest.raises(SettingsError):
        tools.select(["valence.other"])

"""The groups of the toolset can be chosen alone."""

from __future__ import annotations

import pytest

from mcp_ingress.inventory import find_tools
from streams.errors import SettingsError


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

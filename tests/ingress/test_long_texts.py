"""Every tool that stores a text refuses one that no record can hold, with a sentence, before anything is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams.codec import MAX_BYTES
from streams.errors import Refused
from tests.talos.node import SmallNode

BOOK = "x" * (MAX_BYTES + 1)
TOOLS: dict[str, dict[str, Any]] = {
    "journal_write": {"content": BOOK, "category": "insight"},
    "friction_log": {"description": BOOK, "category": "tooling"},
    "reflect": {"content": BOOK},
    "belief_create": {"content": BOOK, "confidence": 0.5, "source_type": "observation"},
    "store_raw_dialogue": {"session_id": "s", "speaker": "user", "content": BOOK},
    "compress_to_l2_insight": {"content": BOOK, "source_ids": []},
    "store_episode": {"query": BOOK, "reward": 1.0, "reflection": "Problem: tide. Lesson: moon."},
    "update_working_memory": {"content": BOOK, "importance": 0.5},
}


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("tool", TOOLS)
async def test_what_is_larger_than_a_record_is_refused_with_the_limit_before_it_is_spooled(
    tmp_path: Path, tool: str, is_down: bool
) -> None:
    node = SmallNode(tmp_path)
    node.is_down = is_down
    try:
        answer = await node.call(tool, **TOOLS[tool])
        said = str(answer)
    except Refused as refused:
        said = refused.message
    assert "at most" in said and len(said) < 1000, said[:300]
    assert node.spool.is_empty and node.published == []

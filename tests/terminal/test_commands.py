"""Commands that need no node: what there is, and a full disk in one sentence."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcp_ingress.inventory import find_tools
from streams.topics import TOPICS
from thalweg.cli import cli


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"THALWEG_HOME": str(home), "COLUMNS": "200"})


def test_the_tools_of_a_toolset_are_shown_with_what_they_do_and_as_json_with_their_schemas(tmp_path: Path) -> None:
    talos = [tool for tool in find_tools() if tool.toolset == "talos"]
    table = run(tmp_path, "tools", "--toolsets", "talos")
    assert table.exit_code == 0
    assert all(tool.name in table.output and tool.kind in table.output for tool in talos)
    assert "belief_create" not in table.output
    listed = json.loads(run(tmp_path, "tools", "--toolsets", "talos,valence", "--json").output)
    assert {tool["toolset"] for tool in listed} == {"talos", "valence"}
    assert {tool["name"]: tool["input_schema"] for tool in listed}.items() >= {
        tool.name: tool.input_schema for tool in talos
    }.items()
    assert len(json.loads(run(tmp_path, "tools", "--json").output)) == len(list(find_tools()))


def test_topics_are_described_as_a_table_as_json_and_as_asyncapi(tmp_path: Path) -> None:
    table = run(tmp_path, "topics", "describe").output
    assert all(topic.name in table and topic.retention in table for topic in TOPICS)
    assert json.loads(run(tmp_path, "topics", "describe", "--json").output) == [vars(topic) for topic in TOPICS]
    document = json.loads(run(tmp_path, "topics", "describe", "--asyncapi").output)
    assert document["asyncapi"].startswith("3.") and "thalweg.memory.v1" in json.dumps(document["channels"])


def test_topics_are_created_once_and_the_answer_names_the_log(tmp_path: Path) -> None:
    log = f"sqlite://{tmp_path / 'log.db'}"
    created = json.loads(run(tmp_path, "topics", "create", "--json").output)
    assert created["broker"] == log and {topic.name for topic in TOPICS} <= set(created["created"])
    again = run(tmp_path, "topics", "create")
    assert (again.exit_code, again.output) == (0, f"All topics exist on {log}.\n")


def test_a_disk_that_is_full_is_one_sentence_and_any_other_defect_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_with(error: Exception) -> Result:
        def describe() -> None:
            raise error

        monkeypatch.setattr("streams.asyncapi.asyncapi_document", describe)
        return run(tmp_path, "topics", "describe", "--asyncapi")

    full = fail_with(OSError(errno.ENOSPC, "No space left on device"))
    assert full.exit_code == 1 and full.stderr.startswith("thalweg: The disk is full (")
    assert full.stderr.endswith("Make room, then try again.\n") and full.stderr.count("\n") == 1
    assert isinstance(fail_with(KeyError("x")).exception, KeyError)

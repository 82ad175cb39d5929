"""The pages in docs/ say what the program says: generated ones are current, and nothing is left out or made up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields

import click
import jsonschema_rs
import orjson
import pytest

from mcp_ingress.inventory import find_tools
from mcp_ingress.resource import find_resources
from streams.asyncapi import asyncapi_document, documents
from streams.codec import decode, encode, encode_batch
from streams.events import Event, event_types
from streams.log.base import Record
from streams.topics import TOPICS
from tests.docs.pages import PAGES, ROOT
from tests.processors.harness import NOW
from thalweg.cli import cli
from thalweg.settings import Settings


def page(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("path", PAGES)
def test_a_generated_page_is_current(path: str) -> None:
    assert page(path) == PAGES[path](), "run `python -m tests.docs.pages`"


@pytest.mark.parametrize("name", documents())
def test_the_documents_of_the_topics_are_current(name: str) -> None:
    assert (ROOT / "docs" / name).read_bytes() == documents()[name], "run `python -m streams.asyncapi`"


def test_the_settings_page_has_every_setting_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page("docs/settings.md"), re.MULTILINE)
    assert rows == [(spec.name, f"THALWEG_{spec.name.upper()}") for spec in fields(Settings)]


def commands(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{prefix} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix} {name}")


def test_the_commands_page_has_every_command_and_no_other() -> None:
    leaves = {name for name, command in commands(cli, "thalweg") if not getattr(command, "commands", None)}
    assert set(re.findall(r"^## (.+)$", page("docs/commands.md"), re.MULTILINE)) == leaves


def test_every_command_has_an_example_of_itself() -> None:
    for name, command in commands(cli, "thalweg"):
        if not isinstance(command, click.Group):
            assert re.search(rf"Example: (?:\w+=\S+ )*.*{re.escape(name)}", command.help or ""), (
                f"{name} has no example"
            )


def test_the_tools_page_has_every_tool_and_no_other() -> None:
    assert re.findall(r"^## (.+)$", page("docs/tools.md"), re.MULTILINE) == [tool.name for tool in find_tools()]


def test_the_topics_page_has_every_event_type_and_no_other() -> None:
    assert set(re.findall(r"^\| `(thalweg\.[\w.]+\.v\d+)` \| [A-Z]", page("docs/topics.md"), re.MULTILINE)) == set(
        event_types()
    )


def test_every_topic_is_a_channel_that_is_read_and_written() -> None:
    document = asyncapi_document()
    assert set(document["channels"]) == {topic.name for topic in TOPICS}
    assert set(document["operations"]) == {
        f"{action}:{topic.name}" for action in ("receive", "send") for topic in TOPICS
    }


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    document = asyncapi_document()
    for reference in set(references(document)):
        place = document
        for step in reference.removeprefix("#/").split("/"):
            assert step in place, reference
            place = place[step]


def test_what_the_program_publishes_fits_the_asyncapi_document() -> None:
    """One record and one array of observations: headers and payload against the schemas, and the codec accepts both."""
    document = asyncapi_document()
    kind = "thalweg.talos.journal.written.v1"
    event = Event("e-1", "test", kind, "default", NOW, {"content": "It works.", "category": "insight"}, subject="s")
    topic = event_types()[kind].topic
    for outgoing in (encode(topic, event), encode_batch(topic, event, [event])):
        message = document["components"]["messages"][kind]
        headers = {name: value.decode() for name, value in outgoing.headers}
        jsonschema_rs.validate(message["headers"], headers)
        jsonschema_rs.validate(
            {**message["payload"], "components": {"schemas": document["components"]["schemas"]}},
            orjson.loads(outgoing.value or b""),
        )
        assert decode(Record(topic, 0, 0, 0, outgoing.key, outgoing.value, outgoing.headers))


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "docs/clients.md"])
def test_a_page_counts_the_tools_resources_and_retired_names_that_are_served(name: str) -> None:
    inventory, text = find_tools(), " ".join(page(name).split())
    beside = sum(tool.toolset != "core" for tool in inventory)
    retired = sum(len(toolset.retired) for toolset in inventory.toolsets.values())
    own = sum(resource.toolset == "cognitive_memory" for resource in find_resources().resources.values())
    assert f"{beside} tools" in text and f"{own} resources" in text and f"{retired} retired names" in text

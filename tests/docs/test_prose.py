"""What is written by hand: links resolve, examples work, decisions have one form, claims name tests that exist."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import aiokafka
import click
import orjson
import pytest

from streams.codec import decode
from streams.log.base import Record
from streams.topics import OTLP_TOPICS, TOPICS
from tests.docs.pages import ROOT
from thalweg.cli import cli

PAGES = sorted(path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))
GENERATED = {"commands.md", "settings.md", "tools.md", "topics.md", "CHANGELOG.md"}
"""Pages that the program writes, and the one of which each line is an entry."""
WIDEST, LONG = 140, 80
"""Characters of a line: at most, and from which on two are not the same by chance."""
SECTIONS = ("Context", "Decision", "Measure", "Consequence")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(text: str) -> list[str]:
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", text)) if not re.match(r"\w+:", link)]


def blocks(path: Path, language: str) -> list[str]:
    return [body for found, body in _FENCE.findall(path.read_text()) if found == language]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in {*GENERATED, "tables.md"}], ids=name)
def test_a_page_says_nothing_twice(page: Path) -> None:
    """Two edits that were merged may both stay. Cells of tables repeat."""
    text = _FENCE.sub("", page.read_text())
    lines = (line for line in text.splitlines() if not line.startswith("|"))
    said = Counter(line for line in lines if line.startswith("## ") or len(line) > LONG)
    assert [line for line, times in said.items() if times > 1] == []


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_a_title_in_it(path: Path) -> None:
    for link in links(path.read_text()):
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{name(path)}: {link}"
        assert not anchor or anchor in anchors(file.read_text()), f"{name(path)}: {link}"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_no_page_has_paths_of_one_machine_or_unfinished_places(path: Path) -> None:
    found = re.findall(r"(?<![\w.])/(?:home|root|work|Users)/\S*|\bTO" r"DO\b|\bFIX" r"ME\b", path.read_text())
    assert not found, f"{name(path)}: {found}"


@pytest.mark.parametrize("path", DECISIONS, ids=name)
def test_a_decision_says_context_decision_measurement_and_consequences_in_this_order(path: Path) -> None:
    text = path.read_text()
    assert re.match(rf"# {path.name[:4]}:? \S", text), "the title begins with the number of the file"
    places = [re.search(rf"^(?:## |\*\*){section}", text, re.MULTILINE) for section in SECTIONS]
    starts = [place.start() for place in places if place]
    assert len(starts) == len(SECTIONS) and starts == sorted(starts), f"{name(path)} has another form"


def test_decisions_are_numbered_without_holes() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("page", ["GUARANTEES.md", "ARCHITECTURE.md", *(name(path) for path in DECISIONS)])
def test_every_test_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    for file in set(re.findall(r"`(tests/[\w/]+(?:\.py|/))", text)):
        assert (ROOT / file).exists(), f"{page}: {file}"
    for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text):
        assert re.search(rf"def {test}\(", (ROOT / file).read_text()), f"{page}: {file}::{test}"


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "GUARANTEES.md"])
def test_every_file_that_a_page_names_exists(page: str) -> None:
    text = _FENCE.sub("", (ROOT / page).read_text())
    pattern = r"`((?:streams|storage|processors|mcp_ingress|thalweg|docs)/[\w/]+(?:\.\w+|/))`"
    missing = [file for file in re.findall(pattern, text) if not (ROOT / file).exists()]
    assert not missing


def test_every_command_that_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text()
    for words in re.findall(
        r"\bthalweg ((?:[a-z]+ ?)+)", "\n".join(re.findall(r"`([^`\n]+)`", text) + blocks(ROOT / "README.md", "sh"))
    ):
        command: click.Command = cli
        for word in words.split():
            if not isinstance(command, click.Group):
                break
            assert word in command.commands, f"thalweg {words}"
            command = command.commands[word]


@pytest.mark.parametrize("source", blocks(ROOT / "README.md", "python"))
def test_python_in_the_readme_compiles(source: str) -> None:
    compile(source, "README.md", "exec")


@pytest.mark.parametrize("source", blocks(ROOT / "README.md", "json"))
def test_json_in_the_readme_can_be_read(source: str) -> None:
    assert orjson.loads(source)


def test_the_producer_in_the_readme_writes_what_the_other_side_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Record] = []

    class Recorder:
        """Takes the place of a broker: the example's call is the real producer's."""

        def __init__(self, **settings: Any) -> None:
            assert settings["acks"] == "all"

        async def __aenter__(self) -> Recorder:
            return self

        async def __aexit__(self, *error: object) -> None:
            pass

        async def send_and_wait(self, topic: str, value: bytes, key: bytes, headers: list[tuple[str, bytes]]) -> None:
            sent.append(Record(topic, 0, 0, 0, key, value, tuple(headers)))

    monkeypatch.setattr(aiokafka, "AIOKafkaProducer", Recorder)
    [source] = [block for block in blocks(ROOT / "README.md", "python") if "AIOKafkaProducer" in block]
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(source, "README.md", "exec"), names)
    asyncio.run(names["main"]())
    [record] = sent
    [logged] = decode(record)
    assert logged.event.namespace == "default"


def test_the_changelog_begins_with_what_is_unreleased_or_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    titles = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert titles[0] in ("Unreleased", version) and version in titles


def test_topics_named_in_the_readme_exist() -> None:
    known = {topic.name for topic in TOPICS} | set(OTLP_TOPICS)
    assert set(re.findall(r"\bthalweg\.\w+\.v\d(?:\.dlq)?\b", (ROOT / "README.md").read_text())) <= known


@pytest.mark.parametrize("path", [path for path in PAGES if path.name not in GENERATED], ids=name)
def test_a_line_of_prose_is_no_wider_than_140_characters(path: Path) -> None:
    prose = _FENCE.sub("", path.read_text()).splitlines()
    wide = [line for line in prose if len(line) > WIDEST and not line.lstrip().startswith("|")]
    assert wide == [], "tables and code apart"

"""What a program may read, it may read as JSON: every command that answers, and each has an example."""

from __future__ import annotations

from collections.abc import Iterator

import click

from thalweg.cli import cli

NO_FLAG = {"thalweg call", "thalweg hook", "thalweg mcp", "thalweg stop", "thalweg up"}
"""The first knows no other form. The others run until they are ended, or say only that it is done."""


def commands(command: click.Command, name: str = "thalweg") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for word, below in command.commands.items():
            yield from commands(below, f"{name} {word}")
    else:
        yield name, command


def test_every_command_has_an_example_and_those_that_answer_answer_in_json_too() -> None:
    found = dict(commands(cli))
    assert len(found) > 20
    assert [name for name, command in found.items() if "Example: " not in (command.help or "")] == []
    without = {
        name for name, command in found.items() if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == NO_FLAG

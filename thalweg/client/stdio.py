"""`thalweg mcp`: finds the node and pumps to it. Imports next to nothing: an MCP client waits for the first answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from thalweg.client.node_process import node_command
from thalweg.client.project import namespace_of
from thalweg.client.pump import run as pump
from thalweg.environment import default_home, process_environment

USAGE = "usage: thalweg mcp [--home DIR] [--namespace NAME|auto] [--toolsets NAMES] [--read-only]"
OPTIONS = ("--home", "--namespace", "--toolsets")
NAMES = ("home", "namespace", "toolsets", "read_only")
READ_ONLY = {"--read-only": "true", "--no-read-only": "false"}


def run(arguments: list[str]) -> int:
    """Pump until stdin ends; the exit code."""
    try:
        given = dict(_options(arguments))
    except ValueError as error:
        print(f"thalweg: {error}\n{USAGE}", file=sys.stderr)
        return 2
    environment = process_environment()
    values = {name: given.get(name) or environment.get(f"THALWEG_{name.upper()}", "") for name in NAMES}
    directory = (Path(values["home"]).expanduser() if values["home"] else default_home()).absolute()
    return pump(directory, node_command(directory), _scope(values))


def _options(arguments: list[str]) -> Iterator[tuple[str, str]]:
    """(name, value) of each option. Raises ValueError for what is none."""
    rest = iter(arguments)
    for argument in rest:
        option, is_whole, value = argument.partition("=")
        if argument in READ_ONLY:
            yield "read_only", READ_ONLY[argument]
        elif option in OPTIONS:
            value = value if is_whole else next(rest, "")
            if not value:
                raise ValueError(f"{option} needs a value.")
            yield option.removeprefix("--"), value
        else:
            raise ValueError(f"{argument!r} is not understood.")


def _scope(values: Mapping[str, str]) -> dict[str, Any]:
    """What the client asks to see, as it was said: the node knows what may be asked for."""
    scope: dict[str, Any] = {}
    if values["namespace"]:
        scope["namespace"] = namespace_of(values["namespace"])
    if values["toolsets"]:
        scope["toolsets"] = values["toolsets"]
    if values["read_only"]:
        scope["read_only"] = values["read_only"]
    return scope

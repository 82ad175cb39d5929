"""The pages that are generated from the program: settings, commands, tools.

`python -m tests.docs.pages` writes them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import click
import orjson

from mcp_ingress.inventory import find_tools, hints
from mcp_ingress.tool import Tool
from thalweg.cli import cli
from thalweg.settings import Settings

ROOT = Path(__file__).parents[2]


def settings_page() -> str:
    """docs/settings.md: a row for each field of Settings."""
    lines = [
        "# Settings",
        "",
        "Generated from `thalweg/settings.py` by `python -m tests.docs.pages`. A flag of the command goes before the "
        "variable, the variable before",
        "`thalweg.toml` in the data directory (which a flag or `THALWEG_HOME` names), that before the default. "
        "A name that is not a setting is refused.",
        "",
        "| setting | variable | type | default | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{spec.name}` | `THALWEG_{spec.name.upper()}` | {spec.type} | {_default(spec)} | {spec.metadata['help']} |"
        for spec in fields(Settings)
    ]
    lines += [
        "",
        "For example:",
        "",
        "```toml",
        'broker = "kafka://localhost:9092"',
        'http = "7733"',
        "embed_threads = 4",
        "```",
        "",
        "User, password and certificates of a Kafka are in the environment only: "
        "[kafka.md](kafka.md) lists those variables.",
    ]
    return "\n".join(lines) + "\n"


def _default(spec: Field[Any]) -> str:
    if spec.default is MISSING:
        return "`$XDG_DATA_HOME/thalweg`, else `~/.local/share/thalweg`"
    if isinstance(spec.default, bool):
        return f"`{str(spec.default).lower()}`"
    return f"`{spec.default}`" if spec.default != "" else "empty"


def commands_page() -> str:
    """docs/commands.md: each command with its arguments, options and example."""
    lines = [
        "# Commands",
        "",
        "Generated from the command line's own help by `python -m tests.docs.pages`. "
        "Exit codes: 0, 1 (failed, or not green), 2 (usage or a wrong setting).",
        "What a flag does not say comes from the [settings](settings.md).",
    ]
    for name, command in _commands(cli, "thalweg"):
        lines += ["", f"## {name}", "", *_command(name, command)]
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    for name in sorted(group.commands):
        command = group.commands[name]
        if isinstance(command, click.Group) and command.commands:
            yield from _commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _command(name: str, command: click.Command) -> list[str]:
    context = click.Context(command, info_name=name)
    usage = " ".join(piece for piece in command.collect_usage_pieces(context) if piece)
    text, _, example = inspect.cleandoc(command.help or "").partition("\b\n")
    lines = [" ".join(text.split()), "", "```", f"{name} {usage}".rstrip(), *example.strip().splitlines(), "```"]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        lines += ["", "| option | meaning |", "|---|---|"]
        lines += [_option(option, context) for option in options]
    return lines


def _option(option: click.Option, context: click.Context) -> str:
    shown, meaning = option.get_help_record(context) or (option.name, "")
    return f"| `{_cell(shown or '')}` | {_cell(meaning)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def tools_page() -> str:
    """docs/tools.md: each tool with its contract."""
    inventory = find_tools()
    lines = [
        "# Tools",
        "",
        "Generated from the tools' own modules by `python -m tests.docs.pages`; "
        "`thalweg tools --json` prints the schemas in full.",
        "Arguments are exact: an undeclared one is refused by name, nothing is coerced. "
        "Errors: [errors.md](errors.md).",
        "Every tool takes `_meta`: `thalweg/request_id` (the same call again has one effect) "
        "and `thalweg/freshness` (what a read must see).",
        "",
        "| tool | toolset | kind | what it does |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| [`{tool.name}`](#{tool.name.replace('.', '')}) | {tool.toolset} | {tool.kind} | {tool.title} |"
        for tool in inventory
    ]
    for tool in inventory:
        lines += ["", f"## {tool.name}", "", *_tool(tool)]
    return "\n".join(lines) + "\n"


def _tool(tool: Tool) -> list[str]:
    said = ", ".join(f"`{name}`" for name, holds in hints(tool).items() if holds) or "none"
    lines = [tool.description, "", f"At most {tool.timeout_s:g} s. Hints that hold: {said}."]
    required = tool.input_schema.get("required", [])
    lines += ["", "| argument | type | | meaning |", "|---|---|---|---|"]
    for name, schema in tool.input_schema["properties"].items():
        need = (
            "needed"
            if name in required
            else f"default `{orjson.dumps(schema['default']).decode()}`"
            if "default" in schema
            else ""
        )
        lines.append(f"| `{name}` | {_type(schema)} | {need} | {schema.get('description', '')} |")
    answer = ", ".join(f"`{name}`" for name in tool.output_schema.get("properties", {}))
    return [*lines, "", f"Answers {answer}."]


def _type(schema: Any) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    return f"{kind} of {_type(schema['items'])}" if kind == "array" and "items" in schema else kind


PAGES = {"docs/settings.md": settings_page, "docs/commands.md": commands_page, "docs/tools.md": tools_page}


def main() -> None:
    """Write the pages."""
    for path, page in PAGES.items():
        (ROOT / path).write_text(page())


if __name__ == "__main__":
    main()

"""The inventory: finds every `TOOL` in `toolsets/<toolset>/<tool>.py`, checks it, and chooses what a server shows.

Nothing is listed by hand: a module with a `TOOL` is a tool, one without is not. A toolset's package may define `PULSE`,
a function whose result is added to every answer of the toolset, `ERROR_CODES`, its own names for the codes
that all share, and `GROUPS`, parts of it that can be chosen alone: name -> the nouns that its tools' names begin with.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any

import jsonschema_rs

from mcp_ingress import toolsets
from mcp_ingress.arguments import ArgumentCheck
from mcp_ingress.tool import Pulse, Tool
from streams.errors import SettingsError

MAX_NAME = 60
MAX_DESCRIPTION = 4096
"""Clients cut a description there."""
_NAME = re.compile(r"[a-z][a-z0-9_.]*")


class ToolDefect(Exception):
    """A tool that must not be served: a mistake in its module, found when it is imported."""


@dataclass(frozen=True)
class Inventory:
    """Tools by name, in the order of their names; `checks` validates the arguments of each.

    `codes` holds a toolset's own names for codes that it shares with the others, by the toolset's name; `groups` the
    nouns of each part of a toolset that can be chosen alone.
    """

    tools: Mapping[str, Tool]
    pulses: Mapping[str, Pulse] = field(default_factory=dict)
    checks: Mapping[str, ArgumentCheck] = field(default_factory=dict)
    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    groups: Mapping[str, Collection[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        tools: Iterable[Tool],
        pulses: Mapping[str, Pulse] | None = None,
        codes: Mapping[str, Mapping[str, str]] | None = None,
        groups: Mapping[str, Collection[str]] | None = None,
    ) -> Inventory:
        """An inventory of these tools, each checked. Raises ToolDefect."""
        exact: dict[str, Tool] = {}
        for tool in sorted(tools, key=lambda tool: tool.name):
            if tool.name in exact:
                raise ToolDefect(f"Two tools are called {tool.name}.")
            exact[tool.name] = checked(tool)
        return cls(
            exact,
            pulses or {},
            {name: ArgumentCheck(tool.input_schema) for name, tool in exact.items()},
            codes or {},
            groups or {},
        )

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    def __len__(self) -> int:
        return len(self.tools)

    @property
    def toolsets(self) -> list[str]:
        return sorted({tool.toolset for tool in self})

    def select(self, toolsets: Collection[str] | None = None, *, read_only: bool = False) -> Inventory:
        """The tools of these toolsets or groups (None: all), only those that read when asked. Raises SettingsError for an unknown one."""
        known = [*self.toolsets, *self.groups]
        for name in toolsets or ():
            if name not in known:
                raise SettingsError(f"There is no toolset {name!r}; there are {', '.join(known)}.")
        chosen = (
            tool
            for tool in self
            if (not toolsets or any(self._belongs(tool, name) for name in toolsets))
            and (tool.kind == "read" or not read_only)
        )
        return Inventory.of(chosen, self.pulses, self.codes, self.groups)

    def _belongs(self, tool: Tool, name: str) -> bool:
        if name not in self.groups:
            return tool.toolset == name
        return tool.toolset == name.split(".")[0] and tool.name.split("_")[0] in self.groups[name]

    def code(self, tool: Tool | None, code: str) -> str:
        """The code as the tool's toolset calls it."""
        return code if tool is None else self.codes.get(tool.toolset, {}).get(code, code)

    def nearest(self, name: str) -> str | None:
        """The tool that was probably meant."""
        return _nearest(name.rsplit("__", 1)[-1].lower().replace("-", "_"), tuple(self.tools))


@lru_cache(maxsize=256)
def _nearest(name: str, tools: tuple[str, ...]) -> str | None:
    """Remembered, because it takes a millisecond, and who calls a tool that is not there often does so again."""
    close = get_close_matches(name, tools, n=1, cutoff=0.6)
    return close[0] if close else None


@cache
def find_tools() -> Inventory:
    """Every tool of the distribution. Raises ToolDefect naming the module that is wrong."""
    tools: list[Tool] = []
    pulses: dict[str, Pulse] = {}
    codes: dict[str, Mapping[str, str]] = {}
    groups: dict[str, Collection[str]] = {}
    for package in pkgutil.iter_modules(toolsets.__path__, toolsets.__name__ + "."):
        toolset = importlib.import_module(package.name)
        toolset_name = package.name.rsplit(".", 1)[1]
        if hasattr(toolset, "PULSE"):
            pulses[toolset_name] = toolset.PULSE
        if hasattr(toolset, "ERROR_CODES"):
            codes[toolset_name] = toolset.ERROR_CODES
        groups |= getattr(toolset, "GROUPS", {})
        for entry in pkgutil.iter_modules(toolset.__path__, toolset.__name__ + "."):
            tool = getattr(importlib.import_module(entry.name), "TOOL", None)
            if tool is not None:
                _check_place(tool, toolset_name, entry.name)
                tools.append(tool)
    return Inventory.of(tools, pulses, codes, groups)


def _check_place(tool: Any, toolset: str, module: str) -> None:
    if not isinstance(tool, Tool):
        raise ToolDefect(f"{module}: TOOL is a {type(tool).__name__}, not a Tool.")
    if tool.name.rsplit(".", 1)[-1] != module.rsplit(".", 1)[1]:
        raise ToolDefect(f"{module}: the tool is called {tool.name}; module and tool have one name.")
    if tool.toolset != toolset:
        raise ToolDefect(f"{module}: the tool says toolset {tool.toolset}; it lies in {toolset}.")


def checked(tool: Tool) -> Tool:
    """The tool with an exact input schema (`additionalProperties: false` on every object that names its properties)."""

    def require(condition: bool, what: str) -> None:
        if not condition:
            raise ToolDefect(f"The tool {tool.name}: {what}.")

    require(
        bool(_NAME.fullmatch(tool.name)) and len(tool.name) <= MAX_NAME,
        f"the name is a-z, 0-9, _ and ., at most {MAX_NAME} long",
    )
    require(bool(tool.title.strip()) and bool(tool.description.strip()), "title and description are needed")
    require(
        len(tool.description) < MAX_DESCRIPTION, f"the description is cut by clients at {MAX_DESCRIPTION} characters"
    )
    require(tool.kind in ("read", "write", "long"), f"the kind is {tool.kind!r}; it is read, write or long")
    require(
        all(isinstance(hint, bool) for hint in (tool.idempotent, tool.destructive, tool.open_world)),
        "annotations are True or False",
    )
    require(not (tool.kind == "read" and tool.destructive), "what only reads is not destructive")
    require(0 < tool.timeout_s <= 600, "timeout_s is above 0 and at most 600")
    for which, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        require(schema.get("type") == "object", f"the {which} schema is of type object")
        require(jsonschema_rs.meta.is_valid(dict(schema)), f"the {which} schema is not a JSON Schema")
    return replace(tool, input_schema=_exact(tool.input_schema))


def _exact(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with every object closed that names its properties; the outermost always."""
    closed = _closed(schema)
    return {**closed, "properties": closed.get("properties", {}), "additionalProperties": False}


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {
        name: value if name in ("default", "enum", "const", "examples") else _closed(value)
        for name, value in schema.items()
    }
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


def hints(tool: Tool) -> dict[str, bool]:
    """All four hints of MCP, none left to a client's guess."""
    reads = tool.kind == "read"
    return {
        "readOnlyHint": reads,
        "destructiveHint": tool.destructive,
        "idempotentHint": reads or tool.idempotent,
        "openWorldHint": tool.open_world,
    }

"""The inventory: finds every tool and toolset, checks them, and chooses what a server shows.

Nothing is listed by hand: a module `toolsets/<toolset>/<tool>.py` with a `TOOL` is a tool, one without is not, and each
`toolsets/<toolset>/__init__.py` says in `TOOLSET` what its tools share.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any

import jsonschema_rs

from mcp_ingress import toolsets
from mcp_ingress.arguments import ArgumentCheck
from mcp_ingress.fitting.truncation import with_truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolset import Sessions, Setup, Toolset
from streams.errors import SettingsError, UnknownTool

MAX_NAME = 60
MAX_DESCRIPTION = 4096
"""Clients cut a description there."""
_NAME = re.compile(r"[a-z][a-z0-9_.]*")
CORE = "core"
"""The toolset whose tools are listed first."""
UNKNOWN = Toolset("unknown")
"""The toolset of a tool that is not there."""


class ToolDefect(Exception):
    """A tool that must not be served: a mistake in its module, found when it is imported."""


@dataclass(frozen=True)
class Inventory:
    """Tools by name, core's first, then in the order of their names; their checks, and toolsets by name.

    The toolsets are all that there are, also those of which no tool is served: they share sessions and retired names.
    """

    tools: Mapping[str, Tool]
    checks: Mapping[str, ArgumentCheck]
    toolsets: Mapping[str, Toolset]
    sessions: Sessions | None = None

    @classmethod
    def of(cls, tools: Iterable[Tool], toolsets: Iterable[Toolset] = ()) -> Inventory:
        """An inventory of these tools, each checked. A toolset that is not given has a name only. Raises ToolDefect."""
        exact: dict[str, Tool] = {}
        known = {toolset.name: toolset for toolset in toolsets}
        for tool in sorted(tools, key=lambda tool: (tool.toolset != CORE, tool.name)):
            if tool.name in exact:
                raise ToolDefect(f"Two tools are called {tool.name}.")
            exact[tool.name] = validate_tool(tool)
            known.setdefault(tool.toolset, Toolset(tool.toolset))
        sessions = [toolset.sessions for toolset in known.values() if toolset.sessions is not None]
        if len(sessions) > 1:
            raise ToolDefect("Two toolsets declare the sessions that calls belong to; one at most can.")
        for name in exact:
            for toolset in known.values():
                if name in toolset.retired:
                    raise ToolDefect(f"The tool {name} is served, and {toolset.name} says that it is retired.")
        checks = {name: ArgumentCheck(tool.input_schema) for name, tool in exact.items()}
        return cls(exact, checks, known, sessions[0] if sessions else None)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    def __len__(self) -> int:
        return len(self.tools)

    @property
    def served(self) -> list[str]:
        """The names of the toolsets of which a tool is served, core first."""
        return sorted({tool.toolset for tool in self}, key=lambda name: (name != CORE, name))

    def choose(self, toolsets: Collection[str] | None = None, *, read_only: bool = False) -> list[Tool]:
        """The tools of these toolsets or groups (none: all), only those that read when asked.

        Raises SettingsError for an unknown one.
        """
        known = [*self.served, *(group for toolset in self.toolsets.values() for group in toolset.groups)]
        for name in toolsets or ():
            if name not in known:
                raise SettingsError(f"There is no toolset {name!r}; choose from {', '.join(known)}.")
        return [
            tool
            for tool in self
            if (not toolsets or any(self._belongs(tool, name) for name in toolsets))
            and (tool.kind == "read" or not read_only)
        ]

    def select(self, toolsets: Collection[str] | None = None, *, read_only: bool = False) -> Inventory:
        """An inventory of what `choose` gives. Raises SettingsError."""
        return Inventory.of(self.choose(toolsets, read_only=read_only), self.toolsets.values())

    def _belongs(self, tool: Tool, name: str) -> bool:
        nouns = self.toolsets[tool.toolset].groups.get(name, ())
        return tool.toolset == name or tool.name.split("_")[0] in nouns

    def toolset(self, tool: Tool | None) -> Toolset:
        """The toolset of a tool, or of a resource; one without anything of its own when it has none."""
        return self.toolsets.get(tool.toolset, UNKNOWN) if tool is not None else UNKNOWN

    def parts(self, setup: Setup) -> dict[type, object]:
        """The parts that the toolsets declare, by their types. Raises SettingsError."""
        declared = [toolset.parts for toolset in self.toolsets.values() if toolset.parts is not None]
        return {type(part): part for parts in declared for part in parts(setup)}

    def unknown(self, name: str, served: Collection[str] | None = None) -> UnknownTool:
        """The refusal of a name that no tool has: what replaces it when it is retired, else the nearest one.

        `served`: the tools that the caller has; None: all.
        """
        if (toolset := self.toolset_of_retired(name)) is not None:
            return UnknownTool(f"The tool {name!r} is retired. {toolset.retired[name]}")
        near = self.nearest(name, served)
        hint = f"Did you mean {near!r}?" if near else "tools/list lists the tools."
        return UnknownTool(f"There is no tool {name!r}. {hint}")

    def toolset_of_retired(self, name: str) -> Toolset | None:
        """The toolset that once had a tool of this name."""
        return next((toolset for toolset in self.toolsets.values() if name in toolset.retired), None)

    def nearest(self, name: str, served: Collection[str] | None = None) -> str | None:
        """The tool that was probably meant, among those that are `served`."""
        return _nearest(
            name.rsplit("__", 1)[-1].lower().replace("-", "_"), tuple(self.tools if served is None else served)
        )


@lru_cache(maxsize=256)
def _nearest(name: str, tools: tuple[str, ...]) -> str | None:
    """Cached: it takes a millisecond, and a client that calls a missing tool often does so again."""
    close = get_close_matches(name, tools, n=1, cutoff=0.6)
    return close[0] if close else None


@cache
def find_tools() -> Inventory:
    """Every tool of the distribution. Raises ToolDefect naming the module that is wrong."""
    tools: list[Tool] = []
    found: list[Toolset] = []
    for package in pkgutil.iter_modules(toolsets.__path__, toolsets.__name__ + "."):
        module = importlib.import_module(package.name)
        toolset = getattr(module, "TOOLSET", None)
        if not isinstance(toolset, Toolset) or toolset.name != package.name.rsplit(".", 1)[1]:
            raise ToolDefect(f"{package.name}: TOOLSET is a Toolset of the package's name.")
        found.append(toolset)
        for entry in pkgutil.iter_modules(module.__path__, module.__name__ + "."):
            tool = getattr(importlib.import_module(entry.name), "TOOL", None)
            if tool is not None:
                _check_place(tool, toolset.name, entry.name)
                tools.append(tool)
    return Inventory.of(tools, found)


def _check_place(tool: Any, toolset: str, module: str) -> None:
    if not isinstance(tool, Tool):
        raise ToolDefect(f"{module}: TOOL is a {type(tool).__name__}, not a Tool.")
    if tool.name.rsplit(".", 1)[-1] != module.rsplit(".", 1)[1]:
        raise ToolDefect(f"{module}: the tool is called {tool.name}; module and tool have one name.")
    if tool.toolset != toolset:
        raise ToolDefect(f"{module}: the tool says toolset {tool.toolset}; it lies in {toolset}.")


def validate_tool(tool: Tool) -> Tool:
    """The tool with exact schemas: the output's has what an answer says of what did not fit.

    The input's has `additionalProperties: false` on every object that names its properties. Raises ToolDefect.
    """

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
    require(tool.kind in ("read", "write"), f"the kind is {tool.kind!r}; it is read or write")
    require(
        all(isinstance(hint, bool) for hint in (tool.idempotent, tool.destructive, tool.open_world)),
        "annotations are True or False",
    )
    require(not (tool.kind == "read" and tool.destructive), "what only reads is not destructive")
    require(0 < tool.timeout_s <= 600, "timeout_s is above 0 and at most 600")
    for which, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        require(schema.get("type") == "object", f"the {which} schema is of type object")
        require(jsonschema_rs.meta.is_valid(dict(schema)), f"the {which} schema is not a JSON Schema")
    return replace(
        tool, input_schema=_exact(tool.input_schema), output_schema=with_truncation(tool.output_schema, tool.truncation)
    )


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

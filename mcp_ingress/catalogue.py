"""The catalogue of a connection: the tools and resources that it is served, of the node's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mcp_ingress.inventory import Inventory
from mcp_ingress.resource import Resource, Resources
from mcp_ingress.scope import Grant, Scope
from mcp_ingress.tool import Tool
from mcp_ingress.toolset import Toolset
from streams.errors import Forbidden, Refused, SettingsError, UnknownTool
from streams.redaction import excerpt

MAX_CATALOGUES = 256


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Tools by name, resources by base URI, and the toolsets that one of these tools is of."""

    tools: Mapping[str, Tool]
    resources: Mapping[str, Resource]
    toolsets: tuple[Toolset, ...]
    read_only: bool

    def __contains__(self, name: str) -> bool:
        """Whether it has this tool, or a resource of this base URI."""
        return name in self.tools or name in self.resources

    def refusal(self, tool: Tool) -> UnknownTool:
        """Why a tool that the node has is not in here."""
        if self.read_only and tool.kind != "read":
            return UnknownTool(f"The tool {tool.name!r} writes, and this connection only reads.")
        served = ", ".join(toolset.name for toolset in self.toolsets) or "none"
        return UnknownTool(
            f"The tool {tool.name!r} is of the toolset {tool.toolset}, and this connection is served {served} only."
        )


class Catalogues:
    """The catalogues of a node's tools, each made once for a choice of toolsets."""

    def __init__(self, inventory: Inventory, resources: Resources) -> None:
        self._inventory, self._resources = inventory, resources
        self._made: dict[tuple[tuple[str, ...], bool], Catalogue] = {}

    def of(self, grant: Grant, scope: Scope) -> Catalogue:
        """What a client is served of what its credential may use. Raises Refused, and Forbidden beyond the latter."""
        read_only = grant.reads_only(scope.read_only)
        if grant.toolsets and scope.toolsets:
            allowed = self._find(grant.toolsets, read_only).tools
            for name in scope.toolsets:
                if not self._find((name,), read_only).tools.keys() <= allowed.keys():
                    raise Forbidden(
                        f"This credential gives the toolsets {', '.join(grant.toolsets)}, and {name!r} was asked for."
                    )
        return self._find(scope.toolsets or grant.toolsets, read_only)

    def check(self, toolsets: Collection[str]) -> None:
        """Raises Refused for a toolset, or group of one, that the node does not serve."""
        unserved = [name for name in toolsets if name in self._inventory.toolsets.keys() - {*self._inventory.served}]
        if unserved:
            raise Refused(
                f"This node does not serve the toolset {unserved[0]!r} (its setting `toolsets`); "
                f"choose from {', '.join(self._inventory.served)}."
            )
        try:
            self._inventory.choose([excerpt(name, 60) for name in toolsets])
        except SettingsError as unknown:
            raise Refused(unknown.message) from None

    def _find(self, toolsets: tuple[str, ...], read_only: bool) -> Catalogue:
        key = toolsets, read_only
        if key not in self._made:
            self.check(toolsets)
            if len(self._made) >= MAX_CATALOGUES:
                self._made.clear()
            self._made[key] = self._make(toolsets, read_only)
        return self._made[key]

    def _make(self, toolsets: tuple[str, ...], read_only: bool) -> Catalogue:
        tools = {tool.name: tool for tool in self._inventory.choose(toolsets, read_only=read_only)}
        names = {tool.toolset for tool in tools.values()}
        return Catalogue(
            tools,
            self._resources.select(names).resources,
            tuple(self._inventory.toolsets[name] for name in self._inventory.served if name in names),
            read_only,
        )

"""A resource is one self-describing value on one screen.

The module `toolsets/<toolset>/resources/<name>.py` defines it. Reading one is a call like any other: its
parameters are its arguments, and the door runs it as a tool that is not listed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote

from mcp_ingress import toolsets
from mcp_ingress.arguments import ArgumentCheck
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import NOTHING_LONG, Truncation
from mcp_ingress.tool import Tool
from streams.errors import Refused

MIME_TYPE = "application/json"
MAX_URI = 8_192
SHARED = "memory"
"""The toolset whose resources every server has."""
Items = tuple[list[dict[str, Any]], bool]
"""What a read gives: the items, and whether they are as fresh as was asked."""
Handler = Callable[[Call, dict[str, Any]], Awaitable[Items]]


@dataclass(frozen=True)
class Resource:
    """A base URI, the parameters that may follow it (JSON Schemas by name), and what reads it.

    Parameters come as text: numbers outside their bounds are clamped, text in place of a number is refused.
    """

    uri: str
    toolset: str
    title: str
    description: str
    parameters: Mapping[str, Mapping[str, Any]]
    handler: Handler
    required: tuple[str, ...] = ()
    timeout_s: float = 30.0
    path: str | None = None
    """The parameter that is the rest of the path, if any: then the URI by itself is a template and not a resource."""
    truncation: Truncation | None = NOTHING_LONG
    """As of a tool; its rows are the field `contents`."""

    @property
    def name(self) -> str:
        return self.uri.split("://", 1)[1]

    @property
    def template(self) -> str | None:
        """The URI with its parameters (RFC 6570); None when it takes none."""
        place = "" if self.path is None else f"/{{{self.path}}}"
        names = ",".join(name for name in self.parameters if name != self.path)
        return f"{self.uri}{place}{{?{names}}}" if self.parameters else None

    def as_tool(self) -> Tool:
        """The call that reads it. Its argument `uri` is the URI of the request."""

        async def read(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
            uri = str(arguments.pop("uri"))
            items, is_fresh = await self.handler(call, arguments)
            envelope = {"resource": self.uri, "uri": uri, "mimeType": MIME_TYPE, "contents": items}
            return envelope if is_fresh else envelope | {"stale": True}

        schema = {"uri": {"type": "string"}, **self.parameters}
        required = ["uri", *self.required]
        return Tool(
            name=self.uri,
            toolset=self.toolset,
            title=self.title,
            description=self.description,
            input_schema={"type": "object", "properties": schema, "required": required, "additionalProperties": False},
            output_schema={"type": "object"},
            kind="read",
            handler=read,
            timeout_s=self.timeout_s,
            truncation=self.truncation,
        )


@dataclass(frozen=True)
class Resources:
    """Resources by base URI, with the calls that read them and the checks of their parameters."""

    resources: Mapping[str, Resource] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    checks: Mapping[str, ArgumentCheck] = field(default_factory=dict)

    @classmethod
    def of(cls, resources: Collection[Resource]) -> Resources:
        found = {resource.uri: resource for resource in sorted(resources, key=lambda each: each.uri)}
        if len(found) < len(resources):
            raise ValueError("two resources have one URI")
        tools = {uri: resource.as_tool() for uri, resource in found.items()}
        return cls(found, tools, {uri: ArgumentCheck(tool.input_schema) for uri, tool in tools.items()})

    def select(self, toolsets: Collection[str]) -> Resources:
        """The resources of these toolsets, and those that the answers of all of them name."""
        chosen = {SHARED, *toolsets}
        return Resources.of([resource for resource in self.resources.values() if resource.toolset in chosen])

    def name_of(self, uri: str) -> str:
        """The base URI of the resource that is asked for; the URI without its parameters where there is none."""
        base = base_of(uri)
        parents = (each.uri for each in self.resources.values() if each.path and base.startswith(f"{each.uri}/"))
        return next(parents, base)


@cache
def find_resources() -> Resources:
    """Every `RESOURCE` of the distribution."""
    found: list[Resource] = []
    for package in pkgutil.iter_modules(toolsets.__path__, toolsets.__name__ + "."):
        toolset = importlib.import_module(package.name)
        if not any(entry.name == "resources" for entry in pkgutil.iter_modules(toolset.__path__)):
            continue
        place = importlib.import_module(f"{package.name}.resources")
        modules = (
            importlib.import_module(entry.name) for entry in pkgutil.iter_modules(place.__path__, place.__name__ + ".")
        )
        found += [module.RESOURCE for module in modules if hasattr(module, "RESOURCE")]
    return Resources.of(found)


def base_of(uri: str) -> str:
    """The URI without its parameters."""
    return uri.partition("?")[0].rstrip("/")


def arguments_of(resource: Resource, uri: str) -> dict[str, Any]:
    """The parameters of a URI as arguments, `+` a space.

    Raises Refused for an unknown or repeated one, and for text where a number is expected.
    """
    if len(uri) > MAX_URI:
        raise Refused(f"The URI has {len(uri)} characters; at most {MAX_URI} are accepted.")
    try:
        pairs = parse_qsl(uri.partition("?")[2], keep_blank_values=True, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise Refused("The parameters of the URI are not valid percent-encoded UTF-8.") from None
    arguments: dict[str, Any] = {}
    for name, text in pairs:
        if name not in resource.parameters or name == resource.path:
            accepted = ", ".join(each for each in resource.parameters if each != resource.path) or "none"
            raise Refused(f"There is no parameter `{name[:80]}`; accepted: {accepted}.", code="resource_not_found")
        if name in arguments:
            raise Refused(f"The parameter `{name}` is given twice.")
        arguments[name] = _typed(name, text, resource.parameters[name])
    if resource.path is not None:
        arguments[resource.path] = _last_of_path(resource, uri)
    return arguments


def _last_of_path(resource: Resource, uri: str) -> str:
    try:
        found = unquote(base_of(uri).removeprefix(resource.uri).removeprefix("/"), errors="strict")
    except UnicodeDecodeError:
        raise Refused("The path of the URI is not valid percent-encoded UTF-8.") from None
    if not found:
        raise Refused(
            f"The URI lacks its `{resource.path}`; its form is {resource.template}.", code="resource_not_found"
        )
    return found


def _typed(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if kind not in ("integer", "number"):
        return text
    try:
        value: float = int(text) if kind == "integer" else float(text)
    except ValueError:
        raise Refused(
            f"The parameter `{name}` is {text[:80]!r}; {'an integer' if kind == 'integer' else 'a number'} is expected."
        ) from None
    if value != value:
        raise Refused(f"The parameter `{name}` must be a finite number.")
    if "maximum" in schema:
        value = min(value, schema["maximum"])
    return max(value, schema["minimum"]) if "minimum" in schema else value

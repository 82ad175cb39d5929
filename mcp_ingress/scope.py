"""The scope of a connection: a namespace and which tools; and what a credential may ask for of it.

A client of the socket names its scope by the request `thalweg/scope`, before any other; one over HTTP by headers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streams.errors import Forbidden, Refused
from streams.namespaces import MAX_NAMESPACE, check_namespace
from streams.redaction import excerpt

METHOD = "thalweg/scope"
HEADERS = {
    "thalweg-namespace": "namespace",
    "thalweg-toolsets": "toolsets",
    "thalweg-read-only": "read_only",
}
ANY = "*"
"""In place of a namespace: every one."""
_TRUTH = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, slots=True)
class Scope:
    """What a client asks to see.

    Without a `namespace` it is that of its credential, without `toolsets` (names, sorted) all that this may use.
    """

    namespace: str | None = None
    toolsets: tuple[str, ...] = ()
    read_only: bool | None = None

    @classmethod
    def of_headers(cls, headers: Sequence[tuple[bytes, bytes]]) -> Scope:
        """Of the headers of an HTTP request, each in UTF-8. Raises Refused."""
        given: dict[str, str] = {}
        for name, value in headers:
            header = name.decode("latin-1").lower()
            if header not in HEADERS:
                continue
            if HEADERS[header] in given:
                raise Refused(f"The header {header} is there twice.")
            try:
                given[HEADERS[header]] = value.decode()
            except UnicodeDecodeError:
                raise Refused(f"The header {header} is not UTF-8.") from None
        return cls.parse(given)

    @classmethod
    def parse(cls, given: Any) -> Scope:
        """Of `{"namespace"?: text, "toolsets"?: [text] or "a,b", "read_only"?: true}`. Raises Refused."""
        if not isinstance(given, Mapping):
            raise Refused(f"A scope is an object with {', '.join(HEADERS.values())}.")
        for name in given:
            if name not in HEADERS.values():
                accepted = ", ".join(HEADERS.values())
                raise Refused(f"A scope has no field {excerpt(str(name), 60)!r}; accepted: {accepted}.")
        namespace = given.get("namespace")
        if namespace is not None and not isinstance(namespace, str):
            raise Refused("The `namespace` of a scope is a text.")
        toolsets = given.get("toolsets") or []
        names = toolsets.split(",") if isinstance(toolsets, str) else toolsets
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise Refused("The `toolsets` of a scope are a list of names.")
        return cls(
            None if namespace is None else check_namespace(namespace),
            tuple(sorted({name.strip() for name in names} - {""})),
            _truth(given.get("read_only")),
        )


def _truth(given: Any) -> bool | None:
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, str) and given.lower() in _TRUTH:
        return _TRUTH[given.lower()]
    raise Refused(f"The `read_only` of a scope is {excerpt(str(given), 60)!r}; accepted: true, false.")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a credential may see.

    Of its `namespaces` the first is meant where none is asked for; ANY stands for every one. No `toolsets`: all.
    """

    principal: str
    namespaces: tuple[str, ...]
    toolsets: tuple[str, ...] = ()
    read_only: bool = False
    sql: bool = False
    """Whether it may ask analysts' SQL, which reads every namespace."""

    def namespace(self, asked: str | None) -> str:
        """The namespace that is asked for. Raises Forbidden."""
        if asked is None:
            return self.namespaces[0]
        if asked not in self.namespaces and ANY not in self.namespaces:
            raise Forbidden(
                f"This credential gives {_names('namespace', self.namespaces)}, "
                f"and {excerpt(asked, MAX_NAMESPACE)!r} was asked for."
            )
        return asked

    def reads_only(self, asked: bool | None) -> bool:
        """Whether only tools that read are served. Raises Forbidden."""
        if self.read_only and asked is False:
            raise Forbidden("This credential only reads.")
        return self.read_only or bool(asked)


def _names(noun: str, names: tuple[str, ...]) -> str:
    return f"the {noun} {names[0]!r}" if len(names) == 1 else f"the {noun}s {', '.join(map(repr, names))}"

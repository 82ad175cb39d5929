"""A toolset: what its tools share, as one value. `toolsets/<toolset>/__init__.py` calls it `TOOLSET`.

The door asks this value and never a toolset by name: how an error is answered, what must be on, what a session is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_ingress.call import Call
from mcp_ingress.records import Invocation
from mcp_ingress.services import Services
from processors.embedding.model import Embedder
from streams.errors import Refused, ThalwegError
from streams.events import Event

Plane = Literal["result", "jsonrpc"]
ErrorShape = Callable[[str, str, str, Mapping[str, Any]], dict[str, Any]]
"""(tool, code, message, extras) -> the body of an error, for a toolset whose errors have a form of their own."""
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
_OWN_FIELDS = frozenset({"success", "degraded", "error_code", "error_message", "message", "error"})


@dataclass(frozen=True)
class ErrorStyle:
    """How the errors of a toolset look to its callers."""

    codes: Mapping[str, str] = field(default_factory=dict)
    """The toolset's own name of each code that all toolsets share, where it has one."""
    shape: ErrorShape | None = None
    sentence_field: str = "message"
    """The one name under which an error's answer has its sentence, where it has no shape of its own."""
    code_field: str | None = None
    """A second name under which an error's answer carries its code."""
    plane: Plane = "result"
    """Whether a failed tool is answered with a result that says so, or with a JSON-RPC error that has it as data."""
    explains: bool = False
    """Whether an error says beside its code what is wrong (`reason`), of which argument (`field`), and the `remedy`."""
    rpc_codes: Mapping[str, int] = field(default_factory=dict)
    """JSON-RPC codes by the toolset's code. Without one a refusal is -32602, and everything else -32603."""

    def code(self, code: str) -> str:
        """The toolset's name of a code."""
        return self.codes.get(code, code)

    def explanation(self, error: ThalwegError, code: str) -> dict[str, Any]:
        """What else the error says of itself; `code` is the toolset's own."""
        if not self.explains:
            return {}
        about = (error.reason, error.field) if isinstance(error, Refused) else (None, None)
        named = {"reason": about[0] or code, "field": about[1], "remedy": error.remedy}
        return {name: value for name, value in named.items() if value is not None}

    def rpc_code(self, code: str, *, is_refusal: bool) -> int:
        """The JSON-RPC code of one of the toolset's codes."""
        return self.rpc_codes.get(code, INVALID_PARAMS if is_refusal else INTERNAL_ERROR)

    def body(
        self, tool: str, code: str, message: str, extra: Mapping[str, Any], *, degraded: bool = False
    ) -> dict[str, Any]:
        """The answer of an error. Extras never hide its own fields."""
        if self.shape is not None:
            own = {name: value for name, value in extra.items() if name not in _OWN_FIELDS}
            return self.shape(tool, code, message, own)
        second = {} if self.code_field is None else {self.code_field: code}
        details = {name: value for name, value in extra.items() if name not in _OWN_FIELDS}
        return {
            **second,
            **details,
            "success": False,
            "degraded": degraded,
            "error_code": code,
            self.sentence_field: message,
        }


@dataclass(frozen=True)
class Pulse:
    """What a toolset adds to each answer, also of a call that failed.

    It stands under `_<name>`, and in `_meta` under `thalweg/<name>`.
    """

    name: str
    read: Callable[[Services, str], Awaitable[dict[str, Any]]]
    """(services, namespace) -> its fields; what it raises fails the call. Not asked where the answer has the field."""

    @property
    def field(self) -> str:
        return f"_{self.name}"

    @property
    def meta(self) -> str:
        return f"thalweg/{self.name}"


@dataclass(frozen=True)
class Sessions:
    """Sessions that calls of every toolset may belong to: one toolset at most declares them."""

    is_id: Callable[[str], bool]
    telemetry: Callable[[Invocation, str], tuple[str, Event]]
    """(call, session id) -> the topic and the event that a call in a session leaves."""


@dataclass(frozen=True)
class Setup:
    """What a toolset makes its part of, when a node starts."""

    settings: Any
    """The node's settings, an attribute each."""
    environ: Mapping[str, str]
    embedder: Embedder | None


@dataclass(frozen=True)
class Toolset:
    """The name of a toolset and what its tools share; only the name is needed."""

    name: str
    purpose: str = ""
    """What the toolset is for, in a few words, as the server tells its clients; empty: they are told nothing of it."""
    guide: Sequence[str] = ()
    """What each tool is for, in clauses that name tools in backticks; clients are told those whose tools they have."""
    errors: ErrorStyle = field(default_factory=ErrorStyle)
    groups: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Parts that can be chosen alone: name -> the nouns with which the names of their tools begin."""
    retired: Mapping[str, str] = field(default_factory=dict)
    """Names of tools that are gone -> a sentence that says what to call in their place."""
    parts: Callable[[Setup], Sequence[object]] | None = None
    """Makes the toolset's own parts of the node; tools get each by its type (`Services.part`). Raises SettingsError."""
    warm: Callable[[Services], Awaitable[None]] | None = None
    """Called once a minute beside all calls: reads what its tools keep, so that none waits. Raises Unavailable."""
    gate: Callable[[Call], None] | None = None
    """Called before the arguments are looked at; raises Refused while the toolset is off."""
    pulse: Pulse | None = None
    sessions: Sessions | None = None
    lists_output_schemas: bool = False
    """Whether tools/list shows its tools' output schemas also where the node's settings do not ask for all."""
    texts: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Texts of its records that are not their document's own, as `thalweg://memory/{id}?field=…` reads them.

    Field -> SELECTs of the text by `$namespace` and `$id`.
    """
    leaves_no_details: Callable[[Services], bool] | None = None
    """Whether the records of its calls are to hold nothing but the tool's name and what came of the call."""

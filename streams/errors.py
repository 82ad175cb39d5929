"""The error tree. Which branch an error is on decides what happens to the event that met it.

    ThalwegError
    ├── Refused              the caller can correct it: answered with a sentence, never retried
    │   ├── SettingsError    a setting, path, port or flag is wrong
    │   ├── UnknownTool      no tool of that name is served: a JSON-RPC error
    │   ├── Forbidden        the credential does not give what was asked for
    │   ├── RateLimited      too many calls: answered with `retry_after_ms`
    │   ├── RecordRefused    the log takes no record like this one: too large, or invalid to the broker
    │   └── StoreError       the data directory cannot be used as it is (locked, newer schema)
    ├── TimedOut             the tool did not answer in its time: answered, never retried
    ├── Defect               a bug met by a tool: answered, with its traceback in the node's log
    ├── Poison               this event can never work: to the dead-letter topic with its bytes
    ├── Unavailable          transient: retried, then reported with `retry_after_ms`
    │   ├── LogUnavailable   the broker did not acknowledge in time
    │   ├── PulseUnavailable the pulse of a toolset's answers cannot be read
    │   └── EmbedderUnavailable  no model is loaded, or it failed
    │       └── KeyMissing   the model is a provider's, and there is no key for it
    ├── StageStopped         a stage fails on every record: the process ends
    ├── NotRunning           a command needs a node, and none runs
    ├── NodeDown             a command needs a node, and it does not start
    └── DemoFailed           a step of the demo failed

Anything else is a bug: a tool answers it as a Defect; elsewhere it crashes the process, and a restart recovers from
the log.
Every class carries a stable `code` and a `remedy`; docs/errors.md lists them and a test compares.
"""

from __future__ import annotations

from typing import Any, ClassVar


class ThalwegError(Exception):
    """Base of every error this program raises on purpose."""

    code: ClassVar[str] = "error"
    remedy: ClassVar[str] = "Read the message; it names what is wrong."

    def __init__(self, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extra = extra


class Refused(ThalwegError):
    """The caller can correct it. A tool may give an instance a `code` of its own.

    `reason`: what is wrong with an argument (`missing`, `type`, `range`, `enum`, `unknown_argument`), and `field`: its
    name; for toolsets whose errors say them.
    """

    code = "invalid_argument"
    remedy = "Correct the argument that the message names and call again."

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        reason: str | None = None,
        field: str | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(message, **extra)
        self.error_code = code or type(self).code
        self.reason, self.field = reason, field


class SettingsError(Refused):
    """A settings value, path, port or flag cannot be used."""

    code = "invalid_setting"
    remedy = "Change the setting that the message names (flag, THALWEG_* variable or thalweg.toml)."


class UnknownTool(Refused):
    """No tool or resource of that name is served; the message names what was probably meant."""

    code = "unknown_tool"
    remedy = "Call the tool that the message names, or ask tools/list for those there are."


class Forbidden(Refused):
    """A credential does not give the namespace, toolset or right to write that its bearer asked for."""

    code = "forbidden"
    remedy = "Ask for what the message names, or let the node's operator widen the credential."


class RateLimited(Refused):
    """A connection, a credential or the node has had as many calls as it accepts for now."""

    code = "rate_limited"
    remedy = (
        "Wait `retry_after_ms`, then call again; `rate_limit` in the settings is the limit of one connection. "
        "Only calls over HTTP are refused so: what a socket sends too fast waits."
    )


class RecordRefused(Refused):
    """The log will never take this record: it is too large for its topic, or invalid to the broker."""

    code = "record_refused"
    remedy = "Send it in parts, or raise the limit that the message names; the same record again is refused again."


class StoreError(Refused):
    """The data directory cannot be used as it is."""

    code = "store_unusable"
    remedy = "Do what the message says; `thalweg rebuild --from-log` makes a fresh store from the log."


class TimedOut(ThalwegError):
    """A tool did not answer within its time."""

    code = "timeout"
    remedy = (
        "Ask for less, or call again; a write that was accepted before is not lost "
        "and has one effect under its request id."
    )


class Defect(ThalwegError):
    """A tool failed inside, by a bug of the program."""

    code = "internal_error"
    remedy = "A defect of the program: the node's log has the traceback under the exception's name."


class Poison(ThalwegError):
    """This record can never be applied, however often it is tried."""

    code = "poison"
    remedy = "`thalweg dlq show` prints it; correct the producer, or fix the code and `thalweg dlq replay`."


class Unavailable(ThalwegError):
    """A part that is needed does not answer now; trying later may work."""

    code = "unavailable"
    remedy = "Try again after `retry_after_ms`; `thalweg status` says which part is down."

    def __init__(self, message: str, *, retry_after_ms: int = 1000, **extra: Any) -> None:
        super().__init__(message, retry_after_ms=retry_after_ms, **extra)


class LogUnavailable(Unavailable):
    """The log did not acknowledge a record in time: it may be on the log or not."""

    code = "log_unavailable"
    remedy = "Check that the broker runs and is reachable; repeat the call with the same request id."


class PulseUnavailable(Unavailable):
    """What a toolset adds to each of its answers cannot be read now: the call fails."""

    code = "pulse"
    remedy = (
        "Try again after `retry_after_ms`; a write whose answer has `freshness` was accepted: do not send it again."
    )


class EmbedderUnavailable(Unavailable):
    """No embedding can be made now: the model is missing, damaged or failed."""

    code = "embedder_unavailable"
    remedy = "`thalweg doctor` says where the model was looked for; `--embedder none` runs on keywords only."


class KeyMissing(EmbedderUnavailable):
    """The model of a provider is configured, and its key is not in the environment."""

    code = "api_key_not_configured"
    remedy = (
        "Put the provider's key into its environment variable and start the node again, or choose another embedder."
    )


class StageStopped(ThalwegError):
    """The stage failed on too many records in a row."""

    code = "stage_stopped"
    remedy = "Correct what the message names and start the node again; nothing is lost, the log has the records."


class NotRunning(ThalwegError):
    """No node answers for this data directory."""

    code = "node_not_running"
    remedy = "`thalweg up` starts one; `thalweg mcp` and `thalweg import` start one by themselves."


class NodeDown(ThalwegError):
    """A command needs the node, and it does not start."""

    code = "node_down"
    remedy = "`thalweg doctor` checks the installation; the node's log is node.log in the data directory."


class DemoFailed(ThalwegError):
    """A step of the demo failed."""

    code = "demo_failed"
    remedy = "`thalweg doctor` checks the installation."

"""Settings: flags over THALWEG_* variables over thalweg.toml over defaults. docs/settings.md lists them."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from streams.errors import Refused, SettingsError
from streams.namespaces import ACCEPTED, check_namespace
from thalweg.client.project import AUTO, namespace_of
from thalweg.environment import default_home, process_environment
from thalweg.status import last_node

_ADDRESS = re.compile(r"(?:(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[^\s:\[\]/]*)):)?(?P<port>[0-9]{1,5})")


ROLES = ("all", "ingress", "worker")
MODELLED_VIEWS = ("E1", "E5", "E6", "E7", "E8", "E10", "E11", "E12", "E13")
"""The views of Context Graph that a model can make."""


@dataclass(frozen=True)
class Settings:
    """Every setting; the field's metadata says what it means."""

    home: Path = field(default_factory=default_home, metadata={"help": "data directory"})
    broker: str = field(
        default="",
        metadata={
            "help": "sqlite:///path/log.db or kafka://host:port "
            "(default: the log of the data directory's last node, else log.db there)"
        },
    )
    role: str = field(
        default="all",
        metadata={
            "help": "all; ingress: no stages, others on the same kafka:// run them; "
            "worker: extract and embed only, no store and no door"
        },
    )
    namespace: str = field(
        default="default",
        metadata={
            "help": "the namespace of clients that name none; in a client's environment its own, "
            "`auto`: that of the project it runs in"
        },
    )
    partitions: int = field(default=12, metadata={"help": "partitions of each topic, chosen once"})
    embedder: str = field(
        default="minilm",
        metadata={
            "help": "model of a store that has no vectors yet: minilm, minilm-float32, hashing (untrained), "
            "openai:MODEL, the name or directory of a sentence-transformers model; none: keywords only"
        },
    )
    model_path: str = field(
        default="",
        metadata={
            "help": "directory with the model.safetensors and tokenizer.json of minilm; "
            "another model's directory is the embedder's name"
        },
    )
    view_models: str = field(
        default="",
        metadata={
            "help": "comma-separated VIEW=MODEL, the name or directory of a sentence-transformers model that makes "
            "this view of Context Graph: E1, E5, E7, E8, E11 dense, E6, E13 sparse, E12 multi-vector, E10 CLIP; "
            "empty: all follow from the embedder"
        },
    )
    image_folder: str = field(
        default="",
        metadata={
            "help": "folder whose files the model of E10 reads where an image memory names them by path; links are not "
            "followed; empty: no file is read, and such an image is compared by its words"
        },
    )
    embed_threads: int = field(
        default=2,
        metadata={"help": "threads of the embedding model, among which the texts that are waited for are shared out"},
    )
    http: str = field(default="", metadata={"help": "PORT or HOST:PORT for streamable HTTP; empty: off"})
    token: str = field(
        default="",
        metadata={
            "help": "bearer token for HTTP; empty: on loopback the one in the file `token` of the data directory, "
            "beyond loopback refused"
        },
    )
    allowed_hosts: str = field(
        default="",
        metadata={
            "help": "comma-separated further names under which HTTP may be reached: NAME, "
            "or NAME:PORT where another port leads here"
        },
    )
    http_sql: bool = field(
        default=False,
        metadata={"help": "also answer analysts' SQL at POST /sql: every client of it sees every namespace"},
    )
    toolsets: str = field(
        default="",
        metadata={"help": "comma-separated toolsets to serve; empty: all; in a client's environment what it is served"},
    )
    output_schemas: bool = field(
        default=False, metadata={"help": "list the output schemas of all tools, not of core's alone"}
    )
    structured_clients: str = field(
        default="claude-code,codex-mcp-client",
        metadata={
            "help": "comma-separated names of MCP clients that show their model an answer's structured content: "
            "its text says only where it is; every other client gets the whole answer as text too"
        },
    )
    read_only: bool = field(
        default=False, metadata={"help": "serve only tools that read; in a client's environment to it alone"}
    )
    write_wait_s: float = field(
        default=2.0, metadata={"help": "seconds a write waits for its outcome before it answers `pending`"}
    )
    vector_wait_s: float = field(
        default=0.15,
        metadata={
            "help": "seconds a search waits for vectors of its caller's writes, once it finds their words; "
            "then `embedding_behind` says how many it lacks"
        },
    )
    context_wait_s: float = field(
        default=0.4,
        metadata={
            "help": "seconds a prompt waits in `thalweg hook --answer` for what bears on it, a session's start "
            "at least 1; then it goes on without"
        },
    )
    rate_limit: float = field(
        default=200.0,
        metadata={
            "help": "tool calls a second for each connection; its credential has twice and the node three times as many"
        },
    )
    idle_exit_s: float = field(
        default=0.0, metadata={"help": "end the node after this many seconds without a client; 0: never"}
    )
    index_save_s: float = field(
        default=300.0,
        metadata={"help": "seconds after which changed search indexes are saved; a start catches up what came since"},
    )
    behind_s: float = field(
        default=10.0,
        metadata={
            "help": "seconds that a record may wait to be applied, or processed by a stage, "
            "before `thalweg status` is red"
        },
    )
    unsearched_sessions: str = field(
        default="",
        metadata={
            "help": "comma-separated namespaces whose captured sessions no search finds and no model embeds; "
            "their telemetry lands all the same"
        },
    )
    observe_drift: bool = field(
        default=True,
        metadata={
            "help": "look every hour, once ten memories are new, how far they have drifted from their namespace's "
            "goal, and correct what searches return where that is severe"
        },
    )
    dream_when_idle: bool = field(
        default=True,
        metadata={
            "help": "dream by itself (edges between memories, what says the same) after ten minutes in which hardly "
            "anything was stored or recalled"
        },
    )
    merge_in_dreams: bool = field(
        default=True,
        metadata={"help": "let a dream make one memory of those that say the same, at most 50 groups a day"},
    )
    otlp_topics: bool = field(
        default=False, metadata={"help": "also read otlp_spans, otlp_logs and otlp_metrics (kafka:// only)"}
    )
    valence_auto_capture: bool = field(
        default=False,
        metadata={
            "help": "keep as insights what users' turns (`exchange_add`) announce as worth keeping, "
            "at most 10 a session"
        },
    )
    persona: str = field(
        default="", metadata={"help": "persona of a session for which `session_open` names none; empty: Talos"}
    )
    protocol: str = field(default="", metadata={"help": "the same for its protocol; empty: LBRP"})
    human: str = field(default="", metadata={"help": "the same for the human that it works with; empty: Robbie"})
    judge1: str = field(
        default="lexical",
        metadata={"help": "first judge of relevance: lexical, semantic, openai:MODEL or anthropic:MODEL"},
    )
    judge2: str = field(
        default="semantic", metadata={"help": "second judge; the keys of providers come from their own variables"}
    )
    judge_stages: bool = field(
        default=False,
        metadata={"help": "with judges of providers: ask one alone while both agree, with spot checks of both"},
    )
    log_level: str = field(default="warning", metadata={"help": "debug, info, warning or error"})

    @property
    def broker_url(self) -> str:
        return self.broker or last_node.own_log(self.home)

    @property
    def models_of_views(self) -> dict[int, str]:
        """View -> the model that is to make it. Raises SettingsError."""
        found: dict[int, str] = {}
        for part in filter(None, (each.strip() for each in self.view_models.split(","))):
            label, _, model = (each.strip() for each in part.partition("="))
            if label not in MODELLED_VIEWS or not model:
                raise SettingsError(
                    f"The setting view_models has {part!r}; accepted: VIEW=MODEL, with a view of "
                    f"{', '.join(MODELLED_VIEWS)}. The others are made of times and letters, by no model."
                )
            if (view := int(label[1:])) in found:
                raise SettingsError(f"The setting view_models names {label} twice; a view has one model.")
            found[view] = model
        return found

    @property
    def image_root(self) -> Path | None:
        """The folder that image files are read in; None without one."""
        return Path(self.image_folder).expanduser() if self.image_folder else None

    @property
    def http_address(self) -> tuple[str, int]:
        """Host and port of the HTTP door. Raises SettingsError."""
        match = _ADDRESS.fullmatch(self.http)
        if match is None or not 0 < int(match["port"]) < 65536:
            raise SettingsError(
                f"The setting http is {self.http!r}; "
                "accepted: PORT, HOST:PORT or [IPV6]:PORT, with a port from 1 to 65535."
            )
        return match["v6"] or match["host"] or "127.0.0.1", int(match["port"])


def load(flags: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in force. Raises SettingsError naming the setting and what it accepts."""
    environ = process_environment() if environ is None else environ
    given = {name: value for name, value in flags.items() if value is not None}
    home = given.get("home") or environ.get("THALWEG_HOME")
    place = Path(home).expanduser() if home else default_home()
    values: dict[str, Any] = _from_file(place)
    for spec in fields(Settings):
        variable = f"THALWEG_{spec.name.upper()}"
        if variable in environ:
            values[spec.name] = environ[variable]
    values.update(given)
    if "namespace" in values:
        values["namespace"] = namespace_of(str(values["namespace"]))
    if "broker" not in values:
        values["broker"] = last_node.read(place).get("broker", "")
    if any(environ.get(name) for name in ("SURR_EMBED_MODEL", "SURR_EMBED_PROVIDER")):
        from thalweg.process.embedder_names import embedder_of  # the pump, which must be quick, reads settings too

        values["embedder"] = embedder_of(environ, values.get("embedder"), Settings.embedder)
    settings = Settings(**{name: _convert(name, value) for name, value in values.items()})
    _check(settings)
    return settings


def _from_file(home: Path) -> dict[str, Any]:
    path = home / "thalweg.toml"
    try:
        values = tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"thalweg.toml cannot be read: {error}") from None
    if values.get("namespace") == AUTO:
        raise SettingsError(
            "thalweg.toml: the namespace `auto` is a client's, by the project it runs in: say `--namespace auto` or "
            "THALWEG_NAMESPACE=auto there, and give the node a name."
        )
    known = {spec.name for spec in fields(Settings)}
    for name in values:
        if name not in known:
            raise SettingsError(
                f"thalweg.toml: there is no setting {name!r}; the settings are {', '.join(sorted(known))}."
            )
    return values


def _convert(name: str, value: Any) -> Any:
    kind = {spec.name: spec.type for spec in fields(Settings)}[name]
    try:
        if kind == "Path":
            return Path(value).expanduser().absolute()
        if kind == "bool":
            return (
                value
                if isinstance(value, bool)
                else {"1": True, "true": True, "0": False, "false": False, "": False}[str(value).lower()]
            )
        if (kind == "int" and isinstance(value, float)) or (kind != "str" and isinstance(value, bool)):
            raise ValueError  # int() would cut the one and take the other for 0 or 1
        return {"int": int, "float": float, "str": str}[str(kind)](value)
    except (ValueError, KeyError, TypeError):
        raise SettingsError(f"The setting {name} is {value!r}; a value of type {kind} is expected.") from None


def _check(settings: Settings) -> None:
    def refuse(name: str, accepted: str) -> None:
        raise SettingsError(f"The setting {name} is {getattr(settings, name)!r}; accepted: {accepted}.")

    if settings.role not in ROLES:
        refuse("role", ", ".join(ROLES))
    if not settings.broker_url.startswith(("sqlite://", "kafka://")):
        refuse("broker", "sqlite:///path/log.db or kafka://host:port")
    if settings.role != "all" and settings.broker_url.startswith("sqlite://"):
        raise SettingsError(
            f"The role {settings.role} needs a broker that several processes can share: kafka://host:port."
        )
    if settings.role == "worker" and settings.embedder == "none":
        raise SettingsError(
            "A worker embeds what it is given, so it needs a model: --embedder minilm, hashing or a model's name."
        )
    _ = settings.models_of_views
    if not 1 <= settings.partitions <= 1000:
        refuse("partitions", "1 to 1000")
    if not 1 <= settings.embed_threads <= 64:
        refuse("embed_threads", "1 to 64")
    if settings.log_level not in ("debug", "info", "warning", "error"):
        refuse("log_level", "debug, info, warning, error")
    try:
        check_namespace(settings.namespace)
    except Refused:
        refuse("namespace", ACCEPTED)
    for name in (
        "rate_limit",
        "behind_s",
        "write_wait_s",
        "vector_wait_s",
        "context_wait_s",
        "idle_exit_s",
        "index_save_s",
    ):
        value, is_above_0 = getattr(settings, name), name in ("rate_limit", "behind_s")
        if not math.isfinite(value) or value < 0 or (is_above_0 and not value):
            refuse(name, "a number above 0" if is_above_0 else "a number of seconds, 0 or above")

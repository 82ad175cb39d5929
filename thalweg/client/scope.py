"""The data directory and the scope that a client names, by flags or in its environment. It imports next to nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from thalweg.client.project import namespace_of
from thalweg.environment import default_home, process_environment

NAMES = ("home", "namespace", "toolsets", "read_only")
READ_ONLY = {"--read-only": "true", "--no-read-only": "false"}


def read_options(arguments: Sequence[str], own: Collection[str] = ()) -> tuple[dict[str, str], list[str]]:
    """What the flags say, by name, and the arguments that are no flags.

    `own` are the names of the flags that a command has beside those of a scope. Raises ValueError for another flag, and
    for a flag without its value.
    """
    given: dict[str, str] = {}
    words: list[str] = []
    known = {f"--{name.replace('_', '-')}": name for name in (*NAMES[:-1], *own)}
    rest = iter(arguments)
    for argument in rest:
        option, is_whole, value = argument.partition("=")
        if argument in READ_ONLY:
            given["read_only"] = READ_ONLY[argument]
        elif option in known:
            given[known[option]] = value = value if is_whole else next(rest, "")
            if not value:
                raise ValueError(f"{option} needs a value.")
        elif argument.startswith("--"):
            raise ValueError(f"{argument!r} is not understood.")
        else:
            words.append(argument)
    return given, words


def home_and_scope(given: Mapping[str, str]) -> tuple[Path, dict[str, Any]]:
    """The data directory, and what the client asks to see, as it was said.

    The node knows what may be asked for.
    """
    environment = process_environment()
    values = {name: given.get(name) or environment.get(f"THALWEG_{name.upper()}", "") for name in NAMES}
    home = (Path(values["home"]).expanduser() if values["home"] else default_home()).absolute()
    scope = {name: values[name] for name in NAMES[1:] if values[name]}
    if "namespace" in scope:
        scope["namespace"] = namespace_of(scope["namespace"])
    return home, scope

"""Arguments of a call against the tool's exact schema. A refusal is a sentence from which a model can mend its call.

Nothing is coerced: the text "5" is not the integer 5. A property of the schema may say `x-error-code`, the toolset's
own code for values that it does not accept (missing ones and ones of a wrong type are `invalid_argument` everywhere),
and `x-error-extra`, fields that go into the answer with it.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

import jsonschema_rs
import orjson

from streams.errors import Refused
from streams.redaction import EXCERPT_CHARACTERS

MAX_DEPTH = 64
_SURROGATE = re.compile("[\ud800-\udfff]")
_TYPES = {
    "string": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_FIRST = {"additionalProperties": 0, "required": 1, "type": 2}
"""What is said first when several things are wrong: a misspelt name explains a missing one."""
_REASONS = {"type": "type", "enum": "enum", "const": "enum"}
"""What is wrong with a value by the keyword that it fails; of every other one it is out of range."""


class ArgumentCheck:
    """Checks arguments against one input schema, which the inventory has made exact."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._validator = jsonschema_rs.validator_for(dict(schema))

    def __call__(self, arguments: Any) -> dict[str, Any]:
        """The arguments with defaults filled in. Raises Refused with a sentence that names the argument."""
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise Refused("The arguments of a tool call must be one JSON object.")
        check_texts(arguments)
        errors = list(self._validator.iter_errors(arguments))
        if errors:
            raise self._refusal(min(errors, key=lambda error: _FIRST.get(str(error.schema_path[-1]), 3)), arguments)
        return _with_defaults(self._schema, arguments)

    def _refusal(self, error: Any, arguments: dict[str, Any]) -> Refused:
        path = list(error.instance_path)
        keyword = str(error.schema_path[-1])
        schema = _schema_at(self._schema, list(error.schema_path)[:-1])
        value = _value_at(arguments, path)
        if keyword == "additionalProperties":
            return _undeclared(schema, value, path)
        if keyword == "required":
            return _missing(schema, value, path)
        sentence = f"The argument `{_name(path)}` {_say(keyword, schema, value)}"
        details = {"parameter": _name(path), "allowed": schema.get(keyword)}
        about = {"reason": _REASONS.get(keyword, "range"), "field": details["parameter"]}
        if keyword == "type":
            return Refused(sentence, **about, details=details)
        code, extra = self._own_code(list(error.schema_path)[:-1])
        if keyword == "enum":
            extra = {"valid_options": list(schema["enum"]), **extra}
        return Refused(sentence, code=code, **about, **{"details": details, **extra})

    def _own_code(self, schema_path: Sequence[Any]) -> tuple[str | None, dict[str, Any]]:
        """The code and extras of the innermost property around the place that has its own code."""
        for end in range(len(schema_path), -1, -1):
            schema = _schema_at(self._schema, schema_path[:end])
            if isinstance(schema, Mapping) and "x-error-code" in schema:
                return schema["x-error-code"], dict(schema.get("x-error-extra", {}))
        return None, {}


def moment(name: str, text: str) -> datetime:
    """A date or an ISO-8601 time, UTC unless it says otherwise. Raises Refused."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(
            f"`{name}` is {text!r}; a date YYYY-MM-DD or a time such as 2026-01-05T12:00:00Z is expected."
        ) from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def check_texts(value: Any, name: str = "", depth: int = 0) -> None:
    """Refuse JSON that the store cannot keep.

    That is NUL, lone surrogates, NaN, infinity, integers of more than 64 bits, and deep nesting.
    """
    where = f"The argument `{name}`" if name else "The arguments"
    about = {"reason": "range", "field": name or None}
    if isinstance(value, str):
        if "\0" in value:
            raise Refused(f"{where} holds a NUL character (\\u0000); leave it out.", **about)
        if not value.isascii() and _SURROGATE.search(value):
            raise Refused(f"{where} holds half of a surrogate pair, which is not a character; leave it out.", **about)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise Refused(f"{where} is {value}; a finite number is expected.", **about)
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise Refused(f"{where} is an integer of more than 64 bits; send it as text.", **about)
    elif depth > MAX_DEPTH:
        raise Refused(f"{where} is nested deeper than {MAX_DEPTH} levels; send the inner part as text.", **about)
    elif isinstance(value, dict):
        for key, item in value.items():
            if "\0" in key or _SURROGATE.search(key):
                raise Refused(f"{where} has a key that is not valid text; rename the key.", **about)
            check_texts(item, f"{name}.{key}" if name else key, depth + 1)
    elif isinstance(value, list):
        for item in value:
            check_texts(item, name, depth + 1)


def _undeclared(schema: Mapping[str, Any], value: Any, path: Sequence[Any]) -> Refused:
    accepted = list(schema.get("properties", {}))
    unknown = next(name for name in value if name not in accepted)
    place = f" in `{_name(path)}`" if path else ""
    close = get_close_matches(unknown.lower(), accepted, n=1, cutoff=0.6)
    hint = f" Did you mean `{close[0]}`?" if close else ""
    known = f" Accepted: {', '.join(accepted)}." if accepted else " None is accepted."
    sentence = f"There is no argument `{_shown(unknown)}`{place}.{hint}{known}"
    return Refused(sentence, reason="unknown_argument", field=_name([*path, _shown(unknown)]))


def _missing(schema: Mapping[str, Any], value: Any, path: Sequence[Any]) -> Refused:
    missing = [name for name in schema["required"] if name not in value]
    name = _name([*path, missing[0]])
    wanted = schema.get("properties", {}).get(missing[0], {})
    return Refused(
        f"The argument `{name}` is missing; it is {_wanted(wanted)}.",
        reason="missing",
        field=name,
        details={"parameter": name, "allowed": wanted.get("type")},
    )


def _wanted(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return f"one of {_options(schema['enum'])}"
    kinds = schema.get("type", [])
    return " or ".join(_TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)) or "required"


def _say(keyword: str, schema: Mapping[str, Any], value: Any) -> str:
    """What is wrong with the value, as the end of a sentence that begins with the argument's name."""
    limit = schema.get(keyword)
    if keyword == "enum":
        close = get_close_matches(str(value).lower(), [str(option) for option in schema["enum"]], n=1, cutoff=0.6)
        hint = f" Did you mean {_json(close[0])}?" if close else ""
        return f"is {_json(value)}; it must be one of {_options(schema['enum'])}.{hint}"
    if keyword == "type":
        return f"must be {_wanted({'type': limit})}, not {_kind(value)}.{_retyped(limit, value)}"
    if keyword == "pattern":
        return (
            "is blank; it needs some text." if not str(value).strip() else f"is {_json(value)}; it must match {limit}."
        )
    if keyword == "minLength":
        return (
            "is empty; it needs some text."
            if not value
            else f"has {len(value)} characters; at least {limit} are needed."
        )
    sentences: dict[str, Callable[[], str]] = {
        "maxLength": lambda: f"has {len(value)} characters; at most {limit} are accepted.",
        "minimum": lambda: f"is {_json(value)}; at least {limit} is accepted.",
        "maximum": lambda: f"is {_json(value)}; at most {limit} is accepted.",
        "exclusiveMinimum": lambda: f"is {_json(value)}; it must be above {limit}.",
        "exclusiveMaximum": lambda: f"is {_json(value)}; it must be below {limit}.",
        "minItems": lambda: f"has {len(value)} entries; at least {limit} are needed.",
        "maxItems": lambda: f"has {len(value)} entries; at most {limit} are accepted.",
        "uniqueItems": lambda: "holds an entry twice; each is accepted once.",
        "format": lambda: f"is {_json(value)}; it must be a {limit}.",
        "const": lambda: f"is {_json(value)}; it must be {_json(limit)}.",
    }
    sentence = sentences.get(keyword)
    return sentence() if sentence else f"is {_json(value)}; it does not satisfy `{keyword}` of the tool's schema."


def _retyped(kinds: Any, value: Any) -> str:
    """What was probably meant by a value of a wrong type."""
    wanted = [kinds] if isinstance(kinds, str) else list(kinds or ())
    if value is None:
        return " Leave it out instead of null."
    if isinstance(value, str):
        try:
            plain = orjson.loads(value)
        except orjson.JSONDecodeError:
            plain = None
        if plain is not None and _kind_name(plain) in wanted + (["integer"] if "number" in wanted else []):
            return f" Pass {_shown(value)} without quotes."
    if "string" in wanted and isinstance(value, int | float):
        return f' Pass "{_json(value)}" with quotes.'
    if "array" in wanted and not isinstance(value, dict):
        return f" Pass [{_json(value)}]."
    return ""


def _kind_name(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _kind(value: Any) -> str:
    return (
        f"{_TYPES[_kind_name(value)]} ({_json(value)})"
        if not isinstance(value, list | dict)
        else _TYPES[_kind_name(value)]
    )


def _options(options: Sequence[Any]) -> str:
    return ", ".join(str(option) if isinstance(option, str) else _json(option) for option in options)


def _json(value: Any) -> str:
    return _shown(orjson.dumps(value).decode())


def _shown(text: str) -> str:
    # the door has freed it of secrets
    return text if len(text) <= EXCERPT_CHARACTERS else text[:EXCERPT_CHARACTERS] + "…"


def _name(path: Sequence[Any]) -> str:
    """`time_range.start`, `domains[2]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _schema_at(schema: Any, path: Sequence[Any]) -> Any:
    for step in path:
        schema = schema[step]
    return schema


def _value_at(value: Any, path: Sequence[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


def _with_defaults(schema: Mapping[str, Any], value: Any) -> Any:
    """A copy with the defaults of absent properties, also inside objects.

    `x-default-from-state` leaves a default to the reducer or the settings.
    """
    properties = schema.get("properties")
    if not isinstance(value, dict) or not properties:
        return value
    filled = {
        name: _with_defaults(properties[name], item) if name in properties else item for name, item in value.items()
    }
    for name, wanted in properties.items():
        if name not in filled and "default" in wanted and not wanted.get("x-default-from-state"):
            filled[name] = copy.deepcopy(wanted["default"])
    return filled

"""Redaction of secrets in text and JSON bytes, by the patterns of well-known keys.

Escapes (`\\u002d`, `%2D`, `\\x2d`, `\\/`, also in JSON within JSON) are decoded before the search. Redacted JSON is the
same JSON around the mark. Two kinds of secret are not redacted: one without a form of its own, such as a password in
prose, and one that is encoded as a whole (base64).

The rules are our own table of the forms that gitleaks and detect-secrets know, without a rule of entropy: the plugins
of detect-secrets read text line by line in Python, and a text of high entropy in a transcript is nearly always a hash
or an id. One scan in Rust, with the regular expressions of the schema validator, searches for the beginnings of all
forms: a megabyte without secrets takes about 2 ms, where one search in Python per rule took 6 ms for a third of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

MARK = "[redacted:{}]"
EXCERPT_CHARACTERS = 80
"""Characters of a value from outside that a sentence quotes."""

_START = rb"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=[0-9;]m))"
"""Before a key: the start of a word, the end of a JSON escape, or the end of a colour code."""
_KEY_BODY = rb"(?:\\{1,4}[nrt]|[A-Za-z0-9+/=\s:,-])"
_ASSIGNS = rb"[\\\"'\s:=>]{1,12}"
"""Between a setting's name and its value: in JSON, in JSON within JSON, and in a shell."""


def _scanner(hints: str) -> Any:
    """A validator whose `is_valid(text)` says whether one of the hints (a regular expression) occurs."""
    return jsonschema_rs.validator_for({"pattern": hints})


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern, and a hint without which it cannot match. The text of its group `keep` stays before the mark."""

    hint: str
    scan: Any
    pattern: re.Pattern[bytes]
    mark: bytes


def _rule(name: str, hint: str, pattern: bytes) -> _Rule:
    return _Rule(hint, _scanner(hint), re.compile(pattern), MARK.format(name).encode())


_RULES = (
    _rule("api-key", r"sk-[A-Za-z0-9_-]{20}", _START + rb"sk-(?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{20,}"),
    _rule(
        "api-key",
        r"gsk_|xai-|r8_|pplx-|lin_api_|ntn_",
        _START + rb"(?:gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{60,}|r8_[A-Za-z0-9]{36,}|pplx-[A-Za-z0-9]{40,}|"
        rb"lin_api_[A-Za-z0-9]{36,}|ntn_[A-Za-z0-9]{40,})",
    ),
    _rule("payment-key", r"[sr]k_(?:live|test)_", _START + rb"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _rule(
        "payment-key",
        r"whsec_|sq0(?:atp|csp)-",
        _START + rb"(?:whsec_[A-Za-z0-9+/]{24,}={0,2}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43})",
    ),
    _rule("payment-key", r"shp(?:at|ca|pa|ss)_", _START + rb"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    _rule(
        "git-token",
        r"gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-|GR1348941|ATBB",
        _START + rb"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|"
        rb"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_-]{20,}|GR1348941[A-Za-z0-9_-]{20,}|ATBB[A-Za-z0-9]{32})",
    ),
    _rule("cloud-key", r"A(?:KIA|SIA|Iza)", _START + rb"(?:A[KS]IA[0-9A-Z]{16}(?![0-9A-Za-z])|AIza[0-9A-Za-z_-]{35})"),
    _rule(
        "cloud-key",
        r"(?i:secret_?(?:access_?)?key|session_?token)",
        rb"(?P<keep>(?i:secret_?(?:access_?)?key)" + _ASSIGNS + rb")[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"
        rb"|(?P<keep2>(?i:aws_?session_?token|sessiontoken)" + _ASSIGNS + rb")[A-Za-z0-9+/]{100,}={0,2}",
    ),
    _rule(
        "cloud-key",
        r"ya29\.|GOCSPX-|1//0",
        _START + rb"(?:ya29\.[A-Za-z0-9_.-]{20,}|GOCSPX-[A-Za-z0-9_-]{28}|1//0[A-Za-z0-9_-]{30,})",
    ),
    _rule("cloud-key", r"AccountKey=", rb"(?P<keep>AccountKey=)[A-Za-z0-9+/]{80,}={0,2}"),
    _rule(
        "cloud-key",
        r"do[opr]_v1_|dapi|hvs\.|glsa_|NRAK-|PMAK-|sntrys_|ATATT3|AGE-SECRET-KEY-",
        _START
        + rb"(?:do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|hvs\.[A-Za-z0-9_-]{24,}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|"
        rb"NRAK-[A-Z0-9]{27}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|sntrys_[A-Za-z0-9+/=_]{40,}|ATATT3[A-Za-z0-9_=-]{50,}|"
        rb"AGE-SECRET-KEY-1[0-9A-Z]{58})",
    ),
    _rule("mail-key", r"SG\.", _START + rb"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    _rule(
        "mail-key",
        r"key-[0-9a-f]{8}|-us[0-9]",
        _START + rb"(?:key-[0-9a-f]{32}|[0-9a-f]{32}-us[0-9]{1,2})(?![0-9a-zA-Z])",
    ),
    _rule("slack-token", r"xox|xapp-", _START + rb"(?:xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,})"),
    _rule(
        "webhook",
        r"hooks\.slack\.com|/api/webhooks/",
        rb"(?P<keep>hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_-]{20,}"
        rb"|(?P<keep2>/api/webhooks/[0-9]{10,}/)[A-Za-z0-9_-]{40,}",
    ),
    _rule("bot-token", r":AA[A-Za-z0-9_-]{8}", _START + rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    _rule("phone-key", r"SK[0-9a-f]{32}", _START + rb"SK[0-9a-f]{32}(?![0-9a-zA-Z])"),
    _rule(
        "registry-token",
        r"hf_|npm_|pypi-|dckr_pat_|rubygems_|_authToken",
        _START + rb"(?:hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|dckr_pat_[A-Za-z0-9_-]{20,}|"
        rb"rubygems_[a-f0-9]{48})"
        rb"|(?P<keep>_authToken=)[A-Za-z0-9_+/=-]{16,}",
    ),
    _rule("bearer", r"[Bb]earer |BEARER ", rb"(?P<keep>(?:[Bb]earer|BEARER) {1,4})[A-Za-z0-9._~+/-]{16,}={0,2}"),
    _rule("basic", r"Basic ", rb"(?P<keep>[Aa]uthorization[\\\"': ]{1,8}Basic {1,4})[A-Za-z0-9+/]{8,}={0,2}"),
    _rule(
        "password",
        r"://[^\s/:@\x22'\\<>]{0,64}:[^\s/@\x22'\\<>]{3,128}@",
        rb"(?P<keep>[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'\\<>]{0,64}:)"
        rb"[^\s/@\"'\\<>${}%][^\s/@\"'\\<>]{2,127}(?=@[A-Za-z0-9.\[-])",
    ),
    _rule(
        "parameter",
        r"[?&](?i:access_token|refresh_token|api_?key|client_secret)=",
        rb"(?P<keep>[?&](?i:access_token|refresh_token|api_?key|client_secret)=)[A-Za-z0-9._~+/-]{12,}",
    ),
    _rule("jwt", r"eyJ", _START + rb"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    _rule(
        "private-key",
        r"PRIVATE KEY",
        rb"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----"
        + _KEY_BODY
        + rb"*?(?:-----END [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----|(?!"
        + _KEY_BODY
        + rb"))",
    ),
)
_ESCAPE = re.compile(
    rb"\\+(?:(?:u00|x)(?:([2-7][0-9A-Fa-f])|(0[9AaDd]))|(/))|%(?:25){0,3}(?:([2-7][0-9A-Fa-f])|(0[9AaDd]))"
)
"""A printable ASCII character or white space, escaped once or several times, as in JSON, programs and URLs."""
_ESCAPES = r"\\(?:u00|x)(?:[2-7][0-9A-Fa-f]|0[9AaDd])|\\/|%(?:[2-7][0-9A-Fa-f]|0[9AaDd])"
_SUSPECT = _scanner("|".join([_ESCAPES, *(rule.hint for rule in _RULES)]))


def redact_json(raw: bytes) -> bytes:
    """Replace each known secret in the bytes by `[redacted:<kind>]`; JSON stays JSON."""
    if not _SUSPECT.is_valid(raw.decode("latin-1")):
        return raw
    plain, places = _unescaped(raw)
    text = plain.decode("latin-1")
    found = [
        (
            next((match.end(name) for name, kept in match.groupdict().items() if kept is not None), match.start()),
            match.end(),
            rule.mark,
        )
        for rule in _RULES
        if rule.scan.is_valid(text)
        for match in rule.pattern.finditer(plain)
    ]
    if not found:
        return raw
    parts, done = [], 0
    for start, end, mark in sorted(found):
        first, last = places.original(start), places.original(end)
        if first >= done:  # a secret that two rules match is replaced once
            parts += [raw[done:first], mark]
            done = last
    return b"".join([*parts, raw[done:]])


def redact(text: str) -> str:
    """Replace each known secret in the text by `[redacted:<kind>]`."""
    raw = text.encode("utf-8", "surrogatepass")
    cleaned = redact_json(raw)
    return text if cleaned is raw else cleaned.decode("utf-8", "surrogatepass")


def excerpt(text: str, at_most: int = EXCERPT_CHARACTERS) -> str:
    """A text from outside as a sentence, log line or record may quote it: redacted, then cut."""
    text = redact(text[: 4 * at_most + 1024])  # the rest is cut off and need not be searched
    return text if len(text) <= at_most else text[:at_most] + "…"


class _Places:
    """The places that the bytes of a text had before its escapes were decoded."""

    def __init__(self) -> None:
        self._plain: list[int] = [0]
        self._raw: list[int] = [0]

    def note(self, plain: int, raw: int) -> None:
        """Align the two texts: from here on they are equal until the next call."""
        self._plain.append(plain)
        self._raw.append(raw)

    def original(self, plain: int) -> int:
        at = bisect_right(self._plain, plain) - 1
        return self._raw[at] + plain - self._plain[at]


def _unescaped(raw: bytes) -> tuple[bytes, _Places]:
    """The bytes with their escapes decoded, and the former place of each byte."""
    places, parts, done, length = _Places(), [], 0, 0
    for match in _ESCAPE.finditer(raw):
        hexadecimal = match[1] or match[2] or match[4] or match[5]
        parts += [raw[done : match.start()], bytes.fromhex(hexadecimal.decode()) if hexadecimal else b"/"]
        length += match.start() - done + 1
        done = match.end()
        places.note(length, done)
    return b"".join([*parts, raw[done:]]), places

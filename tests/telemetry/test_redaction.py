"""Secrets of a known form are taken out; text that only looks like one stays; JSON stays JSON."""

from __future__ import annotations

import orjson
import pytest

from streams.redaction import redact, redact_json

# Put together here so that no scanner takes them for real ones.
KEY = "sk-" + "proj-" + "a1B2c3D4" * 4
SECRETS = [
    KEY,
    "ghp_" + "a1" * 18,
    "github_" + "pat_" + "b2" * 20,
    "glpat-" + "c3" * 10,
    "AKIA" + "ABCDEFGH12345678",
    "AIza" + "d4-_e" * 7,
    "xoxb-" + "123456789012-abcdef",
    "hf_" + "e5" * 17,
    "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + "." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEabc+/=\nZZ\n-----END RSA " + "PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("frame", ["{}", "KEY={}", "line\n{}\nline", '{{"a": "{}"}}', "\x1b[32m{}"])
def test_a_secret_is_replaced_and_what_stands_around_it_stays(secret: str, frame: str) -> None:
    before, after = frame.format("|").split("|")
    cleaned = redact(before + secret + after)
    assert cleaned.startswith(before + "[redacted:") and cleaned.endswith("]" + after)
    document = orjson.loads(redact_json(orjson.dumps({"text": before + secret + after, "n": 1})))
    assert document == {"text": cleaned, "n": 1}


def test_what_names_the_scheme_of_a_token_stays() -> None:
    assert redact("Authorization: Bearer " + "abcdef0123456789") == "Authorization: Bearer [redacted:bearer]"
    assert redact("Authorization: Basic " + "dXNlcjpwYXNz") == "Authorization: Basic [redacted:basic]"


def test_a_private_key_that_is_cut_off_is_replaced_to_its_end() -> None:
    raw = orjson.dumps({"key": "-----BEGIN " + "PRIVATE KEY-----\nMIIEabc\nZZ", "next": "stays"})
    assert orjson.loads(redact_json(raw)) == {"key": "[redacted:private-key]", "next": "stays"}


@pytest.mark.parametrize(
    "text",
    [
        "risk-assessment-of-2024-and-later-years",
        "sk-learning-rate-is-a-long-name",
        "the bearer of bad news",
        "Basic rules apply",
        "",
    ],
)
def test_text_that_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) is text


def test_many_beginnings_of_a_key_take_time_in_proportion() -> None:
    assert redact_json(b"sk-" * 200_000)

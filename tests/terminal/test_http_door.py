"""The token of the HTTP door: the setting's, or the data directory's own, which is made once."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_ingress.http import LOOPBACK
from streams.errors import SettingsError
from thalweg.process.http_door import TOKEN_FILE, describe, http_token
from thalweg.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, http="7733")


@pytest.mark.parametrize("host", LOOPBACK)
def test_on_loopback_a_token_is_made_once_in_a_file_of_the_owner(settings: Settings, host: str) -> None:
    made = http_token(settings, host)
    assert len(made.value) >= 40
    assert made.file == settings.home / TOKEN_FILE and made.file.read_text() == f"{made.value}\n"
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    assert http_token(settings, host) == made
    made.file.unlink()
    assert http_token(settings, host).value != made.value
    assert made.place == "in the file `token` of the node's data directory"  # said to strangers: no path


def test_a_setting_goes_before_the_file_and_makes_none(settings: Settings) -> None:
    token = http_token(replace(settings, token="chosen"), "127.0.0.1")
    assert (token.value, token.file, token.place) == ("chosen", None, "the node's setting `token`")
    assert not (settings.home / TOKEN_FILE).exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "memory.example"])
def test_beyond_loopback_the_setting_is_needed(settings: Settings, host: str) -> None:
    with pytest.raises(SettingsError, match=r"needs a bearer token: set `token`"):
        http_token(settings, host)


@pytest.mark.parametrize("content", ["", "\n", "short", "two words that are long", "ä" * 40, "x" * 600])
def test_a_file_that_holds_no_token_is_refused_with_what_to_do(settings: Settings, content: str) -> None:
    (settings.home / TOKEN_FILE).write_text(content)
    with pytest.raises(SettingsError, match="remove it, and the next start makes one"):
        http_token(settings, "127.0.0.1")


def test_status_names_the_address_and_the_file_and_never_the_token(settings: Settings) -> None:
    http_token(settings, "127.0.0.1")
    assert describe(settings) == {
        "url": "http://127.0.0.1:7733/mcp",
        "token_file": str(settings.home / TOKEN_FILE),
    }
    v6 = replace(settings, http="[::1]:80", token="chosen-by-somebody")
    assert describe(v6) == {"url": "http://[::1]:80/mcp", "token_file": None}

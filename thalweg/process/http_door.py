"""A node's HTTP door by its settings: where it listens, and the tokens that its clients need.

Where the data directory has a `credentials.toml`, its tokens are the only ones; else there is one token.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from mcp_ingress.credentials import TOKEN, TOKEN_ACCEPTED, Check, CredentialFile, Credentials
from mcp_ingress.http import LOOPBACK, PATH
from storage.atomic_file import atomic_file
from streams.errors import SettingsError
from thalweg.settings import Settings

TOKEN_FILE = "token"
CREDENTIALS_FILE = "credentials.toml"
TOKEN_BYTES = 32
ACCEPTED = f"one line of {TOKEN_ACCEPTED}"


@dataclass(frozen=True)
class HttpToken:
    """The bearer token. `file` has it when the node made it; without one it is the setting `token`."""

    value: str
    file: Path | None

    @property
    def place(self) -> str:
        """Where a client's owner finds it, without a path: strangers read this too."""
        return (
            f"in the file `{self.file.name}` of the node's data directory"
            if self.file
            else "the node's setting `token`"
        )


def http_token(settings: Settings, host: str) -> HttpToken:
    """The setting's, or on loopback that of the data directory, made when it is not there yet. Raises SettingsError."""
    if settings.token:
        return HttpToken(settings.token, None)
    if host not in LOOPBACK:
        raise SettingsError(f"HTTP on {host} needs a bearer token: set `token` (THALWEG_TOKEN), or bind to 127.0.0.1.")
    file = settings.home / TOKEN_FILE
    try:
        token = file.read_text(errors="replace").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        with atomic_file(file) as made:
            made.write(f"{token}\n".encode())
    if not TOKEN.fullmatch(token):
        raise SettingsError(
            f"The file {file} has no valid bearer token ({ACCEPTED}): remove it, and the next start makes one."
        )
    return HttpToken(token, file)


def http_credentials(settings: Settings, host: str, check: Check) -> Credentials:
    """What the tokens of this node give. `check` raises Refused for toolsets that it does not serve.

    Raises SettingsError.
    """
    file = settings.home / CREDENTIALS_FILE
    if not file.exists():
        token = http_token(settings, host)
        return Credentials.of_one(token.value, settings.namespace, token.place)
    if settings.token:
        raise SettingsError(f"Both {file} and the setting `token` say who may use HTTP: remove one of them.")
    return CredentialFile(file, settings.namespace, check)


def describe(settings: Settings) -> dict[str, str | None]:
    """What `thalweg status` says of it: {`url`, `token_file`}; without a file the token is the setting."""
    host, port = settings.http_address
    base = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    files = (settings.home / name for name in (CREDENTIALS_FILE, TOKEN_FILE))
    file = None if settings.token else next((str(file) for file in files if file.exists()), None)
    return {"url": f"{base}{PATH}", "token_file": file}

"""The credentials of the HTTP door: which bearer token gives what. The MCP SDK asks here (`TokenVerifier`)."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from mcp.server.auth.provider import AccessToken, TokenVerifier

from mcp_ingress.scope import ANY, Grant
from streams.errors import Refused, SettingsError
from streams.namespaces import check_namespace
from streams.redaction import excerpt

HTTP = "http"
"""The principal of the one token; those of a file are `http:<principal>`."""
TOKEN = re.compile(r"[!-~]{16,512}")
TOKEN_ACCEPTED = "16 to 512 printable ASCII characters without a space"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KINDS: Mapping[str, type] = {
    "principal": str,
    "token": str,
    "token_sha256": str,
    "namespaces": list,
    "toolsets": list,
    "read_only": bool,
    "sql": bool,
}
Check = Callable[[Collection[str]], None]
"""Raises Refused for toolsets that the node does not serve."""

logger = logging.getLogger(__name__)


class GrantedToken(AccessToken):
    """A token that is right, and what it gives."""

    grant: Grant


class Credentials(TokenVerifier):
    """What each token gives, by the SHA-256 of its bytes."""

    def __init__(self, grants: Mapping[bytes, Grant], place: str) -> None:
        """`place`: where a client's owner finds a token, for the refusal of a request without one."""
        self.place = place
        self.problem: str | None = None
        """What is wrong with where they are kept, as a sentence."""
        self._grants = grants

    @classmethod
    def of_one(cls, token: str, namespace: str, place: str = "the node's setting `token`") -> Credentials:
        """A token of the node itself, which gives one namespace and all tools."""
        return cls({_digest(token): Grant(HTTP, (namespace,), sql=True)}, place)

    async def verify_token(self, token: str) -> GrantedToken | None:
        """What the token gives; None when it is not a token of this node."""
        grant = self._grants.get(_digest(token))
        return None if grant is None else GrantedToken(token=token, client_id=grant.principal, scopes=[], grant=grant)


class CredentialFile(Credentials):
    """The credentials in a file, which is read again when it has changed.

    While it cannot be used, those that it had before hold, and `problem` says why.
    """

    def __init__(self, path: Path, namespace: str, check: Check) -> None:
        """`namespace`: the one of a credential for every namespace that asks for none. Raises SettingsError."""
        self._path, self._namespace, self._check = path, namespace, check
        self._version = _version(path)
        place = f"one that the operator of the node has given out in its `{path.name}`"
        super().__init__(read_credentials(path, namespace, check), place)

    async def verify_token(self, token: str) -> GrantedToken | None:
        self.refresh()
        return await super().verify_token(token)

    def refresh(self) -> None:
        """Read the file if it has changed."""
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            self._grants, self.problem = read_credentials(self._path, self._namespace, self._check), None
        except SettingsError as error:
            self.problem = f"{error.message} Until it is mended the credentials that it had before hold."
            logger.warning("%s", self.problem)


def read_credentials(path: Path, namespace: str, check: Check) -> dict[bytes, Grant]:
    """What each `[[credential]]` of a TOML file gives, by the digest of its token. Raises SettingsError."""
    try:
        values = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else excerpt(str(error), 200)
        raise SettingsError(f"{path.name} cannot be read: {reason}.") from None
    rows = values.pop("credential", None)
    if values or not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise SettingsError(f"{path.name} must hold one `[[credential]]` or more, and nothing else.")
    grants: dict[bytes, Grant] = {}
    for number, row in enumerate(rows, 1):
        try:
            digest, grant = _credential(row, namespace, check)
            if digest in grants:
                raise Refused("its token is that of another credential too.")
        except Refused as refusal:
            raise SettingsError(f"{path.name}, credential {number}: {refusal.message}") from None
        grants[digest] = grant
    return grants


def _credential(row: Mapping[str, Any], namespace: str, check: Check) -> tuple[bytes, Grant]:
    for name, value in row.items():
        if name not in _KINDS:
            raise Refused(f"there is no field {excerpt(name, 60)!r}; accepted: {', '.join(_KINDS)}.")
        is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if not isinstance(value, _KINDS[name]) or (_KINDS[name] is list and not is_list):
            kinds = {str: "a text", bool: "true or false", list: "a list of texts"}
            raise Refused(f"the field {name!r} must be {kinds[_KINDS[name]]}.")
    principal, namespaces, toolsets = row.get("principal", ""), row.get("namespaces", []), row.get("toolsets", [])
    if not 0 < len(principal) <= 60 or not principal.isprintable():
        raise Refused("the field 'principal', who it is for, must have 1 to 60 printable characters.")
    if not namespaces:
        raise Refused(f"the field 'namespaces' must name one namespace or more; {ANY!r} stands for every one.")
    for name in namespaces:
        if name != ANY:
            check_namespace(name)
    check(toolsets)
    names = (namespace, ANY) if namespaces[0] == ANY else tuple(namespaces)
    grant = Grant(
        f"{HTTP}:{principal}", names, tuple(sorted(toolsets)), row.get("read_only", False), row.get("sql", False)
    )
    return _token(row), grant


def _token(row: Mapping[str, Any]) -> bytes:
    """The digest of a credential's token. Its text is never in a message."""
    if ("token" in row) == ("token_sha256" in row):
        raise Refused("one of the fields 'token' and 'token_sha256' (hexadecimal) is needed.")
    if "token" in row:
        if not TOKEN.fullmatch(row["token"]):
            raise Refused(f"the field 'token' must have {TOKEN_ACCEPTED}.")
        return _digest(row["token"])
    if not _SHA256.fullmatch(row["token_sha256"].lower()):
        raise Refused("the field 'token_sha256' must have 64 hexadecimal digits: `printf %s TOKEN | sha256sum`.")
    return bytes.fromhex(row["token_sha256"])


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _version(path: Path) -> tuple[int, int, int] | None:
    """What changes when the file does; None while there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino

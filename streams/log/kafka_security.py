"""Kafka's TLS and passwords: one value that becomes the options of any aiokafka client."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streams.errors import SettingsError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PREFIX = "THALWEG_KAFKA_"


@dataclass(frozen=True)
class KafkaSecurity:
    """`protocol` as Kafka names it; `ca_file` (PEM) only for an authority that the machine does not trust."""

    protocol: str = "PLAINTEXT"
    mechanism: str = "SCRAM-SHA-256"
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise SettingsError(f"The Kafka security protocol {self.protocol!r} is not one of {', '.join(PROTOCOLS)}.")
        if self.mechanism not in MECHANISMS:
            raise SettingsError(f"The SASL mechanism {self.mechanism!r} is not one of {', '.join(MECHANISMS)}.")
        if self.protocol.startswith("SASL") and not (self.username and self.password):
            raise SettingsError(
                f"{self.protocol} needs a user name and a password ({PREFIX}USERNAME, {PREFIX}PASSWORD)."
            )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> KafkaSecurity:
        """From THALWEG_KAFKA_PROTOCOL, _MECHANISM, _USERNAME, _PASSWORD and _CA_FILE. Raises SettingsError.

        The password goes from the environment to the client: the settings, which are shown, never have it.
        """
        names = ("protocol", "mechanism", "username", "password", "ca_file")
        return cls(**{name: environ[PREFIX + name.upper()] for name in names if PREFIX + name.upper() in environ})

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context (certificate and host name are verified), or None without TLS. Raises SettingsError."""
        if not self.protocol.endswith("SSL"):
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file or None)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"The certificate file of {PREFIX}CA_FILE cannot be read: {error.strerror or error}."
            ) from None

    def options(self) -> dict[str, Any]:
        """Keyword arguments for an aiokafka producer, consumer or admin client."""
        options: dict[str, Any] = {"security_protocol": self.protocol, "ssl_context": self.ssl_context()}
        if self.protocol.startswith("SASL"):
            options |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        return options

    def faust_credentials(self) -> Any:
        """The same for `faust.App(broker_credentials=…)`; None for PLAINTEXT."""
        import faust

        if self.protocol.startswith("SASL"):
            return faust.SASLCredentials(
                username=self.username, password=self.password, mechanism=self.mechanism, ssl_context=self.ssl_context()
            )
        return faust.SSLCredentials(self.ssl_context()) if self.protocol == "SSL" else None

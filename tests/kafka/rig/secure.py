"""A broker that asks for TLS and a password.

A SASL_SSL listener with a certificate of an authority made for the test, SCRAM and PLAIN.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.kafka.rig.broker import Broker, free_port

USER, PASSWORD = "node", "s3cret-of-the-test"
SASL = """\
listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location={keystore}
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  user_{user}="{password}";
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
"""


class SecureBroker(Broker):
    """`secure_url` is the listener that the tests are about; the plain one is the rig's own."""

    def __init__(self, directory: Path) -> None:
        self.secure_port = free_port()
        self.ca_file, self._keystore = make_certificates(directory / "certificates")
        users = [f"{name}=[name={USER},password={PASSWORD}]" for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
        super().__init__(directory, format_options=[part for user in users for part in ("--add-scram", user)])

    @property
    def secure_url(self) -> str:
        return f"kafka://127.0.0.1:{self.secure_port}"

    def environment(self, **changes: str) -> dict[str, str]:
        """What lets a node in, with these changes (`password="wrong"`)."""
        given = {
            "protocol": "SASL_SSL",
            "mechanism": "SCRAM-SHA-256",
            "username": USER,
            "password": PASSWORD,
            "ca_file": str(self.ca_file),
        }
        return {f"THALWEG_KAFKA_{name.upper()}": value for name, value in (given | changes).items()}

    def _settings(self, data: Path) -> str:
        own = SASL.format(
            port=self.port,
            secure=self.secure_port,
            controller=self._controller,
            keystore=self._keystore,
            user=USER,
            password=PASSWORD,
        )
        replaced = {line.split("=")[0] for line in own.splitlines()}
        kept = [line for line in super()._settings(data).splitlines() if line.split("=")[0] not in replaced]
        return "\n".join(kept) + "\n" + own


def make_certificates(folder: Path) -> tuple[Path, Path]:
    """The authority's certificate, and a PEM file with the broker's key and certificate, for 127.0.0.1."""
    folder.mkdir(parents=True)
    ca, ca_key, key, request, signed = (
        folder / name for name in ("ca.pem", "ca.key", "broker.key", "broker.csr", "broker.pem")
    )
    extension = folder / "extension.cnf"
    extension.write_text("subjectAltName=IP:127.0.0.1\n")
    new_key = ["-newkey", "rsa:2048", "-nodes"]
    _openssl(
        "req", "-x509", *new_key, "-keyout", ca_key, "-out", ca, "-days", "2", "-subj", "/CN=thalweg test authority"
    )
    _openssl("req", *new_key, "-keyout", key, "-out", request, "-subj", "/CN=broker")
    signing = ["-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile", extension]
    _openssl("x509", "-req", "-in", request, *signing, "-out", signed)
    keystore = folder / "keystore.pem"
    keystore.write_text(key.read_text() + signed.read_text())
    return ca, keystore


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)

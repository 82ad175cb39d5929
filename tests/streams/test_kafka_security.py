"""TLS and passwords for Kafka: read from the environment, checked early, never shown."""

from __future__ import annotations

import ssl
from pathlib import Path

import faust
import pytest

from streams.errors import SettingsError
from streams.log.kafka_security import KafkaSecurity

SASL = {"THALWEG_KAFKA_PROTOCOL": "SASL_SSL", "THALWEG_KAFKA_USERNAME": "node", "THALWEG_KAFKA_PASSWORD": "s3cret"}


def test_nothing_set_is_a_plain_connection() -> None:
    security = KafkaSecurity.from_environ({})
    assert security.options() == {"security_protocol": "PLAINTEXT", "ssl_context": None}
    assert security.faust_credentials() is None


def test_the_environment_gives_user_password_and_tls() -> None:
    options = KafkaSecurity.from_environ(SASL).options()
    assert (options["sasl_mechanism"], options["sasl_plain_username"], options["sasl_plain_password"]) == (
        "SCRAM-SHA-256",
        "node",
        "s3cret",
    )
    assert options["ssl_context"].verify_mode == ssl.CERT_REQUIRED
    assert options["ssl_context"].check_hostname


def test_faust_gets_the_same_credentials() -> None:
    assert isinstance(KafkaSecurity.from_environ(SASL).faust_credentials(), faust.SASLCredentials)
    assert isinstance(KafkaSecurity(protocol="SSL").faust_credentials(), faust.SSLCredentials)


def test_the_password_is_not_in_its_text() -> None:
    assert "s3cret" not in repr(KafkaSecurity.from_environ(SASL))


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"THALWEG_KAFKA_PROTOCOL": "TLS"}, "'TLS' is not one of"),
        ({**SASL, "THALWEG_KAFKA_MECHANISM": "MD5"}, "'MD5' is not one of"),
        ({**SASL, "THALWEG_KAFKA_PASSWORD": ""}, "THALWEG_KAFKA_PASSWORD"),
    ],
)
def test_what_cannot_work_is_refused_by_name(environ: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        KafkaSecurity.from_environ(environ)


def test_a_certificate_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="THALWEG_KAFKA_CA_FILE"):
        KafkaSecurity(protocol="SSL", ca_file=str(tmp_path / "missing.pem")).options()
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(SettingsError, match="THALWEG_KAFKA_CA_FILE"):
        KafkaSecurity(protocol="SSL", ca_file=str(tmp_path / "bad.pem")).options()

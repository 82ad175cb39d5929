"""Settings: what is above what, and a sentence for each value that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams.errors import SettingsError
from thalweg.settings import load


def test_a_flag_is_above_a_variable_which_is_above_the_file_which_is_above_the_default(tmp_path: Path) -> None:
    (tmp_path / "thalweg.toml").write_text('partitions = 3\nnamespace = "file"\nrole = "all"\n')
    environ = {"THALWEG_HOME": str(tmp_path), "THALWEG_PARTITIONS": "4", "THALWEG_NAMESPACE": "variable"}
    settings = load({"partitions": 5, "namespace": None}, environ)
    assert (settings.home, settings.partitions, settings.namespace, settings.embed_threads) == (
        tmp_path,
        5,
        "variable",
        2,
    )


@pytest.mark.parametrize(
    ("said", "read_only"),
    [("1", True), ("TRUE", True), ("0", False), ("false", False), ("", False)],
)
def test_a_switch_is_a_word_in_a_variable_and_a_boolean_in_the_file(tmp_path: Path, said: str, read_only: bool) -> None:
    home = {"THALWEG_HOME": str(tmp_path)}
    assert load({}, {**home, "THALWEG_READ_ONLY": said}).read_only is read_only
    (tmp_path / "thalweg.toml").write_text(f"read_only = {str(read_only).lower()}\n")
    assert load({}, home).read_only is read_only


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"role": "boss"}, "The setting role is 'boss'; accepted: all, ingress, worker."),
        ({"broker": "amqp://x"}, "accepted: sqlite:///path/log.db or kafka://host:port."),
        ({"role": "worker"}, "The role worker needs a broker that several processes can share"),
        ({"role": "worker", "broker": "kafka://h:1", "embedder": "none"}, "A worker embeds what it is given"),
        ({"partitions": 0}, "The setting partitions is 0; accepted: 1 to 1000."),
        ({"partitions": 1001}, "accepted: 1 to 1000."),
        ({"partitions": "many"}, "The setting partitions is 'many'; a value of type int is expected."),
        ({"partitions": 2.7}, "The setting partitions is 2.7; a value of type int is expected."),
        ({"rate_limit": True}, "The setting rate_limit is True; a value of type float is expected."),
        ({"embed_threads": 65}, "The setting embed_threads is 65; accepted: 1 to 64."),
        ({"log_level": "loud"}, "accepted: debug, info, warning, error."),
        ({"namespace": ""}, "accepted: 1 to 128 printable characters without a slash"),
        ({"namespace": "n" * 129}, "accepted: 1 to 128 printable characters without a slash"),
        ({"namespace": "a\nb"}, "accepted: 1 to 128 printable characters without a slash"),
        ({"rate_limit": 0}, "The setting rate_limit is 0.0; accepted: a number above 0."),
        ({"behind_s": "nan"}, "The setting behind_s is nan; accepted: a number above 0."),
        ({"idle_exit_s": -1}, "The setting idle_exit_s is -1.0; accepted: a number of seconds, 0 or above."),
        ({"index_save_s": "inf"}, "accepted: a number of seconds, 0 or above."),
        ({"read_only": "perhaps"}, "The setting read_only is 'perhaps'; a value of type bool is expected."),
    ],
)
def test_a_value_that_cannot_be_is_named_with_what_is_accepted(
    tmp_path: Path, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load({"home": tmp_path, **given}, {})
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"partitions = ", "thalweg.toml cannot be read"),
        (b"namespace = '\xff'", "thalweg.toml cannot be read"),
        (b"brokre = 'x'", "thalweg.toml: there is no setting 'brokre'; the settings are "),
    ],
)
def test_a_file_that_cannot_be_read_or_has_an_unknown_setting_is_refused(
    tmp_path: Path, text: bytes, sentence: str
) -> None:
    (tmp_path / "thalweg.toml").write_bytes(text)
    with pytest.raises(SettingsError) as caught:
        load({"home": tmp_path}, {})
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("7733", ("127.0.0.1", 7733)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:65535", ("::1", 65535)),
        (":80", ("127.0.0.1", 80)),
    ],
)
def test_an_http_address_is_a_port_alone_or_with_its_host(tmp_path: Path, given: str, address: tuple[str, int]) -> None:
    assert load({"home": tmp_path, "http": given}, {}).http_address == address


@pytest.mark.parametrize("given", ["0", "65536", "port", "[::1:77", "a b:1", "1.2.3.4:"])
def test_an_http_address_without_a_port_that_can_be_is_refused(tmp_path: Path, given: str) -> None:
    settings = load({"home": tmp_path, "http": given}, {})
    with pytest.raises(SettingsError, match="accepted: PORT, HOST:PORT"):
        settings.http_address  # noqa: B018 - what reads it is refused

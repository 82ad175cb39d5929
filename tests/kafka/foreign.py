"""Producers that are programs of their own.

The console producer of Kafka's jars, and what others have of their languages.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from tests.kafka.rig.broker import Broker, java

PRODUCE_S = 120.0


def console_produce(broker: Broker, topic: str, lines: Sequence[str], **properties: str) -> None:
    """`kafka-console-producer.sh` with lines of `headers<TAB>key<TAB>value`, in one batch.

    `properties` (with _ for .) are the producer's.
    """
    settings = {"linger.ms": "200", **{name.replace("_", "."): value for name, value in properties.items()}}
    options = ["--bootstrap-server", broker.bootstrap, "--topic", topic]
    for name, value in settings.items():
        options += ["--producer-property", f"{name}={value}"]
    for name in ("parse.headers", "parse.key"):
        options += ["--property", f"{name}=true"]
    command = [*java(), "org.apache.kafka.tools.ConsoleProducer", *options]
    done = subprocess.run(
        command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=PRODUCE_S, check=False
    )
    assert done.returncode == 0 and "ERROR" not in done.stderr, done.stderr[-2000:]


def headers(**attributes: str) -> str:
    """CloudEvents attributes as the console producer takes headers."""
    return ",".join(f"ce_{name}:{value}" for name, value in attributes.items())


def line(attributes: Mapping[str, str], key: str, value: str) -> str:
    return f"{headers(**attributes)}\t{key}\t{value}"

"""Finds Java and Maven, and fetches the broker's jars once into a cache directory."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
FETCH_S = 600


class RigUnavailable(RuntimeError):
    """This machine cannot run a broker; the message is the sentence to print."""


def cache_dir() -> Path:
    """Where the jars lie: THALWEG_KAFKA_HOME, else ~/.cache/thalweg/kafka."""
    return Path(os.environ.get("THALWEG_KAFKA_HOME") or Path.home() / ".cache" / "thalweg" / "kafka")


def library() -> Path:
    """The directory of jars, fetched with Maven when it is not there yet. Raises RigUnavailable."""
    if shutil.which("java") is None:
        raise RigUnavailable("The Kafka rig needs Java 17, and there is no `java` on the PATH.")
    lib = cache_dir() / f"lib-{hashlib.sha256(POM.read_bytes()).hexdigest()[:8]}"  # another pom.xml asks for other jars
    if lib.is_dir():
        return lib
    if shutil.which("mvn") is None:
        raise RigUnavailable(
            f"The Kafka rig needs Maven to fetch the jars to {cache_dir()}, and there is no `mvn` on the PATH."
        )
    fetching = cache_dir() / f"fetching.{os.getpid()}"
    command = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(POM),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={fetching}",
        "-DincludeScope=runtime",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False)
        if done.returncode != 0:
            raise RigUnavailable(
                f"Maven could not fetch the broker's jars: {(done.stdout + done.stderr).strip()[-400:]}"
            )
        _publish(fetching, lib)
    except subprocess.TimeoutExpired:
        raise RigUnavailable(f"Maven did not fetch the broker's jars within {FETCH_S} s.") from None
    finally:
        shutil.rmtree(fetching, ignore_errors=True)
    return lib


def _publish(fetched: Path, lib: Path) -> None:
    """Rename, so that a half-fetched directory is never taken for the library.

    Another process may have been quicker.
    """
    try:
        fetched.rename(lib)
    except OSError:
        if not lib.is_dir():
            raise

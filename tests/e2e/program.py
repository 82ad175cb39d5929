"""The program as a user meets it: its command line in a process of its own, and what that said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.node_process import NodeProcess
from thalweg.paths import socket_path

TIMEOUT_S = 180.0
TRIES = 3


@dataclass(frozen=True)
class Said:
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.code == 0, self
        return json.loads(self.out)

    @property
    def sentence(self) -> str:
        """What a command that failed says: its first line of standard error; never a traceback."""
        assert "Traceback" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line.startswith("thalweg: ")]
        assert len(lines) == 1, self.err
        return lines[0].removeprefix("thalweg: ")


class Program:
    """`thalweg …` on one data directory and broker."""

    def __init__(self, home: Path, broker: str | None = None, **env: str) -> None:
        self.home = home
        own = {name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")}
        self.env = {**own, "THALWEG_HOME": str(home), "THALWEG_EMBEDDER": "hashing", "COLUMNS": "200", **env}
        if broker:
            self.env["THALWEG_BROKER"] = broker

    def __call__(self, *arguments: str, **env: str) -> Said:
        """Run to its end."""
        command = [sys.executable, "-m", "thalweg", *arguments]
        done = subprocess.run(
            command, env={**self.env, **env}, capture_output=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL
        )
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())

    def wait_for(self, written: Mapping[str, Any]) -> None:
        """Until what this answer's token covers is applied."""
        NodeProcess(self.home).wait_for(written["freshness"])

    def sql(self, query: str) -> list[list[Any]]:
        """Rows of an analyst's question, with all that was accepted so far applied, the records of calls included.

        A node that needs longer says `stale`, and is asked again. Of a store without a node, which cannot say what it
        lacks, the rows that are there.
        """
        if not socket_path(self.home).exists():
            stored: list[list[Any]] = self("sql", query, "--json").json()["rows"]
            return stored
        for _ in range(TRIES):
            answer = self("sql", query, "--json", "--freshness", "now").json()
            if not answer.get("stale"):
                rows: list[list[Any]] = answer["rows"]
                return rows
        raise AssertionError(
            f"{TRIES} times not all that was accepted was applied, so these rows say nothing: {answer}"
        )

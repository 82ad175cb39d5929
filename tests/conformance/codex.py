"""The real Codex, pinned, in a home with nothing of this user's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conformance.npm import installed
from tests.conformance.responses_api import ResponsesApi

PACKAGE = "@openai/codex@0.169.0"
RUN_S = 300
CONFIG = """
model = "scripted"
model_provider = "scripted"
{settings}
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""


def codex_program() -> Path:
    """The native program that the package brings for this machine."""
    [program] = (installed(PACKAGE) / "@openai").glob("codex-*/vendor/*/bin/codex")
    return program


class Codex:
    """Codex with one home, and `thalweg` on its PATH; its model is the script."""

    def __init__(self, home: Path) -> None:
        self._program = codex_program()
        self._home = home
        self.sessions = home / ".codex" / "sessions"
        self._config = home / ".codex" / "config.toml"
        self._config.parent.mkdir(parents=True)

    def __call__(self, *arguments: str, folder: Path, api: ResponsesApi | None = None) -> str:
        """Run to its end; what it printed."""
        done = subprocess.run(
            [str(self._program), *arguments],
            env=self._environment(api),
            cwd=folder,
            capture_output=True,
            timeout=RUN_S,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:]
        return done.stdout.decode()

    def turn(self, api: ResponsesApi, folder: Path, *arguments: str, settings: str = "") -> list[dict[str, Any]]:
        """`codex exec` with this API for its model: the events that it printed. `settings`: lines of config.toml."""
        kept = self._config.read_text() if self._config.exists() else ""
        self._config.write_text(CONFIG.format(url=api.url, settings=settings) + kept)
        try:
            printed = self("exec", *arguments, "--json", "--skip-git-repo-check", folder=folder, api=api)
        finally:
            self._config.write_text(kept)
        return [json.loads(line) for line in printed.splitlines()]

    def hooks(self, folder: Path) -> dict[str, Any]:
        """What Codex says of the hooks that it has found: `hooks`, `warnings`, `errors`."""
        with self._app_server() as ask:
            [found] = ask("hooks/list", {"cwds": [str(folder)]})["data"]
        return dict(found)

    def trust(self, hooks: list[dict[str, Any]]) -> None:
        """Trust these hooks as they are now, as its user does in `/hooks`."""
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
        with self._app_server() as ask:
            ask("config/batchWrite", {"edits": [{"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": state}]})

    def _environment(self, api: ResponsesApi | None) -> dict[str, str]:
        """Nothing of this user's own; every other machine behind the API, which refuses."""
        url = api.url if api else "http://127.0.0.1:9"
        proxy = {"HTTPS_PROXY": url, "HTTP_PROXY": url, "NO_PROXY": "127.0.0.1"}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(self._home), "SCRIPTED_KEY": "scripted", **proxy}

    @contextmanager
    def _app_server(self) -> Iterator[Any]:
        """Requests to the app server, which Codex' own interfaces use too."""
        pipe = subprocess.PIPE
        command = [str(self._program), "app-server"]
        with subprocess.Popen(
            command, env=self._environment(None), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        ) as server:
            assert server.stdin is not None and server.stdout is not None
            stdin, stdout = server.stdin, server.stdout

            def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
                stdin.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode())
                stdin.write(b"\n")
                stdin.flush()
                answer = next(line for line in map(json.loads, stdout) if line.get("id") == method)
                return dict(answer["result"])

            ask("initialize", {"clientInfo": {"name": "test", "version": "1"}})
            yield ask
            stdin.close()

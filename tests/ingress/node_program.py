"""A node as small as can be, for the pump's tests: the real server on a real log, with the demonstration tools.

`python -m tests.ingress.node_program HOME`: one line in HOME/started for each start.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from mcp_ingress import socket as socket_module
from mcp_ingress.server import build_server
from mcp_ingress.socket import SocketServer
from streams.clock import SystemClock
from tests.ingress.lines import WAIT_S
from tests.ingress.parts import opened_door
from thalweg.paths import socket_path


async def serve(home: Path) -> None:
    socket_module.LAST_ANSWERS_S = WAIT_S
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)

    with (home / "started").open("a") as started:
        started.write(f"{os.getpid()}\n")
    async with opened_door(home) as door:
        server = SocketServer(socket_path(home), build_server(door, "0"), SystemClock(), door)
        await server.start()
        await stopping.wait()
        await server.stop()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))

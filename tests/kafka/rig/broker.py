"""One Kafka broker from jars: KRaft, one process, started, killed and restarted by the tests."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kafka.rig.jars import RigUnavailable, library
from tests.processes import pause, resume

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
READY_S = 120.0
END_S = 60.0
LOWEST_PORT = 10_000
TRIES = 3
JVM = (
    "-Xms64m",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
# The short session timeouts and the absent rebalance delay are for tests: a restart takes seconds fewer. A session
# outlives a stall: while its only broker is fenced, the controller makes no topic and nothing has a leader.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=4
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
num.network.threads=2
num.io.threads=2
num.replica.fetchers=1
num.recovery.threads.per.data.dir=1
log.cleaner.dedupe.buffer.size=4194304
background.threads=2
controlled.shutdown.enable=true
broker.session.timeout.ms=5000
broker.heartbeat.interval.ms=200
"""


class Broker:
    """A broker whose data lies in `directory`. Without `port`, free ones are taken, once.

    `properties` replaces the rig's own settings; `format_options` go to the storage tool (users, for one).
    """

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.port = port or free_port()
        self._controller = port + 1 if port else free_port()  # formatting writes it down: it must stay the same
        self._properties = properties
        self._format_options = format_options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"kafka://{self.bootstrap}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self, timeout_s: float = READY_S) -> float:
        """Format if needed, start, wait until clients are served; returns the seconds it took.

        Raises RigUnavailable.
        """
        if self._process is not None:
            raise RuntimeError("the broker runs already")
        began = time.monotonic()
        self.directory.mkdir(parents=True, exist_ok=True)
        properties = self.directory / "server.properties"
        data = self.directory / "data"
        properties.write_text(self._settings(data))
        if not (data / "meta.properties").exists():
            self._format(properties)
        for _ in range(TRIES):  # one that ends at once (memory or a port that is just taken) is started again
            with (self.directory / "broker.log").open("ab") as log:
                self._process = subprocess.Popen(
                    [*java(), "kafka.Kafka", str(properties)],
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            code = self._wait_ready(began + timeout_s)
            if code is None:
                return time.monotonic() - began
        raise RigUnavailable(f"The broker ended at once with {code}, {TRIES} times: {self.log_tail()}")

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM and wait; SIGKILL when it takes very long."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        assert self._process is not None
        pause(self._process)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        resume(self._process)

    def restart(self) -> float:
        """Stop when running, then start on the same data; returns the seconds of the start."""
        self.stop()
        return self.start()

    def log_tail(self, characters: int = 800) -> str:
        """The end of the broker's own log, for a message."""
        with contextlib.suppress(FileNotFoundError):
            return (self.directory / "broker.log").read_text(errors="replace")[-characters:]
        return ""

    def _settings(self, data: Path) -> str:
        if self._properties is None:
            return PROPERTIES.format(port=self.port, controller=self._controller, data=data)
        return "".join(f"{name}={value}\n" for name, value in self._properties.items())

    def _format(self, properties: Path) -> None:
        alone = [] if "controller.quorum.voters" in (self._properties or {}) else ["--standalone"]
        command = [
            *java(),
            "kafka.tools.StorageTool",
            "format",
            *alone,
            *self._format_options,
            "-t",
            CLUSTER_ID,
            "-c",
            str(properties),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=READY_S, check=False)
        if done.returncode != 0:
            raise RigUnavailable(f"The broker's directory could not be formatted: {(done.stdout + done.stderr)[-400:]}")

    def _wait_ready(self, deadline: float) -> int | None:
        """None once clients are served, or the exit code of a broker that ended.

        Raises RigUnavailable when time is up.
        """
        assert self._process is not None
        while time.monotonic() < deadline:
            if (code := self._process.poll()) is not None:
                self._process = None
                return code
            if _serves(self.port):
                return None
            time.sleep(0.05)
        self.kill()
        raise RigUnavailable(f"The broker did not answer in time: {self.log_tail()}")

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        if how != signal.SIGKILL:
            process.send_signal(signal.SIGCONT)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now, nor soon.

    It is none of those that the kernel hands out itself, to a listener on port 0 or to a client's own end, while a
    broker is down for instance. (Who tries to connect to such a port again and again is at last given it as their own,
    and speaks to themselves.)
    """
    first = _first_ephemeral()
    for _ in range(200):
        port = random.SystemRandom().randrange(LOWEST_PORT, first) if first > LOWEST_PORT + 1000 else 0
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise RigUnavailable("No port of the loopback interface is free.")


def _first_ephemeral() -> int:
    """The lowest port that the kernel hands out; 0 where it does not say."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    return 0


def java() -> list[str]:
    return ["java", *JVM, "-cp", os.path.join(str(library()), "*")]


def _serves(port: int) -> bool:
    """Whether metadata names a live broker: the port opens earlier than that.

    Speaks Metadata v1 by hand, to need no loop.
    """
    header = b"\x00\x03\x00\x01\x00\x00\x00\x01\x00\x03rig"
    request = header + b"\x00\x00\x00\x00"
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0) as connection:
            connection.settimeout(2.0)
            connection.sendall(len(request).to_bytes(4, "big") + request)
            answer = connection.recv(4096)
    except OSError:
        return False
    return len(answer) >= 12 and int.from_bytes(answer[8:12], "big") > 0

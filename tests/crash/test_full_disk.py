"""R9: the disk is full. Writes are refused with a sentence, the node lives on or ends with one, and all is there once
there is room.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.errors import ThalwegError
from tests.crash.invariants import Ledger, check_all
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S
from thalweg.control.requests import ask

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

DISK_MB = 48
REFUSALS = 5
ATTEMPTS = 3


class SmallDisk:
    """A file system of its own in memory; full once `fill` has written what was free."""

    def __init__(self, at: Path) -> None:
        self.home = at / "home"
        self._filler = at / "filler"

    def fill(self, node: NodeProcess) -> None:
        with self._filler.open("wb", buffering=0) as file:
            for size in (1024 * 1024, 4096):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass  # full

    def make_room(self, node: NodeProcess) -> None:
        self._filler.unlink()


class FileSizeLimit:
    """Files that may not grow, where nothing may be mounted: the same failure of each write, under another number."""

    def __init__(self, at: Path) -> None:
        self.home = at / "home"

    def fill(self, node: NodeProcess, size: int = 1) -> None:
        self._limit(node, size)

    def make_room(self, node: NodeProcess) -> None:
        if node.is_alive():
            self._limit(node, resource.RLIM_INFINITY)

    def _limit(self, node: NodeProcess, size: int) -> None:
        assert node.process is not None
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


Disk = SmallDisk | FileSizeLimit


def mounted(at: Path) -> bool:
    at.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(at)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture(params=["a full file system", "files that may not grow"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """Both kinds; who may not mount (no root) runs the second one twice."""
    at = tmp_path / "disk"
    if request.param == "files that may not grow" or not mounted(at):
        yield FileSizeLimit(tmp_path)
        return
    yield SmallDisk(at)
    subprocess.run(["umount", "-l", str(at)], check=True)


def write(client: Client, ledger: Ledger, number: int) -> dict[str, object]:
    """One entry; what was accepted, spooled too, is in the ledger."""
    request_id = f"r-{number}"
    ledger.ask(request_id)
    answer = client.call(
        "journal_write", {"content": f"I realized that case {number} is real.", "category": "insight"}, request_id
    )
    if answer["success"] or answer.get("spooled"):
        ledger.answer(request_id, answer["entry_id"], "SELECT entry_id FROM talos_journal")
    elif answer["error_code"] != "timeout":  # what came too late may be on the log
        ledger.refuse(request_id)
    return answer


def write_until_refused(node: NodeProcess, ledger: Ledger) -> list[dict[str, object]]:
    """Until this many writes were refused, or the node has ended; their answers."""
    refusals: list[dict[str, object]] = []
    try:
        client = Client(node.home)
        for number in range(100, 2000):
            answer = write(client, ledger, number)
            if f"r-{number}" in ledger.refused:
                refusals.append(answer)
            if len(refusals) == REFUSALS:
                break
    except (OSError, ValueError):  # the node is gone, or went in the middle of a line
        pass
    return refusals


def refused_once_full(node: NodeProcess, disk: Disk, ledger: Ledger) -> list[dict[str, object]]:
    """What writes are answered on a full disk.

    A node that ended before any was asked for is started again, and the disk filled again.
    """
    for _ in range(ATTEMPTS):
        be_still(node)
        disk.fill(node)
        if refusals := write_until_refused(node, ledger):
            return refusals
        disk.make_room(node)
        goes_on(node, disk)
    raise AssertionError("a full disk took everything")


def be_still(node: NodeProcess) -> None:
    """Until the node has nothing left to write.

    Then it meets the full disk with what it is asked, not with what was left from before.
    """
    deadline = time.monotonic() + PATIENCE_S
    while node.settle()["indexes"]["keyword"]["uncommitted"]:
        assert time.monotonic() < deadline, "its keyword index is not committed"
        time.sleep(0.05)


def applied(node: NodeProcess) -> dict[str, int]:
    return {topic: part["applied"] for topic, part in ask(node.home, "status")["topics"].items()}


def test_on_a_full_disk_writes_are_refused_with_a_sentence_and_nothing_accepted_is_lost(disk: Disk) -> None:
    ledger = Ledger()
    node = NodeProcess(disk.home).start()
    client = Client(node.home)
    for number in range(5):
        assert write(client, ledger, number)["success"]
    for answer in refused_once_full(node, disk, ledger):
        assert answer["error_code"] == "log_unavailable"
        assert "cannot be written" in str(answer["message"]) and int(str(answer["retry_after_ms"])) > 0
    disk.make_room(node)
    goes_on(node, disk)
    client = Client(node.home)
    for request_id in sorted(ledger.refused):
        number = int(request_id.removeprefix("r-"))
        assert write(client, ledger, number)["success"]
    check_all(node, ledger)
    assert node.stop() == 0, node.log_tail()


def goes_on(node: NodeProcess, disk: Disk) -> None:
    """Until all is well again. A node that is crash-only either lives, or has said in one sentence why it ended.

    Then a restart goes on.
    """
    deadline = time.monotonic() + 2 * PATIENCE_S
    while time.monotonic() < deadline:
        if not node.is_alive():
            assert node.died() in (1, 2)
            if isinstance(disk, SmallDisk):  # else its own log may not grow either
                assert (
                    node.log_tail().splitlines()[-1].startswith("thalweg: ") and "Traceback" not in node.log_tail()
                ), node.log_tail()
            node.start()
        try:
            node.settle()
            return
        except ThalwegError:  # it ends after all
            time.sleep(0.05)
    raise AssertionError(f"it does not go on: {node.log_tail()}")


def why_it_does_not_serve(node: NodeProcess) -> str:
    """The sentence with which it ended, or, where a few KiB were enough to start, the problem that its status names."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not node.is_alive():
            assert node.died() != 0
            said = node.log_tail().splitlines()[-1]
            return said if said.startswith("thalweg: ") else ""
        try:
            report = ask(node.home, "status")
        except ThalwegError:  # it does not answer yet, or ends just now
            report = {"problems": []}
        for problem in report["problems"]:
            if "disk" in problem:
                assert report["status"] == "red"
                return str(problem)
        time.sleep(0.05)
    raise AssertionError(f"it neither ended nor said that the disk is full: {node.log_tail()}")


def test_status_is_red_on_a_full_disk_and_a_node_that_starts_there_says_why(tmp_path: Path) -> None:
    at = tmp_path / "disk"
    if not mounted(at):
        pytest.skip("only root may mount a small file system")
    try:
        disk, ledger = SmallDisk(at), Ledger()
        node = NodeProcess(disk.home).start()
        assert write(Client(node.home), ledger, 1)["success"]
        be_still(node)
        before = applied(node)
        disk.fill(node)
        report = ask(node.home, "status")
        assert report["status"] == "red"
        assert any("disk" in problem for problem in report["problems"]), report["problems"]
        node.kill()
        disk.fill(node)  # the end of a process frees what it held open
        node.launch()
        assert "is full" in why_it_does_not_serve(node) and "Traceback" not in node.log_tail(), node.log_tail()
        disk.make_room(node)
        goes_on(node, disk)
        now = applied(node)  # or more: what the stages had not acknowledged when it was killed they do again
        assert all(now[topic] >= count for topic, count in before.items()), (before, now)
        check_all(node, ledger)
        node.stop()
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)

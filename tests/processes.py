"""Processes that the tests did not start themselves, such as the node of a pump, by their number (Linux)."""

from pathlib import Path


def ended(pid: int) -> bool:
    """Whether the process is gone, or waits only for its parent to ask how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (
        FileNotFoundError,
        ProcessLookupError,
    ):  # the second: it went between the opening of the file and the reading
        return True

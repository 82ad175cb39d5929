"""Failpoints: named places where a test can kill the process or raise.

`THALWEG_FAILPOINT=name:n:kill|raise` sets one. Without the variable a failpoint costs one comparison.
"""

from __future__ import annotations

import os
import signal

NAMES = (
    "decoded",
    "after_bury",
    "txn_open",
    "txn_half",
    "before_commit",
    "after_commit",
    "after_index",
    "mid_index_save",
    "after_rename",
    "after_ack",
    "in_revoke",
    "mid_reembed",
    "mid_index_rebuild",
    "mid_dream",
    "mid_timer",
    "mid_view",
    "mid_features",
)


class FailpointReached(RuntimeError):
    """Raised by a failpoint of the kind `raise`."""


def _parse(setting: str | None) -> tuple[str, int, str]:
    if not setting:
        return "", 0, ""
    name, count, kind = setting.split(":")
    if name not in NAMES or kind not in ("kill", "raise"):
        raise ValueError(f"THALWEG_FAILPOINT={setting!r}: name:n:kill|raise, with a name of {', '.join(NAMES)}")
    return name, int(count), kind


_name, _left, _kind = _parse(os.environ.get("THALWEG_FAILPOINT"))


def hit(name: str) -> None:
    """Count a pass of this failpoint; at the n-th pass of the configured one, die (SIGKILL) or raise."""
    global _left
    if name != _name:
        return
    _left -= 1
    if _left == 0:
        if _kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise FailpointReached(name)

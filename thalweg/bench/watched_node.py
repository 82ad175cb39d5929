"""`python -m thalweg.bench.watched_node FILE`: a node that notes how long its interpreter is busy.

A thread of the node asks for the interpreter every millisecond. What it waits beyond that, as far as the node's own
processor time passed meanwhile, somebody in the node was at work in one piece: time that the machine gave to others
does not count. Threads that work without the interpreter count, so that the figure is at most too high.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

BEAT_S = 0.001
NOTED_S = 0.002
"""Shorter pieces are not noted."""


def _watch(file: Path) -> None:
    with file.open("w", buffering=1) as notes:
        while True:
            began, used = time.perf_counter(), time.process_time()
            time.sleep(BEAT_S)
            ended = time.perf_counter()
            piece_s = min(ended - began - BEAT_S, time.process_time() - used)
            if piece_s >= NOTED_S:
                notes.write(f"{ended} {piece_s}\n")


def read_pieces(file: Path, since: float, until: float) -> list[float]:
    """The pieces in ms between two times of `perf_counter`, which all processes of a machine share."""
    rows = [line.split() for line in file.read_text().splitlines()]
    return [1000 * float(row[1]) for row in rows if len(row) == 2 and since <= float(row[0]) <= until]


if __name__ == "__main__":
    from thalweg.__main__ import main

    threading.Thread(target=_watch, args=(Path(sys.argv[1]),), daemon=True).start()
    sys.argv = ["thalweg", "up"]
    main()

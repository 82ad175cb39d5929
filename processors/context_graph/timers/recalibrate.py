"""recalibrate: once an hour what was judged since corrects the probabilities (level 2).

The event is named by the hour: two nodes that look at once tell the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import duckdb

from processors.context_graph.rules.calibration import LEAST_JUDGEMENTS
from processors.frame.timer import Timer, due_event
from streams.clock import format_time
from streams.event_types.context_calibration import THRESHOLD_RECALIBRATED
from streams.events import Event

NAME = "recalibrate"
LEVEL = 2

_JUDGED = """
SELECT namespace FROM context_calibrations
WHERE judgements > fitted_judgements AND judgements >= ? AND (fitted_at IS NULL OR fitted_at < ?) ORDER BY namespace"""


def due_recalibrations(cursor: duckdb.DuckDBPyConnection, now: datetime) -> Iterator[Event]:
    """The recalibrations of this hour that are due and not applied yet, of all namespaces."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    for (namespace,) in cursor.execute(_JUDGED, [LEAST_JUDGEMENTS, hour.replace(tzinfo=None)]).fetchall():
        about = (str(LEVEL), format_time(hour))
        data = {"level": LEVEL, "automatic": True}
        yield due_event(NAME, THRESHOLD_RECALIBRATED, namespace, data, about=about, due_at=hour)


RECALIBRATE = Timer(NAME, every_s=600.0, due=due_recalibrations)

TIMERS = (RECALIBRATE,)

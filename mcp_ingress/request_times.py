"""When a request was first made, so that its resend makes the same events.

An id in an answer may hold the day (`journal-2026-01-05-…`). The time is that of the request's first event: from memory
for this node's recent requests, else from `outcomes`. Nearly every request is new, and the store's filter of known keys
says so without a query to DuckDB.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

import duckdb

from storage.applied import AppliedPositions
from storage.reader import Reader
from streams.errors import Unavailable
from streams.positions import Freshness

MAX_TIMES = 20_000
"""Requests whose time is kept in memory."""
RequestKey = tuple[str, str]
"""Namespace and request id."""


class RequestTimes:
    """The times of a door's requests.

    `inherited` is how far the log reached when the node started: below it lie requests of earlier nodes.
    """

    def __init__(self) -> None:
        self.inherited = Freshness()
        self.may_be_decided: Callable[[RequestKey], bool] = lambda request: True
        """False of a request for which the store surely holds no outcome: then it is not asked for one."""
        self._times: OrderedDict[RequestKey, datetime] = OrderedDict()

    async def first_requested(
        self, request: RequestKey, now: datetime, reader: Reader, applied: AppliedPositions, timeout_s: float
    ) -> datetime:
        """The time of the request's first event, else `now`.

        Just after a start it waits, at most `timeout_s`, for what earlier nodes left on the log. While the store is
        down or further behind than that, a resend counts as new: one effect still, but its answer may name another day.
        """
        known = self._times.get(request)
        if known is None:
            await applied.wait(self.inherited, timeout_s=timeout_s)
            if self.may_be_decided(request):
                try:
                    known = await reader.run(functools.partial(_decided_at, request=request))
                except Unavailable:
                    known = None
        first = self._times.setdefault(request, known or now)
        if len(self._times) > MAX_TIMES:
            self._times.popitem(last=False)
        return first


def _decided_at(cursor: duckdb.DuckDBPyConnection, request: RequestKey) -> datetime | None:
    """The time of the event that decided the request, or None while there is none."""
    row = cursor.execute(
        "SELECT decided_at FROM outcomes WHERE namespace = ? AND request_id = ?", list(request)
    ).fetchone()
    return None if row is None else row[0].replace(tzinfo=UTC)

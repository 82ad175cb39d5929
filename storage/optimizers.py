"""The optimizer of DuckDB that every connection goes without."""

from __future__ import annotations

DISABLED = "statistics_propagation"
"""By it DuckDB 2.0.0 drops a LIMIT above an outer join with a table that holds nothing.

It takes the join for empty. Of a young store that is most tables, and `SELECT … LIMIT 2` gave all rows.
"""

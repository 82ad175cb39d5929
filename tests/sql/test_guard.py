"""What the guard lets through, and the sentences with which it refuses."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import orjson
import pytest

from storage.sql.guard import check
from streams.errors import Refused

TABLES = ("tool_calls", "sessions", "model_calls")


@pytest.fixture(scope="module")
def parser() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def guard(parser: duckdb.DuckDBPyConnection, sql: str) -> None:
    (tree,) = parser.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()[0]
    check(orjson.loads(tree), TABLES)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT tool_name, count(*) FROM tool_calls GROUP BY ALL ORDER BY 2 DESC LIMIT 3;",
        "FROM tool_calls",
        'FROM main."Tool_Calls"',
        "WITH a AS (FROM tool_calls), b AS (FROM a) SELECT * FROM b JOIN sessions USING (session_id)",
        "WITH RECURSIVE up(id, n) AS (SELECT session_id, 0 FROM sessions UNION ALL SELECT id, n + 1 FROM up WHERE n < 3) FROM up",
        "SELECT *, row_number() OVER (PARTITION BY tool_name ORDER BY started_at) FROM tool_calls QUALIFY row_number() OVER () < 9",
        "SELECT list_transform([1, 2], lambda x: x + 1), [x * 2 for x in [1, 2]], {'a': 1}, input ->> '$.command' FROM tool_calls",
        "SELECT quantile_cont(duration_ms, [0.5, 0.95]) FILTER (NOT is_error) FROM tool_calls WHERE tool_name LIKE 'B%'",
        "SELECT * EXCLUDE (input) REPLACE (upper(tool_name) AS tool_name) FROM tool_calls USING SAMPLE 10 ROWS",
        "FROM (PIVOT tool_calls ON tool_name IN ('Bash', 'Read') USING count(*))",
        "FROM tool_calls t ASOF JOIN sessions s ON t.session_id = s.session_id AND t.started_at >= s.started_at",
        "SELECT tool_name FROM tool_calls UNION SELECT model FROM model_calls EXCEPT SELECT 'x'",
        "SELECT s.session_id, n.c FROM sessions s, LATERAL (SELECT count(*) c FROM tool_calls t WHERE t.session_id = s.session_id) n",
        "FROM range(3) r(i) CROSS JOIN unnest([1, 2])",
        "SELECT CASE WHEN is_error THEN 1 END, duration_ms BETWEEN 1 AND 2, error_type IS NULL, now() - INTERVAL 1 DAY FROM tool_calls",
        "FROM information_schema.columns",
        "DESCRIBE tool_calls",
        "SUMMARIZE tool_calls",
        "SHOW TABLES",
        "SELECT ';' -- ; DROP TABLE tool_calls",
        "VALUES (1), (2)",
    ],
)
def test_a_reading_statement_passes(parser: duckdb.DuckDBPyConnection, sql: str) -> None:
    guard(parser, sql)


@pytest.mark.parametrize(
    ("sql", "code", "says"),
    [
        ("SELEC 1", "sql_syntax", "cannot be parsed"),
        ("", "sql_refused", "no statement"),
        ("-- nothing", "sql_refused", "no statement"),
        ("SELECT 1; SELECT 2", "sql_refused", "one statement at a time, not 2"),
        ("SELECT * FROM tool_cals", "sql_refused", "Did you mean `tool_calls`?"),
        ("SELECT quantile_con(duration_ms, 0.5) FROM tool_calls", "sql_refused", "Did you mean `quantile_cont`?"),
        ("SELECT * FROM tool_calls WHERE tool_name = ?", "sql_refused", "write the values into the statement"),
        ("SELECT * FROM other.main.tool_calls", "sql_refused", "without the name of a database"),
        ("PIVOT tool_calls ON tool_name USING count(*)", "sql_refused", "must name its values"),
        ("UPDATE tool_calls SET tool_name = 'x'", "sql_refused", "read-only copy"),
        ("WITH x AS (DELETE FROM tool_calls RETURNING *) FROM x", "sql_refused", "DELETE is not allowed"),
        ("FROM tool_calls AT (VERSION => 1)", "sql_refused", "state of the snapshot"),
        ("SELECT (WITH hidden AS (SELECT 1 a) SELECT a FROM hidden), * FROM hidden", "sql_refused", "no table `hidden`"),
        ("WITH hidden AS (SELECT * FROM hidden) FROM hidden", "sql_refused", "no table `hidden`"),
        ("SHOW DATABASES", "sql_refused", "SHOW TABLES"),
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "sql_syntax", "nested too deeply"),
    ],
)
def test_a_refusal_says_what_to_change(parser: duckdb.DuckDBPyConnection, sql: str, code: str, says: str) -> None:
    with pytest.raises(Refused) as refusal:
        guard(parser, sql)
    assert refusal.value.error_code == code
    assert says in refusal.value.message


def test_a_node_of_a_kind_that_nobody_knows_is_refused() -> None:
    tree = {"error": False, "statements": [{"node": {"type": "SELECT_NODE", "from_table": {"type": "NEW_KIND_OF_SOURCE"}}}]}
    with pytest.raises(Refused):
        check(tree, TABLES)

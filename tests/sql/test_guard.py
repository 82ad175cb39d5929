"""What the guard lets through, and the sentences with which it refuses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import orjson
import pytest

from storage.sql.functions import FUNCTIONS, TABLE_FUNCTIONS
from storage.sql.guard import check
from streams.errors import Refused
from tests.sql import hostile

TABLES = ("tool_calls", "sessions", "model_calls", "progress")


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
        (
            "WITH RECURSIVE up(id, n) AS (SELECT session_id, 0 FROM sessions UNION ALL SELECT id, n + 1 FROM up "
            "WHERE n < 3) FROM up"
        ),
        (
            "SELECT *, row_number() OVER (PARTITION BY tool_name ORDER BY started_at) FROM tool_calls "
            "QUALIFY row_number() OVER () < 9"
        ),
        (
            "SELECT list_transform([1, 2], lambda x: x + 1), [x * 2 for x in [1, 2]], {'a': 1}, "
            "input ->> '$.command' FROM tool_calls"
        ),
        (
            "SELECT quantile_cont(duration_ms, [0.5, 0.95]) FILTER (NOT is_error) FROM tool_calls "
            "WHERE tool_name LIKE 'B%'"
        ),
        "SELECT * EXCLUDE (input) REPLACE (upper(tool_name) AS tool_name) FROM tool_calls USING SAMPLE 10 ROWS",
        "FROM (PIVOT tool_calls ON tool_name IN ('Bash', 'Read') USING count(*))",
        "FROM tool_calls t ASOF JOIN sessions s ON t.session_id = s.session_id AND t.started_at >= s.started_at",
        "SELECT tool_name FROM tool_calls UNION SELECT model FROM model_calls EXCEPT SELECT 'x'",
        (
            "SELECT s.session_id, n.c FROM sessions s, LATERAL (SELECT count(*) c FROM tool_calls t "
            "WHERE t.session_id = s.session_id) n"
        ),
        "FROM range(3) r(i) CROSS JOIN unnest([1, 2])",
        (
            "SELECT CASE WHEN is_error THEN 1 END, duration_ms BETWEEN 1 AND 2, "
            "error_type IS NULL, now() - INTERVAL 1 DAY FROM tool_calls"
        ),
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
        (
            "SELECT (WITH hidden AS (SELECT 1 a) SELECT a FROM hidden), * FROM hidden",
            "sql_refused",
            "no table `hidden`",
        ),
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
    tree = {
        "error": False,
        "statements": [{"node": {"type": "SELECT_NODE", "from_table": {"type": "NEW_KIND_OF_SOURCE"}}}],
    }
    with pytest.raises(Refused):
        check(tree, TABLES)


HARMFUL = hostile.WRITING + hostile.READING_FILES + hostile.REACHING_OUT + hostile.CONTROLLING + hostile.EVERYWHERE


def shown(sql: str) -> str:
    return sql[:90].encode("ascii", "backslashreplace").decode()


@pytest.mark.parametrize("sql", HARMFUL + hostile.NESTED_WRITING + hostile.OVER_THE_NETWORK, ids=shown)
def test_what_harms_is_refused_wherever_it_stands_in_a_statement(parser: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises(Refused) as refusal:
        guard(parser, sql)
    assert refusal.value.error_code == "sql_refused"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the statements are after."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "secret.csv").write_text(f"password\n{hostile.SECRET}\n")
    (folder / "secret.json").write_text('{"password": 1}')
    with duckdb.connect(folder / "other.duckdb") as other:
        other.execute("CREATE TABLE secrets AS SELECT 1")
        other.execute(f"COPY secrets TO '{folder}/secret.parquet'")
        other.execute(f"EXPORT DATABASE '{folder}/exported'")
    return folder


def plain_connection() -> duckdb.DuckDBPyConnection:
    """A database that nobody guards, with what the statements name."""
    plain = duckdb.connect()
    plain.execute(
        "CREATE TABLE progress (place INTEGER, stage VARCHAR, topic VARCHAR, partition INTEGER, next_offset BIGINT)"
    )
    plain.execute(
        "CREATE VIEW sessions AS SELECT 's1' AS session_id, 'g' AS goal, 'a' AS source, now()::TIMESTAMP AS started_at"
    )
    plain.execute("CREATE SEQUENCE s; PREPARE p AS DELETE FROM progress; SET VARIABLE x = 1")
    return plain


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with plain_connection() as connection:
        yield connection


@pytest.mark.parametrize("sql", hostile.READING_FILES + hostile.EVERYWHERE, ids=shown)
def test_what_reads_would_work_if_nobody_looked_at_it(plain: duckdb.DuckDBPyConnection, sql: str, home: Path) -> None:
    """So that no refusal is one of a function which this DuckDB does not have, or of SQL which nobody could run."""
    plain.execute(sql.replace("{home}", str(home))).fetchall()


@pytest.mark.parametrize("sql", hostile.WRITING + hostile.REACHING_OUT + hostile.CONTROLLING, ids=shown)
def test_what_changes_something_would_work_if_nobody_looked_at_it(sql: str, home: Path) -> None:
    my_frame = {"password": np.array([1])}
    with plain_connection() as plain:
        plain.execute(sql.replace("{home}", str(home))).fetchall()
    assert my_frame, "it is found by its name"


@pytest.mark.parametrize("sql", hostile.OVER_THE_NETWORK, ids=shown)
def test_what_would_go_over_the_network_is_a_statement(parser: duckdb.DuckDBPyConnection, sql: str) -> None:
    assert parser.extract_statements(sql)


REVIEWED = Path(__file__).with_name("allowed_functions.txt")


def test_the_functions_that_may_be_called_are_those_that_were_reviewed() -> None:
    """A new name is looked at before it is written into the list.

    Does it read settings, files or SQL, wait, log, or grow without bound?
    """
    allowed = "".join(f"{name}\n" for name in sorted(FUNCTIONS))
    if os.environ.get("THALWEG_SNAP"):
        REVIEWED.write_text(allowed)
    assert REVIEWED.read_text() == allowed, "review what changed, then write the list anew with THALWEG_SNAP=1"
    assert sorted(TABLE_FUNCTIONS) == [
        "generate_series",
        "json_each",
        "json_tree",
        "range",
        "regexp_split_to_table",
        "unnest",
    ]


GRAMMAR = {"!", "!~*", "!~~~", "->", "~*", "and", "or", "not", "in", "is distinct from", "is not distinct from"}
GRAMMAR |= {"coalesce", "ifnull", "current_timestamp", "grouping", "grouping_id"}
"""Names that the parser gives to what is no function of the catalogue."""


def test_every_function_that_may_be_called_is_there(parser: duckdb.DuckDBPyConnection) -> None:
    """A name that this DuckDB does not have was never looked at: what comes under it later may be anything."""
    known = {
        name.lower() for (name,) in parser.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    }
    own = {"vector_floats"}  # a macro of the store
    assert FUNCTIONS - known - own - GRAMMAR == set() and known >= TABLE_FUNCTIONS

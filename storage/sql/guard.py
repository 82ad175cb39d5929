"""The check of an SQL statement: an allow-list over its syntax tree.

DuckDB's `json_serialize_sql` makes the tree; the check itself is pure. The type of a statement protects nothing (`WITH
x AS (DELETE … RETURNING *) SELECT …` is a SELECT), so every node of the tree must be of a known harmless kind; unknown
kinds are refused. The child that runs the statement is locked down as well.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from storage.sql.functions import FUNCTIONS, TABLE_FUNCTIONS
from streams.errors import Refused

Node = dict[str, Any]
Scope = frozenset[str]

QUERIES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
SOURCES = {"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT", "SHOW_REF"}
MODIFIERS = {"ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"}
ORDERS = {"ORDER_DEFAULT", "ASCENDING", "DESCENDING", "ORDER_ASCENDING", "ORDER_DESCENDING"}
EXPRESSIONS = {
    "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "LAMBDA",
    "LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW",
}  # fmt: skip
WRITES = {
    "DELETE_QUERY_NODE": "DELETE",
    "INSERT_QUERY_NODE": "INSERT",
    "UPDATE_QUERY_NODE": "UPDATE",
    "COPY_QUERY_NODE": "COPY",
}
READ_ONLY = "This is a read-only copy: send one SELECT (or WITH … SELECT, FROM …, DESCRIBE <table>, SUMMARIZE <table>)."


def check(tree: Node, tables: Iterable[str]) -> None:
    """Raise Refused ('sql_syntax' or 'sql_refused') with what to change, unless the statement only reads.

    `tree` is the parsed output of `json_serialize_sql`; `tables` the names of the tables and views that may be read.
    """
    if tree.get("error"):
        _raise_parse_error(tree)
    statements = tree.get("statements") or []
    if len(statements) != 1:
        raise _refused(
            "There is no statement." if not statements else f"Send one statement at a time, not {len(statements)}."
        )
    if statements[0].get("named_param_map"):
        raise _refused("Parameters (`?`, `$1`) have no values here: write the values into the statement.")
    _Check(tables).query(statements[0].get("node"), frozenset())


def _raise_parse_error(tree: Node) -> None:
    message = str(tree.get("error_message") or "unreadable").splitlines()[0]
    if "expression depth" in message:
        raise Refused("The statement is nested too deeply.", code="sql_syntax")
    if tree.get("error_type") == "parser":
        raise Refused(f"The SQL cannot be parsed: {message}.", code="sql_syntax")
    raise _refused(f"{READ_ONLY} A PIVOT must name its values: PIVOT … ON column IN (…).")


class _Check:
    """The walk over the tree; `scope` has the names of the common table expressions that are visible."""

    def __init__(self, tables: Iterable[str]) -> None:
        self._tables = {name.lower(): name for name in tables}

    def query(self, node: Any, scope: Scope) -> None:
        kind = node.get("type") if isinstance(node, dict) else None
        if kind not in QUERIES:
            raise _refused(f"{WRITES.get(str(kind), str(kind))} is not allowed. {READ_ONLY}")
        for entry in node.get("cte_map", {}).get("map", []):
            name, body = str(entry["key"]).lower(), entry["value"]["query_node"]
            self.query(body, scope | {name} if body.get("type") == "RECURSIVE_CTE_NODE" else scope)
            self.walk({key: value for key, value in entry["value"].items() if key != "query_node"}, scope)
            scope |= {name}
        if kind == "RECURSIVE_CTE_NODE":
            scope |= {str(node.get("cte_name", "")).lower()}
        for key, value in node.items():
            if key not in ("cte_map", "type"):
                self.walk(value, scope)

    def walk(self, value: Any, scope: Scope) -> None:
        """Check everything below `value`. A dictionary with a class or type must have a known one."""
        if isinstance(value, list):
            for item in value:
                self.walk(item, scope)
        elif isinstance(value, dict):
            self._dict(value, scope)

    def _dict(self, node: Node, scope: Scope) -> None:
        kind = node.get("type")
        if "class" in node:
            self._expression(node)
        elif isinstance(kind, str):
            if kind in SOURCES:
                self._source(node, kind, scope)
            elif kind not in MODIFIERS and kind not in ORDERS:
                self.query(node, scope)
                return
        elif "info_type" in node:
            raise _refused(f"{node['info_type']} is not allowed. {READ_ONLY}")
        for key, value in node.items():
            if key == "function" and kind == "TABLE_FUNCTION":
                self.walk(value.get("arguments"), scope)
            else:
                self.walk(value, scope)

    def _expression(self, node: Node) -> None:
        if node["class"] == "PARAMETER":
            raise _refused("Parameters (`?`, `$1`) have no values here: write the values into the statement.")
        if node["class"] not in EXPRESSIONS:
            raise _refused(f"An expression of the kind {node['class']} is not allowed here.")
        if "function_name" in node:
            _function(node, FUNCTIONS, "function")

    def _source(self, node: Node, kind: str, scope: Scope) -> None:
        if kind == "TABLE_FUNCTION":
            _function(node["function"], TABLE_FUNCTIONS, "table function")
        elif kind == "BASE_TABLE":
            self._table(node, scope)
        elif (
            kind == "SHOW_REF"
            and not node.get("query")
            and str(node.get("table_name", "")).strip('"').lower() != "tables"
        ):
            raise _refused("Only SHOW TABLES, DESCRIBE <table> and SUMMARIZE <table> are allowed.")

    def _table(self, node: Node, scope: Scope) -> None:
        name, path = str(node["table_name"]).lower(), [str(part).lower() for part in node["qualified_name"]["path"]]
        if path[-1:] != [name] or len(path) > 2 or node.get("catalog_name"):
            raise _refused(f"Write the table as `{node['table_name']}`, without the name of a database.")
        if node.get("at_clause"):
            raise _refused("AT (VERSION …) is not available: each table shows the state of the snapshot.")
        schema = path[0] if len(path) == 2 else ""
        if schema == "information_schema" or (name in scope and schema in ("", "recurring")):
            return
        if schema not in ("", "main") or name not in self._tables:
            raise _refused(
                f"There is no table `{'.'.join(path)}`.{_nearest(name, self._tables.values())} SHOW TABLES lists all."
            )


def _function(node: Node, allowed: frozenset[str], noun: str) -> None:
    name = str(node["function_name"]).lower()
    path = node.get("qualified_name", {}).get("path") or [name]
    if name not in allowed or str(path[-1]).lower() != name:
        raise _refused(f"The {noun} `{name}` is not allowed here.{_nearest(name, allowed)}")


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f" Did you mean `{found[0]}`?" if found else ""


def _refused(sentence: str) -> Refused:
    return Refused(sentence, code="sql_refused")

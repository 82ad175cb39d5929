"""Talos: what a session's journal means. Pure functions of events and texts; no Faust, no DuckDB, no MCP."""

"""Retrieval of snippets, one tool. `queries` holds what it asks of the store and is no tool."""

"""Retrieval of snippets over what every toolset remembers: which row counts as what, floors, slots, texts and hashes."""

"""Retrieval of snippets over the memories of every toolset: provenance, floors, slots, texts and hashes."""

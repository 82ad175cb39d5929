"""Retrieval of snippets from every toolset's memories: provenance, floors, slots, texts, hashes."""

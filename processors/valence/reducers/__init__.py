"""Valence decides: beliefs, tensions, conversations."""

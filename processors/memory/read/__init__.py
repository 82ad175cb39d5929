"""Reads of the store that concern memories of every kind."""

"""Valence: beliefs with confidence and tensions, and conversations."""

"""Spaces of vectors: which one answers, and the building of another beside it."""

"""Valence's stages: what a new belief contradicts."""

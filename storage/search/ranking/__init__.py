"""Ranking: the candidates of every side, and their weights."""

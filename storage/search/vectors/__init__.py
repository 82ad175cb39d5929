"""Nearest vectors: exact scan, HNSW, token vectors, passages."""

"""Spaces of vectors: exact scan, HNSW, token vectors."""

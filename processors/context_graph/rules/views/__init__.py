"""Thirteen views of a memory, each a pure function of its text, vectors, time and neighbours."""

"""Imports of files: found, read into events, published."""

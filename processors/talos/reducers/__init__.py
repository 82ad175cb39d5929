"""Talos decides: its requests, and what its stages have found."""

"""Talos' stages: entities out of entries, repetitions, patterns of closed sessions, insights."""

"""Answers that fit a caller: long texts as passages, long lists up to a budget, and where the rest is."""

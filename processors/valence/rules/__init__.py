"""The rules of Valence: beliefs, confidence, tensions, exchanges, the life of a pattern.

Pure: clock and state are passed in.
"""

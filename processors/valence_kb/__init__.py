"""The rules of Valence's conversations: ids, exchanges, the life of a pattern. Pure: clock and state are passed in."""

"""What Valence does by the clock: patterns that are met no more fade."""

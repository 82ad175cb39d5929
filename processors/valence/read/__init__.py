"""What Valence's stages and tools read from the store, as objects."""

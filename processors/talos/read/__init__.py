"""What Talos' stages and tools read from the store, as objects."""

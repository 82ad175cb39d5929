"""What Context Graph's tools read from the store and its indexes, as objects."""

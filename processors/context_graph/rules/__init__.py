"""What Context Graph decides by, as pure functions."""

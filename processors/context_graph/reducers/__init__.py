"""The decisions of Context Graph on its state."""

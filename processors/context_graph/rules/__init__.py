"""The rules of Context Graph: pure functions of values."""

"""The rules of Talos: extraction, identifiers, clauses, significance. Pure: clock and state are passed in."""

"""What Context Graph does by the clock: it observes drift."""

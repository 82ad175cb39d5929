"""What Context Graph does by the clock: what was judged corrects what is said."""

"""What Context Graph does by the clock: it observes drift, and what was judged corrects what is said."""

"""Views of memories that have a model of their own, built beside what serves them until then."""

"""Search over what is known: vectors, words, relations, ranking. An index is never truth: the table is."""

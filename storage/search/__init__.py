"""Finding what is known: vectors, keywords, graph neighbours, and their fusion. An index is never truth: the table is."""

"""The Valence tools, one module a tool. `answers`, `kb_answers` and `kb_queries` hold what they share and are no tools."""

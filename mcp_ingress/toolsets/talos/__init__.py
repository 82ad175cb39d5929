"""The Talos tools, one module a tool. `answers`, `queries` and `search_arguments` hold what they share and are no tools."""

"""The Cognitive Memory tools, one module a tool, and in `resources` one module a resource. `answers` and `queries` are no tools."""

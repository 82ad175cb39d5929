"""The resources of Cognitive Memory, one module a resource."""

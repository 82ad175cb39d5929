"""Text to vectors. `load.load_embedder` is the way in; heavy libraries are imported only when a model is loaded."""

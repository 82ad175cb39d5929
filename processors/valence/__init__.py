"""The pure logic of Valence's beliefs: confidence, entities, wording, tensions, and what becomes of a stated belief."""

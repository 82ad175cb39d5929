"""Named models for real: `python3 dev.py models` makes the environment of `thalweg[models]` and runs these."""

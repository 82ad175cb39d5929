"""NumPy multiplies on one thread here too, as in the program (`thalweg/__main__.py`): set before it is imported."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

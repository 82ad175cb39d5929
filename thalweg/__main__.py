"""The console script. `thalweg mcp`, `call` and `hook` import next to nothing: their clients wait for them."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: see storage/search/vectors/exact_scan.py


def main() -> None:
    """Run the command line; exit code 0, 1 (failed) or 2 (usage). Whatever it writes is for its owner alone."""
    os.umask(0o077)
    if sys.argv[1:2] == ["mcp"] and not {"--help", "-h"} & set(sys.argv):
        from thalweg.client.stdio import run

        sys.exit(run(sys.argv[2:]))
    if sys.argv[1:2] == ["call"] and not {"--help", "-h"} & set(sys.argv):
        from thalweg.client.call import run as run_call

        sys.exit(run_call(sys.argv[2:]))
    if sys.argv[1:2] == ["hook"] and not {"--help", "-h", "--off", "--on"} & set(sys.argv):
        from thalweg.client.hook import run as run_hook

        sys.exit(run_hook(sys.argv[2:]))
    from thalweg.cli import cli

    cli()


if __name__ == "__main__":
    main()

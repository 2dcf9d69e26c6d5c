"""Sends streaming chat completions at an inference service and counts how every one of them ended.

Runs as it is in any image with Python 3.11 or newer: `python3 loadtest/load.py` in a checkout, or
`python3 load.pyz` from the single file that `pack.py` makes. Standard library only.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the engine's image decides which Python this is
    sys.exit("load: Python 3.11 or newer is needed, this is " + sys.version.split()[0])

from loadgen.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

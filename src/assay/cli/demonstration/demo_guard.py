"""
A guard that ends with the process that started it: ``python -m assay.cli.demonstration.demo_guard OPTIONS``.

Its standard output is a pipe to that process, and nothing is written to it. The pipe breaks however the process ends,
also when it is killed.
"""

import sys

from assay.cli.main import main
from assay.edges.hangup import end_with_reader

if __name__ == "__main__":
    end_with_reader(1)
    sys.exit(main(["guard", *sys.argv[1:]]))

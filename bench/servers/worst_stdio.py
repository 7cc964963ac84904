"""A server over standard streams that answers one request with the worst message there is, and all others well."""

import sys
from pathlib import Path

from worst_answers import answer

place = Path(sys.argv[1])
for line in sys.stdin.buffer:
    if (said := answer(line, place)) is not None:
        sys.stdout.buffer.write(said + b"\n")
        sys.stdout.buffer.flush()

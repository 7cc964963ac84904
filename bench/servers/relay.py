"""The least that can stand between a client and a server: two threads that hand on bytes. It looks at nothing."""

import os
import subprocess
import sys
from threading import Thread


def copied(source: int, sink: int) -> None:
    """Everything from *source* goes to *sink*, then its end."""
    while data := os.read(source, 1 << 16):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(sink, rest) :]
    os.close(sink)


with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
    assert child.stdin is not None
    assert child.stdout is not None
    Thread(target=copied, args=(0, child.stdin.fileno()), daemon=True).start()
    copied(child.stdout.fileno(), 1)

"""
A scripted server that lives more than once: `mortal_server.py FILE SCRIPTS`.

FILE has a line for each life, with its process id. SCRIPTS is a JSON array of scripts of `scripted_server`, one
for each life; the last one is for all that follow.
"""

import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from kit.scripted_server import LIFETIME, Server

if __name__ == "__main__":
    signal.alarm(LIFETIME)
    descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    number = os.read(descriptor, 1 << 20).count(b"\n")
    os.write(descriptor, b"%d\n" % os.getpid())
    os.close(descriptor)
    scripts = json.loads(sys.argv[2])
    Server(scripts[min(number, len(scripts) - 1)]).serve()

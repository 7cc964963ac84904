"""Read the feed of a guard and drop it, as fast as it comes: the bench measures the guard, not its listener."""

import socket
import sys

connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.connect(sys.argv[1])
assert connection.recv(1 << 20).startswith(b'{"event":"hello"')
sys.stdout.write("listening\n")
sys.stdout.flush()
while connection.recv(1 << 20):
    pass

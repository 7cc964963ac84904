"""Read the events of a console and drop them, as a page in a browser would get them; the bench measures the guard."""

import socket
import sys
from urllib.parse import urlsplit

address = urlsplit(sys.argv[1])
token = address.query.partition("=")[2]
connection = socket.create_connection((address.hostname or "", address.port or 0), 60)
head = f"GET /api/events?after=0 HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n"
connection.sendall(head.encode())
assert connection.recv(1 << 20).startswith(b"HTTP/1.1 200 ")
connection.settimeout(None)
sys.stdout.write("reading\n")
sys.stdout.flush()
while connection.recv(1 << 20):
    pass

"""
The official Python SDK over Streamable HTTP, its low-level server: one tool, whose result is made once and never looked
at. JSON answers; without sessions, or with them.
"""

import sys

from sdk import server
from stack import run

app = server(sys.argv[1]).streamable_http_app(json_response=True, stateless_http="sessions" not in sys.argv[3:])
run(app, int(sys.argv[2]))

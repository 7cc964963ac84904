"""
A server over STDIO that answers each line as its script says, byte for byte. Imports nothing of ours.

Its arguments: a file with a JSON object, in which the SHA-256 of a line leads to what it answers, each character a
byte; a file that it writes all that it receives to; and one for its process id. If a line is not in the script as it
is, it is looked up with blanks for ids and progress tokens, which the answer then has in their places, too.

What ends in an end of transmission (the character 4) is said without that, and then the server kills itself. A request
without an answer waits until the server is killed; where it is not the first run, the server does that itself, since
such a request was meant for the first.
"""

import hashlib
import json
import os
import re
import signal
import sys

LIFETIME = 120
"""Seconds after which it ends by itself, whatever a test has done wrong."""

LAST_WORD = b"\x04"
ID_BLANK, TOKEN_BLANK = b"\x01", b"\x02"
BLANKS = {b"id": ID_BLANK, b"progressToken": TOKEN_BLANK}
PLACE = re.compile(rb'("(id|progressToken)"[ \t]*:[ \t]*)("(?:[^"\\]|\\.)*"|-?[0-9]+)')
"""Where an id or a token stands in a message; no text that is said has such a name in it."""


def blanked(line: bytes) -> bytes:
    """*line* with blanks for ids and tokens."""
    return PLACE.sub(lambda found: found[1] + BLANKS[found[2]], line)


def filled(said: bytes, line: bytes) -> bytes:
    """*said* with the id and the token of *line* in place of blanks."""
    for _, name, value in PLACE.findall(line):
        said = said.replace(BLANKS[name], value)
    return said


def write(descriptor: int, data: bytes) -> None:
    """All of *data*, however long that takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def key(line: bytes) -> str:
    """What leads to the answer to *line*."""
    return hashlib.sha256(line).hexdigest()


def answer(script: dict[str, str], line: bytes) -> bytes:
    """What is said to *line*."""
    exact = script.get(key(line))
    if exact is not None:
        return exact.encode("latin-1")
    return filled(script.get(key(blanked(line)), "").encode("latin-1"), line)


def is_request(line: bytes) -> bool:
    """Whether an answer to it is expected."""
    message = json.loads(line)
    return "method" in message and "id" in message


def write_pid(path: str) -> None:
    """Writes the process id to a file, which is there only as a whole."""
    with open(f"{path}.new", "w") as file:
        file.write(str(os.getpid()))
    os.replace(f"{path}.new", path)


def main(path: str, received: str, pid: str) -> None:
    """Until the input ends."""
    signal.alarm(LIFETIME)
    with open(path, "rb") as file:
        script = json.load(file)
    first = not os.path.exists(pid)
    copy = os.open(received, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    write_pid(pid)
    rest = b""
    while data := os.read(0, 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            write(copy, line + b"\n")
            said = answer(script, line)
            write(1, said.removesuffix(LAST_WORD))
            if said.endswith(LAST_WORD) or (not first and not said and is_request(line)):
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])

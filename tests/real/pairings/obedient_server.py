"""
A server over STDIO that is told beforehand what to say to each line, byte for byte. Imports nothing of ours.

Its arguments: a file with a JSON object, in which the SHA-256 of a line leads to what it says to it, each character a
byte; a file that it writes all that it receives to; and one for its process id. What ends in an end of transmission
(the character 4) is said without that, and is its last word: it kills itself. With `blanks` as a fourth argument ids
and progress tokens are blanks in both.

A request that nothing is said to waits until somebody kills it; where it is not the first run, it does that itself,
since such a request was meant for the first.
"""

import hashlib
import json
import os
import re
import signal
import sys

LIFETIME = 120
"""Seconds after which it ends by itself, whatever a test has done wrong."""

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


def answer(told: dict[str, str], line: bytes, *, blanks: bool) -> bytes:
    """What is said to *line*."""
    key = hashlib.sha256(blanked(line) if blanks else line).hexdigest()
    said = told.get(key, "").encode("latin-1")
    return filled(said, line) if blanks else said


def is_request(line: bytes) -> bool:
    """Whether somebody waits for an answer to it."""
    message = json.loads(line)
    return "method" in message and "id" in message


def name_oneself(pid: str) -> None:
    """Writes the process id to a file, which is there only as a whole."""
    with open(f"{pid}.new", "w") as file:
        file.write(str(os.getpid()))
    os.replace(f"{pid}.new", pid)


def main(script: str, received: str, pid: str, *blanks: str) -> None:
    """Until the input ends."""
    signal.alarm(LIFETIME)
    with open(script, "rb") as file:
        told = json.load(file)
    first = not os.path.exists(pid)
    copy = os.open(received, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    name_oneself(pid)
    rest = b""
    while data := os.read(0, 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            write(copy, line + b"\n")
            said = answer(told, line, blanks=bool(blanks))
            write(1, said.removesuffix(b"\x04"))
            if said.endswith(b"\x04") or (not first and not said and is_request(line)):
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])

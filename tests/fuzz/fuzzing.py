"""
Fuzzes one target after the other: with atheris where it is installed, which is guided by coverage, and else by changing
the seeds at random.

    python tests/fuzz/fuzzing.py SECONDS [TARGET ...]

Inputs that atheris finds worth keeping go to `.cache/fuzz/TARGET`. One that fails is written to
`.cache/fuzz/failed-TARGET-…`: once it is understood it becomes a file in `tests/fuzz/seeds/TARGET`, which `make test`
runs from then on.
"""

import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from random import Random

from mutations import changed, frame, seeds
from targets import Target, targets

from kit.places import ROOT

HERE = Path(__file__).parent
KEPT = ROOT / ".cache" / "fuzz"


def seeds_of(name: str) -> list[bytes]:
    """The inputs that are kept for a target, in the order of their names."""
    return [path.read_bytes() for path in sorted((HERE / "seeds" / name).iterdir())]


def inputs(name: str, random: Random) -> Iterator[bytes]:
    """Changed seeds, without an end."""
    kept = seeds_of(name)
    messages = seeds()
    number = 0
    while True:
        number += 1
        if name in {"syntax", "conversation"} and random.random() < 0.7:
            lines = [frame(random, messages, f"r-{number}-{each}") for each in range(random.randint(1, 4))]
            yield lines[0] if name == "syntax" else b"\n".join(random.choice([b"", b"<"]) + each for each in lines)
        elif name == "importers" and random.random() < 0.7:
            yield changed_lines(random, random.choice(kept))
        else:
            yield changed_bytes(random, random.choice(kept), kept)


def changed_lines(random: Random, data: bytes) -> bytes:
    """*data* with values changed in one of its lines of JSON, or in all of it if that is one document."""
    first, _, file = data.partition(b"\n")
    lines = [file] if first in {b"har", b"inspector", b"inspector-network"} else file.splitlines()
    at = random.randrange(len(lines))
    # A log has a text before the message.
    head, mark, text = lines[at].partition(b"{")
    try:
        value = json.loads(mark + text)
    except ValueError:
        return data
    lines[at] = head + json.dumps(changed(random, value, 1)).encode()
    return b"\n".join([first, *lines, b""])


PIECES = (b"", b"\r", b"\n", b"\r\n", b":", b" ", b'"', b"\\u0000")


def changed_bytes(random: Random, data: bytes, others: list[bytes]) -> bytes:
    """*data* with a few bytes changed, taken out, put in, or taken from another."""
    made = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(made))
        other = random.choice(others)
        start = random.randint(0, len(other))
        piece = random.choice([*PIECES, bytes([random.randrange(256)]), other[start : start + 20]])
        made[at : at + random.choice([0, 0, 1, 5])] = piece
    return bytes(made)


def failing(name: str, target: Target, data: bytes) -> bool:
    """Whether *data* fails; then it is kept."""
    try:
        target(data)
    except Exception as error:
        KEPT.mkdir(parents=True, exist_ok=True)
        path = KEPT / f"failed-{name}-{hashlib.sha256(data).hexdigest()[:12]}"
        path.write_bytes(data)
        print(f"{name}: {type(error).__name__}: {error}: {path}", flush=True)
        return True
    return False


def at_random(name: str, seconds: float, random: Random, most: int = 1 << 60) -> tuple[int, int]:
    """Runs *name* for so many *seconds*, or *most* inputs; how many ran, and how many failed."""
    target, end = targets()[name], time.monotonic() + seconds
    ran = failed = 0
    for data in inputs(name, random):
        if ran >= most or time.monotonic() >= end or failed >= 10:
            break
        ran += 1
        failed += failing(name, target, data)
    return ran, failed


def guided(name: str, seconds: float) -> int:
    """Has atheris run *name*, in a process of its own: it never comes back. Its exit status."""
    corpus = KEPT / name
    corpus.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={int(seconds)}",
        f"-artifact_prefix={KEPT}/failed-{name}-",
        "-max_len=65536",
        "-verbosity=0",
    ]
    command = [sys.executable, str(HERE / "guided.py"), name, *options, str(corpus), str(HERE / "seeds" / name)]
    return subprocess.run(command, check=False).returncode


def main(seconds: float, names: list[str]) -> int:
    """Every target for so many *seconds*; the exit status."""
    fails = _fails_at_random if find_spec("atheris") is None else _fails_guided
    failed = sum([fails(name, seconds) for name in names])
    print(f"{failed} of {len(names)} targets failed" if failed else "no failures")
    return int(failed > 0)


def _fails_at_random(name: str, seconds: float) -> bool:
    ran, failed = at_random(name, seconds, Random())
    print(f"{name}: {ran:,} inputs, {failed} failed (without atheris: at random)", flush=True)
    return failed > 0


def _fails_guided(name: str, seconds: float) -> bool:
    print(f"{name}: for {seconds:g} s", flush=True)
    return guided(name, seconds) != 0


def run(arguments: list[str]) -> int:
    """The same for words of a command line. What is wrong with those is one line, and the exit status 2."""
    time_given, names = (arguments[0] if arguments else ""), arguments[1:] or list(targets())
    unknown = [name for name in names if name not in targets()]
    if not re.fullmatch(r"\d+(\.\d+)?", time_given) or float(time_given) <= 0:
        print(f"fuzz: TIME is a number of seconds above 0, found {time_given!r}", file=sys.stderr)
        return 2
    if unknown:
        print(f"fuzz: {unknown[0]!r} is no target; there are {', '.join(targets())}", file=sys.stderr)
        return 2
    return main(float(time_given), names)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

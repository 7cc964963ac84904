"""
Under audit everything passes as it came, byte for byte and both ways: beside the guard as without it. Under enforce,
too, as long as nothing is wrong.
"""

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import REVISIONS
from kit.guard_process import INITIALIZED, SECONDS, Guarded, call, frame_of, guarded, initialize, liar, request
from kit.valid_traffic import Exchanged, exchanges, opening

# ── audit ────────────────────────────────────────────────────────────────────────────────────────────────────────────

LONG = 30_000
LIMIT = ("--set", "limits.frame_bytes=20000")

FROM_CLIENT = [
    b"\n",
    b"\r\n",
    b" \t \n",
    b"hello?\n",
    b"\xff\xfe\x00\n",
    b"[]\n",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n',
    b' {"jsonrpc" : "2.0", "id":1, "method":"ping"}  \n',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":2,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","method":"nope"}\n',
    frame_of(call(7, words=5)) + b"\n",
    frame_of(call(8)) + b"\n",
    b"x" * LONG + b"\n",
    b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + b"y" * LONG + b'"}}\r\n',
]
FROM_SERVER = [
    "\n",
    "\r\n",
    "banner\n",
    "caf\xe9\xff\n",
    '{"jsonrpc":"2.0","id":"nobody","result":{}}\n',
    '{"jsonrpc":"2.0","id":9,"result":{"x":NaN}}\n',
    "[]\n",
    "null\r\n",
    "x" * LONG + "\n",
    '{"result":{"x":"' + "y" * LONG + '"},"jsonrpc":"2.0","id":9}\n',
]


def without_guard(directory: Path, said: bytes, **script: Any) -> tuple[bytes, bytes]:
    """What a server receives, and what it says to that, without anybody in between."""
    received = directory / "directly"
    server = liar(received=str(received), **script)
    done = subprocess.run(server, input=said, capture_output=True, timeout=SECONDS, check=False)
    return received.read_bytes(), done.stdout


def beside_guard(directory: Path, said: bytes, *options: str, **script: Any) -> tuple[bytes, bytes]:
    """The same, with a guard that only looks."""
    received = directory / "guarded"
    with guarded(directory, "--quiet", *options, received=str(received), **script) as one:
        one.write(said)
        one.close()
        answered = one.out.all()
        one.ended()
    return received.read_bytes(), answered


SCRIPTS: dict[str, dict[str, Any]] = {
    "good": {},
    "banner": {"start": [["raw", line] for line in FROM_SERVER]},
    "garbage": {"on": {"ping": [*(["raw", line] for line in FROM_SERVER), ["good"]]}},
    "twice": {"on": {"ping": [["good"], ["good"]]}},
    "bad-results": {"on": {"tools/call": [["result", {"content": "no"}]], "tools/list": [["result", {"tools": [5]}]]}},
    "bad-tools": {"tools": [{"name": "a"}, {"name": "a"}, {"name": "b", "inputSchema": {"$ref": "file:///x"}}]},
    "asks-nonsense": {"on": {"ping": [["say", request(5, "nope")], ["good"]]}},
    "half-a-line": {"end": [["raw", '{"jsonrpc":"2.0","id":1,']]},
    "last-without-newline": {"end": [["raw", '{"jsonrpc":"2.0","method":"nope"}']]},
    "long-without-newline": {"end": [["long", "{", LONG, ""]]},
    "never-answers": {"on": {"ping": [], "tools/call": []}},
    "fails-at-the-end": {"end": [["log", "no\n"], ["exit", 1]]},
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_under_audit_everything_passes_as_it_came(tmp_path: Path, script: str) -> None:
    handshake = [frame_of(each) + b"\n" for each in (initialize(), INITIALIZED, request("list", "tools/list"))]
    said = b"".join([*FROM_CLIENT, *handshake, *FROM_CLIENT, b'{"jsonrpc":"2.0","id":99,"method":"ping"}'])
    expected = without_guard(tmp_path, said, **SCRIPTS[script])
    assert expected[0] == said
    assert beside_guard(tmp_path, said, *LIMIT, **SCRIPTS[script]) == expected


def test_under_audit_nothing_is_said_for_a_server_that_is_gone(tmp_path: Path) -> None:
    """And the exit status tells that it has not answered everything."""
    with guarded(tmp_path, on={"tools/call": [["log", "no\n"], ["exit", 4]]}) as one:
        one.open()
        one.say(call(1), call(2))
        assert one.out.all() == b""
        assert one.ended() == 3
        log = b"\n".join(one.log.rest())
    assert b"never answered: tools/call search #1" in log
    assert b"the server ended first: it exited with status 4" in log


def test_under_audit_time_is_no_matter(tmp_path: Path) -> None:
    on = {"tools/call": [], "ping": [["good"], ["say", {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}]]}
    with guarded(tmp_path, "--timeout", "0.001", on=on) as one:
        one.open()
        one.say(call(1))
        assert one.ask(request(2, "ping"))["id"] == 2
        assert one.answer()["id"] == 1


@pytest.mark.parametrize("seed", range(6))
def test_any_noise_passes_under_audit(tmp_path: Path, seed: int) -> None:
    """Whatever either side says, in whatever order."""
    chance = random.Random(seed)  # noqa: S311 - no secret

    def noise(lines: list[bytes]) -> bytes:
        said = [chance.choice([*lines, chance.randbytes(chance.randrange(40)) + b"\n"]) for _ in range(60)]
        return b"".join(said)

    actions = [["raw", noise([each.encode("latin-1") for each in FROM_SERVER]).decode("latin-1")] for _ in range(30)]
    script = {"on": {f"#{number}": [action] for number, action in enumerate(actions, 1)}, "start": actions[:1]}
    (tmp_path / "script").write_text(json.dumps({**script, "received": str(tmp_path / "directly")}))
    said = noise(FROM_CLIENT) + chance.choice([b"", b"x", b"{", b"\r"])
    server = [sys.executable, "-IS", liar()[2], f"@{tmp_path / 'script'}"]
    done = subprocess.run(server, input=said, capture_output=True, timeout=SECONDS, check=True)
    assert (tmp_path / "directly").read_bytes() == said
    (tmp_path / "directly").unlink()
    with guarded(tmp_path, "--quiet", *LIMIT, command=server) as one:
        one.write(said)
        one.close()
        assert one.out.all() == done.stdout
        one.ended()
    assert (tmp_path / "directly").read_bytes() == said


# ── enforce ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def script_of(directory: Path, revision: str, talk: list[Exchanged]) -> list[str]:
    """A server that says its part of *talk*."""
    lines: list[list[bytes]] = []
    for each in [*opening(revision), *talk]:
        lines += [each.answered, *([] for _ in each.replies)]
    on = {f"#{number}": [["raw", b"".join(said).decode("latin-1")]] for number, said in enumerate(lines, 1)}
    (directory / "script").write_text(json.dumps({"on": on, "received": str(directory / "received")}))
    return [sys.executable, "-IS", liar()[2], f"@{directory / 'script'}"]


def said_and_heard(one: Guarded, each: Exchanged) -> None:
    """One exchange: the server says its part to what it is asked, and the client replies to what is asked in turn."""
    one.write(each.asked)
    got = b"".join(one.out.next() + b"\n" for line in each.answered if line)
    assert got == b"".join(each.answered)
    for reply in each.replies:
        one.write(reply)


@pytest.mark.parametrize("revision", REVISIONS)
def test_under_enforce_good_traffic_passes_byte_for_byte_and_in_order(tmp_path: Path, revision: str) -> None:
    """However it is spelt."""
    talk = list(exchanges(revision, 300, seed=f"{revision} 1"))
    with guarded(tmp_path, "--mode", "enforce", command=script_of(tmp_path, revision, talk)) as one:
        for each in [*opening(revision), *talk]:
            said_and_heard(one, each)
        one.close()
        assert one.out.all() == b""
        assert one.ended() == 0
        log = one.log.rest()
    said = b"".join(each.asked + b"".join(each.replies) for each in [*opening(revision), *talk])
    assert (tmp_path / "received").read_bytes() == said
    [summary] = [line for line in log if b" findings, " in line or b" finding, " in line]
    assert summary.endswith(b", 0 blocked")
    # Arguments that the schema does not name are reported, and pass.
    rules = {each for line in log for each in re.findall(rb"\[([a-z]+/[a-z-]+)\]", line)}
    assert rules <= {b"contract/unknown-argument"}

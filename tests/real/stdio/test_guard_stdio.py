"""The guard as a process between two pipes: bytes and lines as they came, and what is wrong stops."""

import os
import pty
from pathlib import Path
from typing import Any

from kit.guard_process import Guarded, call, enforcing, frame_of, guarded, hurried, initialize, request
from kit.rows import rows

LIMIT = ("--set", "guard.frame_bytes=20000")
LONG = 30_000


FROM_CLIENT = [
    *(b"\n", b"\r\n", b" \t \n", b"hello?\n", b"\xff\xfe\x00\n", b"[]\n", b"x" * LONG + b"\n"),
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n',
    b' {"jsonrpc" : "2.0", "id":1, "method":"ping"}  \n',
    b'{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","method":"nope"}\n',
    frame_of(initialize()) + b"\n",
    frame_of(request("list", "tools/list")) + b"\n",
    frame_of(call(7, words=5)) + b"\n",
    b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + b"y" * LONG + b'"}}\r\n',
    b'{"jsonrpc":"2.0","id":99,"method":"ping"}',
]
FROM_SERVER = [
    *("\n", "\r\n", "banner\n", "caf\xe9\xff\n", "[]\n", "null\r\n", "x" * LONG + "\n"),
    '{"jsonrpc":"2.0","id":"unknown","result":{}}\n',
    '{"jsonrpc":"2.0","id":9,"result":{"x":NaN}}\n',
    '{"jsonrpc":"2.0","id":5,"method":"nope"}\n',
    '{"result":{"x":"' + "y" * LONG + '"},"jsonrpc":"2.0","id":9}\n',
]
GARBAGE = [["raw", line] for line in FROM_SERVER]


@rows(
    ("script", "status"),
    [
        ({"start": GARBAGE, "on": {"ping": [*GARBAGE, ["good"], ["good"]]}, "tools": [{"name": "a"}, 5]}, 0),
        ({"on": {"ping": []}, "end": [["raw", '{"jsonrpc":"2.0","id":1,']]}, 3),
        ({"end": [["long", "{", LONG, ""], ["log", "no\n"], ["exit", 1]]}, 0),
    ],
)
def test_under_audit_everything_passes_as_it_came(tmp_path: Path, script: dict[str, Any], status: int) -> None:
    """Both ways, byte for byte: what the server sends is what the client gets, and the other way round."""
    received, sent = tmp_path / "received", tmp_path / "sent"
    with guarded(tmp_path, "--quiet", *LIMIT, received=str(received), sent=str(sent), **script) as one:
        one.write(b"".join(FROM_CLIENT))
        one.close()
        got = one.out.all()
        assert one.ended() == status
    assert got == sent.read_bytes()
    assert received.read_bytes() == b"".join(FROM_CLIENT)
    received.unlink()
    sent.unlink()


def introduced(one: Guarded) -> list[str]:
    """What is on stderr of a guard that has answered one request."""
    one.ask(initialize("2025-06-18"))
    one.close()
    assert one.ended() == 0
    return [line.decode() for line in one.log.rest()]


def test_the_guard_introduces_itself_and_says_in_a_terminal_what_it_waits_for(tmp_path: Path) -> None:
    with guarded(tmp_path, "--journal", str(tmp_path / "verdicts")) as one:
        # Before the client has sent anything.
        assert one.log.next().decode() == f"assay: guarding scripted_server (audit), journal {tmp_path}/verdicts"
        assert introduced(one) == [
            "assay: scripted_server speaks MCP 2025-06-18",
            "assay: [scripted_server] 1 message from the client, 1 from the server, 0 findings",
        ]
    with enforcing(tmp_path, "--name", "my files", "--journal", "off", "--quiet") as one:
        assert introduced(one) == []
    ours, theirs = pty.openpty()
    try:
        options = ("--name", "my files", "--journal", "off")
        soon = hurried({"edges.stdio_lines:WAITED": 0.01})
        with enforcing(tmp_path, *options, guard=soon, streams={"stdin": theirs}) as one:
            assert one.log.next() == b"assay: guarding my files (enforce), no journal"
            assert one.log.next() == (
                b"assay: waiting for an MCP client on standard input; a client starts this command itself"
            )
            os.write(ours, b"\x04")
            assert one.ended() == 0
    finally:
        os.close(ours)
        os.close(theirs)

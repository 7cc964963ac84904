"""A real server at a URL behind the guard: the same answers as without it, and found again when it was down."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from guarded_url import META, guarded_url
from scripted_url import SECONDS

from assay.spec.revisions import LATEST
from kit.guard_process import INITIALIZED, frame_of, initialize, request
from kit.places import ROOT
from kit.rows import rows

CATALOGUE = ROOT / "examples" / "catalogue"
ASSETS = (
    *(sys.executable, "-m", "assay", "serve", "--journal", "off", "--deterministic"),
    *("--schemas", str(CATALOGUE / "jsonschema"), "--examples", str(CATALOGUE / "examples")),
)


@contextmanager
def serving(directory: Path, command: Sequence[str]) -> Iterator[str]:
    """A server, which says on stderr where it is: the URL."""
    with subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, "MCP_READY_FILE": str(directory / "ready")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            assert process.stderr is not None
            said: re.Match[str] | None = None
            while said is None:
                assert select.select([process.stderr], [], [], SECONDS)[0], "the server does not start"
                line = process.stderr.readline()
                assert line, "the server has ended"
                said = re.search(r"url=(\S+)", line)
            yield said[1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)


def called(name: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


ASKED: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/read", {"uri": "resource://schemas/tone"}),
    called("list_schemas"),
    called("get_schema", name="tone"),
    called("diff_assets", base={"a": 1}, new={"é": 12345678901234567890}),
]
BAD = called("get_schema", name=7)


@rows(("revision", "mode"), [("2025-06-18", "audit"), (LATEST, "enforce")])
def test_the_asset_server_answers_as_it_does_over_standard_streams_and_is_found_again(
    tmp_path: Path, revision: str, mode: str
) -> None:
    """Over HTTP behind the guard, and as a process without it. One answer for each request, also while it is down."""
    opening = [] if revision == LATEST else [initialize(revision), INITIALIZED]
    meta = {"_meta": META} if revision == LATEST else {}
    asked = [request(ident, method, {**params, **meta}) for ident, (method, params) in enumerate([*ASKED, BAD])]
    frames = b"".join(frame_of(each) + b"\n" for each in [*opening, *asked])
    direct = subprocess.run(
        ASSETS,
        cwd=tmp_path,
        env={**os.environ, "MCP_READY_FILE": str(tmp_path / "ready")},
        input=frames,
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    expected = {json.loads(each)["id"]: _without_ids(each) for each in direct.stdout.splitlines()}
    again = request("again", "tools/call", {"name": "list_schemas", "arguments": {}, **meta})
    with ExitStack() as stack:
        with serving(tmp_path, [*ASSETS, "--http", "127.0.0.1:0"]) as url:
            guard = stack.enter_context(guarded_url(tmp_path, url, "--mode", mode))
            guard.write(frames)
            got = {json.loads(each)["id"]: _without_ids(each) for each in (guard.out.next() for _ in expected)}
        if mode == "enforce":
            # The guard refuses bad arguments itself, once it knows the tool; in its own words.
            assert got.pop(len(ASKED)) != expected.pop(len(ASKED))
        assert got == expected
        address = url.removeprefix("http://").removesuffix("/mcp")
        down = guard.ask(again)["error"]
        assert down["code"] == -31011
        assert down["message"] == f"No answer came: cannot connect to {address}: Connection refused"
        with serving(tmp_path, [*ASSETS, "--http", address]):
            assert guard.ask(again)["result"]["structuredContent"]["data"]["ok"]
            assert guard.rest() == []
            assert guard.ended() == 0


def _without_ids(frame: bytes) -> bytes:
    """Without what differs from one answer to the next."""
    return re.sub(rb'((?:request_id|duration_ms)\\?":(?:\\?")?)[0-9a-f.-]+', rb"\1", frame)

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

from assay.spec.revisions import LATEST
from kit.guard_process import INITIALIZED, SECONDS, frame_of, initialize, request
from kit.places import ROOT

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


def asked_in(revision: str) -> tuple[bytes, Any]:
    """All frames of a client in *revision*, and the request that it sends again."""
    opening = [] if revision == LATEST else [initialize(revision), INITIALIZED]
    meta = {"_meta": META} if revision == LATEST else {}
    asked = [request(ident, method, {**params, **meta}) for ident, (method, params) in enumerate([*ASKED, BAD])]
    again = request("again", "tools/call", {"name": "list_schemas", "arguments": {}, **meta})
    return b"".join(frame_of(each) + b"\n" for each in [*opening, *asked]), again


def directly(directory: Path, frames: bytes) -> dict[Any, bytes]:
    """What the server answers on its standard streams, by id."""
    environment = {**os.environ, "MCP_READY_FILE": str(directory / "ready")}
    done = subprocess.run(
        ASSETS, cwd=directory, env=environment, input=frames, capture_output=True, timeout=SECONDS, check=True
    )
    return {json.loads(each)["id"]: _without_ids(each) for each in done.stdout.splitlines()}


def test_the_asset_server_answers_as_it_does_over_standard_streams_and_is_found_again(tmp_path: Path) -> None:
    """Over HTTP behind the guard, and as a process without it. One answer for each request, also while it is down."""
    talks = [("audit", *asked_in("2025-06-18")), ("enforce", *asked_in(LATEST))]
    with ExitStack() as stack:
        guards = []
        with serving(tmp_path, [*ASSETS, "--http", "127.0.0.1:0"]) as url:
            for mode, frames, _ in talks:
                guard = stack.enter_context(guarded_url(tmp_path, url, "--mode", mode))
                guards.append(guard)
                expected = directly(tmp_path, frames)
                guard.write(frames)
                got = {json.loads(each)["id"]: _without_ids(each) for each in (guard.out.next() for _ in expected)}
                if mode == "enforce":
                    # The guard refuses bad arguments itself, once it knows the tool; in its own words.
                    assert got.pop(len(ASKED)) != expected.pop(len(ASKED))
                assert got == expected
        address = url.removeprefix("http://").removesuffix("/mcp")
        for guard, (_, _, again) in zip(guards, talks, strict=True):
            down = guard.ask(again)["error"]
            assert down["code"] == -31011
            assert down["message"] == f"No answer came: cannot connect to {address}: Connection refused"
        with serving(tmp_path, [*ASSETS, "--http", address]):
            for guard, (_, _, again) in zip(guards, talks, strict=True):
                assert guard.ask(again)["result"]["structuredContent"]["data"]["ok"]
                assert guard.rest() == []
                assert guard.ended() == 0


def _without_ids(frame: bytes) -> bytes:
    """Without what differs from one answer to the next."""
    return re.sub(rb'((?:request_id|duration_ms)\\?":(?:\\?")?)[0-9a-f.-]+', rb"\1", frame)

"""Settings reach the process of `assay serve`: tiers, limits and where schemas come from."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import orjson

from kit.command import assay_process, variables_but
from kit.places import CATALOGUE

SECONDS = 60

OPENING = (
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
)


def served(directory: Path, *messages: Any, options: tuple[str, ...] = (), **environ: str) -> list[Any]:
    """What `assay serve` answers in *directory*, which ends well."""
    said = b"".join(orjson.dumps(each) + b"\n" for each in messages)
    env = {**variables_but("ASSAY_", "SYN_"), "MCP_READY_FILE": str(directory / "ready"), **environ}
    done = assay_process("serve", *options, said=said, cwd=directory, env=env)
    assert done.returncode == 0, done.stderr
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def call(tool: str, arguments: Any, **meta: Any) -> Any:
    params = {"name": tool, "arguments": arguments} | ({"_meta": meta} if meta else {})
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@contextmanager
def backend() -> Iterator[str]:
    """The address of a service that stores one asset."""

    class Stores(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(201)
            self.end_headers()
            self.wfile.write(b'{"id":"stored"}')

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Stores) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(SECONDS)


POPULATE = call("populate_backend", {"asset": {}, "validate_first": False})


def test_tiers_limits_and_options_for_sources_reach_the_server(tmp_path: Path) -> None:
    """specs/004, Upgrade Hints and Envelope Schema: `duration_ms` is required where the tier has the feature."""
    (tmp_path / "assay.toml").write_text('[tiers]\ntier = "community"\n[tiers.features]\npopulate_backend = "pro"\n')
    listed = (call("list_schemas", {}, request_id="mine"), call("list_schemas", {}, requestId="mine"))
    with backend() as url:
        [_, *same, refused] = served(tmp_path, *OPENING, *listed, POPULATE, SYN_BACKEND_URL=url)
        [_, stored] = served(tmp_path, *OPENING, POPULATE, SYN_BACKEND_URL=url, ASSAY_TIERS_TIER="enterprise")
    assert [each["result"]["structuredContent"]["request_id"] for each in same] == ["mine", "mine"]
    envelope = refused["result"]["structuredContent"]
    assert refused["result"]["isError"] is True
    assert (envelope["tier"], envelope["data"], len(envelope["request_id"]) >= 16) == ("community", None, True)
    assert envelope["error"]["error_code"] == "upgrade_required"
    assert [(hint["feature"], hint["tier"]) for hint in envelope["upgrade_hints"]] == [("populate_backend", "pro")]
    envelope = stored["result"]["structuredContent"]
    assert (envelope["tier"], envelope["error"], envelope["upgrade_hints"]) == ("enterprise", None, [])
    assert envelope["data"]["asset_id"] == "stored"
    assert envelope["duration_ms"] >= 0

    long = {"jsonrpc": "2.0", "id": 1, "method": "get_schema", "params": {"name": "x" * 300}}
    lists = [{"jsonrpc": "2.0", "id": 1, "method": method} for method in ("list_schemas", "list_examples")]
    places = ("--schemas", str(CATALOGUE / "jsonschema"), "--examples", str(CATALOGUE / "examples"))
    empty = str(tmp_path)
    for options, too_long, counts in (
        ((*places, "--set", "limits.frame_bytes=200"), True, (8, 9)),
        ((), False, (0, 0)),
    ):
        answered, schemas, examples = served(
            tmp_path, long, *lists, options=options, SYN_SCHEMAS_DIR=empty, SYN_EXAMPLES_DIR=empty
        )
        errors = {"errors": [{"path": "", "msg": "payload_too_large"}]} if too_long else {"reason": "not_found"}
        assert answered["result"].items() >= errors.items()
        assert (len(schemas["result"]["schemas"]), len(examples["result"]["examples"])) == counts

"""`curl` against the asset server over HTTP: what a person at a terminal sends, and the status that comes back."""

import json
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from asset_service import SECONDS, serving

from assay.base.errors import CanonicalError
from assay.base.limits import REQUESTS
from assay.spec.revisions import LATEST
from kit.http_client import JSON, call, initialize, modern, notification, request

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

CURL = ("curl", "-sS", "--noproxy", "*", "--max-time", str(SECONDS), "-w", "\n%{http_code}")

Curl = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def curl(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run curl with options and perhaps a body, for a status and the JSON that comes back."""
    with serving(tmp_path_factory.mktemp("service")) as service:

        def run(*options: str, body: str | None = None) -> tuple[int, Any]:
            data = () if body is None else ("--data-binary", "@-")
            done = subprocess.run(
                [*CURL, *data, *options, service.url],
                input=body,
                capture_output=True,
                encoding="utf-8",
                timeout=SECONDS,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            content, _, status = done.stdout.rpartition("\n")
            return int(status), json.loads(content) if content else None

        yield run


def header(**headers: str | bytes) -> list[str]:
    """Options with *headers* (`_` stands for `-`)."""
    pairs = [
        (name.replace("_", "-"), each.decode() if isinstance(each, bytes) else each) for name, each in headers.items()
    ]
    return [word for name, value in pairs for word in ("-H", f"{name}: {value}")]


AS_JSON = header(**JSON)


def test_curl_talks_to_the_server_without_any_option_but_the_message(curl: Curl) -> None:
    """Any body is a form to curl. Without an Origin no web page is behind it, so it is taken for what it is."""
    bare = json.dumps(request(1, "list_schemas"))
    assert curl("-d", bare)[1]["result"]["ok"]
    assert curl(*header(origin="http://localhost"), "-d", bare)[0] == 415
    # 2025-06-18, basic/transports, Protocol Version Header: without one the server assumes 2025-03-26.
    for version in ([], header(mcp_protocol_version="2025-11-25")):
        assert curl("-d", json.dumps(initialize("2025-11-25")))[1]["result"]["protocolVersion"] == "2025-11-25"
        assert curl(*version, "-d", json.dumps(notification("notifications/initialized"))) == (202, None)
        assert curl(*version, "-d", json.dumps(request(1, "ping")))[1]["result"] == {}
    # 2025-11-25, server/tools, Error Handling: it is for the model; over any status but 200 clients would lose it.
    failing = call(1, "get_schema", {"name": "nope"}, LATEST)
    status, answer = curl(*header(**modern(failing)), "-d", json.dumps(failing))
    assert (status, answer["result"]["isError"]) == (200, True)


def test_what_is_refused_has_the_status_and_the_code_that_people_look_for(curl: Curl) -> None:
    """A body of more than a mebibyte is one that curl asks for leave to send, unless it comes bit by bit."""
    unknown, long = request(1, "nope/nope", {}, LATEST), " " * (REQUESTS.frame_bytes + 1)
    refused: list[tuple[str, list[str], str, int]] = [
        ('{"jsonrpc":"2.0","id":1,', [], "PARSE_ERROR", 400),
        (long, [], "PAYLOAD_TOO_LARGE", 413),
        (long, header(**JSON, transfer_encoding="chunked"), "PAYLOAD_TOO_LARGE", 413),
        (json.dumps(request(1, "get_schema", {})), [], "INVALID_TOOL_INPUT", 422),
        (json.dumps(unknown), header(**modern(unknown)), "METHOD_NOT_FOUND", 404),
    ]
    for body, headers, code, status in refused:
        found, answer = curl(*(headers or AS_JSON), body=body)
        assert (found, answer["error"]["code"]) == (status, CanonicalError.to_jsonrpc_error(code)["code"])
    for options, status in (
        (["-X", "PUT", "-d", "{}"], 405),
        ([], 405),
        ([*header(host="example.com"), "-d", "{}"], 403),
    ):
        found, answer = curl(*AS_JSON, *options)
        assert (found, bool(answer["error"]["data"]["detail"])) == (status, True)

"""
`curl` against the asset server over HTTP: what a person at a terminal sends, and the status that comes back.

A status is that of the canonical table for the error in the body; what no message was read from has the status of HTTP.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from asset_service import SECONDS, Service, serving

from assay.base.errors import CanonicalError
from assay.base.limits import REQUESTS
from assay.spec.revisions import LATEST
from kit.rows import rows

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

CURL = ("curl", "-sS", "--noproxy", "*", "--max-time", str(SECONDS))
JSON = ("-H", "content-type: application/json")
META = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Answer(NamedTuple):
    """What curl got."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def message(self) -> Any:
        """The JSON in the body."""
        return json.loads(self.text)


class Curl(NamedTuple):
    """curl, with a server to talk to and a place for what it gets."""

    url: str
    directory: Path

    def __call__(self, *options: str, path: str | None = None, body: str | None = None) -> Answer:
        """One request with *options*; with a body, it is a POST."""
        head, content = self.directory / "head", self.directory / "content"
        content.unlink(missing_ok=True)
        data = () if body is None else ("--data-binary", "@-")
        url = self.url if path is None else self.url.replace("/mcp", path)
        command = [*CURL, "-D", str(head), "-o", str(content), *data, *options, url]
        done = subprocess.run(command, input=body, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        # Before the one that counts there may be another, 100 Continue.
        first, *lines = head.read_text(encoding="latin-1").strip().split("\n\n")[-1].splitlines()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Answer(int(first.split()[1]), headers, content.read_text("utf-8") if content.exists() else "")

    def say(self, message: Any, *options: str) -> Answer:
        """POSTs *message*."""
        return self(*JSON, *options, body=json.dumps(message))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One server for all of the tests here."""
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def curl(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Curl:
    return Curl(service.url, tmp_path_factory.mktemp("curl"))


def request(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params})}


def stateless(method: str, **params: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A request of the latest revision, and the headers that it has to have."""
    named = {"mcp-protocol-version": LATEST, "mcp-method": method}
    if "name" in params:
        named["mcp-name"] = params["name"]
    return request(method, {**params, "_meta": META}), tuple(
        part for name, value in named.items() for part in ("-H", f"{name}: {value}")
    )


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_curl_needs_no_option_but_the_message(curl: Curl) -> None:
    """Any body is a form to curl. Without an Origin no web page is behind it, so it is taken for what it is."""
    message = json.dumps(request("list_schemas"))
    assert curl("-d", message).message["result"]["ok"]
    assert curl("-H", "origin: http://localhost", "-d", message).status == 415
    assert curl("-H", "content-type: text/plain", "-d", message).status == 415


def test_messages_are_answered_with_and_without_the_headers_of_a_revision(curl: Curl) -> None:
    """2025-06-18, basic/transports, Protocol Version Header: without one the server assumes 2025-03-26."""
    bare = curl.say(request("get_example", {"path": "tone.hum.json"}))
    assert (bare.status, bare.headers["content-type"]) == (200, "application/json")
    assert bare.message["result"]["schema"] == "tone"
    listed = curl.say(request("tools/list"))
    assert [tool for tool in listed.message["result"]["tools"] if "outputSchema" in tool] == []
    assert curl.say({"jsonrpc": "2.0", "method": "notifications/initialized"})[::2] == (202, "")
    message, headers = stateless("tools/call", name="list_schemas", arguments={})
    assert curl.say(message, *headers).message["result"]["resultType"] == "complete"
    # 2025-11-25, server/tools, Error Handling: it is for the model; over any status but 200 clients would lose it.
    message, headers = stateless("tools/call", name="get_schema", arguments={"name": "nope"})
    failed = curl.say(message, *headers)
    assert (failed.status, failed.message["result"]["isError"]) == (200, True)


@rows(
    ("body", "headers", "code"),
    [
        pytest.param('{"jsonrpc":"2.0","id":1,', (), "PARSE_ERROR", id="broken"),
        pytest.param("", (), "PARSE_ERROR", id="empty"),
        pytest.param("{}", (), "INVALID_ENVELOPE", id="no-message"),
        pytest.param(" " * (REQUESTS.frame_bytes + 1), (), "PAYLOAD_TOO_LARGE", id="too-long"),
        pytest.param(
            " " * (REQUESTS.frame_bytes + 1),
            ("-H", "transfer-encoding: chunked"),
            "PAYLOAD_TOO_LARGE",
            id="too-long-bit-by-bit",
        ),
        pytest.param(json.dumps(request("get_schema", {})), (), "INVALID_TOOL_INPUT", id="bare-arguments"),
        *(
            pytest.param(json.dumps(message), headers, code, id=name)
            for name, code, (message, headers) in (
                ("no-such-method", "METHOD_NOT_FOUND", stateless("nope/nope")),
                ("a-method-of-older-revisions", "METHOD_NOT_FOUND", stateless("ping")),
                ("no-such-tool", "UNKNOWN_TOOL", stateless("tools/call", name="nope", arguments={})),
                ("without-name", "INVALID_PARAMS", stateless("prompts/get")),
                ("no-such-prompt", "INVALID_PARAMS", stateless("prompts/get", name="nope")),
            )
        ),
        pytest.param(json.dumps(stateless("tools/list")[0]), (), "HEADER_MISMATCH", id="without-headers"),
        pytest.param(
            json.dumps(stateless("tools/list")[0]), stateless("prompts/list")[1], "HEADER_MISMATCH", id="other-headers"
        ),
        pytest.param(
            json.dumps(request("tools/list")),
            ("-H", "mcp-protocol-version: 2030-01-01"),
            "UNSUPPORTED_REVISION",
            id="revision",
        ),
    ],
)
def test_what_is_refused_has_the_status_and_code_of_the_canonical_table(
    curl: Curl, body: str, headers: tuple[str, ...], code: str
) -> None:
    answer = curl(*JSON, *headers, body=body)
    assert answer.message["error"]["code"] == CanonicalError.to_jsonrpc_error(code)["code"]
    assert answer.status == CanonicalError.to_http_status(code)


def test_the_statuses_that_people_look_for() -> None:
    """The table, spelt out once."""
    codes = ("PARSE_ERROR", "METHOD_NOT_FOUND", "PAYLOAD_TOO_LARGE", "INVALID_TOOL_INPUT", "UNKNOWN_TOOL")
    assert [CanonicalError.to_http_status(code) for code in codes] == [400, 404, 413, 422, 200]


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("options", "status"),
    [
        pytest.param((*JSON, "-H", "accept: text/html", "-d", "{}"), 406, id="as-a-page"),
        pytest.param((*JSON, "-X", "PUT", "-d", "{}"), 405, id="put"),
        pytest.param((*JSON, "-H", "accept: text/event-stream", "-d", "{}"), 406, id="as-events"),
        pytest.param((), 405, id="get"),
        pytest.param(("-X", "DELETE"), 405, id="delete"),
        pytest.param(("-H", "origin: https://example.com", *JSON, "-d", "{}"), 403, id="from-a-foreign-page"),
        pytest.param(("-H", "host: example.com", *JSON, "-d", "{}"), 403, id="to-a-foreign-name"),
    ],
)
def test_what_no_message_is_read_from_has_the_status_of_http(curl: Curl, options: tuple[str, ...], status: int) -> None:
    answer = curl(*options)
    assert answer.status == status
    assert answer.message["error"]["data"]["detail"]


# ── the handshake revisions ──────────────────────────────────────────────────────────────────────────────────────────


@rows("version", [(), ("-H", "mcp-protocol-version: 2025-11-25")], ids=["none", "2025-11-25"])
def test_a_conversation_needs_no_session(curl: Curl, version: tuple[str, ...]) -> None:
    """2025-11-25, basic/transports, Session Management: a server MAY assign a session id."""
    client = {"name": "curl", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    opened = curl.say(request("initialize", params))
    assert opened.message["result"]["protocolVersion"] == "2025-11-25"
    assert "mcp-session-id" not in opened.headers
    assert curl.say({"jsonrpc": "2.0", "method": "notifications/initialized"}, *version)[::2] == (202, "")
    assert curl.say(request("ping"), *version).message["result"] == {}
    read = curl.say(request("resources/read", {"uri": "resource://schemas/nope"}), *version)
    assert (read.status, read.message["error"]["code"]) == (200, -32002)

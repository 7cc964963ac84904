"""The export as an HTTP archive: it is valid HAR 1.2, and `assay check` finds the same in it again."""

import json
from base64 import b64encode
from pathlib import Path
from time import process_time
from typing import Any

import jsonschema_rs
import pytest
from renderings import INFO, STEPS, TOOL, Step, call, found, frame, vscode

from assay.base.mask import MASK
from assay.cli.main import main
from assay.console.har_export import har_file
from assay.console.judged_records import JudgedRecords
from assay.core.conversation import Conversation
from assay.records.importers.importer import ImportOptions
from assay.records.importers.importer_table import BY_NAME
from assay.records.journal.reading import Record
from assay.records.recording.judging import Judging
from assay.spec.revisions import LATEST
from kit.command import assay_text
from kit.consoles import console, http_guard, stdio_guard

TEXT = {"type": "string"}
COUNT = {"type": "number", "minimum": 0}
UNKNOWN_COUNT = {"type": "number", "minimum": -1}


def record_of(**members: Any) -> dict[str, Any]:
    """Return the schema of an object with these members, all of which it must have."""
    return {"type": "object", "properties": members, "required": sorted(members)}


def list_of(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


HEADERS = list_of(record_of(name=TEXT, value=TEXT))
MESSAGE = {"httpVersion": TEXT, "cookies": list_of({}), "headers": HEADERS}
SIZES = {"headersSize": {"type": "integer", "minimum": -1}, "bodySize": {"type": "integer", "minimum": -1}}
POSTED = {"type": "object", "required": ["mimeType"], "properties": {"mimeType": TEXT, "text": TEXT}}
REQUEST = record_of(method=TEXT, url={"type": "string", "format": "uri"}, queryString=list_of({}), **MESSAGE, **SIZES)
REQUEST["properties"]["postData"] = POSTED
CONTENT = record_of(size={"type": "integer", "minimum": 0}, mimeType=TEXT)
RESPONSE = record_of(status={"type": "integer"}, statusText=TEXT, content=CONTENT, redirectURL=TEXT, **MESSAGE, **SIZES)
TIMINGS = record_of(send=COUNT, wait=COUNT, receive=COUNT)
ENTRY = record_of(
    startedDateTime={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$"},
    time=COUNT, request=REQUEST, response=RESPONSE, cache={"type": "object"}, timings=TIMINGS,
)  # fmt: skip
CREATOR = record_of(name=TEXT, version=TEXT)
ARCHIVE = record_of(log=record_of(version={"const": "1.2"}, creator=CREATOR, entries=list_of(ENTRY)))
"""The members that HAR 1.2 asks for."""

MEMBERS = {
    "log": {"version", "creator", "browser", "pages", "entries", "comment"},
    "entry": {"pageref", "startedDateTime", "time", "request", "response", "cache", "timings", "serverIPAddress",
              "connection", "comment"},
    "request": {"method", "url", "httpVersion", "cookies", "headers", "queryString", "postData", "headersSize",
                "bodySize", "comment"},
    "response": {"status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL", "headersSize",
                 "bodySize", "comment"},
    "postData": {"mimeType", "params", "text", "comment"},
    "content": {"size", "compression", "mimeType", "text", "encoding", "comment"},
}  # fmt: skip
"""All members of HAR 1.2; others begin with an underscore."""


def check_members(kind: str, value: dict[str, Any]) -> None:
    assert {each for each in value if not each.startswith("_")} <= MEMBERS[kind]


def validated(content: bytes) -> list[dict[str, Any]]:
    """Return the entries of an archive, which must be valid."""
    archive = json.loads(content)
    jsonschema_rs.Draft202012Validator(ARCHIVE).validate(archive)
    check_members("log", archive["log"])
    entries: list[dict[str, Any]] = archive["log"]["entries"]
    for entry in entries:
        timings = entry["timings"]
        assert entry["time"] == sum(max(0, timings[name]) for name in ("send", "wait", "receive"))
        for kind, value in (("entry", entry), ("request", entry["request"]), ("response", entry["response"])):
            check_members(kind, value)
        check_members("content", entry["response"]["content"])
        check_members("postData", entry["request"].get("postData", {}))
    return entries


def findings(capsys: pytest.CaptureFixture[str], path: Path, content: bytes) -> list[tuple[str, str, str]]:
    """Return what `assay check` finds in a file: party, rule and place."""
    path.write_bytes(content)
    main(["check", "--format", "ndjson", str(path)])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return sorted((each["party"], it["rule"], it["at"]) for each in lines for it in each["violations"])


# ── the same findings ────────────────────────────────────────────────────────────────────────────────────────────────

ASKING = {"capabilities": {"sampling": {}}, "protocolVersion": "2025-11-25", "clientInfo": INFO}
WELCOME = {"protocolVersion": "2025-11-25", "serverInfo": INFO, "capabilities": {"tools": {}, "logging": {}}}
QUESTION = frame(
    id="q", method="sampling/createMessage",
    params={"messages": [{"role": "user", "content": {"type": "text", "text": "Which?"}}], "maxTokens": 9},
)  # fmt: skip
OPENING = (
    Step(frame(id=0, method="initialize", params=ASKING), (frame(id=0, result=WELCOME),)),
    Step(frame(method="notifications/initialized")),
    Step(frame(id=1, method="tools/list"), (frame(id=1, result={"tools": [TOOL]}),)),
)


def said(level: str) -> bytes:
    return frame(method="notifications/message", params={"level": level, "data": "text"})


def reply(**members: Any) -> bytes:
    content = {"type": "text", "text": "This one."}
    return frame(id="q", result={"role": "assistant", "content": content, "model": "m", **members})


META = {f"io.modelcontextprotocol/{name}": each for name, each in (
    ("protocolVersion", LATEST), ("clientInfo", INFO), ("clientCapabilities", {}))}  # fmt: skip


def alone(ident: int, method: str, **params: Any) -> bytes:
    """A request of a revision without a handshake."""
    return frame(id=ident, method=method, params={**params, "_meta": META})


CONVERSATIONS: dict[str, tuple[Step, ...]] = {
    "every kind of fault": STEPS,
    "the server asks, and logs": (
        *OPENING,
        Step(call(2, 5), (said("info"), said("loud"), QUESTION)),
        Step(reply(), (found(2, "5"),)),
        Step(call(3, 5), (QUESTION.replace(b'"q"', b'"r"'),)),
        Step(reply(role="poet").replace(b'"q"', b'"r"'), (found(3, 5),)),
        Step(frame(id=4, method="ping"), (frame(id=4, result={}), said("silent"))),
        Step(frame(id=5, method="ping"), (frame(id=5, error={"code": "1", "message": 2}),)),
    ),
    "no handshake": (
        Step(alone(1, "tools/list"), (frame(id=1, result={
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [TOOL]}),)),
        Step(alone(2, "tools/call", name="find_books", arguments={"limit": "five"}), (found(2, 5),)),
    ),
}  # fmt: skip


def records_of(recording: bytes) -> list[Record]:
    """Return the records of a session, as a guard would have written them."""
    made = JudgedRecords()
    rows = BY_NAME["vscode"].read(recording.splitlines(keepends=True), ImportOptions())
    return [made.record(each) for each in Judging(lambda _: Conversation()).judge_rows(rows)]


def archived(records: list[Record]) -> bytes:
    return har_file(list(enumerate(records, 1))).content


@pytest.mark.parametrize("steps", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_check_of_the_archive_finds_the_same(
    steps: tuple[Step, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = vscode(steps)
    archive = archived(records_of(recording))
    validated(archive)
    expected = findings(capsys, tmp_path / "talk.jsonl", recording)
    assert findings(capsys, tmp_path / "talk.har", archive) == expected != []


def test_masked_values_are_no_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = {"type": "object", "properties": {"password": {"type": "string", "pattern": "^[a-z]+$"}}}
    listed = frame(id=1, result={"tools": [{"name": "enter", "inputSchema": schema}]})
    asked = frame(id=2, method="tools/call", params={"name": "enter", "arguments": {"password": "opensesame"}})
    steps = (*OPENING[:2], Step(OPENING[2].client, (listed,)), Step(asked, (frame(id=2, result={"content": []}),)))
    archive = archived(records_of(vscode(steps)))
    assert MASK.encode() in archive
    assert b"opensesame" not in archive
    assert findings(capsys, tmp_path / "own.har", archive) == []
    # In a file of another program the same text is a value like any other.
    other = archive.replace(b'"creator":{"name":"assay"', b'"creator":{"name":"proxy"')
    wrong = ("client", "contract/input", "/params/arguments/password")
    assert findings(capsys, tmp_path / "other.har", other) == [wrong]


# ── what is not recorded ─────────────────────────────────────────────────────────────────────────────────────────────


def without_payloads(records: list[Record]) -> list[Record]:
    for each in records:
        each["metadata"].pop("frame", None)
    return records


def test_without_payloads_the_times_are_there_and_a_comment_says_what_is_not() -> None:
    entries = validated(archived(without_payloads(records_of(vscode(OPENING)))))
    assert [each["request"]["method"] for each in entries] == ["POST"] * 3
    assert [each["response"]["status"] for each in entries] == [200, 202, 200]
    assert all("journal.payloads=true" in each["comment"] for each in entries)
    assert all("postData" not in each["request"] and "text" not in each["response"]["content"] for each in entries)
    assert 11.9 < entries[0]["time"] < 12.1
    assert entries[2]["response"]["content"]["size"] == len(OPENING[2].server[0])


def test_headers_and_a_status_that_are_recorded_are_used() -> None:
    [asked, answer, *_] = records_of(vscode(OPENING))
    for each in (asked, answer):
        each["transport"], each["route"] = "http", "/mcp"
    [entry] = validated(archived([asked, answer]))
    assert "headers and status are not recorded" in entry["comment"]
    asked["metadata"]["http"] = {"method": "POST", "headers": {"Accept": "*/*", "Authorization": "(present)"}}
    answer["metadata"]["http"] = {"status": 201}
    [entry] = validated(archived([asked, answer]))
    assert [each["value"] for each in entry["request"]["headers"]] == ["*/*", "(present)"]
    assert (entry["response"]["status"], entry["comment"]) == (201, "")


def test_an_open_request_has_no_status_and_an_answer_alone_is_left_out() -> None:
    records = records_of(vscode(OPENING))
    [entry] = validated(har_file([(1, records[0])]).content)
    assert (entry["response"]["status"], entry["time"], entry["_assay"]["rows"]) == (0, 0, [1])
    alone_ = har_file([(2, records[1])])
    assert (validated(alone_.content), alone_.left_out) == ([], 1)


def test_bytes_that_are_not_text_survive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = records_of(vscode((*OPENING, Step(frame(id=3, method="ping"), (frame(id=3, result={}),)))))
    for at in (-2, -1):
        metadata = records[at]["metadata"]
        del metadata["frame"]
        metadata["frameBase64"] = b64encode(b"\xff\xfe").decode()
    archive = archived(records)
    assert validated(archive)[-1]["response"]["content"]["encoding"] == "base64"
    found_ = findings(capsys, tmp_path / "bytes.har", archive)
    assert [(party, rule) for party, rule, _ in found_] == [("client", "syntax/utf8"), ("server", "syntax/utf8")]


def test_servers_have_hosts_of_their_own() -> None:
    records = []
    for name in ("My Server", "my server", "ohne Ärger", "…"):
        [asked, *_] = records_of(vscode(OPENING[:1]))
        asked["metadata"]["server"] = name
        records.append(asked)
    hosts = [each["request"]["url"] for each in validated(archived(records))]
    assert hosts == ["http://my-server/", "http://my-server-2/", "http://ohne-rger/", "http://server/"]


# ── through a console ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_archive_of_real_guards(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--lock", "off", "--set", "journal.payloads=true")
    with (
        console(state) as running,
        stdio_guard(state, tmp_path, "--mode", "audit", *options) as audited,
        http_guard(state, tmp_path, "--mode", "enforce", *options) as (url, _),
    ):
        audited.open()
        audited.call("look", count="many")
        audited.call("change")
        for arguments in ('{"count": 1}', '{"count": "many"}'):
            assay_text("call", url, "look", arguments)
        rows = running.wait(lambda rows: sum("contract/input" in each["rules"] for each in rows) >= 2)
        assert "har" in running.get("api/state")["formats"]
        answer = running.post("api/export", {"format": "har"})
        few = running.post("api/export", {"format": "har", "filter": "tool:change"})
    assert answer.headers["content-disposition"] == 'attachment; filename="assay-messages.har"'
    entries = validated(answer.content)
    expected = sorted(("client", rule, at) for row in rows for rule, at in zip(row["rules"], row["at"], strict=True))
    assert findings(capsys, tmp_path / "guards.har", answer.content) == expected
    [refused] = [each for each in entries if each["_assay"]["verdicts"][0] == "blocked"]
    # As the guard answered it: the error is a message.
    assert refused["response"]["status"] == 200
    assert "blocked by the guard (contract/input)" in refused["comment"]
    over_pipes = [each for each in entries if each["_assay"]["transport"] == "stdio"]
    assert over_pipes
    assert all("not over HTTP" in each["comment"] for each in over_pipes)
    [changed] = validated(few.content)
    assert changed["_assay"]["tool"] == "change"
    assert changed["response"]["content"]["text"]


def client_message(server: str) -> Record:
    sizes = {"durationMs": 1.0, "inputBytes": 1, "outputBytes": 1, "error": None}
    common = {"ts": "2026-01-01T00:00:00Z", "transport": "http", "route": "/mcp", "method": "ping", "status": "ok"}
    return {**common, **sizes, "requestId": "r", "metadata": {"party": "client", "kind": "request", "server": server}}


@pytest.mark.parametrize(
    "names", [("x-3", "x", "X"), ("a", "A", "a!", "a-2", "a-3"), ("日本", "…", "."), ("b" * 300, "b" * 301, "b\r\nb")]
)
def test_no_two_servers_have_the_same_host(names: tuple[str, ...]) -> None:
    rows = [(number, client_message(name)) for number, name in enumerate(names, 1)]
    urls = {entry["request"]["url"] for entry in validated(har_file(rows).content)}
    assert len(urls) == len(names)
    assert max(map(len, urls)) < 250


def test_an_archive_of_one_long_stream_takes_no_longer_than_others() -> None:
    asked = client_message("lib")
    said = {**asked, "requestId": "s", "metadata": {"party": "server", "kind": "notification", "server": "lib"}}
    began = process_time()
    content = har_file([(1, asked), *((number, said) for number in range(2, 100_000))]).content
    # A second or so of a processor; if each message is compared with all before it, it is most of a minute.
    assert process_time() - began < 20
    assert json.loads(content)["log"]["entries"][0]["_assay"]["rows"] == list(range(1, 100_000))

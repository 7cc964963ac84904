"""Files that are broken, cut off, masked, one-sided or not recordings at all, and files with several conversations."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from renderings import (
    HELLO,
    RENDERINGS,
    START,
    STEPS,
    URL,
    WELCOME,
    Rendering,
    Step,
    archive,
    call,
    claude_all,
    claude_server,
    entry,
    exchanges,
    found,
    frame,
    har,
    inspector_network,
    iso,
    lines,
    native,
    plain,
    vscode,
)
from test_importers import EVERY, Checked, check, expected, file

from assay.cli.main import main
from kit.places import TESTS
from kit.rows import rows

__all__ = ["file"]

GOOD = (STEPS[0], *STEPS[1:3], Step(call(2, 5), (found(2, 5),)))
QUIET = (Step(GOOD[0].client, GOOD[0].server[1:]), *GOOD[1:])
"""A conversation without faults."""


def rules(checked: Checked) -> list[str]:
    """The rules that are broken."""
    return [rule for _, rule, _ in checked.faults]


@EVERY
def test_a_conversation_without_faults_passes(
    file: Path, capsys: pytest.CaptureFixture[str], rendering: Rendering
) -> None:
    file.write_bytes(rendering.write(QUIET))
    checked = check(capsys, file, *rendering.options)
    assert (checked.faults, checked.status) == ([], 0)


@EVERY
@rows("share", [0.3, 0.6, 0.9, 0.99])
def test_a_file_that_is_cut_off_never_passes(
    file: Path, capsys: pytest.CaptureFixture[str], rendering: Rendering, share: float
) -> None:
    """Documents cannot be read at all; of lines, those that are whole are judged."""
    written = rendering.write(QUIET)
    file.write_bytes(written[: int(len(written) * share)])
    checked = check(capsys, file, *rendering.options)
    assert checked.status == (1 if checked.faults else 2)
    assert "Traceback" not in checked.errors
    # Nothing but a missing end is reported.
    assert set(rules(checked)) <= {"protocol/unanswered", "syntax/json", "contract/not-judged"}


@EVERY
@rows("method", ["gzip", "zstd"])
def test_compressed_data_that_is_cut_off_is_reported(
    file: Path, capsys: pytest.CaptureFixture[str], rendering: Rendering, method: str
) -> None:
    from backports import zstd

    packed = (gzip.compress if method == "gzip" else zstd.compress)(rendering.write())
    file.write_bytes(packed[: len(packed) * 2 // 3])
    checked = check(capsys, file, *rendering.options)
    assert checked.status == 2
    assert f"the {method} data is cut off; what is missing is not judged" in checked.errors


@rows("method", ["gzip", "zstd"])
def test_damaged_data_is_reported(file: Path, capsys: pytest.CaptureFixture[str], method: str) -> None:
    from backports import zstd

    packed = bytearray((gzip.compress if method == "gzip" else zstd.compress)(native() * 20))
    packed[len(packed) // 2] ^= 0xFF
    packed[-6] ^= 0xFF
    file.write_bytes(packed)
    checked = check(capsys, file)
    assert checked.status == 2
    assert f"the {method} data is damaged" in checked.errors


def test_several_members_of_gzip_are_one_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = plain()
    file.write_bytes(gzip.compress(written[:100]) + gzip.compress(written[100:]))
    assert check(capsys, file).faults == expected(RENDERINGS["messages"])


def test_zstd_without_its_package_says_what_to_install(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.delattr("backports.zstd", raising=False)
    file.write_bytes(b"\x28\xb5\x2f\xfd....")
    checked = check(capsys, file)
    assert checked.status == 2
    assert "zstd needs backports" in checked.errors


def test_a_compressed_journal_is_read_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from backports import zstd

    golden = (TESTS / "data" / "golden.jsonl").read_bytes()
    (tmp_path / "plain").write_bytes(golden)
    wanted = check(capsys, tmp_path / "plain").faults
    for name, data in (("gzip", gzip.compress(golden)), ("zstd", zstd.compress(golden))):
        (tmp_path / name).write_bytes(data)
        assert check(capsys, tmp_path / name).faults == wanted != []


# ── files that are not recordings ────────────────────────────────────────────────────────────────────────────────────

SPAN = {"traceId": "5b8e", "spanId": "051581bf", "name": "tools/call"}
CLAUDE_CODE = {"debug": "Connected in 12ms", "timestamp": "2026-07-24T02:03:14Z", "sessionId": "a", "cwd": "/home"}


@rows(
    ("content", "reason"),
    [
        (lines(CLAUDE_CODE), "a log of Claude Code, which has no messages"),
        (lines(CLAUDE_CODE), "assay guard --record FILE -- COMMAND"),
        (b"2026-07-24 02:03:14.089 [info] user-files: Handling ListOfferings action\n", "output of Cursor"),
        (b"2026-07-24 02:03:14.089 [info] Connection state: Running\n", "set its level to Debug or Trace"),
        (lines({"resourceSpans": [{}]}), "OpenTelemetry spans"),
        (json.dumps({"resourceSpans": []}, indent=1).encode(), "OpenTelemetry spans"),
        (lines(SPAN), "OpenTelemetry spans"),
        (b"\xff\xfe" + native().decode().encode("utf-16-le"), "UTF-16; save it as UTF-8"),
        (b"PK\x03\x04\0\0", "a zip archive; unpack it"),
        (b"hello\nworld\n" * 10, "not a recording: no line is a JSON object, or of a known log"),
        (bytes(range(256)) * 8, "not a recording: no line is a JSON object, or of a known log"),
        (lines({"a": 1, "b\x1b[2J": 2}), "not a known recording: a line has the members a, b·[2J; name those"),
        (lines({"event": [], "direction": {}}), "not a known recording: a line has the members event, direction;"),
        (b"[1, 2]\n", "not a recording"),
        (b'{"log": {"version": "1.2"}}', "expected a list at log.entries in the JSON of HAR"),
        (b'[{"origin": "client", "message": ', "line 1: expected the JSON of MCP Inspector: it is cut off"),
    ],
)
def test_a_file_that_is_not_a_recording_is_refused_with_one_line(
    file: Path, capsys: pytest.CaptureFixture[str], content: bytes, reason: str
) -> None:
    file.write_bytes(content)
    checked = check(capsys, file)
    assert (checked.status, checked.records) == (2, [])
    assert reason in checked.errors
    assert checked.errors.count("\n") == 1


@rows("rendering", [each for each in RENDERINGS.values() if each.source not in {"assay", "map"}])
def test_a_line_of_something_else_stops_a_file_or_is_skipped(
    file: Path, capsys: pytest.CaptureFixture[str], rendering: Rendering
) -> None:
    """A line in the middle of a log may be anything; in a file of records it is an error with its line."""
    written = rendering.write(QUIET)
    if written.startswith((b"[", b'{\n "log"')):
        # It is one document.
        return
    middle = written.index(b"\n", len(written) // 2) + 1
    file.write_bytes(written[:middle] + b"(another program)\n" + written[middle:])
    checked = check(capsys, file)
    if rendering.source in {"claude-desktop", "vscode"}:
        assert (checked.status, checked.faults) == (0, [])
    elif rendering.source == "messages":
        assert rules(checked) == ["syntax/json"]
    else:
        assert checked.status == 2
        assert "expected a JSON object of" in checked.errors


@rows("name", ["messages", "vscode"])
def test_a_line_of_a_hundred_megabytes_is_bounded(
    file: Path, capsys: pytest.CaptureFixture[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is lowered, because the test is about what happens at the limit."""
    monkeypatch.setattr("assay.cli.checking.evidence.LONGEST_LINE", 1 << 20)
    head, _, tail = RENDERINGS[name].write(QUIET).partition(b"\n")
    file.write_bytes(head + b"\n")
    options = ("--set", "guard.frame_bytes=65536")
    with file.open("ab") as log:
        log.truncate(len(head) + 1 + (3 << 20))
    with file.open("ab") as log:
        log.write(b"\n" + tail)
    checked = check(capsys, file, *options)
    assert (checked.status, checked.faults) == (2, [])
    assert "1 line is longer than 1,048,576 bytes, and not read" in checked.errors


# ── several conversations ────────────────────────────────────────────────────────────────────────────────────────────


@rows("write", [claude_server, claude_all, vscode, plain])
def test_runs_after_each_other_are_separate(file: Path, capsys: pytest.CaptureFixture[str], write: Any) -> None:
    """Ids start again; without the split the second `initialize` would be refused."""
    file.write_bytes(write(QUIET) * 3)
    checked = check(capsys, file, "--messages")
    assert (checked.faults, checked.status) == ([], 0)
    assert {each["conversation"] for each in checked.records} == {1, 2, 3}


def interleaved(one: bytes, other: bytes) -> bytes:
    """The lines of two processes that write into one log."""
    pairs = zip(one.splitlines(keepends=True), other.splitlines(keepends=True), strict=True)
    return b"".join(line for pair in pairs for line in pair)


LATER = (*QUIET, Step(call(3, "five"), (found(3, 5),)), Step(frame(id=4, method="ping"), (frame(id=4, result={}),)))
FINE = (*QUIET, Step(call(3, 5), (found(3, 5),)), Step(frame(id=4, method="ping"), (frame(id=4, result={}),)))


def test_two_processes_in_one_log_are_separate(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(interleaved(claude_server(FINE), claude_server(LATER)))
    checked = check(capsys, file)
    assert rules(checked) == ["contract/input"]


def test_servers_of_one_log_are_separate(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = claude_all(LATER).replace(b"[library]", b"[files]")
    file.write_bytes(interleaved(claude_all(FINE), other))
    checked = check(capsys, file)
    assert [(each["server"], each["conversation"]) for each in checked.records] == [("files", 2)]
    assert rules(checked) == ["contract/input"]


def test_a_client_that_repeats_its_handshake_is_still_found(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = Step(frame(id=3, method="initialize", params=HELLO), (frame(id=3, result=WELCOME),))
    file.write_bytes(claude_server((*QUIET, again)))
    assert "protocol/initialize-again" in rules(check(capsys, file))


def test_sessions_of_an_archive_are_separate(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [entry(*each) for each in exchanges(QUIET)]
    other = json.loads(json.dumps(entries).replace('"s1"', '"s2"'))
    file.write_bytes(archive([each for pair in zip(entries, other, strict=True) for each in pair]))
    checked = check(capsys, file, "--messages")
    assert (checked.faults, checked.status) == ([], 0)
    assert {each["conversation"] for each in checked.records} == {1, 2}


# ── messages that are not whole ──────────────────────────────────────────────────────────────────────────────────────

CUTS = (
    b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"find_bo ...[12000 characters]... "}]}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"find_bo',
    b'{"result":{"tools":[{"name":"find_bo ... "}}},"jsonrpc":"2.0","id":1}',
)
"""Cut at the end, in the middle, and inside a string, where the rest is still JSON."""


@rows("cut", CUTS)
def test_a_message_that_the_log_cuts_is_counted(file: Path, capsys: pytest.CaptureFixture[str], cut: bytes) -> None:
    written = claude_server(QUIET)
    listed = next(line for line in written.splitlines() if b'"tools":[' in line)
    head = listed.partition(b"server: ")[0]
    file.write_bytes(written.replace(listed, head + b"server: " + cut))
    checked = check(capsys, file)
    # Without the list, calls are not judged by it.
    assert {rule for _, rule, _ in checked.faults} <= {"contract/not-judged"}
    assert checked.status == (1 if checked.faults else 2)
    assert "1 message not judged: cut by the log" in checked.errors


def test_summaries_are_counted_and_the_rest_is_judged(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stamp = iso(START).encode() + b" [library] [info] Message from "
    file.write_bytes(
        stamp + b'client: method="initialize" id=0 params\n'
        + stamp + b"server: id=0 result(1 blocks)\n"
        + stamp + b'client: method="notifications/initialized"\n'
        + stamp + b'client: {"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        + stamp + b'server: {"jsonrpc":"2.0","id":1,"result":null}\n'
    )  # fmt: skip
    checked = check(capsys, file, "--revision", "2025-11-25")
    assert rules(checked) == ["envelope/result"]
    assert "3 messages not judged: only a summary was logged" in checked.errors


def test_findings_about_masked_values_are_not_reported(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = (*QUIET, Step(call(3, "[REDACTED]"), (found(3, "5"),)))
    file.write_bytes(vscode(steps))
    assert rules(check(capsys, file)) == ["contract/input", "contract/output"]
    file.write_bytes(inspector_network(steps))
    checked = check(capsys, file)
    assert rules(checked) == ["contract/output"]
    assert "1 message not judged: values were redacted by the recorder" in checked.errors


def test_a_side_alone_is_judged_without_the_other(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for party, at in (("client", 0), ("server", 1)):
        messages = [each for step in STEPS for each in (step.client, *step.server)[at : 1 if at == 0 else None]]
        file.write_bytes(b"".join(each + b"\n" for each in messages))
        checked = check(capsys, file, "--party", party)
        wanted = [] if party == "client" else ["syntax/json", "syntax/duplicate-key"]
        assert [rule for rule in rules(checked) if rule != "contract/not-judged"] == wanted
        assert "the messages of the other party" in checked.errors


def test_bytes_that_are_not_utf8_are_found_where_a_recorder_keeps_them(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = b'{"jsonrpc":"2.0","id":2,"result":{"_meta":{"a":"\xff"}}}'
    file.write_bytes(frame(id=2, method="ping") + b"\n" + bad + b"\n")
    assert "syntax/utf8" in rules(check(capsys, file, "--from", "messages", "--revision", "2025-11-25"))
    file.write_bytes(frame(id=2, method="ping") + b"\n" + bad + b"\n")
    assert "syntax/utf8" in rules(check(capsys, file, "--revision", "2025-11-25"))


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def modern(ident: int, method: str, **params: Any) -> Step:
    """A request of a revision without a handshake."""
    return Step(frame(id=ident, method=method, params={**params, "_meta": META}))


def modern_entry(step: Step, headers: dict[str, str], answer: bytes, at: int) -> dict[str, Any]:
    """The request of a HAR."""
    from datetime import timedelta

    begun = START + timedelta(seconds=at)
    made = entry(Step(step.client, (answer,)), begun, begun + timedelta(milliseconds=5))
    version = {"MCP-Protocol-Version": "2026-07-28"}
    made["request"]["headers"] = [{"name": name, "value": value} for name, value in {**version, **headers}.items()]
    made["response"]["headers"] = [{"name": "content-type", "value": "application/json"}]
    return made


def test_headers_of_an_archive_are_judged(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All requests have the same id, as several clients would; calls are judged by the tools that were listed."""
    listed = {"tools": [TOOL_2026], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    calling = modern(1, "tools/call", name="find_books", arguments={"limit": "five"})
    done = {"content": [], "resultType": "complete"}
    file.write_bytes(
        archive(
            [
                modern_entry(modern(1, "tools/list"), {"Mcp-Method": "tools/list"}, frame(id=1, result=listed), 0),
                modern_entry(
                    calling, {"Mcp-Method": "tools/list", "Mcp-Name": "find_books"}, frame(id=1, result=done), 1
                ),
                modern_entry(calling, {"Mcp-Method": "tools/call"}, frame(id=1, result=done), 2),
                modern_entry(
                    calling, {"Mcp-Method": "tools/call", "Mcp-Name": "find_books"}, frame(id=1, result=done), 3
                ),
            ]
        )
    )
    checked = check(capsys, file)
    assert rules(checked) == ["protocol/header-mismatch", "protocol/header-missing", "contract/input"]


TOOL_2026 = {"name": "find_books", "inputSchema": {"type": "object", "properties": {"limit": {"type": "integer"}}}}


def stream(url: str, messages: list[bytes], *, begun: int, seconds: int, first: bytes = b"") -> dict[str, Any]:
    """A GET that listens."""
    from datetime import timedelta

    body = first + b"".join(b"data: %b\n\n" % each for each in messages)
    return {
        "startedDateTime": iso(START + timedelta(milliseconds=begun)),
        "time": seconds * 1000,
        "request": {"method": "GET", "url": url, "headers": [{"name": "mcp-session-id", "value": "s1"}]},
        "response": {
            "status": 200,
            "headers": [{"name": "content-type", "value": "text/event-stream"}],
            "content": {"text": body.decode()},
        },
    }


def test_a_question_on_a_stream_comes_before_its_answer(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The stream ends long after the client has answered what the server asked on it."""
    asked = frame(id="a", method="ping")
    entries = [entry(*each) for each in exchanges((*QUIET, Step(frame(id="a", result={}))))]
    file.write_bytes(archive([*entries, stream(URL, [asked], begun=60, seconds=60)]))
    checked = check(capsys, file, "--messages")
    assert (checked.faults, checked.status) == ([], 0)
    shown = [(each["party"], each["kind"], each["method"]) for each in checked.records]
    assert shown[-2:] == [("server", "request", "ping"), ("client", "result", "ping")]


def test_the_first_http_transport_answers_on_its_stream(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All answers are on one stream, which an archive has as one body."""
    steps = (*QUIET, Step(call(3, "five"), (found(3, "5"),)))
    entries = []
    for step, begun, ended in exchanges(steps):
        made = entry(Step(step.client), begun, ended)
        made["request"]["url"] = "http://127.0.0.1:8765/messages?sessionId=a"
        made["request"]["headers"] = []
        made["response"]["headers"] = []
        entries.append(made)
    answers = [each for step in steps for each in step.server]
    listening = stream(
        "http://127.0.0.1:8765/sse",
        answers,
        begun=0,
        seconds=9,
        first=b"event: endpoint\ndata: /messages?sessionId=a\n\n",
    )
    listening["request"]["headers"] = []
    file.write_bytes(archive([listening, *entries]))
    assert rules(check(capsys, file)) == ["contract/input", "contract/output"]


@rows(("side", "member"), [("response", "content"), ("request", "postData")])
def test_a_body_that_is_left_out_is_no_pass(
    file: Path, capsys: pytest.CaptureFixture[str], side: str, member: str
) -> None:
    entries = [entry(*each) for each in exchanges(QUIET)]
    del entries[-1][side][member]["text"]
    file.write_bytes(archive(entries))
    checked = check(capsys, file)
    assert (checked.faults, checked.status) == ([], 2)
    assert f"1 message not judged: the body of the HTTP {side} is not in the file" in checked.errors


@rows(("status", "wanted"), [(401, []), (404, []), (502, ["protocol/unanswered"])])
def test_an_http_error_without_a_message_ends_its_request(
    file: Path, capsys: pytest.CaptureFixture[str], status: int, wanted: list[str]
) -> None:
    entries = [entry(*each) for each in exchanges(QUIET)]
    entries[-1]["response"] |= {"status": status, "content": {"text": "<html>"}, "headers": []}
    file.write_bytes(archive(entries))
    assert rules(check(capsys, file)) == wanted


# ── names of files ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_directory_is_searched_for_what_is_recognized(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "mcp.log").write_bytes(claude_all())
    (tmp_path / "page.har").write_bytes(har())
    (tmp_path / "session.jsonl.gz").write_bytes(gzip.compress(native()))
    (tmp_path / "other.log").write_bytes(b"a log of something else\n")
    (tmp_path / "package.json").write_bytes(b'{"name": "x"}\n')
    checked = check(capsys, tmp_path)
    assert checked.status == 1
    assert {os.path.basename(each["file"]) for each in checked.records} == {"mcp.log", "page.har", "session.jsonl.gz"}


def test_a_pattern_stands_for_the_files_that_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.log", "b.log", "c.txt"):
        (tmp_path / name).write_bytes(claude_server())
    checked = check(capsys, tmp_path / "*.log")
    assert {os.path.basename(each["file"]) for each in checked.records} == {"a.log", "b.log"}
    assert main(["check", str(tmp_path / "*.har")]) == 2
    assert f"{tmp_path / '*.har'}: no file matches" in capsys.readouterr().err


def test_a_format_can_be_forced(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(vscode())
    checked = check(capsys, file, "--from", "claude-desktop")
    assert checked.status == 2
    assert "nothing to judge" in checked.errors


@rows(
    ("names", "reason"),
    [
        ("dir=a", "expected msg=NAME"),
        ("msg=", "expected NAME=VALUE"),
        ("message=a", "with one of the names msg, dir, c2s, s2c, ts, conversation"),
    ],
)
def test_a_mistake_in_map_is_explained(file: Path, capsys: pytest.CaptureFixture[str], names: str, reason: str) -> None:
    with pytest.raises(SystemExit):
        main(["check", "--map", names, str(file)])
    assert reason in capsys.readouterr().err


def test_a_direction_that_is_not_known_asks_for_its_meaning(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(lines({"way": "in", "body": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}))
    checked = check(capsys, file, "--map", "dir=way,msg=body")
    assert checked.status == 2
    assert 'line 1: unknown direction "in"; say which one it is: --map c2s=VALUE' in checked.errors


# ── whatever is in a file ────────────────────────────────────────────────────────────────────────────────────────────


def damaged(written: bytes, random: Random) -> bytes:
    """A file with bytes that were changed, removed or repeated."""
    data = bytearray(written)
    for _ in range(random.randrange(1, 6)):
        at, length = random.randrange(len(data)), random.randrange(1, 40)
        change = random.choice(("flip", "drop", "repeat", "nest", "null"))
        if change == "flip":
            data[at] = random.randrange(256)
        elif change == "drop":
            del data[at : at + length]
        elif change == "repeat":
            data[at:at] = data[at : at + length] * 3
        elif change == "nest":
            data[at:at] = b"[" * 300
        else:
            data[at:at] = random.choice((b"null", b"{}", b"[]", b'"\\ud800"', b"1e999", b"\n", b"\xff", b"\0"))
    return bytes(data)


@EVERY
def test_no_file_raises(file: Path, capsys: pytest.CaptureFixture[str], rendering: Rendering) -> None:
    written = rendering.write()
    for seed in range(12):
        file.write_bytes(damaged(written, Random(f"{rendering.write.__name__} {seed}")))  # noqa: S311 - a test
        forced = ("--from", rendering.source) if seed % 2 else ()
        assert check(capsys, file, *forced, *rendering.options).status in {0, 1, 2}, seed


def test_a_long_file_is_read_line_by_line(file: Path) -> None:
    """The memory for a log of 6 MB is a small part of its size."""
    import tracemalloc

    from assay.core.conversation import Conversation
    from assay.records.importers.importer import ImportOptions
    from assay.records.importers.importer_table import BY_NAME
    from assay.records.recording.judging import Judging

    text = "x" * 20_000
    step = Step(call(9, 5), (frame(id=9, result={"content": [{"type": "text", "text": text}], "isError": True}),))
    head, tail = plain(QUIET), plain((step,))
    judging = Judging(lambda _: Conversation(mode="audit"))

    def lines_of_a_log() -> Iterator[bytes]:
        yield from head.splitlines(keepends=True)
        for _ in range(300):
            yield from tail.splitlines(keepends=True)

    tracemalloc.start()
    judged = sum(1 for _ in judging.judge_rows(BY_NAME["messages"].read(lines_of_a_log(), ImportOptions())))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert judged > 600
    assert most < 2_000_000

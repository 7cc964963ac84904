"""Files that are broken, cut off, masked, one-sided or not recordings at all, and files with several conversations."""

import gzip
import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from backports import zstd
from renderings import (
    EVERY,
    HELLO,
    QUIET,
    RENDERINGS,
    START,
    STEPS,
    URL,
    WELCOME,
    Rendering,
    Step,
    archive,
    call,
    check,
    claude_all,
    claude_server,
    entry,
    exchanges,
    expected,
    file,
    found,
    frame,
    har,
    inspector_network,
    iso,
    judged,
    lines,
    native,
    plain,
    vscode,
)

from kit.places import GOLDEN
from kit.rows import rows

__all__ = ["file"]


@EVERY
def test_a_conversation_without_faults_passes(file: Path, rendering: Rendering) -> None:
    checked = judged(file, rendering.write(QUIET), *rendering.options)
    assert (checked.faults, checked.status) == ([], 0)


@EVERY
@rows("share", [0.3, 0.6, 0.9, 0.99])
def test_a_file_that_is_cut_off_never_passes(file: Path, rendering: Rendering, share: float) -> None:
    """Documents cannot be read at all; of lines, those that are whole are judged."""
    written = rendering.write(QUIET)
    checked = judged(file, written[: int(len(written) * share)], *rendering.options)
    assert checked.status == (1 if checked.faults else 2)
    assert "Traceback" not in checked.errors
    # Nothing but a missing end is reported.
    assert set(checked.rules) <= {"protocol/unanswered", "syntax/json", "contract/not-judged"}


Pack = Callable[[bytes], bytes]
PACKED = rows(("method", "pack"), [("gzip", gzip.compress), ("zstd", zstd.compress)])


@PACKED
def test_compressed_data_is_read_whole_or_reported(tmp_path: Path, file: Path, method: str, pack: Pack) -> None:
    """Several members are one file; a journal, which is read twice, may be compressed as well."""
    written = plain()
    assert judged(file, pack(written[:100]) + pack(written[100:])).faults == expected(RENDERINGS["messages"])
    assert judged(file, pack(GOLDEN.read_bytes())).faults == check(GOLDEN).faults != []
    packed = bytearray(pack(native() * 20))
    file.write_bytes(packed[: len(packed) * 2 // 3])
    cut = check(file)
    assert (cut.status, f"the {method} data is cut off; what is missing is not judged" in cut.errors) == (2, True)
    packed[len(packed) // 2] ^= 0xFF
    packed[-6] ^= 0xFF
    file.write_bytes(packed)
    damaged = check(file)
    assert (damaged.status, f"the {method} data is damaged" in damaged.errors) == (2, True)


def test_what_comes_before_a_fault_of_compressed_data_is_judged(file: Path) -> None:
    file.write_bytes(gzip.compress(plain())[:-1])
    cut = check(file)
    # What is missing may be a response.
    whole = [each for each in expected(RENDERINGS["messages"]) if each[1] != "protocol/unanswered"]
    assert (cut.status, cut.faults) == (2, whole)


def test_zstd_without_its_package_says_what_to_install(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.delattr("backports.zstd", raising=False)
    checked = judged(file, b"\x28\xb5\x2f\xfd....")
    assert checked.status == 2
    assert "zstd needs backports" in checked.errors


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
        (b"hello\nworld\n" * 10, "not a recording: no line is a JSON object, or a line of a known log"),
        (bytes(range(256)) * 8, "not a recording: no line is a JSON object, or a line of a known log"),
        (lines({"a": 1, "b\x1b[2J": 2}), "not a known recording: a line has the members a, b·[2J; name those"),
        (lines({"event": [], "direction": {}}), "not a known recording: a line has the members event, direction;"),
        (b"[1, 2]\n", "not a recording"),
        (b'{"log": {"version": "1.2"}}', "expected a list at log.entries in the JSON of HAR"),
        (b'[{"origin": "client", "message": ', "line 1: expected the JSON of MCP Inspector: it is cut off"),
    ],
)
def test_a_file_that_is_not_a_recording_is_refused_with_one_line(file: Path, content: bytes, reason: str) -> None:
    checked = judged(file, content)
    assert (checked.status, checked.records) == (2, [])
    assert reason in checked.errors
    assert checked.errors.count("\n") == 1


@rows("rendering", [each for each in RENDERINGS.values() if each.source not in {"assay", "map"}])
def test_a_line_of_something_else_stops_a_file_or_is_skipped(file: Path, rendering: Rendering) -> None:
    """A line in the middle of a log may be anything; in a file of records it is an error with its line."""
    written = rendering.write(QUIET)
    if written.startswith((b"[", b'{\n "log"')):
        # It is one document.
        return
    middle = written.index(b"\n", len(written) // 2) + 1
    checked = judged(file, written[:middle] + b"(another program)\n" + written[middle:])
    if rendering.source in {"claude-desktop", "vscode"}:
        assert (checked.status, checked.faults) == (0, [])
    elif rendering.source == "messages":
        assert checked.rules == ["syntax/json"]
    else:
        assert checked.status == 2
        assert "expected a JSON object of" in checked.errors


@rows("name", ["messages", "vscode"])
def test_a_line_of_a_hundred_megabytes_is_bounded(file: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is lowered, because the test is about what happens at the limit."""
    monkeypatch.setattr("assay.cli.checking.evidence.LONGEST_LINE", 1 << 20)
    head, _, tail = RENDERINGS[name].write(QUIET).partition(b"\n")
    file.write_bytes(head + b"\n")
    options = ("--set", "guard.frame_bytes=65536")
    with file.open("ab") as log:
        log.truncate(len(head) + 1 + (3 << 20))
    with file.open("ab") as log:
        log.write(b"\n" + tail)
    checked = check(file, *options)
    assert (checked.status, checked.faults) == (2, [])
    assert "1 line is longer than 1,048,576 bytes, and not read" in checked.errors


# ── several conversations ────────────────────────────────────────────────────────────────────────────────────────────


@rows("write", [claude_server, claude_all, vscode, plain])
def test_runs_after_each_other_are_separate(file: Path, write: Any) -> None:
    """Ids start again; without the split the second `initialize` would be refused."""
    checked = judged(file, write(QUIET) * 3, "--messages")
    assert (checked.faults, checked.status) == ([], 0)
    assert {each["conversation"] for each in checked.records} == {1, 2, 3}


def test_processes_and_servers_of_one_log_are_separate(file: Path) -> None:
    rest = Step(frame(id=4, method="ping"), (frame(id=4, result={}),))
    fine, wrong = ((*QUIET, Step(call(3, given), (found(3, 5),)), rest) for given in (5, "five"))
    for one, other in (
        (claude_server(fine), claude_server(wrong)),
        (claude_all(fine), claude_all(wrong).replace(b"[library]", b"[files]")),
    ):
        pairs = zip(one.splitlines(keepends=True), other.splitlines(keepends=True), strict=True)
        checked = judged(file, b"".join(line for pair in pairs for line in pair))
        assert checked.rules == ["contract/input"]
    assert [(each["server"], each["conversation"]) for each in checked.records] == [("files", 2)]


def test_a_client_that_repeats_its_handshake_is_still_found(file: Path) -> None:
    again = Step(frame(id=3, method="initialize", params=HELLO), (frame(id=3, result=WELCOME),))
    file.write_bytes(claude_server((*QUIET, again)))
    assert "protocol/initialize-again" in check(file).rules


def test_sessions_of_an_archive_are_separate(file: Path) -> None:
    entries = [entry(*each) for each in exchanges(QUIET)]
    other = json.loads(json.dumps(entries).replace('"s1"', '"s2"'))
    checked = judged(file, archive([each for pair in zip(entries, other, strict=True) for each in pair]), "--messages")
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
def test_a_message_that_the_log_cuts_is_counted(file: Path, cut: bytes) -> None:
    written = claude_server(QUIET)
    listed = next(line for line in written.splitlines() if b'"tools":[' in line)
    head = listed.partition(b"server: ")[0]
    checked = judged(file, written.replace(listed, head + b"server: " + cut))
    # Without the list, calls are not judged by it.
    assert set(checked.rules) <= {"contract/not-judged"}
    assert checked.status == (1 if checked.faults else 2)
    assert "1 message not judged: cut by the log" in checked.errors


def test_summaries_are_counted_and_the_rest_is_judged(file: Path) -> None:
    stamp = iso(START).encode() + b" [library] [info] Message from "
    file.write_bytes(
        stamp + b'client: method="initialize" id=0 params\n'
        + stamp + b"server: id=0 result(1 blocks)\n"
        + stamp + b'client: method="notifications/initialized"\n'
        + stamp + b'client: {"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        + stamp + b'server: {"jsonrpc":"2.0","id":1,"result":null}\n'
    )  # fmt: skip
    checked = check(file, "--revision", "2025-11-25")
    assert checked.rules == ["envelope/result"]
    assert "3 messages not judged: only a summary was logged" in checked.errors


def test_findings_about_masked_values_are_not_reported(file: Path) -> None:
    steps = (*QUIET, Step(call(3, "[REDACTED]"), (found(3, "5"),)))
    assert judged(file, vscode(steps)).rules == ["contract/input", "contract/output"]
    checked = judged(file, inspector_network(steps))
    assert checked.rules == ["contract/output"]
    assert "1 message not judged: values were redacted by the recorder" in checked.errors


def test_a_side_alone_is_judged_without_the_other(file: Path) -> None:
    for party, at in (("client", 0), ("server", 1)):
        messages = [each for step in STEPS for each in (step.client, *step.server)[at : 1 if at == 0 else None]]
        checked = judged(file, b"".join(each + b"\n" for each in messages), "--party", party)
        wanted = [] if party == "client" else ["syntax/json", "syntax/duplicate-key"]
        assert [rule for rule in checked.rules if rule != "contract/not-judged"] == wanted
        assert "the messages of the other party" in checked.errors


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def stream(url: str, messages: list[bytes], *, begun: int, seconds: int, first: bytes = b"") -> dict[str, Any]:
    """A GET that listens."""
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


def test_a_question_on_a_stream_comes_before_its_answer(file: Path) -> None:
    """The stream ends long after the client has answered what the server asked on it."""
    asked = frame(id="a", method="ping")
    entries = [entry(*each) for each in exchanges((*QUIET, Step(frame(id="a", result={}))))]
    checked = judged(file, archive([*entries, stream(URL, [asked], begun=60, seconds=60)]), "--messages")
    assert (checked.faults, checked.status) == ([], 0)
    shown = [(each["party"], each["kind"], each["method"]) for each in checked.records]
    assert shown[-2:] == [("server", "request", "ping"), ("client", "result", "ping")]


def test_the_first_http_transport_answers_on_its_stream(file: Path) -> None:
    """All answers are on one stream, which an archive has as one body."""
    steps = (*QUIET, Step(call(3, "five"), (found(3, "5"),)))
    entries = [entry(Step(step.client), begun, ended) for step, begun, ended in exchanges(steps)]
    for each in entries:
        each["request"] |= {"url": "http://127.0.0.1:8765/messages?sessionId=a", "headers": []}
        each["response"]["headers"] = []
    answers = [each for step in steps for each in step.server]
    first = b"event: endpoint\ndata: /messages?sessionId=a\n\n"
    listening = stream("http://127.0.0.1:8765/sse", answers, begun=0, seconds=9, first=first)
    listening["request"]["headers"] = []
    assert judged(file, archive([listening, *entries])).rules == ["contract/input", "contract/output"]


def test_a_body_that_is_left_out_is_no_pass_and_an_http_error_ends_its_request(file: Path) -> None:
    for side, member in (("response", "content"), ("request", "postData")):
        entries = [entry(*each) for each in exchanges(QUIET)]
        del entries[-1][side][member]["text"]
        checked = judged(file, archive(entries))
        assert (checked.faults, checked.status) == ([], 2)
        assert f"1 message not judged: the body of the HTTP {side} is not in the file" in checked.errors
    for status, wanted in ((401, []), (404, []), (502, ["protocol/unanswered"])):
        entries = [entry(*each) for each in exchanges(QUIET)]
        entries[-1]["response"] |= {"status": status, "content": {"text": "<html>"}, "headers": []}
        assert judged(file, archive(entries)).rules == wanted


# ── names of files ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_directories_and_patterns_stand_for_the_files_in_them(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "mcp.log").write_bytes(claude_all())
    (tmp_path / "page.har").write_bytes(har())
    (tmp_path / "session.jsonl.gz").write_bytes(gzip.compress(native()))
    (tmp_path / "other.log").write_bytes(b"a log of something else\n")
    (tmp_path / "package.json").write_bytes(b'{"name": "x"}\n')
    checked = check(tmp_path)
    assert checked.status == 1
    assert {os.path.basename(each["file"]) for each in checked.records} == {"mcp.log", "page.har", "session.jsonl.gz"}
    assert {os.path.basename(each["file"]) for each in check(tmp_path / "*.har").records} == {"page.har"}
    none = check(tmp_path / "*.none")
    assert (none.status, f"{tmp_path / '*.none'}: no file matches" in none.errors) == (2, True)


@rows(
    ("options", "reason"),
    [
        (("--from", "claude-desktop"), "nothing to judge"),
        (("--map", "dir=a"), "expected msg=NAME"),
        (("--map", "msg="), "expected NAME=VALUE"),
        (("--map", "message=a"), "with one of the names msg, dir, c2s, s2c, ts, conversation"),
        (("--map", "dir=way,msg=body"), 'unknown direction "in"; say which one it is: --map c2s=VALUE'),
    ],
)
def test_a_format_can_be_forced_and_a_mistake_in_it_is_explained(
    file: Path, options: tuple[str, str], reason: str
) -> None:
    checked = judged(file, lines({"way": "in", "body": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}), *options)
    assert (checked.status, reason in checked.errors) == (2, True)


# ── whatever is in a file ────────────────────────────────────────────────────────────────────────────────────────────


def damaged(data: bytes, random: Random) -> bytes:
    """A file with bytes that were replaced, removed or repeated."""
    for _ in range(random.randrange(1, 6)):
        at, length = random.randrange(len(data)), random.randrange(1, 40)
        part = random.choice(
            (b"", data[at : at + length] * 3, b"[" * 300, b"{}", b'"\\ud800"', b"1e999", b"\n", b"\xff\0")
        )
        data = data[:at] + part + data[at + random.choice((0, 1, length)) :]
    return data


@EVERY
def test_no_file_raises(file: Path, rendering: Rendering) -> None:
    written = rendering.write()
    for seed in range(12):
        random = Random(f"{rendering.write.__name__} {seed}")  # noqa: S311 - a test
        forced = ("--from", rendering.source) if seed % 2 else ()
        assert judged(file, damaged(written, random), *forced, *rendering.options).status in {0, 1, 2}, seed

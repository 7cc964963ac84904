"""The file of a recording: who may read it, what it may replace, how much it takes, and what is left of it."""

import json
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay.judge.conversation import Conversation, Facts
from assay.judge.redaction import Redactor
from assay.model.limits import DEFAULT
from assay.model.verdict import Party
from assay.records import recording as recording_file
from assay.records.record import PAYLOAD_BYTES
from assay.records.recording import Recording, RecordingError
from assay.records.rows import TranscriptRow, frame_of
from kit.check_formats import page_data
from kit.command import assay_text
from kit.rows import rows
from kit.small_files import small_files
from kit.talk import call, request, result
from kit.talk import frame_of as frame

PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":%d,"result":{}}'
REDACTOR = Redactor()
PRIVATE = "hunter2-hunter2"
LONG = {"_meta": {"a": "x" * PAYLOAD_BYTES}}
NO_END = "the recording has no end: later messages are missing"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


@pytest.fixture
def said() -> list[str]:
    """What is written to the log."""
    return []


def begun(file: Path, said: list[str], *, most: int = 1 << 28, redactor: Redactor | None = REDACTOR) -> Recording:
    return Recording(str(file), most=most, redactor=redactor, log=said.append)


def opened(recording: Recording, mode: str = "audit") -> Conversation:
    return recording.judge("a server")(mode=mode, limits=DEFAULT, revision="2025-11-25")


def pinged(conversation: Conversation, numbers: range) -> None:
    for number in numbers:
        conversation.hear(Party.CLIENT, PING % number)
        conversation.hear(Party.SERVER, PONG % number)


def made(file: Path, say: Callable[[Conversation], object], *, is_closed: bool = True, **options: Any) -> Path:
    """Record what is said in a conversation."""
    recording = begun(file, [], **options)
    say(opened(recording))
    if is_closed:
        recording.close()
    return file


def messages(file: Path) -> list[dict[str, Any]]:
    """The rows of messages."""
    return [row for line in file.read_bytes().splitlines() if "dir" in (row := json.loads(line))]


def check(file: Path, *options: str) -> tuple[int, str, str]:
    """The exit status of a check, and what it prints."""
    done = assay_text("check", *options, str(file))
    return done.returncode, done.stdout, done.stderr


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_the_owner_can_read_a_recording_and_an_earlier_one_is_replaced(file: Path) -> None:
    file.touch(mode=0o644)
    for number in (1, 2):
        made(file, partial(pinged, numbers=range(number, number + 1)))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert [row["msg"].encode() for row in messages(file)] == [PING % number, PONG % number]


def test_times_go_on_when_the_clock_is_set_and_are_right_after_the_machine_has_slept(
    file: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = {"now": 1_763_379_999_000_000_000, "ticks": 0}
    monkeypatch.setattr(recording_file, "monotonic_ns", lambda: clock["ticks"])
    monkeypatch.setattr(recording_file, "time_ns", lambda: clock["now"])
    recording = begun(file, said)
    conversation = opened(recording)
    # An hour of sleep, then half an hour back and two seconds of work.
    for now, ticks in ((0, 0), (3600, 0), (1800, 0), (1802, 2)):
        clock.update(now=(1_763_379_999 + now) * 10**9, ticks=ticks * 10**9)
        conversation.hear(Party.CLIENT, PING % (now + 1))
    conversation.hear(Party.SERVER, PONG % 1803)
    recording.close()
    times = [row["time"] // 10**6 - 1_763_379_999 for row in messages(file)]
    assert times == [0, 3600, 3600, 3602, 3602]
    page = page_data(assay_text("report", str(file), "-o", "-").stdout)
    assert [(each["count"], each["p50"]) for each in page["performance"]["lines"]] == [(1, 0.0)]


@rows("content", [b"export PATH\n", b'{"dir":"c2s","msg":{}}\n', b'{"event":"else"}'])
def test_a_file_that_is_no_recording_of_a_guard_is_left_alone(file: Path, said: list[str], content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(RecordingError, match="exists and is not a recording of a guard; remove it"):
        begun(file, said)
    assert file.read_bytes() == content


def test_links_and_pipes_are_refused(tmp_path: Path, file: Path, said: list[str]) -> None:
    (tmp_path / "target").touch()
    file.symlink_to(tmp_path / "target")
    with pytest.raises(RecordingError, match="is a symbolic link"):
        begun(file, said)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "nowhere" / "x"):
        with pytest.raises(RecordingError):
            begun(path, said)


def test_two_guards_do_not_share_a_file(file: Path, said: list[str]) -> None:
    first = begun(file, said)
    pinged(opened(first), range(1, 2))
    before = file.read_bytes()
    with pytest.raises(RecordingError, match="another guard is recording to it"):
        begun(file, said)
    assert file.read_bytes() == before
    first.close()
    begun(file, said).close()


def test_a_recording_is_bounded_and_the_traffic_goes_on(file: Path, said: list[str]) -> None:
    recording = begun(file, said, most=1 << 16)
    pinged(opened(recording), range(1, 2000))
    recording.close()
    assert file.stat().st_size <= 1 << 16
    assert said == [f"assay: recording stopped: {file}: it has reached 65,536 bytes; guard.record_bytes sets the limit"]
    for options in ((), ("--fail-on", "refuse")):
        status, _, errors = check(file, *options)
        assert (status, "the recording stops at line" in errors) == (2, True)


@rows("is_full", [False, True])
def test_a_full_disk_is_reported_once_and_leaves_whole_rows(file: Path, said: list[str], is_full: bool) -> None:
    """Of a recording without room for its last row, which says so, the missing end is reported."""
    file.unlink(missing_ok=True)
    said.clear()
    with small_files(1 << 13):
        recording = begun(file, said)
        conversation = opened(recording)
        pinged(conversation, range(1, 30))
        if is_full:
            empty = len(json.dumps({"dir": "c2s", "conversation": 1, "time": 10**15, "msg": ""}, separators=(",", ":")))
            conversation.hear(Party.CLIENT, b"x" * ((1 << 13) - file.stat().st_size - 10 - empty - 1))
        conversation.hear(Party.CLIENT, frame(request(99, "ping", {"_meta": {"a": "x" * 8192}})))
        assert conversation.hear(Party.CLIENT, PING % 200).accepted
        recording.close()
    assert said == [f"assay: recording stopped: {file}: File too large"]
    status, out, errors = check(file, "--fail-on", "never" if is_full else "report")
    if is_full:
        assert (status, NO_END in errors, "never answered" in out) == (0, True, False)
    else:
        assert (status, "File too large; later messages are missing" in errors) == (2, True)
        assert "58 messages of MCP 2025-11-25: 58 ok\n" in out


def test_in_a_directory_each_recording_has_a_file_of_its_own_and_all_are_judged(tmp_path: Path) -> None:
    """A test suite starts its server many times, and several at once."""
    place = tmp_path / "recordings"
    both = [Recording(f"{place}/", most=1 << 28, redactor=None, log=pytest.fail), begun(place, [])]
    for number, recording in enumerate(both, 1):
        pinged(opened(recording), range(number, number + 1))
        recording.close()
        assert stat.S_IMODE(os.stat(recording.path).st_mode) == 0o600
    (place / "notes.txt").write_text("no recording")
    status, out, _ = check(place)
    assert (status, out.count("2 messages of MCP 2025-11-25: 2 ok")) == (0, 2)


# ── what is in it ────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("given", [b"\xff\x00 no text", b'{"jsonrpc":"2.0","method":"n\xc3\xa9"} \r', b"Server started"])
def test_frames_are_recorded_byte_for_byte(file: Path, given: bytes) -> None:
    [row] = messages(made(file, lambda talk: talk.hear(Party.SERVER, given)))
    assert frame_of(TranscriptRow(1, row)) == given


def test_secrets_are_masked_unless_they_are_kept_and_such_messages_keep_their_verdicts(file: Path) -> None:
    headers = {b"mcp-param-token": PRIVATE.encode(), b"mcp-session-id": b"hunter2", b"cookie": b"hunter2"}

    def say(talk: Conversation) -> None:
        talk.hear(Party.CLIENT, frame(call(1, "login", {"password": PRIVATE})))
        talk.hear(Party.CLIENT, PING % 2, Facts("http", None, headers))
        pinged(talk, range(3, 4))

    remark = "2 messages with the guard's own verdict: secrets were redacted"
    for redactor, is_masked in ((REDACTOR, True), (None, False)):
        made(file, say, redactor=redactor)
        assert (PRIVATE.encode() in file.read_bytes()) is not is_masked
        assert (remark in check(file)[2]) is is_masked
        assert is_masked is (b"hunter2" not in file.read_bytes())


def test_messages_that_are_too_large_are_counted_with_what_belongs_to_them(file: Path) -> None:
    def say(talk: Conversation) -> None:
        talk.hear(Party.CLIENT, frame(request(1, "ping", LONG)))
        talk.hear(Party.SERVER, PONG % 1)
        talk.hear(Party.CLIENT, PING % 2)
        talk.hear(Party.SERVER, frame(result(2, LONG)))
        pinged(talk, range(3, 4))

    assert made(file, say).stat().st_size < 10_000
    status, out, errors = check(file)
    assert (status, "6 messages of MCP 2025-11-25: 6 ok" in out) == (0, True)
    assert "2 messages with the guard's own verdict: too large to record" in errors
    assert "1 message with the guard's own verdict: the request is not in the recording" in errors


PATTERNS = {"password": {"pattern": "^.redacted"}, "token": {"pattern": "^hunter"}}
LOGIN = {"name": "login", "inputSchema": {"type": "object", "properties": PATTERNS}}


@rows("mode", ["audit", "enforce"])
def test_findings_in_masked_messages_count(file: Path, said: list[str], mode: str) -> None:
    recording = begun(file, said)
    conversation = opened(recording, mode)
    conversation.hear(Party.CLIENT, frame(request(1, "tools/list")))
    conversation.hear(Party.SERVER, frame(result(1, {"tools": [LOGIN]})))
    # The password breaks its pattern, the mask does not.
    conversation.hear(Party.CLIENT, frame(call(2, "login", {"password": PRIVATE})))
    if mode == "audit":
        conversation.hear(Party.SERVER, frame(result(2, {"content": []})))
    # The mask breaks the pattern, the token does not.
    conversation.hear(Party.CLIENT, frame(call(3, "login", {"token": PRIVATE})))
    content = [{"type": "text", "text": "password=hunter2"}]
    conversation.hear(Party.SERVER, frame(result(3, {"content": content, "isError": "yes"})))
    conversation.end(Party.SERVER)
    recording.close()
    assert b"hunter2" not in file.read_bytes()
    status, out, _ = check(file, "--format", "ndjson", "--fail-on", "refuse")
    found = [(each["lacks"], each["violations"][0]) for each in map(json.loads, out.splitlines())]
    assert status == 1
    assert [(lacks, each["rule"], each["at"], each["found"]) for lacks, each in found] == [
        ("secrets were redacted", "contract/input", "/params/arguments/password", "[redacted]"),
        ("secrets were redacted", "protocol/result", "/result/isError", 'the string "yes"'),
    ]


def test_findings_in_messages_that_are_left_out_count(file: Path) -> None:
    def say(talk: Conversation) -> None:
        talk.hear(Party.CLIENT, PING % 1)
        talk.hear(Party.SERVER, frame(result(1, "x" * PAYLOAD_BYTES)))

    status, out, _ = check(made(file, say), "--fail-on", "refuse")
    assert "result of ping #1  (a server, conversation 1)  (as the guard judged it: too large to record)" in out
    assert (status, "1 × envelope/result" in out) == (1, True)


@rows("findings", [None, "none", [{"rule": "of/later", "at": "", "action": "refuse"}]])
def test_a_masked_message_without_a_known_verdict_is_no_pass(file: Path, findings: object) -> None:
    """Recordings of earlier versions have none, and those of later versions may have rules that are unknown here."""
    known = {"findings": findings} if findings is not None else {}
    plain = {"dir": "c2s", "msg": (PING % 1).decode()}
    masked = {"dir": "c2s", "msg": (PING % 2).decode(), "redacted": True, **known}
    answers = [{"dir": "s2c", "msg": (PONG % number).decode()} for number in (1, 2)]
    file.write_text("".join(json.dumps(row) + "\n" for row in (plain, masked, *answers)))
    for level, expected in {"report": 2, "refuse": 2, "never": 0}.items():
        status, _, errors = check(file, "--revision", "2025-11-25", "--fail-on", level)
        assert (status, "1 message not judged: secrets were redacted" in errors) == (expected, True)


# ── what is left of it ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_end_is_reported_and_the_rest_is_judged(tmp_path: Path, file: Path) -> None:
    """As after SIGKILL in the middle of a write; the answer may have come after that."""
    made(file, lambda talk: pinged(talk, range(1, 3)), is_closed=False)
    file.write_bytes(file.read_bytes()[:-20])
    status, out, errors = check(file)
    assert (status, NO_END in errors, "line 6 is cut off and not judged" in errors) == (2, True, True)
    assert "never answered" not in out
    # A finding counts more.
    broken = made(tmp_path / "broken", lambda talk: talk.hear(Party.SERVER, b"not JSON"), is_closed=False)
    status, _, errors = check(broken)
    assert (status, NO_END in errors) == (1, True)


def test_a_response_that_is_cut_off_is_not_blamed_as_missing(file: Path) -> None:
    """Also in a recording that no guard has written, and that has no end therefore."""
    ping = {"dir": "c2s", "msg": (PING % 1).decode()}
    pong = {"dir": "s2c", "msg": (PONG % 1).decode()}
    file.write_text(f"{json.dumps(ping)}\n{json.dumps(pong)[:-9]}")
    status, out, errors = check(file, "--revision", "2025-11-25")
    assert (status, "never answered" in out, "line 2 is cut off and not judged" in errors) == (2, False, True)


def test_a_url_without_a_file_is_reported_with_the_reason() -> None:
    done = assay_text("check", "memory://of-this-test/none.jsonl")
    assert (done.returncode, done.stderr) == (2, "assay check: memory://of-this-test/none.jsonl: not found\n")


def test_recordings_can_be_joined_and_each_has_an_end(tmp_path: Path, file: Path) -> None:
    whole, cut = (
        made(tmp_path / name, lambda talk: pinged(talk, range(1, 2)), is_closed=name == "whole").read_bytes()
        for name in ("whole", "cut")
    )
    file.write_bytes(whole + whole)
    status, out, errors = check(file)
    assert (status, errors, "4 messages of MCP 2025-11-25: 4 ok" in out) == (0, "", True)
    file.write_bytes(cut + whole)
    status, _, errors = check(file)
    assert (status, errors.count("the recording has no end")) == (2, 1)


@rows("content", ["", "head", "close"])
def test_a_recording_without_messages_is_no_pass(file: Path, content: str) -> None:
    file.unlink(missing_ok=True)
    made(file, lambda talk: talk.end(Party.SERVER) if content == "close" else None)
    if not content:
        file.write_bytes(b"")
    status, _, errors = check(file)
    assert (status, "nothing to judge; assay guard --record FILE writes a recording" in errors) == (2, True)

"""The file of a recording: who may read it, what it may replace, how much it takes, and what is left of it."""

import json
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.base.limits import DEFAULT
from assay.base.verdict import Party
from assay.cli.main import main
from assay.core.conversation import Conversation
from assay.core.redaction import Redactor
from assay.records import transcript
from assay.records.journal.record import PAYLOAD_BYTES
from assay.records.recording import recording_file
from assay.records.recording.recording_file import Recording, RecordingError
from kit.rows import rows

PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":%d,"result":{}}'
REDACTOR = Redactor()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


@pytest.fixture
def said() -> list[str]:
    """What is written to the log."""
    return []


def begun(file: Path, said: list[str], *, most: int = 1 << 28, redactor: Redactor | None = REDACTOR) -> Recording:
    return Recording(str(file), most=most, redactor=redactor, log=said.append)


def opened(recording: Recording, **terms: Any) -> Conversation:
    return recording.judge("a server")(mode="audit", limits=DEFAULT, revision="2025-11-25", **terms)


def pinged(conversation: Conversation, numbers: range) -> None:
    for number in numbers:
        conversation.hear(Party.CLIENT, PING % number)
        conversation.hear(Party.SERVER, PONG % number)


def recorded(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_the_owner_can_read_a_recording_and_an_earlier_one_is_replaced(file: Path, said: list[str]) -> None:
    file.touch(mode=0o644)
    for number in (1, 2):
        recording = begun(file, said)
        pinged(opened(recording), range(number, number + 1))
        recording.close()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert [row["msg"] for row in recorded(file) if "dir" in row] == [
            (PING % number).decode(),
            (PONG % number).decode(),
        ]
    assert said == []


def test_each_message_has_its_time_and_reports_show_response_times(
    file: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(5_000_000, 10_000_000_000, 250_000))
    monkeypatch.setattr(recording_file, "monotonic_ns", lambda: next(ticks))
    monkeypatch.setattr(recording_file, "time_ns", lambda: 1_763_379_999_123_456_789)
    recording = begun(file, said)
    # The clock is set in the meantime: times go on.
    monkeypatch.setattr(recording_file, "time_ns", lambda: 0)
    pinged(opened(recording), range(1, 3))
    recording.close()
    times = [row["time"] for row in recorded(file) if "dir" in row]
    assert times == [1_763_379_999_123_456 + 250 * step for step in range(1, 5)]
    judged = transcript.judge(file.read_bytes().splitlines(keepends=True), Conversation())
    assert [each.time for each in judged] == [time / 1e6 for time in times]
    page = file.with_suffix(".html")
    assert main(["report", "--revision", "2025-11-25", str(file), "-o", str(page)]) == 0
    assert '"latency":{"count":2,"total":500,' in page.read_text()


def test_times_are_right_again_after_the_machine_has_slept(
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
    recording.close()
    times = [row["time"] // 10**6 - 1_763_379_999 for row in recorded(file) if "dir" in row]
    assert times == [0, 3600, 3600, 3602]


@rows("content", [b"export PATH\n", b'{"dir":"c2s","msg":{}}\n', b'{"event":"else"}'])
def test_a_file_that_is_no_recording_of_a_guard_is_left_alone(file: Path, said: list[str], content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(RecordingError, match="exists and is not a recording; remove it, or give another file"):
        begun(file, said)
    assert file.read_bytes() == content


def test_links_and_pipes_are_refused(tmp_path: Path, file: Path, said: list[str]) -> None:
    target = tmp_path / "target"
    target.touch()
    file.symlink_to(target)
    with pytest.raises(RecordingError, match="is a symbolic link"):
        begun(file, said)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path / "nowhere" / "x"):
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


def test_a_recording_is_bounded_and_the_traffic_goes_on(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recording = begun(file, said, most=1 << 16)
    pinged(opened(recording), range(1, 2000))
    recording.close()
    assert file.stat().st_size <= 1 << 16
    assert said == [f"assay: recording stopped: {file}: it has reached 65,536 bytes; guard.record_bytes sets the limit"]
    assert main(["check", str(file)]) == 2
    assert "the recording stops at line" in capsys.readouterr().err
    assert main(["check", "--fail-on", "refuse", str(file)]) == 2


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file can grow past 8 KiB. Python ignores the signal that comes with it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 13, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_is_reported_once_and_leaves_whole_rows(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recording = begun(file, said)
    conversation = opened(recording)
    pinged(conversation, range(1, 30))
    conversation.hear(Party.CLIENT, PING[:-1] % 99 + b',"params":{"_meta":{"a":"%b"}}}' % (b"x" * 8192))
    assert conversation.hear(Party.CLIENT, PING % 200).accepted
    recording.close()
    assert said == [f"assay: recording stopped: {file}: File too large"]
    assert len(recorded(file)) > 10
    assert recorded(file)[-1] == {"event": "stopped", "why": "File too large"}
    assert main(["check", str(file)]) == 2
    out, errors = capsys.readouterr()
    assert "58 messages of MCP 2025-11-25: 58 ok\n" in out
    assert "File too large; later messages are missing" in errors


@pytest.mark.usefixtures("small_files")
def test_without_room_for_the_last_row_the_missing_end_is_reported(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recording = begun(file, said)
    conversation = opened(recording)
    conversation.hear(Party.CLIENT, PING % 1)
    # Less than the last row needs is left.
    left = (1 << 13) - file.stat().st_size - 10
    empty = len(json.dumps({"dir": "c2s", "conversation": 1, "time": 10**15, "msg": ""}, separators=(",", ":"))) + 1
    conversation.hear(Party.CLIENT, b"x" * (left - empty))
    conversation.hear(Party.SERVER, PONG % 1)
    assert said == [f"assay: recording stopped: {file}: File too large"]
    assert file.stat().st_size == (1 << 13) - 10
    main(["check", "--fail-on", "never", str(file)])
    out, errors = capsys.readouterr()
    assert "the recording has no end: later messages are missing" in errors
    assert "never answered" not in out


def test_in_a_directory_each_recording_has_a_file_of_its_own(
    tmp_path: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A test suite starts its server many times, and several at once."""
    place = tmp_path / "recordings"
    both = [Recording(f"{place}/", most=1 << 28, redactor=None, log=said.append), begun(place, said)]
    for number, recording in enumerate(both, 1):
        pinged(opened(recording), range(number, number + 1))
        recording.close()
        assert stat.S_IMODE(os.stat(recording.path).st_mode) == 0o600
    assert len(set(os.listdir(place))) == 2
    assert main(["check", str(place)]) == 0
    assert capsys.readouterr().out.count("2 messages of MCP 2025-11-25: 2 ok") == 2


def test_all_recordings_of_a_directory_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("flight-1.jsonl", "session.jsonl"):
        (tmp_path / name).write_bytes(b'{"dir":"c2s","msg":"x"}\n')
    (tmp_path / "notes.txt").write_text("no recording")
    assert main(["check", str(tmp_path)]) == 1
    assert capsys.readouterr().out.count(": 0 ok, 1 blocked") == 2


# ── what is in it ────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("frame", [b"\xff\x00 no text", b'{"jsonrpc":"2.0","method":"n\xc3\xa9"} \r', b"Server started"])
def test_frames_are_recorded_byte_for_byte(file: Path, said: list[str], frame: bytes) -> None:
    from assay.records.transcript import TranscriptRow, frame_of

    recording = begun(file, said)
    opened(recording).hear(Party.SERVER, frame)
    recording.close()
    [row] = [row for row in recorded(file) if "dir" in row]
    assert frame_of(TranscriptRow(1, row)) == frame


def secret_call(number: int) -> bytes:
    arguments = {"name": "login", "arguments": {"password": "hunter2-hunter2"}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": arguments}).encode()


def test_secrets_are_masked_and_such_messages_keep_their_verdicts(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recording = begun(file, said)
    conversation = opened(recording)
    conversation.hear(Party.CLIENT, secret_call(1))
    headers = {b"mcp-param-token": b"hunter2-hunter2", b"mcp-session-id": b"hunter2", b"cookie": b"hunter2"}
    from assay.core.conversation import Facts

    conversation.hear(Party.CLIENT, PING % 2, Facts("http", None, headers))
    pinged(conversation, range(3, 4))
    recording.close()
    assert b"hunter2" not in file.read_bytes()
    main(["check", str(file)])
    assert "2 messages with the guard's own verdict: secrets were redacted" in capsys.readouterr().err


def test_secrets_can_be_kept(file: Path, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    recording = begun(file, said, redactor=None)
    opened(recording).hear(Party.CLIENT, secret_call(1))
    recording.close()
    assert b"hunter2-hunter2" in file.read_bytes()
    main(["check", str(file)])
    assert "redacted" not in capsys.readouterr().err


def test_messages_that_are_too_large_are_counted_with_what_belongs_to_them(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    long = b"x" * PAYLOAD_BYTES
    recording = begun(file, said)
    conversation = opened(recording)
    conversation.hear(Party.CLIENT, PING[:-1] % 1 + b',"params":{"_meta":{"a":"%b"}}}' % long)
    conversation.hear(Party.SERVER, PONG % 1)
    conversation.hear(Party.CLIENT, PING % 2)
    conversation.hear(Party.SERVER, b'{"jsonrpc":"2.0","id":2,"result":{"_meta":{"a":"%b"}}}' % long)
    pinged(conversation, range(3, 4))
    recording.close()
    assert file.stat().st_size < 10_000
    status = main(["check", str(file)])
    out, errors = capsys.readouterr()
    assert (status, "6 messages of MCP 2025-11-25: 6 ok" in out) == (0, True)
    assert "2 messages with the guard's own verdict: too large to record" in errors
    assert "1 message with the guard's own verdict: the request is not in the recording" in errors


LOGIN = {
    "name": "login",
    "inputSchema": {
        "type": "object",
        "properties": {"password": {"pattern": "^.redacted"}, "token": {"pattern": "^hunter"}},
    },
}


def login(number: int, **secrets: str) -> bytes:
    """A call with secrets, which a recording masks."""
    params = {"name": "login", "arguments": secrets}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def answer(number: int, result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


@rows("mode", ["audit", "enforce"])
def test_findings_in_masked_messages_count(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    recording = begun(file, said)
    conversation = recording.judge("a server")(mode=mode, limits=DEFAULT, revision="2025-11-25")
    conversation.hear(Party.CLIENT, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    conversation.hear(Party.SERVER, answer(1, {"tools": [LOGIN]}))
    # The password breaks its pattern, the mask does not.
    conversation.hear(Party.CLIENT, login(2, password="hunter2-hunter2"))  # noqa: S106 - no secret
    if mode == "audit":
        conversation.hear(Party.SERVER, answer(2, {"content": []}))
    # The mask breaks the pattern, the token does not.
    conversation.hear(Party.CLIENT, login(3, token="hunter2-hunter2"))  # noqa: S106 - no secret
    content = [{"type": "text", "text": "password=hunter2"}]
    conversation.hear(Party.SERVER, answer(3, {"content": content, "isError": "yes"}))
    conversation.end(Party.SERVER)
    recording.close()
    assert b"hunter2" not in file.read_bytes()
    assert main(["check", "--format", "ndjson", "--fail-on", "refuse", str(file)]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["violations"][0]["rule"], each["violations"][0]["at"], each["lacks"]) for each in found] == [
        ("contract/input", "/params/arguments/password", "secrets were redacted"),
        ("protocol/result", "/result/isError", "secrets were redacted"),
    ]
    assert [each["violations"][0]["found"] for each in found] == [
        "a different value in the original",
        'the string "yes"',
    ]


def test_findings_in_messages_that_are_left_out_count(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recording = begun(file, said)
    conversation = opened(recording)
    conversation.hear(Party.CLIENT, PING % 1)
    conversation.hear(Party.SERVER, answer(1, "x" * PAYLOAD_BYTES))
    recording.close()
    assert main(["check", "--fail-on", "refuse", str(file)]) == 1
    out = capsys.readouterr().out
    assert "result of ping #1  (a server, conversation 1)  (as the guard judged it: too large to record)" in out
    assert "1 × envelope/result" in out


@rows("findings", [None, "none", [{"rule": "of/later", "at": "", "action": "refuse"}]])
def test_a_masked_message_without_a_known_verdict_is_no_pass(
    file: Path, capsys: pytest.CaptureFixture[str], findings: object
) -> None:
    """Recordings of earlier versions have none, and those of later versions may have rules that are unknown here."""
    known = {"findings": findings} if findings is not None else {}
    plain = {"dir": "c2s", "msg": (PING % 1).decode()}
    masked = {"dir": "c2s", "msg": (PING % 2).decode(), "redacted": True, **known}
    answers = [{"dir": "s2c", "msg": (PONG % number).decode()} for number in (1, 2)]
    file.write_text("".join(json.dumps(row) + "\n" for row in (plain, masked, *answers)))
    options = ["check", "--revision", "2025-11-25", str(file)]
    for level, status in {"report": 2, "refuse": 2, "never": 0}.items():
        assert main([*options, "--fail-on", level]) == status
        assert "1 message not judged: secrets were redacted" in capsys.readouterr().err


# ── what is left of it ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_last_line_that_is_cut_off_is_reported_and_the_rest_is_judged(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recording = begun(file, said)
    pinged(opened(recording), range(1, 3))
    # As it is after SIGKILL in the middle of a write, or a copy that was cut.
    file.write_bytes(file.read_bytes()[:-20])
    assert main(["check", str(file)]) == 2
    out, errors = capsys.readouterr()
    assert "line 6 is cut off and not judged" in errors
    assert "the recording has no end: later messages are missing" in errors
    # The answer may have come after the end of the recording.
    assert "never answered" not in out


def test_a_finding_counts_more_than_a_missing_end(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = opened(begun(file, said))
    conversation.hear(Party.SERVER, b"not JSON")
    assert main(["check", str(file)]) == 1
    assert "the recording has no end: later messages are missing" in capsys.readouterr().err


def test_each_of_joined_recordings_has_an_end(
    tmp_path: Path, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        recording = begun(tmp_path / name, said)
        opened(recording).hear(Party.CLIENT, PING % 1)
        if name == "b":
            recording.close()
    (tmp_path / "both").write_bytes((tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes())
    assert main(["check", str(tmp_path / "both")]) == 2
    out, errors = capsys.readouterr()
    assert errors.count("the recording has no end") == 1
    assert "never answered" not in out


def test_a_recording_of_another_program_needs_no_end(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"dir": "c2s", "msg": (PING % 1).decode()}
    file.write_text(json.dumps(row) + "\n")
    assert main(["check", "--revision", "2025-11-25", str(file)]) == 1
    out, errors = capsys.readouterr()
    assert "never answered: ping #1" in out
    assert errors == ""


def test_a_line_that_is_wrong_before_the_end_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b'{"dir":"c2s","msg":"x"}\n{"dir":\n')
    assert main(["check", str(file)]) == 2
    assert "line 2: expected one JSON value" in capsys.readouterr().err


def test_recordings_can_be_joined(tmp_path: Path, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    joined = b""
    for name in ("a", "b"):
        recording = begun(tmp_path / name, said)
        pinged(opened(recording), range(1, 2))
        recording.close()
        joined += (tmp_path / name).read_bytes()
    (tmp_path / "both").write_bytes(joined)
    assert main(["check", str(tmp_path / "both")]) == 0
    assert "4 messages of MCP 2025-11-25: 4 ok" in capsys.readouterr().out


@rows("content", ["", "head", "close"])
def test_a_recording_without_messages_is_no_pass(
    file: Path, said: list[str], capsys: pytest.CaptureFixture[str], content: str
) -> None:
    file.unlink(missing_ok=True)
    recording = begun(file, said)
    if content == "close":
        opened(recording).end(Party.SERVER)
    recording.close()
    if not content:
        file.write_bytes(b"")
    assert main(["check", str(file)]) == 2
    assert "nothing to judge; assay guard --record FILE writes a recording" in capsys.readouterr().err


def test_a_line_that_is_too_long_is_not_read(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from assay.records.journal.reading import LONGEST_LINE

    file.write_bytes(b'{"dir":"c2s","msg":"x"}\n{')
    # Nothing of this is on the disk.
    os.truncate(file, LONGEST_LINE + 100)
    assert main(["check", str(file)]) == 2
    found = 'line 2: expected one JSON value, found the text "(a line of 134217804 bytes; at most 134217728 are read)'
    assert found in capsys.readouterr().err

"""What a guard shows to people on stderr: nothing that a peer can forge, and no secrets."""

from pathlib import Path

from guarded import call, enforcing, guarded, request, tool

SECRET = {"password": "hunter2"}
FORGED = "\x1b]0;gotcha\x07\x1b[2Kassay: all is well\r"


def test_what_a_server_prints_in_place_of_a_message_is_shown_as_such(tmp_path: Path) -> None:
    """It cannot pass for a line of the guard, nor does it do anything to a terminal, nor is it endless."""
    start = [["raw", f"{FORGED}\n"], ["raw", f"{'x' * 100_000}\n"], ["raw", "password=hunter2 token: abc\n"]]
    with enforcing(tmp_path, "--quiet", start=start) as one:
        one.open()
        one.close()
        assert one.ended() == 0
        log = one.log.rest()
    assert b"assay: the server sent: " in log[0]
    assert all(line.startswith(b"assay: the server sent: ") for line in log)
    assert max(map(len, log)) < 1100
    text = b"\n".join(log)
    assert not {b"\x1b", b"\x07", b"\r"} & {bytes([each]) for each in text}
    assert b"hunter2" not in text
    assert b"abc" not in text


def test_a_line_that_a_server_prints_again_and_again_is_counted(tmp_path: Path) -> None:
    with enforcing(tmp_path, start=[["often", 5000, "still here\n"], ["raw", "gone\n"]]) as one:
        one.open()
        one.close()
        assert one.ended() == 0
        log = [line.decode() for line in one.log.rest()]
    shown = [line for line in log if line.startswith("assay: the server sent: ")]
    assert shown == ["assay: the server sent: still here", "assay: the server sent: gone"]
    again = [line.partition(" × again: ") for line in log if "again: the server sent" in line]
    assert {each[2] for each in again} == {"the server sent: still here"}
    assert sum(int(each[0].removeprefix("assay: ").replace(",", "")) for each in again) == 4999
    assert "assay: 5,001 lines of the server's output went to stderr" in log


def test_findings_are_shown_without_secrets(tmp_path: Path) -> None:
    """By the name that a value stands under, by its looks, and by what the settings say."""
    listed = tool("login")
    listed["inputSchema"] = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in ("password", "words", "customer")},
    }
    known = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    with guarded(tmp_path, "--set", 'journal.redact=["^customer"]', tools=[listed]) as one:
        one.open()
        one.say(call(1, "login", **SECRET), call(2, "login", words=known))
        one.say(call(3, "login", customer="Ahab"), request(4, f"tools/{known}"))
        one.close()
        one.out.all()
        assert one.ended() == 0
        log = b"\n".join(one.log.rest()).decode()
    assert log.count("[contract/input]") == 3
    assert "/params/arguments/password: expected an integer, found [redacted]" in log
    for secret in ("hunter2", "ghp_0123", "Ahab"):
        assert secret not in log

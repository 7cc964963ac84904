"""The guard where the server, the client or the guard itself ends: all requests are answered, nothing stays."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from kit.command import assay_process
from kit.guard_process import INITIALIZED, Watched, call, enforcing, guarded, hurried, request, result, scripted, tool
from kit.rows import rows

LAST_WORDS = ["log", "password=hunter2hunter2\nValueError: it is gone\n"]

# ── servers that end ─────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("actions", "reason"),
    [
        ([LAST_WORDS, ["raw", '{"jsonrpc":"2.0","id":1,'], ["exit", 7]], "it exited with status 7"),
        ([LAST_WORDS, ["die"]], "it was ended by SIGKILL"),
        ([["close", "stdout"], LAST_WORDS], "it closed its output"),
    ],
    ids=["exits", "is killed", "closes its output"],
)
def test_every_open_request_gets_one_error_when_the_server_ends(
    tmp_path: Path, actions: list[Any], reason: str
) -> None:
    """With its last words, which have no secrets, and exit status 3."""
    on: dict[str, Any] = {f"#{number}": [] for number in (4, 5, 6)}
    with enforcing(tmp_path, guard=hurried(), on={**on, "#7": actions}) as one:
        one.open()
        one.say(call(1), request("two", "ping"), call(3), INITIALIZED)
        errors = [json.loads(line) for line in one.out.rest()]
        assert one.ended() == 3
        log = one.log.rest()
    assert [each["id"] for each in errors] == [1, "two", 3]
    for each in errors:
        assert each["error"]["code"] == -31011
        assert each["error"]["data"]["stderr"][1:] == ["ValueError: it is gone"]
        [violation] = each["error"]["data"]["violations"]
        shown = reason.replace("it ", "the server ", 1)
        assert (violation["rule"], violation["found"]) == ("protocol/unanswered", f"none: {shown}")
        assert each["error"]["message"].startswith(f"No answer came: {shown}: ValueError: it is gone")
        assert "hunter2" not in str(each)
    assert f"assay: the server ended first: {reason}".encode() in log


@rows("mode", ["audit", "enforce"])
def test_a_server_that_ends_at_once_is_status_3_also_if_the_client_says_nothing_more(tmp_path: Path, mode: str) -> None:
    """Whichever end is noticed first."""
    information = {"name": "client", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": information}
    said = json.dumps(request(1, "initialize", opening)) + "\n"
    done = assay_process(
        "guard", "--mode", mode, "--journal", "off", "--", sys.executable, "-c", "", said=said, cwd=tmp_path
    )
    assert done.returncode == 3
    assert b"assay: the server ended first: it exited with status 0" in done.stderr


@rows(("last", "passes"), [('{"jsonrpc":"2.0","method":"notif', False), ('{"jsonrpc":"2.0","id":2,"result":{}}', True)])
def test_what_a_server_says_until_its_end_arrives(tmp_path: Path, last: str, passes: bool) -> None:
    """A last line without a newline is one; half a message is none, and does not run into what the guard says."""
    on = {"tools/call": [["good"], ["notes", 500, 200], ["raw", last], ["exit", 0]]}
    with enforcing(tmp_path, on=on) as one:
        one.open()
        one.say(call(1), request(2, "ping"))
        answered, *notes, second = [json.loads(line) for line in one.out.rest()]
        assert one.ended() == 3
    assert answered["id"] == 1
    assert [each["params"]["data"].split()[0] for each in notes] == [str(number) for number in range(500)]
    assert second == result(2, {}) if passes else second["error"]["code"] == -31011


def test_what_the_guard_has_not_even_read_when_the_server_dies_fails_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    on = {"ping": [["await", str(tmp_path / "go")], ["exit", 1]]}
    with enforcing(tmp_path, "--quiet", on=on) as one:
        one.open()
        one.say(request("ping", "ping"), *(call(number, words="x" * 1000) for number in range(800)))
        (tmp_path / "go").write_bytes(b"")
        failed = [json.loads(line) for line in one.out.rest()]
        assert one.ended() == 3
    assert [each["id"] for each in failed] == ["ping", *range(800)]
    assert {each["error"]["code"] for each in failed} == {-31011}


# ── the end of the client, and of the guard ──────────────────────────────────────────────────────────────────────────


def test_when_the_client_sends_no_more_what_the_server_owes_still_comes(tmp_path: Path) -> None:
    """However long it takes, and whatever the server does then. A last request without a newline is one."""
    os.mkfifo(tmp_path / "go")
    end = [["await", str(tmp_path / "go")], *(["say", result(each, {"content": []})] for each in (1, 2)), ["exit", 1]]
    with enforcing(tmp_path, tools=[tool("slow")], on={"tools/call": []}, end=end) as one:
        one.open()
        one.say(call(1, "slow"), call(2, "slow"))
        one.write(b'{"jsonrpc":"2.0","id":3,"method":"ping"}')
        one.close()
        assert one.answer() == result(3, {})
        (tmp_path / "go").write_bytes(b"")
        assert [one.answer()["id"], one.answer()["id"]] == [1, 2]
        assert one.out.rest() == []
        assert one.ended() == 0


def test_a_client_that_is_gone_ends_guard_and_server(tmp_path: Path) -> None:
    """That is noticed although nothing is being said."""
    with enforcing(tmp_path, received=True, start=[["pid"]]) as one:
        server = Watched(int(one.received.next()))
        one.open()
        assert one.process.stdout is not None
        one.process.stdout.close()
        assert one.ended() == 0
        assert server.ends()


WRAPPED = ["sh", "-c", 'python="$0"; "$python" "$@"; true']


@rows(("sign", "wrapper"), [(signal.SIGTERM, []), (signal.SIGINT, WRAPPED)])
def test_a_signal_ends_guard_and_server_and_what_is_open_gets_an_answer(
    tmp_path: Path, sign: signal.Signals, wrapper: list[str]
) -> None:
    """A shell may wait for the real server: a signal for the one is one for both."""
    received = tmp_path / sign.name
    os.mkfifo(received)
    command = [*wrapper, *scripted(received=str(received), start=[["pid"]], on={"tools/call": [["tell", "called"]]})]
    with guarded(tmp_path, "--mode", "enforce", command=command) as one, received.open("rb") as lines:
        server = Watched(int(lines.readline()))
        one.open()
        one.say(call(1))
        while lines.readline() != b"called\n":
            pass
        one.process.send_signal(sign)
        failed = one.answer()
        assert (failed["id"], failed["error"]["code"]) == (1, -31011)
        assert failed["error"]["message"] == "No answer came: the guard was stopped"
        assert failed["error"]["data"]["detail"] == "the guard was stopped"
        assert "violations" not in failed["error"]["data"], "the server is not to blame"
        assert one.out.rest() == []
        assert one.ended() == 0
        assert b" 0 findings" in one.log.all()
        assert server.ends()


def test_nothing_of_a_server_that_ignores_sigterm_stays(tmp_path: Path) -> None:
    """It ignores the end of its input, too, and has started a process that does the same."""
    start = [["stubborn"], ["pid"], ["spawn"]]
    with enforcing(tmp_path, guard=hurried(), received=True, start=start, end=[["stay"]]) as one:
        processes = [Watched(int(one.received.next())) for _ in range(2)]
        one.open()
        assert all(each.is_alive() for each in processes)
        one.process.terminate()
        assert one.ended() == 0
        assert all(each.ends() for each in processes)

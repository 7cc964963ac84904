"""Ends that the relay has to see through without restarts: servers that are deaf, clients that do not read."""

import signal
from pathlib import Path

from restarting import mortal

from kit.guard_process import Watched, call, request


def test_a_deaf_server_counts_as_ended_although_the_client_says_no_more(tmp_path: Path) -> None:
    """Its answer is not waited for, although answers are waited for for ever."""
    deaf = {"on": {"#4": [["close", "stdin"], ["tell", "deaf"], ["stay"]]}}
    with mortal(tmp_path, deaf, policy="never", options=("--timeout", "0")) as one:
        one.open()
        one.say(call(1))
        while one.received.next() != b"deaf":
            pass
        one.say(request(2, "ping"))
        one.close()
        errors = [one.answer(), one.answer()]
        assert [(each["id"], each["error"]["code"]) for each in errors] == [(1, -31011), (2, -31011)]
        assert one.ended() == 3


def test_a_client_that_does_not_read_keeps_nothing_of_the_server_running_and_a_signal_is_heeded(tmp_path: Path) -> None:
    """Later the group of the server could be that of others, who would be killed in its place."""
    leaves = {"on": {"ping": [["notes", 3, 100_000], ["spawn"], ["exit", 1]]}}
    for reads in (True, False):
        with mortal(tmp_path / str(reads), leaves, policy="never") as one:
            one.open()
            one.say(request(1, "ping"))
            while not (line := one.received.next()).isdigit():
                pass
            assert Watched(int(line)).ends()
            assert one.process.poll() is None
            if reads:
                assert [one.answer()["method"] for _ in range(3)] == ["notifications/message"] * 3
                assert one.answer()["id"] == 1
                assert one.ended() == 3
            else:
                one.process.send_signal(signal.SIGTERM)
                assert one.ended() in {0, 3}

"""A recording over several lives of a server: the conversation goes on, and is judged as the guard judged it."""

import json
from pathlib import Path

import pytest
from restarting import GOOD, QUICK, dies, mortal

from assay.cli.main import main
from kit.guard_process import call, request


def test_a_recording_goes_on_with_the_next_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--record", "session.jsonl", "--journal", "journal", "--set", "journal.payloads=true")
    with mortal(tmp_path, dies(), GOOD, options=options, pause=QUICK) as guard:
        guard.open()
        guard.say(call(1, "wait"), call(2, "die"))
        assert {guard.answer()["id"], guard.answer()["id"]} == {1, 2}
        guard.reopened()
        assert "result" in guard.ask(request(3, "tools/list"))
        guard.ask(call(4, "nothing"))
        assert guard.ask(call(5))["id"] == 5
        guard.close()
        assert guard.ended() == 0
    by_file = []
    for name in ("session.jsonl", "journal"):
        main(["check", "--format", "ndjson", str(tmp_path / name)])
        out, errors = capsys.readouterr()
        assert errors == ""
        rows = [json.loads(line) for line in out.splitlines()]
        by_file.append([(row["kind"], row["tool"], row["violations"]) for row in rows])
    assert by_file[0] == by_file[1]
    assert [row[:2] for row in by_file[0]] == [("missing", "wait"), ("missing", "die"), ("request", "nothing")]

"""`assay call`: the tools of a server, the result of one, and what is wrong on the way."""

import json
import re
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from assay.cli.demonstration.demo_server import TOOLS
from kit.locking import assay_here, offer, offering
from kit.rows import rows

__all__ = ["offering"]
pytestmark = pytest.mark.usefixtures("offering")

Done = subprocess.CompletedProcess[str]


def answer(text: str = "done", **body: Any) -> str:
    """The answer to a call, as a line: a result with *text*, or another one."""
    body = body or {"result": {"content": [{"type": "text", "text": text}]}}
    return json.dumps({"jsonrpc": "2.0", "id": "ID", **body}, ensure_ascii=False).replace('"ID"', "$id")


def called(
    directory: Path, *words: str, said: str = "", on_terminal: bool = False, end: tuple[str, ...] = (), **what: Any
) -> Done:
    """Call a server that offers the tool `work`, or *what*."""
    work = {"name": "s", "tools": [{"name": "work", "inputSchema": {"type": "object"}}], **what}
    command = (*offer(directory, **work), *end)
    return assay_here(directory, "call", *words, "--", *command, said=said, on_terminal=on_terminal)


def on_call(*lines: str) -> dict[str, Any]:
    """A server that writes these lines when the tool is called."""
    return {"on": {"tools/call": lines}}


SUNNY = answer("Sunny in Oslo, 21 °C.")
DEMO: dict[str, Any] = {"name": "demo", "version": "1.0.0", "tools": TOOLS, **on_call("weather: cache is warm", SUNNY)}
OSLO = '{"city": "Oslo"}'


def test_the_list_has_the_tools_that_a_client_can_use(tmp_path: Path) -> None:
    done = called(tmp_path, **DEMO, end=("--token", "hunter2-secret"))
    assert done.returncode == 1
    assert done.stdout.startswith("demo 1.0.0, MCP 2025-11-25, 2 tools\n")
    assert "weather(city: string)\n    Return the weather in a city.\n" in done.stdout
    assert "search" not in done.stdout
    assert """weather '{"city": "…"}' -- """ in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    assert '`words` must be an object, not "string"' in " ".join(done.stderr.split())
    assert "assay call: clients may reject search; enforce mode would hide it" in done.stderr


def test_a_call_prints_the_result_and_what_is_wrong(tmp_path: Path) -> None:
    for done in (called(tmp_path, "weather", OSLO, **DEMO), called(tmp_path, **DEMO, end=("weather", OSLO))):
        assert (done.returncode, done.stdout) == (1, "Sunny in Oslo, 21 °C.\n"), "a line that is not JSON counts"
        assert 'Not JSON: "weather: cache is warm"' in " ".join(done.stderr.split())
        assert "3 findings about other tools: " in done.stderr
        assert "(tool search)" not in done.stderr


def test_a_tool_that_is_not_listed_gets_a_suggestion_where_one_is_similar(tmp_path: Path) -> None:
    unknown = {**DEMO, **on_call(answer(error={"code": -32602, "message": "unknown tool: wether"}))}
    done = called(tmp_path, "wether", **unknown)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the server lists no tool wether; did you mean weather?" in done.stderr
    assert "assay call: wether: error -32602: unknown tool: wether" in done.stderr
    done = called(tmp_path, "play", **unknown)
    assert "the server lists no tool play\n" in done.stderr


def test_an_error_of_a_guard_is_shown_with_its_reasons(tmp_path: Path) -> None:
    violation = {"at": "/result/content/0", "expected": "the property `text`", "found": "{}", "rule": "protocol/result"}
    error = {"code": -31010, "message": "refused", "data": {"violations": [violation]}}
    done = called(tmp_path, "work", **on_call(answer(error=error)))
    assert done.returncode == 1
    assert "    Missing property `text`, at /result/content/0 [protocol/result]\n" in done.stderr


def test_programs_get_one_json_object(tmp_path: Path) -> None:
    done = called(tmp_path, "--format", "json", "weather", OSLO, **DEMO)
    assert (done.returncode, done.stderr) == (1, "")
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["server"] == {"name": "demo", "version": "1.0.0"}
    assert (found["revision"], found["tool"]) == ("2025-11-25", "weather")
    assert found["result"]["content"] == [{"type": "text", "text": "Sunny in Oslo, 21 °C."}]
    assert {each["rule"] for each in found["findings"]} == {"protocol/result", "contract/schema", "syntax/json"}
    listed = json.loads(called(tmp_path, "--format", "json", **DEMO).stdout)
    assert [tool["name"] for tool in listed["tools"]] == ["weather", "report"]
    failed = called(tmp_path, "--format", "json", "nope", tools=[])
    assert (failed.returncode, json.loads(failed.stdout)["error"]["code"]) == (1, -32601)


def test_arguments_come_from_a_file_or_standard_input(tmp_path: Path) -> None:
    (tmp_path / "city.json").write_text('{"city": "Rome"}\n')
    for argument, said, city in (("@city.json", "", "Rome"), ("-", '{"city": "Bern"}', "Bern")):
        (tmp_path / "seen").unlink(missing_ok=True)
        done = called(tmp_path, "--quiet", "--fail-on", "never", "weather", argument, said=said, **DEMO, record="seen")
        assert (done.returncode, done.stdout, done.stderr) == (0, "Sunny in Oslo, 21 °C.\n", "")
        sent = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
        assert [each["params"]["arguments"] for each in sent if each["method"] == "tools/call"] == [{"city": city}]


URL = "http://127.0.0.1:1/mcp"


@rows(
    "words, reason",
    [
        ([], "name a server: assay call URL, or assay call -- COMMAND"),
        (["server.py"], "server.py: expected a URL, or a command after --"),
        (["http://localhost:1/mcp", "--", "cat"], "give only one of http://localhost:1/mcp and a command after --"),
        ([URL, "x", "{"], "ARGUMENTS: expected a JSON object"),
        ([URL, "x", "[1, 2]"], "found an array of 2 items"),
        ([URL, "x", '"a"'], 'found the string "a"'),
        ([URL, "x", "@/nowhere"], "/nowhere: No such file"),
        ([URL, "x", "{}", "y"], "expected TOOL and ARGUMENTS, found 3"),
        (["ftp://127.0.0.1/"], "begins with http:// or https://"),
        (["--header", "A: b", "--", "server"], "--header is for a server at a URL"),
        (["--header", "A", URL], "--header"),
    ],
)
def test_what_cannot_be_asked_is_one_line(tmp_path: Path, words: list[str], reason: str) -> None:
    done = assay_here(tmp_path, "call", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("assay call: ")
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


def test_progress_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    params = {"progressToken": "call", "progress": 1, "total": 3}
    progress = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    assert called(tmp_path, "--fail-on", "never", "--quiet", "work", **on_call(progress, answer())).stderr == ""
    done = called(tmp_path, "work", **on_call(progress, answer()), on_terminal=True)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr == "\r\x1b[K1/3\r\x1b[K"


def test_a_result_cannot_command_the_terminal(tmp_path: Path) -> None:
    """Nor behind a pipe: ``| head`` and ``| tee`` end in a terminal."""
    done = called(tmp_path, "work", **on_call(answer("a\tb\nc \u001b[2J\u009b\u202ed é 👨‍👩‍👧")))
    assert (done.returncode, done.stdout) == (0, "a\tb\nc ·[2J··d é 👨‍👩‍👧\n")


# ── what decides the exit status ─────────────────────────────────────────────────────────────────────────────────────

STRAY = on_call("listening", answer())


@rows("more", [(), ("--format", "json"), ("--quiet",)], ids=["text", "json", "quiet"])
@rows(
    "server, rule",
    [
        pytest.param(on_call(answer()), None, id="good"),
        pytest.param(STRAY, "syntax/json", id="a-line-that-is-not-json"),
        pytest.param(on_call(answer(), answer()), "protocol/answered-twice", id="two-answers"),
        pytest.param({**on_call(answer()), "last": ["bye"]}, "syntax/json", id="after-its-input-is-closed"),
    ],
)
def test_findings_decide_the_exit_status(
    tmp_path: Path, server: dict[str, Any], rule: str | None, more: tuple[str, ...]
) -> None:
    """Also those about messages that come after the answer."""
    done = called(tmp_path, *more, "work", **server)
    assert done.returncode == (0 if rule is None else 1)
    if "json" in more:
        found = json.loads(done.stdout)
        assert found["result"]["content"] == [{"type": "text", "text": "done"}]
        assert {each["rule"] for each in found["findings"]} == ({rule} if rule is not None else set())
    else:
        assert done.stdout == "done\n"
        assert done.stderr == "" if rule is None or more else rule in done.stderr


def test_a_list_is_judged_to_its_end_as_well(tmp_path: Path) -> None:
    done = called(tmp_path, last=["bye"])
    assert (done.returncode, "work()" in done.stdout, "syntax/json" in done.stderr) == (1, True, True)


def test_the_level_of_findings_that_count_can_be_chosen(tmp_path: Path) -> None:
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "x", "progress": 1}}
    reported = on_call(json.dumps(progress), answer())
    for server, level, status in (
        (STRAY, "report", 1),
        (STRAY, "refuse", 1),
        (STRAY, "never", 0),
        (reported, "report", 1),
        (reported, "refuse", 0),
        (reported, "never", 0),
    ):
        assert called(tmp_path, "--fail-on", level, "work", **server).returncode == status


def test_the_findings_of_a_guard_behind_the_call_count(tmp_path: Path) -> None:
    """Under enforce it has taken out what is wrong, and only its exit status shows it."""
    done = called(tmp_path, "work", **on_call(answer()), status=4)
    assert (done.returncode, done.stdout) == (1, "done\n")
    assert "the guard exited with status 4: it has findings" in done.stderr
    assert called(tmp_path, "--fail-on", "never", "work", **on_call(answer()), status=4).returncode == 0


def test_a_recording_is_written_whatever_is_found(tmp_path: Path) -> None:
    """Then `assay check` writes reports for a build, and decides."""
    record = ("--record", "talk.jsonl", "--fail-on", "never")

    def judged() -> Done:
        return assay_here(tmp_path, "check", "talk.jsonl")

    assert called(tmp_path, *record, "work", **STRAY).returncode == 0
    assert (judged().returncode, "syntax/json" in judged().stdout) == (1, True)
    # A server that ends while it is asked is in the recording, too.
    assert called(tmp_path, *record, "work", on={"tools/call": "exit"}).returncode == 0
    assert (judged().returncode, "protocol/unanswered" in judged().stdout) == (1, True)
    # A server that says nothing leaves nothing to judge.
    assert called(tmp_path, *record, on={"server/discover": "exit", "initialize": "exit"}).returncode == 2
    done = called(tmp_path, "--record", "offer.json")
    assert (done.returncode, "exists and is not a recording" in done.stderr) == (2, True)


def test_a_server_that_ends_or_does_not_answer_is_named_with_the_reason(tmp_path: Path) -> None:
    ended = called(tmp_path, "work", on={"tools/call": "exit"})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ": the server ended: it exited with status 3\n" in ended.stderr
    assert ended.stderr.endswith("    cannot go on\n")
    silent = called(tmp_path, "--timeout", "6", "work", on={"tools/call": "silence"})
    assert silent.returncode == 2
    assert ": no response to tools/call work within 6 s; --timeout SECONDS sets the limit\n" in silent.stderr


def test_slow_responses_are_shown_and_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(0, 0.05)
    monkeypatch.setattr("assay.cli.call.monotonic", lambda: next(clock))
    done = called(tmp_path, "--quiet", "--max-ms", "49", "work", **on_call(answer()))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "assay call: slow: tools/call work took 50 ms\n" in done.stderr
    assert called(tmp_path, "--quiet", "--max-ms", "600000", "work", **on_call(answer())).stderr == ""
    assert called(tmp_path, "--quiet", "--record", "talk.jsonl", "work", **on_call(answer())).returncode == 0
    talk, times = tmp_path / "talk.jsonl", count(1_795_000_000_000_000, 50_000)
    talk.write_text(re.sub(r'"time":\d+', lambda _: f'"time":{next(times)}', talk.read_text()))
    done = assay_here(tmp_path, "check", "--max-ms", "49", "talk.jsonl")
    assert done.returncode == 0
    assert "assay check: talk.jsonl: slow: tools/call work took 50 ms\n" in done.stderr
    assert assay_here(tmp_path, "check", "--max-ms", "50", "talk.jsonl").stderr == ""

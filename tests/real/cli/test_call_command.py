"""`assay call`: lists the tools of a server, calls one, and shows what is wrong on the way."""

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from assay.cli.main import main
from assay.edges.auth.challenges import denied, expired_key
from kit.command import ASSAY
from kit.places import ROOT

DEMO = [sys.executable, str(ROOT / "src" / "assay" / "cli" / "demonstration" / "demo_server.py")]


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The status, the output and the errors of a call."""
    status = main(["call", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_list_has_the_tools_that_a_client_can_use(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(capsys, "--", *DEMO)
    assert status == 1
    assert out.startswith("demo 1.0.0, MCP 2025-11-25, 2 tools\n")
    assert "weather(city: string)\n    Return the weather in a city.\n" in out
    assert "search" not in out
    assert """weather '{"city": "…"}' -- """ in out
    assert "(tool search): expected an object" in " ".join(err.split())
    assert "assay call: clients may reject search; enforce mode would hide it" in err


@pytest.mark.parametrize("last", [True, False], ids=["behind-the-command", "before-the-command"])
def test_a_call_prints_the_result_and_what_is_wrong(last: bool, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["weather", '{"city": "Oslo"}']
    status, out, err = called(capsys, *(("--", *DEMO, *words) if last else (*words, "--", *DEMO)))
    assert (status, out) == (1, "Sunny in Oslo, 21 °C.\n"), "a line that is not JSON counts"
    assert 'found the text "weather: cache is warm"' in " ".join(err.split())
    assert "3 findings about other tools: " in err
    assert "(tool search)" not in err


def test_a_call_whose_arguments_break_the_contract_is_made_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """It is how people try what a server or a guard does about it."""
    status, out, err = called(capsys, "weather", '{"city": 5}', "--", *DEMO)
    assert (status, out) == (1, "Sunny in 5, 21 °C.\n")
    assert "/params/arguments/city: expected a string, found 5" in err


def test_a_server_that_crashes_is_told_with_its_last_words(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(capsys, "report", "--", *DEMO)
    assert (status, out) == (2, "")
    assert "assay call: demo_server: the server ended: it exited with status 1\n" in err
    assert err.endswith("    RuntimeError: database is gone\n")


def test_a_tool_that_is_not_listed_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(capsys, "wether", "--", *DEMO)
    assert (status, out) == (1, "")
    assert "the server lists no tool wether; did you mean weather?" in err
    assert "assay call: wether: error -32602: unknown tool: wether" in err


def test_only_a_similar_name_is_suggested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.py"
    path.write_text(LONG_WORK.replace('"name": "work"', '"name": "echo"'))
    _, _, err = called(capsys, "search", "--", sys.executable, "-IS", str(path))
    assert "the server lists no tool search\n" in err
    assert "such as echo" not in err


def test_programs_get_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(capsys, "--format", "json", "weather", '{"city": "Oslo"}', "--", *DEMO)
    assert (status, err) == (1, "")
    found: dict[str, Any] = json.loads(out)
    assert found["server"] == {"name": "demo", "version": "1.0.0"}
    assert found["revision"] == "2025-11-25"
    assert found["tool"] == "weather"
    assert found["result"]["content"] == [{"type": "text", "text": "Sunny in Oslo, 21 °C."}]
    assert {each["rule"] for each in found["findings"]} == {"protocol/result", "contract/schema", "syntax/json"}
    status, out, _ = called(capsys, "--format", "json", "--", *DEMO)
    assert [tool["name"] for tool in json.loads(out)["tools"]] == ["weather", "report"]
    status, out, _ = called(capsys, "--format", "json", "nope", "--", *DEMO)
    assert (status, json.loads(out)["error"]["code"]) == (1, -32602)


def test_arguments_come_from_a_file_or_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "city.json"
    file.write_text('{"city": "Rome"}\n')
    quiet = ("--quiet", "--fail-on", "never")
    assert called(capsys, *quiet, "weather", f"@{file}", "--", *DEMO) == (0, "Sunny in Rome, 21 °C.\n", "")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"city": "Bern"}')))
    assert called(capsys, *quiet, "weather", "-", "--", *DEMO)[:2] == (0, "Sunny in Bern, 21 °C.\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param([], "name a server: assay call URL, or assay call -- COMMAND", id="nothing"),
        pytest.param(["server.py"], "server.py: expected a URL, or a command after --", id="no-url"),
        pytest.param(["http://127.0.0.1:1/mcp", "x", "{"], "ARGUMENTS: expected a JSON object", id="broken-json"),
        pytest.param(["http://127.0.0.1:1/mcp", "x", "[1, 2]"], "found an array of 2 items", id="array"),
        pytest.param(["http://127.0.0.1:1/mcp", "x", '"a"'], 'found the string "a"', id="string"),
        pytest.param(["http://127.0.0.1:1/mcp", "x", "5"], "found 5", id="number"),
        pytest.param(["http://127.0.0.1:1/mcp", "x", "null"], "found null", id="null"),
        pytest.param(["http://127.0.0.1:1/mcp", "x", "@/nowhere"], "/nowhere: No such file", id="no-file"),
        pytest.param(["http://127.0.0.1:1/mcp", "x", "{}", "y"], "expected TOOL and ARGUMENTS, found 3", id="too-many"),
        pytest.param(["http://127.0.0.1:1/mcp"], "cannot connect to the server: Connection refused", id="refused"),
        pytest.param(["ftp://127.0.0.1/"], "begins with http:// or https://", id="other-scheme"),
        pytest.param(["--", "/nowhere/server"], "cannot start /nowhere/server: No such file", id="no-program"),
        pytest.param(["--header", "A: b", "--", *DEMO], "--header is for a server at a URL", id="header"),
        pytest.param(["--header", "A", "http://127.0.0.1:1/mcp"], "--header", id="bad-header"),
    ],
)
def test_what_cannot_be_asked_is_one_line(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(capsys, *words)
    assert (status, out) == (2, "")
    assert err.startswith("assay call: ")
    assert err.count("\n") == 1
    assert reason in err


def test_a_wrong_option_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["call", "--formt", "json", "http://127.0.0.1:1/mcp"])
    assert "unknown option --formt; did you mean --format?" in capsys.readouterr().err


LONG_WORK = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    results = {
        "initialize": {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}
        },
        "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "done"}]},
    }
    token = message.get("params", {}).get("_meta", {}).get("progressToken")
    if token is not None:
        params = {"progressToken": token, "progress": 1, "total": 3}
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
    if ident is not None and method in results:
        print(json.dumps({"jsonrpc": "2.0", "id": ident, "result": results[method]}), flush=True)
    elif ident is not None:
        error = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": ident, "error": error}), flush=True)
"""


def test_progress_is_shown_on_a_terminal_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = tmp_path / "server.py"
    server.write_text(LONG_WORK)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    status, out, err = called(capsys, "work", "--", sys.executable, str(server))
    assert (status, out) == (0, "done\n")
    assert err == "\r\x1b[K1/3\r\x1b[K"


def test_an_error_of_a_guard_is_shown_with_its_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = tmp_path / "server.py"
    server.write_text(LONG_WORK.replace('{"type": "text", "text": "done"}', '{"type": "text"}'))
    guard = [sys.executable, "-m", "assay", "guard", "--mode", "enforce", "--journal", "off", "--quiet", "--"]
    status, out, err = called(capsys, "work", "--", *guard, sys.executable, str(server))
    assert status == 1
    assert "/result/content/0: expected the property `text`" in out + err


def test_a_result_cannot_command_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor behind a pipe: ``| head`` and ``| tee`` end in a terminal."""
    text = "a\tb\nc \\u001b[2J\\u009b\\u202ed é 👨‍👩‍👧"
    server = tmp_path / "server.py"
    server.write_text(
        LONG_WORK.replace('"text": "done"', f'"text": "{text}"'.replace("\t", "\\t").replace("\n", "\\n"))
    )
    status, out, _ = called(capsys, "work", "--", sys.executable, str(server))
    assert (status, out) == (0, "a\tb\nc ·[2J··d é 👨‍👩‍👧\n")


def test_a_command_that_is_shown_has_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = called(capsys, "--", *DEMO, "--token", "hunter2-secret")
    assert "hunter2" not in out + err
    assert "Call one: " in out


# ── what decides the exit status ─────────────────────────────────────────────────────────────────────────────────────

PRINT = '        print(json.dumps({"jsonrpc": "2.0", "id": ident, "result": results[method]}), flush=True)\n'
NOT_JSON = '        print("listening", flush=True)\n' + PRINT
TWICE = PRINT + PRINT.replace("        print", '        method == "tools/call" and print')


def server_at(directory: Path, *, instead: str = PRINT, at_the_end: str = "") -> list[str]:
    """The command of a server that answers every request, as it is or with something *instead*."""
    assert PRINT in LONG_WORK
    path = directory / "server.py"
    path.write_text(LONG_WORK.replace(PRINT, instead) + at_the_end)
    return [sys.executable, "-IS", str(path)]


@pytest.mark.parametrize("more", [(), ("--format", "json"), ("--quiet",)], ids=["text", "json", "quiet"])
@pytest.mark.parametrize(
    ("server", "rule"),
    [
        pytest.param({}, None, id="good"),
        pytest.param({"instead": NOT_JSON}, "syntax/json", id="a-line-that-is-not-json"),
        pytest.param({"instead": TWICE}, "protocol/answered-twice", id="two-answers"),
        pytest.param({"at_the_end": 'print("bye")\n'}, "syntax/json", id="after-its-input-is-closed"),
    ],
)
def test_findings_decide_the_exit_status(
    tmp_path: Path,
    server: dict[str, str],
    rule: str | None,
    more: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also those about messages that come after the answer."""
    status, out, err = called(capsys, *more, "work", "--", *server_at(tmp_path, **server))
    assert status == (0 if rule is None else 1)
    if "json" in more:
        found = json.loads(out)
        assert found["result"]["content"] == [{"type": "text", "text": "done"}]
        assert {each["rule"] for each in found["findings"]} == ({rule} if rule is not None else set())
    else:
        assert out == "done\n"
        assert err == "" if rule is None or more else rule in err


def test_a_list_is_judged_to_its_end_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(capsys, "--", *server_at(tmp_path, at_the_end='print("bye")\n'))
    assert status == 1
    assert "work()" in out
    assert "syntax/json" in err


def test_the_level_of_findings_that_count_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stray = server_at(tmp_path, instead=NOT_JSON)
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "x", "progress": 1}}
    unknown = f"        print({json.dumps(json.dumps(progress))})\n{PRINT}"
    for level, status in (("report", 1), ("refuse", 1), ("never", 0)):
        assert called(capsys, "--fail-on", level, "work", "--", *stray)[0] == status
    reported = server_at(tmp_path, instead=unknown)
    for level, status in (("report", 1), ("refuse", 0), ("never", 0)):
        assert called(capsys, "--fail-on", level, "work", "--", *reported)[0] == status


def test_the_findings_of_a_guard_behind_the_call_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under enforce it has taken out what is wrong, and only its exit status shows it."""
    guard = [*ASSAY, "guard", "--mode", "enforce", "--journal", "off", "--quiet", "--fail-on", "refuse", "--"]
    command = [*guard, *server_at(tmp_path, instead=NOT_JSON)]
    status, out, err = called(capsys, "work", "--", *command)
    assert (status, out) == (1, "done\n")
    assert "the guard exited with status 4: it has findings" in err
    assert called(capsys, "--fail-on", "never", "work", "--", *command)[0] == 0


def test_a_recording_is_written_whatever_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Then `assay check` writes reports for a build, and decides."""
    record = ("--record", str(tmp_path / "talk.jsonl"), "--fail-on", "never")
    assert called(capsys, *record, "work", "--", *server_at(tmp_path, instead=NOT_JSON))[0] == 0
    assert main(["check", str(tmp_path / "talk.jsonl")]) == 1
    assert "syntax/json" in capsys.readouterr().out
    # A server that ends while it is asked is in the recording, too.
    assert called(capsys, *record, "report", "--", *DEMO)[0] == 0
    assert main(["check", str(tmp_path / "talk.jsonl")]) == 1
    assert "protocol/unanswered" in capsys.readouterr().out
    # A server that says nothing leaves nothing to judge.
    assert called(capsys, *record, "--", sys.executable, "-c", "")[0] == 2
    status, _, err = called(capsys, "--record", str(tmp_path / "server.py"), "--", *DEMO)
    assert (status, "exists and is not a recording" in err) == (2, True)


def test_a_server_that_does_not_answer_is_named_with_the_tool_and_the_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = server_at(tmp_path, instead=PRINT.replace("        print", '        method != "tools/call" and print'))
    status, _, err = called(capsys, "--timeout", "6", "work", "--", *silent)
    assert status == 2
    assert ": no response to tools/call work within 6 s; --timeout SECONDS sets the limit\n" in err


def test_slow_responses_are_shown_and_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = PRINT.replace(
        "        print", '        method == "tools/call" and __import__("time").sleep(0.05)\n        print'
    )
    recording = tmp_path / "talk.jsonl"
    words = ("--record", str(recording), "work", "--", *server_at(tmp_path, instead=slow))
    status, out, err = called(capsys, "--quiet", "--max-ms", "49", *words)
    assert (status, out) == (0, "done\n")
    assert re.search(r"^assay call: slow: tools/call work took [\d,]+ ms$", err, re.MULTILINE)
    assert called(capsys, "--quiet", "--max-ms", "600000", *words)[2] == ""
    assert main(["check", "--max-ms", "49", str(recording)]) == 0
    err = capsys.readouterr().err
    assert re.search(rf"^assay check: {recording}: slow: tools/call work took [\d,]+ ms$", err, re.MULTILINE)
    assert main(["check", "--max-ms", "600000", str(recording)]) == 0
    assert capsys.readouterr().err == ""


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────

OPENED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
RESULTS: dict[str, Any] = {
    "initialize": OPENED,
    "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}


class TwoAnswers(BaseHTTPRequestHandler):
    """A server that answers every call twice, on one stream."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, ident = asked["method"], asked.get("id")
        answer = {"jsonrpc": "2.0", "id": ident, "result": RESULTS.get(method)}
        if method not in RESULTS:
            answer = {"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "Method not found"}}
        self.send_response(202 if ident is None else 200)
        if ident is not None:
            self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if ident is not None:
            self.wfile.write(f"data: {json.dumps(answer)}\n\n".encode() * (2 if method == "tools/call" else 1))

    def log_message(self, *_: Any) -> None:
        pass


class Expired(TwoAnswers):
    """A guard whose client has a key that is no longer valid."""

    def do_POST(self) -> None:
        refused = denied(expired_key("2026-01-31"))
        self.send_response(refused.status)
        self.send_header("WWW-Authenticate", refused.challenge.decode())
        self.end_headers()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join(60)


def test_a_second_answer_on_a_stream_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(TwoAnswers) as url:
        assert called(capsys, url)[0] == 0
        status, out, err = called(capsys, url, "work")
    assert (status, out) == (1, "done\n")
    assert "protocol/answered-twice" in err


def test_the_reason_of_a_server_that_rejects_the_token_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(Expired) as url:
        status, _, err = called(capsys, "--header", "Authorization: Bearer x", url)
    assert (status, err) == (2, f"assay call: {url}: HTTP 401: the key expired on 2026-01-31\n")

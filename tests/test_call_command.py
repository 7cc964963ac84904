"""`assay call`: lists the tools of a server, calls one, and shows what is wrong on the way."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main

DEMO = [sys.executable, str(Path(__file__).parents[1] / "src" / "assay" / "cli" / "demonstration" / "demo_server.py")]


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
    assert "assay call: no client can use search; the guard would quarantine it" in err


@pytest.mark.parametrize("last", [True, False], ids=["behind-the-command", "before-the-command"])
def test_a_call_prints_the_result_and_what_is_wrong(last: bool, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["weather", '{"city": "Oslo"}']
    status, out, err = called(capsys, *(("--", *DEMO, *words) if last else (*words, "--", *DEMO)))
    assert (status, out) == (0, "Sunny in Oslo, 21 °C.\n")
    assert 'found the text "weather: cache is warm"' in " ".join(err.split())
    assert "3 findings about other tools: " in err
    assert "(tool search)" not in err


def test_a_call_whose_arguments_break_the_contract_is_made_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """It is how people try what a server or a guard does about it."""
    status, out, err = called(capsys, "weather", '{"city": 5}', "--", *DEMO)
    assert (status, out) == (0, "Sunny in 5, 21 °C.\n")
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


def test_programs_get_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = called(capsys, "--format", "json", "weather", '{"city": "Oslo"}', "--", *DEMO)
    assert (status, err) == (0, "")
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
    assert called(capsys, "--quiet", "weather", f"@{file}", "--", *DEMO) == (0, "Sunny in Rome, 21 °C.\n", "")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"city": "Bern"}')))
    assert called(capsys, "--quiet", "weather", "-", "--", *DEMO)[:2] == (0, "Sunny in Bern, 21 °C.\n")


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

"""Names and values that peers choose: they stay text in every format, and secrets are in none of them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import main
from kit.check_formats import READERS, answer, call, outputs, parsed, recording, written
from kit.rows import rows

HOSTILE = {
    "lines": "a\nb\r\nc",
    "a workflow command": "x\n::error file=evil.py,line=1::gotcha\n##[error]x",
    "percent": "100%0A::warning::%25%",
    "the end of CDATA": "]]></failure><failure>",
    "markup": "<img src=x onerror=alert(1)> & \"quoted\" 'single'",
    "Markdown": "`code` **bold** [link](javascript:x) | cell | @octocat #1\n# heading",
    "backticks": "``` ```` `",
    "colours": "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "direction": "abc\u202edef\u2066ghi\u200f",
    "control characters": "\x00\x01\x08\x0b\x0c\x1f\x7f\x85\u2028\u2029\ufeff\ufffe\uffff",
    "emoji": "naïve 工具 👩‍💻",
    "a megabyte": "x" * (1 << 20),
    "comma and colon": "a,b:c=d::e",
    "a path": "../../etc/passwd",
    "empty": "",
}

ACTED_UPON = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

INPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": {"type": "integer"}}


def hostile_conversation(path: Path, text: str) -> str:
    """A recording with *text* as tool, argument, value, method, id, error and log line."""
    listed = {"jsonrpc": "2.0", "id": "l", "result": {"tools": [{"name": text, "inputSchema": INPUT}]}}
    faulty = {"jsonrpc": "2.0", "id": "m", "result": {"tools": [{"name": text, "inputSchema": {"type": text}}]}}
    return recording(
        path,
        {"jsonrpc": "2.0", "id": "l", "method": "tools/list"}, listed,
        call(1, {"n": text, text: text}, text), {"jsonrpc": "2.0", "id": 1, "result": {"content": text}},
        call(2, {}, f"not {text}"), answer(2),
        {"jsonrpc": "2.0", "id": text, "method": text, "params": {text: text}},
        {"jsonrpc": "2.0", "id": "m", "method": "tools/list"}, faulty,
        {"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": text}},
        {"jsonrpc": "2.0", "id": 10, "method": "resources/read", "params": {"uri": text}},
        text,
        "{" + text,
        r'{"jsonrpc":"2.0","id":11,"method":"\ud800","params":{"\udfff":1}}',
    )  # fmt: skip


@rows("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_stays_text_in_every_format(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    (tmp_path / "summary").unlink(missing_ok=True)
    monkeypatch.chdir(tmp_path)
    hostile_conversation(tmp_path / "a.jsonl", text)
    assert main(["check", "--all", *outputs(tmp_path), "a.jsonl"]) == 1
    reports = {**written(tmp_path), "summary": (tmp_path / "summary").read_text(encoding="utf-8")}
    for name, each in reports.items():
        parsed(name, each)
        assert ACTED_UPON.search(each.replace("\n", "")) is None, name
        # The page brings its scripts and styles along.
        assert len(each) < (400_000 if name == "html" else 200_000), name
    for line in reports["github"].splitlines():
        assert re.match(r"::(error|warning|notice) file=[^,:]*,(line=\d+,)?title=[a-z/-]+::", line), line
    root = parsed("junit", reports["junit"])
    assert {each.tag for each in root.iter()} <= {"testsuites", "testsuite", "testcase", "failure", "system-out"}
    assert {each.file for each in READERS["sarif"](reports["sarif"])} == {"a.jsonl"}
    assert {each["rule"] for each in parsed("json", reports["json"])["findings"]} >= {"contract/unknown-tool"}
    # Outside of code spans there is only our own text.
    for line in (reports["markdown"] + reports["summary"]).splitlines():
        assert not re.search(r"[<>@]|\]\(javascript", re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line)), line
    capsys.readouterr()


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
SECRETS: dict[str, Callable[[str], dict[str, Any]]] = {
    "hunter2hunter2": lambda text: {"password": text},
    "483920174": lambda text: {"pin": text},
    "ghp_" + "a1B2" * 9: lambda text: {"note": text},
    "sk-proj-0123456789abcdef": lambda text: {"n": f"use {text} here"},
    JWT: lambda text: {"n": text},
    "AKIAIOSFODNN7EXAMPLE": lambda text: {"n": [text]},
    "p4ssw0rd-in-a-url": lambda text: {"n": f"https://user:{text}@example.org/"},
}  # fmt: skip

TYPED = {"type": "object", "properties": {"pin": {"type": "integer"}, "password": {"type": "integer"}},
         "additionalProperties": {"type": "integer"}}  # fmt: skip


@rows("secret", SECRETS)
def test_no_secret_is_in_any_report(secret: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = SECRETS[secret](secret)
    listed = {"jsonrpc": "2.0", "id": "l", "result": {"tools": [{"name": "log", "inputSchema": TYPED}]}}
    messages = [
        {"jsonrpc": "2.0", "id": "l", "method": "tools/list"}, listed,
        call(1, arguments, "log"), {"jsonrpc": "2.0", "id": 1, "result": {"content": arguments}},
        json.dumps(call(3, {}, "log"))[:-1] + f',"id":3,"password":"{secret}"}}',
        f"log line: token={secret}",
        {"jsonrpc": "2.0", "id": 4, "method": f"token={secret}", "params": arguments},
    ]  # fmt: skip
    if "pin" not in arguments:
        # In text that is not JSON a pin cannot be distinguished from a pin of a map, as in the journal.
        messages.append(json.dumps(call(2, arguments, "log"))[:-1])
    if secret.startswith(("ghp_", "sk-", "eyJ", "AKIA")):
        # By their form alone they are secrets anywhere.
        messages += [call(5, {secret: "x"}, "log"), answer(5), call(6, {}, secret), answer(6)]
        messages.append({"jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": {"uri": f"x://{secret}"}})
    file = recording(tmp_path / "a.jsonl", *messages)
    assert secret in Path(file).read_text(encoding="utf-8")
    known = tmp_path / "known.json"
    assert main(["check", "--all", "--messages", *outputs(tmp_path), file]) == 1
    assert main(["check", "--write-baseline", str(known), file]) == 0
    texts = {**written(tmp_path), "known": known.read_text(encoding="utf-8"), "printed": capsys.readouterr().out}
    assert [name for name, text in texts.items() if secret in text] == []
    assert "[redacted]" in texts["text"]
    assert "[redacted]" in texts["sarif"]


def test_patterns_of_the_operator_are_masked_as_well(tmp_path: Path) -> None:
    file = recording(tmp_path / "a.jsonl", call(1, {"n": "project-nightingale"}), answer(1))
    main(["check", "--set", 'journal.redact=["nightingale"]', *outputs(tmp_path), file])
    assert [name for name, text in written(tmp_path).items() if "nightingale" in text] == []


@rows(
    "line",
    [
        '{"event":"stopped","why":"password=hunter2SECRET and %s"}' % ("x" * 10_000),
        "starting with password=hunter2SECRET",
    ],
)
@rows("name", ["text", "json", "html", "junit", "markdown"])
def test_what_is_said_about_a_file_has_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, name: str
) -> None:
    """A recording that stops, or a line that is no row, is quoted."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"dir":"c2s","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}\n' + line + "\n", encoding="utf-8")
    main(["check", "--revision", "2025-11-25", "--format", name, str(path)])
    said = capsys.readouterr()
    assert "password=[redacted]" in said.err
    assert "hunter2" not in said.out + said.err
    assert "x" * 300 not in said.out + said.err

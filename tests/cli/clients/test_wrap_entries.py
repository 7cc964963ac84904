"""Entries of configurations: what becomes of them behind the guard, which are left alone, and how they come back."""

import json

import pytest

from assay.cli.clients.dialect import JSON, ServerEntry, dialect_of, written
from assay.cli.clients.parsing import ConfigError, read_json
from assay.cli.clients.plan import unwrap
from assay.cli.clients.wrapping import GuardCommand, guarded, guarded_in, hesitation, objection
from assay.cli.main import parser
from kit.client_files import JSON_SAMPLES, PROGRAM, VS_CODE, behind
from kit.rows import rows


def server(entry: str) -> ServerEntry:
    """The server of a file that has only this one."""
    [found] = JSON.servers(f'{{"servers": {{"x": {entry}}}}}')
    return found


# ── single entries ───────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("entry", "wrapped"),
    [
        pytest.param('{"command":"a"}', '{"command":"A", "args": ["guard", "--", "a"]}', id="no-args"),
        pytest.param('{"command":"a","args":[]}', '{"command":"A","args":["guard", "--", "a"]}', id="empty-args"),
        ('{"args":["b"],"command":"a"}', '{"args":["guard", "--", "a", "b"],"command":"A"}'),
        ('{"command":"a","args":[ // none\n]}', '{"command":"A","args":["guard", "--", "a" // none\n]}'),
        (
            '{"command": "a", "args": ["--", "b", "--"]}',
            '{"command": "A", "args": ["guard", "--", "a", "--", "b", "--"]}',
        ),
        ('{"command": "\\u0061\\/b"}', '{"command": "A", "args": ["guard", "--", "\\u0061\\/b"]}'),
        ('{\r\n\t"command": "a" // c\r\n}', '{\r\n\t"command": "A",\r\n\t"args": ["guard", "--", "a"] // c\r\n}'),
        (
            '{"type": "streamable-http", "url": "http://a/mcp", "headers": {}, "timeout": 5}',
            '{"type": "stdio", "command": "A", "args": ["guard", "--target", "http://a/mcp"], "timeout": 5}',
        ),
        (
            '{"headers": {"X": "\\"b\\"", "Y": ""}, "url": "${input}"}',
            '{"args": ["guard", "--target", "${input}", "--header", "X: \\"b\\"", "--header", "Y: "], "command": "A"}',
        ),
        (
            '{"url": "http://a/mcp",\n "headers": {\n  "X": "a"}}',
            '{"command": "A",\n "args": [\n  "guard",\n  "--target", "http://a/mcp",\n  "--header", "X: a"]}',
        ),
    ],
)
def test_an_entry_goes_behind_the_guard_and_comes_back(entry: str, wrapped: str) -> None:
    assert guarded(server(entry), GuardCommand('"A"')) == wrapped
    there = '{"mcpServers": {"x": ENTRY}}'.replace("ENTRY", wrapped.replace('"A"', written(PROGRAM)))
    back = '{"mcpServers": {"x": ENTRY}}'.replace("ENTRY", entry)
    assert unwrap(there, back).after == back


@rows(
    ("entry", "why"),
    [
        ('"npx"', "it is not an object"),
        ('{"type": "sse", "url": "http://a/mcp"}', "HTTP+SSE"),
        ('{"url": "http://a/v1/sse/"}', "HTTP+SSE"),
        ('{"command": "a", "url": "http://a"}', "both"),
        ('{"serverUrl": "http://a", "httpUrl": "http://b"}', "more than one url"),
        ("{}", "neither"),
        ('{"type": "http", "command": "a"}', "type"),
        ('{"type": "stdio", "url": "http://a"}', "type"),
        ('{"type": 1, "command": "a"}', "type"),
        ('{"command": ["a", "b"]}', "its command is not a string"),
        ('{"command": ""}', "its command is not a string"),
        ('{"command": "a", "args": "b"}', "its args"),
        ('{"command": "a", "args": ["b", 1]}', "its args"),
        ('{"url": "http://a", "args": []}', "its args"),
        ('{"command": "node", "dev": {"debug": {"type": "node"}}}', "dev.debug"),
        ('{"url": "unix:///tmp/a"}', "its url is neither"),
        ('{"url": "--listen"}', "its url is neither"),
        ('{"url": "http://a", "headers": {"X": 1}}', "its headers"),
        ('{"url": "http://a", "headers": {"X": "a\\nb"}}', "its headers"),
        ('{"url": "http://a", "headers": {"X:Y": "a"}}', "its headers"),
        ('{"url": "http://a", "headers": {"-X": "a"}}', "its headers"),
        ('{"url": "http://a", "headers": {"X": "env:PATH"}}', "its headers"),
        ('{"url": "http://a", "headers": {"X": "Bearer env:PATH "}}', "its headers"),
        ('{"url": "http://a", "oauth": {"clientId": "x"}}', "signs in"),
        ('{"url": "http://a", "headersHelper": "./sign-in"}', "signs in"),
        ('{"httpUrl": "http://a", "authProviderType": "google_credentials"}', "signs in"),
    ],
)
def test_what_cannot_run_behind_the_guard_is_left_alone(entry: str, why: str) -> None:
    text = f'{{"servers": {{"x": {entry}, "y": {{"command": "b"}}}}}}'
    assert why in str(objection(server(entry)))
    plan = behind(text, (), None)
    assert [left.server.name for left in plan.left] == ["x"]
    assert [change.server.name for change in plan.changes] == ["y"]
    with pytest.raises(ConfigError, match=r"^x: "):
        behind(text, ["x"], None)


@rows(
    ("entry", "why"),
    [
        ('{"command": "a", "disabled": true}', "disabled"),
        ('{"command": "a", "enabled": false}', "disabled"),
        ('{"url": "https://a/mcp"}', "sign in"),
        ('{"serverUrl": "http://10.0.0.1/mcp"}', "sign in"),
        ('{"url": "${input:url}"}', "sign in"),
    ],
)
def test_some_entries_go_behind_the_guard_only_by_name(entry: str, why: str) -> None:
    text = f'{{"servers": {{"x": {entry}, "y": {{"command": "b"}}}}}}'
    assert why in str(hesitation(server(entry)))
    plan = behind(text)
    assert [change.server.name for change in plan.changes] == ["y"]
    assert plan.left[0].note.endswith("; --server x puts it behind the guard anyway")
    named = behind(text, ["x"])
    assert [change.server.name for change in named.changes] == ["x"]
    assert unwrap(named.after, text).after == text
    assert not behind(named.after, (), "enforce").left


# ── those that are there already ─────────────────────────────────────────────────────────────────────────────────────


def config(**entries: object) -> str:
    return json.dumps({"mcpServers": entries})


def args_of(text: str, name: str = "x") -> list[str]:
    args: list[str] = json.loads(text)["mcpServers"][name]["args"]
    return args


@rows(
    ("args", "mode", "now"),
    [
        (["guard", "--", "a"], "enforce", ["guard", "--name", "x", "--mode", "enforce", "--", "a"]),
        (["guard", "--mode", "audit", "--", "a"], "enforce", ["guard", "--name", "x", "--mode", "enforce", "--", "a"]),
        (["guard", "--mode=audit", "--", "a"], "enforce", ["guard", "--name", "x", "--mode=enforce", "--", "a"]),
        (["guard", "--name", "y", "--", "a"], "audit", ["guard", "--name", "y", "--mode", "audit", "--", "a"]),
        (
            ["guard", "--timeout", "3", "--", "a"],
            "audit",
            ["guard", "--name", "x", "--mode", "audit", "--timeout", "3", "--", "a"],
        ),
        (
            ["guard", "--target", "http://a"],
            "audit",
            ["guard", "--name", "x", "--mode", "audit", "--target", "http://a"],
        ),
        (
            ["guard", "--target=http://a", "--timeout", "3", "--header=A: b"],
            "audit",
            ["guard", "--name", "x", "--mode", "audit", "--timeout", "3", "--target", "http://a", "--header", "A: b"],
        ),
        (["guard", "--name", "x", "--mode", "enforce", "--", "a"], None, None),
        (["guard", "--", "a"], None, ["guard", "--name", "x", "--", "a"]),
        (["guard", "--config", "x.json"], "enforce", None),
        (["guard"], "enforce", None),
        (["guard", "--"], "enforce", None),
    ],
)
def test_another_mode_is_taken_over(args: list[str], mode: str | None, now: list[str] | None) -> None:
    text = config(x={"command": "assay", "args": args, "env": {"A": "b"}})
    plan = behind(text, (), mode)
    assert args_of(plan.after) == (now or args)
    assert bool(plan.changes) == (now is not None)
    assert json.loads(plan.after)["mcpServers"]["x"]["command"] == "assay"


@rows(
    ("options", "now"),
    [
        ([], ["--set", "journal.payloads=true"]),
        (["--set", "journal.payloads=false"], ["--set", "journal.payloads=true"]),
        (["--set=journal.payloads=false"], ["--set=journal.payloads=true"]),
        (["--set", "journal.payloads = no"], ["--set", "journal.payloads=true"]),
        (
            ["--set", "journal.payloads=true", "--set", "journal.payloads=false"],
            ["--set", "journal.payloads=true", "--set", "journal.payloads=true"],
        ),
        (["--set", "limits.depth=9"], ["--set", "journal.payloads=true", "--set", "limits.depth=9"]),
        (["--set", "journal.payloads=true", "--quiet"], ["--set", "journal.payloads=true", "--quiet"]),
    ],
)
def test_one_setting_is_changed_and_others_stay(options: list[str], now: list[str]) -> None:
    """The last value counts, as in the guard."""
    for server in (["--", "a"], ["--target", "http://a"]):
        text = config(x={"command": "assay", "args": ["guard", "--name", "x", *options, *server]})
        assert args_of(behind(text, payloads=True).after) == ["guard", "--name", "x", *now, *server]


def test_a_guard_of_an_earlier_version_comes_out_and_is_given_a_name() -> None:
    """It had no name; all else is as it is written today."""
    for sample in JSON_SAMPLES:
        dialect = dialect_of(sample.path)
        earlier = sample.after
        for server in dialect.servers(sample.after):
            earlier = earlier.replace(f'"guard", "--name", "{server.name}"', '"guard"')
        assert earlier != sample.after
        back = unwrap(earlier, sample.before, dialect=dialect)
        assert back.after == sample.before
        assert {change.outcome for change in back.changes} == {"restored"}
        assert behind(earlier, dialect=dialect).after == sample.after


@rows(
    ("name", "given"),
    [
        ("a b", ["--name", "a b"]),
        ("-x", ["--name", "x"]),
        ("--", ["--name", "server"]),
        ("", ["--name", "server"]),
        ("a\nb", ["--name", "ab"]),
        ("n" * 65, ["--name", "n" * 64]),
    ],
)
def test_the_guard_is_given_the_name_of_the_entry(name: str, given: list[str]) -> None:
    text = json.dumps({"mcpServers": {name: {"command": "a"}}})
    after = behind(text).after
    assert args_of(after, name) == ["guard", *given, "--", "a"]
    assert parser().parse_args(args_of(after, name)).name == given[-1]
    assert unwrap(after, text).after == text
    assert not behind(after).changes


@rows(
    ("command", "args"),
    [
        ("uvx", ["--from", "mcp-assay", "assay", "guard", "--", "npx", "x"]),
        ("/usr/bin/python3", ["-m", "assay", "guard", "--", "npx", "x"]),
        ("assay", ["guard", "--config", "x.json"]),
    ],
)
def test_a_guard_that_was_put_there_in_another_way_stays(command: str, args: list[str]) -> None:
    text = config(x={"command": command, "args": args})
    plan = behind(text, ["x"], "enforce")
    assert not plan.changes
    assert "cannot check" in plan.left[0].note
    assert "by hand" in unwrap(text, None).left[0].note
    with pytest.raises(ConfigError, match="by hand"):
        unwrap(text, None, ["x"])


@rows(
    "entry",
    [
        {"command": "assay", "args": ["serve"]},
        {"command": "assay"},
        {"command": "myassay", "args": ["guard", "--", "a"]},
        {"command": "npx", "args": ["guard"]},
        {"command": 1, "args": ["guard"]},
        {"url": "http://assay", "args": ["assay", "guard"]},
        {"command": "assay", "args": ["guard", 1]},
        {"command": "assay", "args": ["guard", "--target", "http://a", "--target", "http://b"]},
        {"command": "assay", "args": ["guard", "--target", "http://a", "--header", "A: 1", "--header", "A: 2"]},
        ["assay", "guard"],
    ],
)
def test_what_only_looks_like_the_guard_is_not(entry: object) -> None:
    assert guarded_in(server(json.dumps(entry))) is None


# ── coming back ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_client_may_write_the_file_anew() -> None:
    """Claude Desktop and others do, in a layout of their own. What is not in JSON is gone; what is, comes back."""
    wrapped = json.dumps(read_json(VS_CODE.after.removeprefix("\ufeff")).root.plain, indent=2)
    plan = unwrap(wrapped, VS_CODE.before)
    assert read_json(plan.after).root.plain == read_json(VS_CODE.before).root.plain
    github = next(change for change in plan.changes if change.server.name == "github")
    assert github.outcome == "restored"
    assert "// not sse" in github.text


@rows(
    ("text", "bare"),
    [
        ('{"args": ["guard", "--target", "http://a"], "command": "assay", "x": 1}', {"url": "http://a", "x": 1}),
        ('{"x": 1, "args": ["guard", "--target", "http://a"], "command": "assay"}', {"url": "http://a", "x": 1}),
        (
            '{"type": "stdio", "command": "assay", "args": ["guard", "--target=http://a",],}',
            {"type": "http", "url": "http://a"},
        ),
        (
            '{"command": "assay", "args": ["guard", "--header", "A:b", "--target", "http://a", "--header=C: d: e"]}',
            {"url": "http://a", "headers": {"A": "b", "C": "d: e"}},
        ),
        (
            '{"command": "assay", "args": ["guard", "--target", "http://a", "--header", "A: \\ud800"]}',
            {"url": "http://a", "headers": {"A": "\ud800"}},
        ),
    ],
)
def test_a_guard_at_a_url_that_was_written_by_hand_comes_out(text: str, bare: object) -> None:
    plan = unwrap(f'{{"servers": {{"x": {text}}}}}', None)
    assert read_json(plan.after).root.plain == {"servers": {"x": bare}}
    plan.after.encode()


@rows("backup", ["", "[]", "{}", '{"mcpServers": {"x": 1}}', '{"mcpServers": {"x": {"url": "http://b"}}}'])
def test_a_backup_of_something_else_is_not_believed(backup: str) -> None:
    text = config(x={"command": "assay", "args": ["guard", "--", "a", "b"]})
    assert json.loads(unwrap(text, backup).after) == {"mcpServers": {"x": {"command": "a", "args": ["b"]}}}

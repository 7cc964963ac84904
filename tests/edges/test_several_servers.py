"""Several servers under one address: what the configuration of a client says of each."""

import json
from typing import Any

from assay.cli.clients.dialect import dialect_of
from assay.cli.clients.hosting import entries
from assay.cli.guard_plan import is_client_file
from assay.guard.hosted_server import HostedEntry, environment
from kit.rows import rows

# ── what a file says ─────────────────────────────────────────────────────────────────────────────────────────────────

ENVIRON = {"TOKEN": "t0p", "HOME": "/home/me", "EMPTY": ""}


def only(entry: dict[str, Any], section: str = "mcpServers") -> HostedEntry:
    """What is read from a file with this one entry."""
    [found] = entries(json.dumps({section: {"a": entry}}), ENVIRON, "/there")
    return found


@rows(
    ("entry", "expected"),
    [
        ({"command": "npx", "args": ["-y", "server"]}, HostedEntry("a", ("npx", "-y", "server"))),
        ({"command": "x", "cwd": "${workspaceFolder}/b"}, HostedEntry("a", ("x",), cwd="/there/b")),
        (
            {"command": "x", "env": {"K": "${TOKEN}", "N": 3, "T": True}},
            HostedEntry("a", ("x",), env={"K": "t0p", "N": "3", "T": "true"}),
        ),
        ({"command": "${userHome}/bin/x", "args": ["${env:TOKEN}"]}, HostedEntry("a", ("/home/me/bin/x", "t0p"))),
        ({"command": "x", "args": ["${NONE:-7}", "${EMPTY:-8}", "$5", "${}:-"]}, None),
        (
            {"url": "https://h/${TOKEN}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            HostedEntry("a", url="https://h/t0p", headers=(("Authorization", "Bearer t0p"),)),
        ),
        ({"type": "http", "url": "http://h/"}, HostedEntry("a", url="http://h/")),
        (
            {"command": "/usr/bin/assay", "args": ["guard", "--mode", "enforce", "--", "x", "y"]},
            HostedEntry("a", ("x", "y")),
        ),
        (
            {"command": "assay", "args": ["guard", "--target", "http://h/", "--header", "A: b"]},
            HostedEntry("a", url="http://h/", headers=(("A", "b"),)),
        ),
    ],
)
def test_an_entry_is_read(entry: dict[str, Any], expected: HostedEntry | None) -> None:
    for section in ("mcpServers", "servers"):
        found = only(entry, section)
        if expected is None:
            assert found.trouble == "the variable  is not set"
        else:
            assert found == expected


@rows(
    ("entry", "why"),
    [
        ({"command": "x", "args": ["${NOWHERE}"]}, "the variable NOWHERE is not set"),
        ({"command": "x", "env": {"K": "${input:key}"}}, "it needs an input"),
        ({"command": "x", "disabled": True}, "it is disabled"),
        ({"url": "http://h/sse"}, "HTTP+SSE"),
        ({"command": "x", "env": ["K=V"]}, "its env must be an object of strings"),
        ({"command": "x", "cwd": 5}, "its cwd must be a string"),
        ({}, "neither a command nor a url"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_of_that_one(entry: dict[str, Any], why: str) -> None:
    text = json.dumps({"mcpServers": {"bad": entry, "good": {"command": "x"}}})
    bad, fine = entries(text, ENVIRON, "/there")
    assert why in bad.trouble
    assert fine == HostedEntry("good", ("x",))


def test_comments_are_read_over_and_a_name_counts_once() -> None:
    text = '{/* mine */ "servers": {"a": {"command": "x"},}, "mcpServers": {"a": {"command": "y"}}}'
    assert entries(text, {}, "/") == [HostedEntry("a", ("x",))]


def test_servers_of_another_project_are_not_hosted() -> None:
    def project(command: str) -> dict[str, Any]:
        return {"mcpServers": {command: {"command": command}}}

    text = json.dumps({"projects": {"/there": project("a"), "/other": project("b")}, **project("c")})
    assert [entry.name for entry in entries(text, ENVIRON, "/there")] == ["a", "c"]


@rows(
    ("path", "text", "expected"),
    [
        (
            "windsurf/mcp_config.json",
            '{"mcpServers": {"a": {"serverUrl": "http://h/mcp", "headers": {"K": "v"}}}}',
            HostedEntry("a", url="http://h/mcp", headers=(("K", "v"),)),
        ),
        (".gemini/settings.json", '{"mcpServers": {"a": {"httpUrl": "http://h"}}}', HostedEntry("a", url="http://h")),
        ("zed/settings.json", '{"context_servers": {"a": {"command": "x"}}}', HostedEntry("a", ("x",))),
        (
            ".codex/config.toml",
            '[mcp_servers.a]\ncommand = "x"\nargs = ["y"]\nenv_vars = ["TOKEN", "NOT"]\n[mcp_servers.a.env]\nB = "c"',
            HostedEntry("a", ("x", "y"), env={"TOKEN": "t0ken", "B": "c"}),
        ),
        (
            ".codex/config.toml",
            '[mcp_servers]\na = { url = "http://h", bearer_token_env_var = "TOKEN", http_headers = { K = "v" } }',
            HostedEntry("a", url="http://h", headers=(("K", "v"), ("Authorization", "Bearer t0ken"))),
        ),
    ],
)
def test_files_of_other_clients_are_read(path: str, text: str, expected: HostedEntry) -> None:
    assert is_client_file(path)
    assert entries(text, {"TOKEN": "t0ken"}, "/there", dialect_of(path)) == [expected]


# ── the variables of a server ────────────────────────────────────────────────────────────────────────────────────────


@rows("windows", [False, True])
def test_what_a_shell_would_run_and_what_is_ours_is_not_handed_on(windows: bool) -> None:
    given = {"PATH": "p", "HOME": "() { :;}", "SYSTEMROOT": "r", "ASSAY_X": "1", "X": "2", "LC_ALL": "C"}
    assert environment(given, ["*"], {}, windows=False).keys() == given.keys() - {"HOME", "ASSAY_X"}
    found = environment(given, ["ASSAY_*"], {"X": "3"}, windows=windows)
    assert found == {"PATH": "p", "LC_ALL": "C", "X": "3", **({"SYSTEMROOT": "r"} if windows else {})}

"""Who may use a guard over HTTP, and how much of it; which headers, secrets and documents pass between both sides."""

import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from assay.edges.http.http_server import BODY_BYTES
from assay.spec.revisions import LATEST
from kit.command import assay_text
from kit.http_client import (
    SECONDS,
    Service,
    Wire,
    call,
    frame_of,
    head,
    modern,
    request,
)
from kit.rows import rows
from kit.scripted_http import (
    REVISION,
    ScriptedServer,
    guarding,
    result,
    scripted,
    with_keys,
)

CALL = call(7, "search", {"words": "sea"})
LISTING = request(1, "tools/list", {}, LATEST)
PING = request(1, "ping")


# ── principals ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_guard_with_keys_keeps_tokens_to_itself_and_sessions_apart(tmp_path: Path) -> None:
    """To the server all clients are the same; under audit, too, no client gets into the session of another."""
    file, tokens = with_keys(tmp_path)
    with scripted() as server, guarding(tmp_path, server.url, "--config", file) as guard:
        for wrong in ({}, {"authorization": "Bearer wrong"}):
            assert guard.post(LISTING, {**modern(LISTING), **wrong}).status == 401
        assert server.seen == []
        hers = guard.session(REVISION, **tokens["alice"])
        assert {each.header("authorization") for each in server.seen} == {None}
        his = {**hers, **tokens["bob"]}
        unknown = {**his, "mcp-session-id": "opened-before"}
        before = len(server.seen)
        for headers in (his, unknown, {**his, "mcp-session-id": f" {hers['mcp-session-id']!s}\t"}):
            statuses = [guard.post(PING, headers).status]
            statuses += [guard.ask(method, headers=headers).status for method in ("GET", "DELETE")]
            assert statuses == [404, 404, 404]
        assert len(server.seen) == before
        assert guard.post(PING, hers).status == 200
        server.script = lambda _, peer: peer.head(307, location="http://127.0.0.1:9/", content_length="0")
        assert guard.post(CALL, hers).header("location") is None


def test_unfinished_bodies_of_one_principal_cut_off_no_other(tmp_path: Path) -> None:
    """The other one began first, and holds least."""
    file, tokens = with_keys(tmp_path)
    frame, piece = frame_of(LISTING), 15 << 20

    def begun(length: int, sent: bytes, token: dict[str, str]) -> Wire:
        wire = guard.open()
        wire.send(head("POST", "/mcp", {"host": wire.name, "content-length": str(length), **modern(LISTING, **token)}))
        with suppress(ConnectionError):
            wire.send(sent)
        return wire

    with scripted() as server, guarding(tmp_path, server.url, "--config", file) as guard:
        alice = begun(len(frame), frame[:20], tokens["alice"])
        bobs = [begun(piece + 1, b" " * piece, tokens["bob"]) for _ in range(BODY_BYTES // piece + 1)]
        cut, _, _ = select.select([each.socket for each in bobs], [], [], SECONDS)
        assert cut, "one of his connections ends"
        alice.send(frame[20:])
        assert alice.answer().status == 200


# ── heads, headers and secrets ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def enforcing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, ScriptedServer]]:
    """A guard in front of a server, each with secrets of the operator, and headers that go on."""
    own = ("--header", "Authorization: env:TOKEN", "--header", "x-team:  blue ")
    listed = ("--set", "http.forward_headers=X-Tenant", "--set", "http.forward_response_headers=x-quota")
    directory, env = tmp_path_factory.mktemp("guard"), {"TOKEN": "Bearer operator"}
    with (
        scripted() as server,
        guarding(directory, f"{server.url}?key=hunter2", "--mode", "enforce", *own, *listed, env=env) as guard,
    ):
        yield guard, server


def test_headers_of_the_operator_win_and_no_secret_is_shown(enforcing: tuple[Service, ScriptedServer]) -> None:
    guard, server = enforcing
    server.forget()
    message = call(1, "search", {"words": "sea"}, LATEST)
    value = {"content": [], "structuredContent": {"found": 1}, "resultType": "complete"}
    server.script = lambda _, peer: peer.json(result(message, value), x_quota="5", x_other="6")
    given = modern(message, authorization="Bearer client", x_team="red", x_tenant="a", x_other="b", x_figma_api_key="c")
    answer = guard.post(message, given)
    received = server.next("tools/call")
    assert received.path == "/mcp?key=hunter2"
    names = ("authorization", "x-team", "x-tenant", "x-other", "x-figma-api-key")
    assert [received.header(name) for name in names] == ["Bearer operator", "blue", "a", None, "c"]
    assert (answer.header("x-quota"), answer.header("x-other")) == ("5", None)
    log = guard.log.until(lambda log: "the header X-Other of clients is not forwarded" in log)
    assert f"assay: guarding {server.url.split('/')[2]} (enforce), no journal, at http://127.0.0.1:" in log
    assert "operator" not in log
    assert "hunter2" not in log


# ── what an operator can get wrong ───────────────────────────────────────────────────────────────────────────────────

HERE = ("--listen", "127.0.0.1:0")
AT_A = ("--target", "http://a/")


# A process would end here, and its socket with it.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@rows(
    ("options", "why"),
    [
        ((), "assay guard: give a COMMAND, --target URL or --config FILE.json\n"),
        (("--target", "ftp://a/", *HERE), "--target ftp://a/: expected http://"),
        (("--target", "http://u:hunter2@a/", *HERE), "a password in a URL"),
        (("--target", "http://me:hunter/2@127.0.0.1:9/mcp", *HERE), "--target"),
        ((*HERE, "--", "./nowhere"), "cannot start ./nowhere: No such file or directory"),
        ((*AT_A, "--listen", "nowhere"), "--listen nowhere: expected HOST:PORT"),
        ((*AT_A, "--listen", "0.0.0.0:0"), "0.0.0.0 is reachable from other machines and [auth] is not configured"),
        ((*HERE, "--header", "a: b", "--", "server"), "assay guard: --header needs --target URL\n"),
        (("--config", "mcp.json"), "--config mcp.json needs --listen ADDRESS"),
        (("--config", "a.toml", "--config", "b.toml", "--", "server"), "give only one file of settings"),
        ((*AT_A, *HERE, "--header", "a: b\nc: d"), "characters that are invalid in a header"),
        (("--config", "broken.json", *HERE), "not valid JSON"),
        (("--config", "other.json", *HERE), "no servers"),
        (("--config", "empty.json", *HERE), "no servers in it"),
        (("--config", "absent.json", *HERE), "No such file"),
        (("--listen", "{taken}", "--", "cat"), "Address already in use; use another port, or --listen 127.0.0.1:0"),
        (("serve", "--http", "{taken}"), "Address already in use; use another port, or --http 127.0.0.1:0"),
    ],
)
def test_what_is_configured_wrongly_is_refused_with_the_reason_and_without_secrets(
    tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    for name, text in (("broken", "{"), ("other", "{}"), ("empty", '{"mcpServers": {}}')):
        (tmp_path / f"{name}.json").write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = options if options[:1] == ("serve",) else ("guard", *options)
        done = assay_text(*(each.replace("{taken}", address) for each in line), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr
    assert "hunter" not in done.stderr

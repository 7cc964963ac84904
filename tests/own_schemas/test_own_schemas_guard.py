"""The guard as a process, over STDIO and over HTTP, with an extension of the settings and with a draft revision."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from guarded import Guarded, guarded, liar, notification, request, result
from http_client import BOTH, Answer, Service, modern, started
from own_documents import (
    IDENTIFIER,
    NAME,
    OPENED,
    SETTINGS,
    draft_document,
    extension_document,
    meta,
    opened_document,
    written,
)

from assay.settings.added_schemas import keep
from assay.spec.revisions import LATEST, REVISIONS
from kit.command import ASSAY, assay_text

DECLARED: dict[str, Any] = {"extensions": {IDENTIFIER: {}}}
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {**DECLARED, "tools": {}},
    "serverInfo": {"name": "liar", "version": "1"},
}
"""The server's answer to `initialize`."""
OPENING = {"protocolVersion": "2025-11-25", "capabilities": DECLARED, "clientInfo": {"name": "a", "version": "1"}}

ON = {
    "initialize": [["result", HANDSHAKE]],
    "x/run": [["result", {"ran": 1}]],
    "x/run:bad": [["result", {"ran": "all"}]],
    "x/run:done": [
        ["say", notification("notifications/x/done", {"ran": 1})],
        ["say", notification("notifications/x/done", {"ran": "all"})],
        ["result", {"ran": 1}],
    ],
}


def run(ident: Any, **params: Any) -> dict[str, Any]:
    return request(ident, "x/run", {"job": {"steps": 1}, **params})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    written(tmp_path / "x.schema.json", extension_document())
    (tmp_path / "mine.toml").write_text(SETTINGS)
    return tmp_path


# ── an extension ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_over_stdio_good_messages_pass_and_bad_ones_are_stopped(place: Path) -> None:
    with guarded(place, "--mode", "enforce", "--config", "mine.toml", on=ON, received=True) as one:
        one.open(listing=False, **DECLARED)
        assert one.ask(run(1)) == result(1, {"ran": 1})
        refused = one.ask(run(2, job={"steps": 0}))
        assert refused["error"]["code"] == -32602
        [wrong] = refused["error"]["data"]["violations"]
        assert (wrong["rule"], wrong["at"]) == ("protocol/params", "/params/job/steps")
        assert wrong["source"] == f"{IDENTIFIER}, schema: RunParams"
        assert "error" in one.ask(run(3, name="bad"))
        one.say(run(4, name="done"))
        assert one.answer() == notification("notifications/x/done", {"ran": 1})
        assert one.answer() == result(4, {"ran": 1}), "the notification with bad params is dropped"
        _finish(one)


def test_under_audit_every_message_passes(place: Path) -> None:
    with guarded(place, "--config", "mine.toml", on=ON) as one:
        one.open(listing=False, **DECLARED)
        assert one.ask(run(2, job={"steps": 0})) == result(2, {"ran": 1})
        assert one.ask(run(3, name="bad")) == result(3, {"ran": "all"})
        _finish(one)


def _finish(one: Guarded) -> None:
    one.close()
    assert one.ended() == 0


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ('"RunParams"', '"RunParms"', ": x/run: x.schema.json has no definition 'RunParms'; did you mean RunParams?"),
        ("x.schema.json", "gone.json", ".schema: gone.json: No such file or directory"),
    ],
)
def test_an_unknown_definition_stops_the_guard_before_the_server_starts(
    place: Path, before: str, after: str, line: str
) -> None:
    (place / "mine.toml").write_text(SETTINGS.replace(before, after))
    server = ("--", "touch", "started")
    for way in ((), ("--listen", "127.0.0.1:0")):
        done = assay_text("guard", "--config", "mine.toml", *way, *server, cwd=place)
        assert done.returncode == 2
        assert f"assay: extensions.{IDENTIFIER}{line}" in done.stderr.splitlines()
    assert not (place / "started").exists()


def test_a_settings_file_of_a_stranger_configures_nothing(place: Path) -> None:
    (place / "assay.toml").write_text(SETTINGS)
    with guarded(place, "--mode", "enforce", on=ON) as one:
        one.open(listing=False, **DECLARED)
        assert one.ask(run(2, job={"steps": 0})) == result(2, {"ran": 1}), "an extension that is not known passes"
        _finish(one)
        assert any(b'[extensions."' in line and b"ignored: this assay.toml" in line for line in one.log.rest())


def test_a_recording_is_judged_again_by_the_same_extension(place: Path) -> None:
    with guarded(place, "--config", "mine.toml", "--record", "talk.jsonl", on=ON) as one:
        one.open(listing=False, **DECLARED)
        one.ask(run(2, job={"steps": 0}))
        _finish(one)
    done = assay_text("check", "talk.jsonl", "--config", "mine.toml", "--format", "ndjson", cwd=place)
    assert f"{IDENTIFIER}, schema: RunParams" in done.stdout


@contextmanager
def serving(place: Path, *options: str, **script: Any) -> Iterator[Service]:
    """A guard over HTTP in front of a lying server."""
    line = [*ASSAY, "guard", "--listen", "127.0.0.1:0", *options, "--", *liar(**script)]
    with started(line, place, "assay: guarding ") as service:
        yield service


def test_over_http_good_messages_pass_and_bad_ones_are_stopped(place: Path) -> None:
    with serving(place, "--mode", "enforce", "--config", "mine.toml", on=ON) as service:
        opened = service.post(request(0, "initialize", OPENING), BOTH)
        headers = {**BOTH, "mcp-session-id": opened.header("mcp-session-id") or ""}
        service.post(notification("notifications/initialized"), headers)
        assert _message(service.post(run(1), headers)) == result(1, {"ran": 1})
        refused = _message(service.post(run(2, job={"steps": 0}), headers))
        assert refused["error"]["data"]["violations"][0]["source"] == f"{IDENTIFIER}, schema: RunParams"
        assert "error" in _message(service.post(run(3, name="bad"), headers))


def test_over_http_without_a_session_messages_are_judged_alike(place: Path) -> None:
    on = {"x/run": [["result", {"resultType": "complete", "ran": 1}]]}
    with serving(place, "--mode", "enforce", "--config", "mine.toml", on=on) as service:
        message = run(1, _meta=meta(LATEST, **DECLARED))
        found = service.post(message, modern(message))
        assert (found.status, _message(found)["result"]["ran"]) == (200, 1)
        message = run(2, job={"steps": 0}, _meta=meta(LATEST, **DECLARED))
        refused = service.post(message, modern(message))
        assert refused.error()["data"]["violations"][0]["source"] == f"{IDENTIFIER}, schema: RunParams"


def _message(answer: Answer) -> Any:
    """The one message of an answer, which may be a stream."""
    if (answer.header("content-type") or "").startswith("text/event-stream"):
        data = [line.removeprefix(b"data: ") for line in answer.body.split(b"\n") if line.startswith(b"data: {")]
        return json.loads(data[-1])
    return answer.json()


# ── a draft revision ─────────────────────────────────────────────────────────────────────────────────────────────────

PREVIEW = {"tools/preview": [["result", {"resultType": "complete", "cost": 1}]]}


def asks(ident: Any, method: str, revision: str = NAME, **params: Any) -> dict[str, Any]:
    return request(ident, method, {**params, "_meta": meta(revision)})


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory in which the draft was added."""
    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "state"))
    keep({"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "state")}, NAME, _content())
    return tmp_path / "state"


def _content() -> bytes:
    return json.dumps(draft_document()).encode()


@pytest.mark.usefixtures("state")
def test_over_stdio_a_draft_is_refused_unless_it_is_chosen(tmp_path: Path) -> None:
    with guarded(tmp_path, "--mode", "enforce", on=PREVIEW) as one:
        refused = one.ask(asks(1, "tools/preview", name="search"))
        assert refused["error"]["code"] == -32022
        assert refused["error"]["data"]["supported"] == list(REVISIONS)
        _finish(one)


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("chosen", [("--draft", NAME), ("--set", f"guard.draft_revisions={NAME}")])
def test_over_stdio_a_chosen_draft_is_judged_by_and_never_refused(tmp_path: Path, chosen: tuple[str, ...]) -> None:
    with guarded(tmp_path, "--mode", "enforce", *chosen, "--journal", "journal", on=PREVIEW) as one:
        assert "result" in one.ask(asks(1, "tools/preview", name="search"))
        assert "result" in one.ask(asks(2, "tools/preview", name=5)), "reported, not refused"
        assert one.ask(asks(3, "tools/list"))["result"]["tools"], "reported: its result has no total"
        assert one.ask(asks(4, "tools/call", name="search", arguments={"words": 5}))["result"]["isError"] is True
        refused = one.ask(asks(5, "tools/list", "DRAFT-other"))
        assert refused["error"]["data"]["supported"] == list(REVISIONS), "a draft is not offered"
        _finish(one)
    [journal] = (tmp_path / "journal").glob("2*.jsonl")
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    drafted = [each for each in records if each["metadata"].get("revision") == NAME]
    assert len(drafted) >= 4
    sources = {wrong["source"] for each in drafted for wrong in (each["error"] or {}).get("violations", ())}
    assert f"draft {NAME}, schema: PreviewToolRequest" in sources
    assert f"draft {NAME}, schema: ListToolsResult" in sources


@pytest.mark.usefixtures("state")
def test_over_http_a_draft_is_refused_unless_it_is_chosen(tmp_path: Path) -> None:
    message = asks(1, "tools/preview", name="search")
    with serving(tmp_path, "--mode", "enforce", on=PREVIEW) as service:
        refused = service.post(message, modern(message))
        assert (refused.status, refused.error()["code"]) == (400, -32022)
        assert NAME not in refused.error()["data"]["supported"]


@pytest.mark.usefixtures("state")
def test_over_http_a_chosen_draft_is_judged_by_and_never_refused(tmp_path: Path) -> None:
    with serving(tmp_path, "--mode", "enforce", "--draft", NAME, on=PREVIEW) as service:
        for message in (
            asks(1, "tools/preview", name="search"),
            asks(2, "tools/preview", name=5),
            asks(3, "tools/list"),
        ):
            found = service.post(message, modern(message))
            assert found.status == 200
            assert "result" in _message(found)
        message = asks(4, "tools/call", name="search", arguments={"words": 5})
        assert _message(service.post(message, modern(message)))["result"]["isError"] is True
        message = asks(5, "tools/list")
        mixed = service.post(message, modern(message, mcp_protocol_version=LATEST))
        assert (mixed.status, mixed.error()["code"]) == (400, -32020)
        other = asks(6, "tools/list", "DRAFT-other")
        refused = service.post(other, modern(other))
        assert refused.error()["data"]["supported"] == list(REVISIONS), "a draft is not offered"
        released = asks(7, "tools/list", LATEST)
        assert "result" in _message(service.post(released, modern(released)))


def test_over_http_a_session_of_a_chosen_draft_is_judged_by_it(tmp_path: Path, state: Path) -> None:
    keep({"XDG_STATE_HOME": str(state), "HOME": str(state)}, OPENED, json.dumps(opened_document()).encode())
    with serving(tmp_path, "--mode", "enforce", "--draft", OPENED) as service:
        opened = service.post(request(0, "initialize", {**OPENING, "protocolVersion": OPENED}), BOTH)
        assert _message(opened)["result"]["protocolVersion"] == OPENED
        headers = {**BOTH, "mcp-session-id": opened.header("mcp-session-id") or "", "mcp-protocol-version": OPENED}
        assert service.post(notification("notifications/initialized"), headers).status == 202
        assert "result" in _message(service.post(request(1, "ping", {}), headers)), "reported, not refused"
        assert "result" in _message(service.post(request(2, "tools/list"), headers))
        assert service.post(request(3, "ping"), {**headers, "mcp-protocol-version": NAME}).status == 400


@pytest.mark.usefixtures("state")
def test_a_server_at_a_url_is_judged_by_a_chosen_draft(tmp_path: Path) -> None:
    with serving(tmp_path, on=PREVIEW) as server:
        url = f"http://{server.address[0]}:{server.address[1]}/mcp"
        line = [*ASSAY, "guard", "--mode", "enforce", "--listen", "127.0.0.1:0", "--draft", NAME, "--target", url]
        with started(line, tmp_path, "assay: guarding ") as service:
            message = asks(2, "tools/preview", name=5)
            found = service.post(message, modern(message))
            assert "result" in _message(found), found.body
        done = assay_text(
            "guard", "--mode", "enforce", "--draft", NAME, "--target", url, said=json.dumps(message) + "\n"
        )
        assert "result" in json.loads(done.stdout.splitlines()[0])
        assert "protocol/params" in done.stderr


def test_our_own_server_never_speaks_a_draft(tmp_path: Path, state: Path) -> None:
    (tmp_path / "assay.toml").write_text(f'[guard]\ndraft_revisions = ["{NAME}"]\n')
    done = assay_text("serve", cwd=tmp_path, said=json.dumps(asks(1, "tools/list")) + "\n", MCP_READY_FILE="ready")
    assert json.loads(done.stdout.splitlines()[0])["error"]["code"] == -32022
    assert (state / "assay" / "schemas" / f"{NAME}.json").exists()

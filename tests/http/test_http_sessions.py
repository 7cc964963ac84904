"""The sessions of the handshake revisions: who has one, until when, and what can be sent again."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from http_client import (
    BOTH,
    CATALOGUE,
    INITIALIZED,
    JSON,
    STORE,
    Answer,
    Service,
    Wire,
    call,
    frame_of,
    initialize,
    late_backend,
    notification,
    request,
    serving,
    until,
)

from assay.assets.asset_server import AssetServer
from assay.assets.asset_sources import Catalogue
from assay.assets.http.app import App
from assay.assets.mcp_methods import Methods
from assay.edges.http import sessions
from assay.edges.http.sessions import REPLAYED, REPLAYED_BYTES, Sessions
from assay.edges.recorder import Recorder
from assay.settings.http_section import Http
from assay.spec.revisions import LATEST, REVISIONS, handshake

HANDSHAKE = [each for each in REVISIONS if handshake(each)]
EVENTS = {**JSON, "accept": "text/event-stream"}
PING = request(1, "ping")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("sessions")) as running:
        yield running
        log = running.log.so_far()
    assert "Traceback" not in log, log


def listening(service: Service, headers: dict[str, str | bytes], **more: str) -> Wire:
    """A connection with the GET stream of a session, its head read."""
    wire = service.open()
    given = {name.replace("_", "-"): value for name, value in more.items()}
    wire.say("GET", "/mcp", headers={**headers, "accept": "text/event-stream", **given})
    found = wire.head()
    assert (found.status, found.header("content-type")) == (200, "text/event-stream")
    return wire


# ── beginning and end ────────────────────────────────────────────────────────────────────────────────────────────────


def test_nobody_guesses_the_id_of_a_session(service: Service) -> None:
    """2025-11-25, Session Management: visible ASCII only, and cryptographically secure."""
    found = [service.post(initialize("2025-11-25")).header("mcp-session-id") or "" for _ in range(50)]
    assert len(set(found)) == 50
    assert all(re.fullmatch("[A-Za-z0-9_-]{43,}", each) for each in found)
    # What is random differs everywhere.
    assert all(len({each[place] for each in found}) > 8 for place in range(42))


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_session_is_served_with_and_without_the_version_header(service: Service, revision: str) -> None:
    headers = service.session(revision)
    for given in (headers, {name: value for name, value in headers.items() if name != "mcp-protocol-version"}):
        tools = service.post(request(1, "tools/list"), given).json()["result"]["tools"]
        # Which revision it is, is known by the session: only these have output schemas.
        assert ("outputSchema" in tools[0]) == (revision >= "2025-06-18")
    assert service.post(PING, {**headers, "mcp-protocol-version": revision}).status == 200


@pytest.mark.parametrize("asked", ["2030-01-01", LATEST, "nope"])
def test_a_revision_that_is_not_spoken_is_answered_with_one_that_is(service: Service, asked: str) -> None:
    found = service.post(initialize(asked))
    assert found.json()["result"]["protocolVersion"] == "2025-11-25"
    headers = {**BOTH, "mcp-session-id": found.header("mcp-session-id") or ""}
    assert service.post(INITIALIZED, headers).status == 202
    assert "result" in service.post(request(1, "tools/list"), headers).json()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(request(1, "initialize"), id="no-params"),
        pytest.param(initialize("2025-11-25", None), id="no-id"),
        pytest.param(notification("initialize", {}), id="notification"),
        pytest.param([initialize("2025-03-26")], id="batch"),
        pytest.param(request(1, "ping"), id="ping"),
        pytest.param(request(1, "list_schemas"), id="bare"),
    ],
)
def test_nothing_but_a_good_initialize_begins_a_session(service: Service, said: Any) -> None:
    assert service.post(said).header("mcp-session-id") is None


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_session_that_was_ended_is_gone(service: Service, revision: str) -> None:
    headers = service.session(revision)
    with listening(service, headers) as wire:
        found = service.ask("DELETE", "/mcp", headers=headers)
        assert (found.status, found.body) == (200, b"")
        while wire.chunk():  # its stream ends, too
            pass
    for method, body in (("POST", PING), ("GET", b""), ("DELETE", b"")):
        assert service.ask(method, "/mcp", body, headers).status == 404


@pytest.mark.parametrize("ident", ["", "a b", "a\tb", b"\xff\xfe", "x" * 5000])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_session_id_that_is_none_is_400(service: Service, method: str, ident: str | bytes) -> None:
    """2025-11-25, Session Management: an id is visible ASCII."""
    headers = {**BOTH, "mcp-session-id": ident}
    found = service.ask(method, "/mcp", PING if method == "POST" else b"", headers)
    assert found.status == 400
    assert "Mcp-Session-Id" in found.error()["data"]["detail"]


@pytest.mark.parametrize("ident", ["none", "x" * 1000, "../..", "*"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_session_that_never_was_is_404(service: Service, method: str, ident: str | bytes) -> None:
    """2025-11-25, Session Management: the client is to begin anew."""
    headers = {**BOTH, "mcp-session-id": ident}
    found = service.ask(method, "/mcp", PING if method == "POST" else b"", headers)
    assert found.status == 404
    assert "initialize" in found.error()["data"]["detail"]


# ── in a session ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_initialize_again_is_refused_and_changes_nothing(service: Service, revision: str) -> None:
    headers = service.session(revision)
    found = service.post(initialize("2024-11-05"), headers)
    assert (found.status, found.error()["code"]) == (200, -32600)
    assert found.header("mcp-session-id") is None
    [broken] = found.error()["data"]["violations"]
    assert broken["rule"] == "protocol/initialize-again"
    assert service.post(PING, headers).json()["result"] == {}


def test_a_client_that_is_not_ready_yet_may_ping(service: Service) -> None:
    opened = service.post(initialize("2025-11-25"))
    headers = {**BOTH, "mcp-session-id": opened.header("mcp-session-id") or ""}
    assert service.post(PING, headers).json()["result"] == {}
    assert service.post(INITIALIZED, headers).status == 202
    assert "result" in service.post(request(1, "tools/list"), headers).json()


@pytest.mark.parametrize("version", ["2030-01-01", "nope", "", "2025-11-25, 2025-11-25", "2025-11-2", b"\xff"])
def test_a_version_header_that_names_no_revision_is_400(service: Service, version: str | bytes) -> None:
    """2025-11-25, Protocol Version Header: invalid or unsupported MUST be 400."""
    headers = {**service.kept_session("2025-11-25"), "mcp-protocol-version": version}
    found = service.post(PING, headers)
    assert (found.status, found.error()["code"]) == (400, -32022)
    assert service.ask("GET", "/mcp", headers={**headers, "accept": "text/event-stream"}).status == 400


def test_a_version_header_that_names_no_revision_is_told_which_there_are(service: Service) -> None:
    """2026-07-28, schema: an error -32022 has to carry `supported` and `requested`."""
    found = service.post(PING, {**service.kept_session("2025-11-25"), "mcp-protocol-version": "2030-01-01"})
    data = found.error()["data"]
    assert (data.get("supported"), data.get("requested")) == (list(REVISIONS), "2030-01-01")


@pytest.mark.parametrize("version", HANDSHAKE)
def test_a_version_header_of_another_revision_does_not_change_that_of_the_session(
    service: Service, version: str
) -> None:
    """It SHOULD be the negotiated one; some clients send the one they asked for. The session knows better."""
    headers = {**service.kept_session("2025-11-25"), "mcp-protocol-version": version}
    assert service.post(call(1, "get_schema", {}), headers).json()["result"]["isError"] is True


def test_a_request_of_the_era_without_sessions_has_none(service: Service) -> None:
    """2026-07-28, Earlier Revisions: the session header means nothing; the header rules are in force."""
    headers = {**service.kept_session("2025-11-25"), "mcp-protocol-version": LATEST}
    found = service.post(PING, headers)
    assert (found.status, found.error()["code"]) == (400, -32020)


def test_sessions_know_nothing_of_each_other(service: Service) -> None:
    one, two = service.session("2025-11-25"), service.session("2024-11-05")
    assert "outputSchema" in service.post(request(1, "tools/list"), one).json()["result"]["tools"][0]
    assert "outputSchema" not in service.post(request(1, "tools/list"), two).json()["result"]["tools"][0]
    assert service.ask("DELETE", "/mcp", headers=one).status == 200
    assert service.post(PING, two).status == 200


def test_an_id_that_is_open_is_in_use_in_its_own_session_only(tmp_path: Path) -> None:
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running, running.open() as wire:
        one, two = running.session("2025-11-25"), running.session("2025-11-25")
        wire.say("POST", "/mcp", frame_of(call(7, "populate_backend", STORE)), one)
        backend.was_asked()
        found = running.post(request(7, "ping"), one)
        assert (found.status, found.error()["code"]) == (200, -32600)
        assert found.error()["data"]["violations"][0]["rule"] == "protocol/id-in-use"
        # Another id is answered meanwhile, and in another session the same one is.
        assert running.post(request(8, "ping"), one).json()["result"] == {}
        assert running.post(request(7, "ping"), two).json()["result"] == {}
        backend.allowed.set()
        assert wire.answer().json()["result"]["structuredContent"]["data"]["asset_id"] == "stored"
        assert running.post(request(7, "ping"), one).json()["result"] == {}


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_stream_begins_with_an_id_to_come_back_with_from_2025_11_25_on(service: Service, revision: str) -> None:
    """2025-11-25, basic/transports: an event ID and an empty data field. Older clients would try to read the data."""
    with listening(service, service.session(revision)) as wire:
        first = wire.chunk().decode()
    if revision >= "2025-11-25":
        assert re.fullmatch(r"id: \S+\r\nretry: \d+\r\ndata: ?\r\n\r\n", first)
    else:
        assert first.startswith(":")
        assert "data" not in first


@pytest.mark.parametrize("accept", ["application/json", "text/html", ""])
def test_a_stream_is_for_those_who_accept_events(service: Service, accept: str) -> None:
    headers = {**service.kept_session("2025-11-25"), "accept": accept}
    assert service.ask("GET", "/mcp", headers=headers).status == 406


def test_a_session_may_have_several_streams(service: Service) -> None:
    headers = service.session("2025-11-25")
    with listening(service, headers) as one, listening(service, headers) as two:
        assert one.chunk() != two.chunk()


def streamed(service: Service, said: Any, headers: dict[str, str | bytes]) -> Answer:
    """The answer to *said*, for a client that accepts nothing but events."""
    found = service.post(said, {**headers, **EVENTS})
    assert found.status == 200
    return found


def resumed(service: Service, headers: dict[str, str | bytes], last: str | bytes) -> Answer:
    return service.ask("GET", "/mcp", headers={**headers, "accept": "text/event-stream", "last-event-id": last})


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_an_answer_that_was_lost_can_be_had_again(service: Service, revision: str) -> None:
    headers = service.session(revision)
    *primers, answer = streamed(service, call(1, "get_schema", {"name": "tone"}), headers).events()
    assert [each["data"] for each in primers] == ([""] if revision >= "2025-11-25" else [])
    first = primers[0]["id"] if primers else answer["id"].rpartition("-")[0] + "-0"
    again = resumed(service, headers, first)
    assert again.events() == [answer]
    assert json.loads(answer["data"])["id"] == 1
    # As often as it is asked for.
    assert resumed(service, headers, first).events() == [answer]


def test_what_came_on_another_stream_is_not_sent_again(service: Service) -> None:
    """2025-11-25, Resumability: MUST NOT replay messages of a different stream."""
    headers = service.session("2025-11-25")
    sent = [streamed(service, request(number, "ping"), headers).events() for number in range(3)]
    idents = [each["id"] for events in sent for each in events]
    assert len(set(idents)) == len(idents)
    for primer, answer in sent:
        assert resumed(service, headers, primer["id"]).events() == [answer]


def test_who_has_everything_gets_nothing_again(service: Service) -> None:
    headers = service.session("2025-11-25")
    _, answer = streamed(service, PING, headers).events()
    with listening(service, headers, last_event_id=answer["id"]) as wire:
        assert b"data" not in wire.chunk()


@pytest.mark.parametrize(
    "last", ["", "1", "0-0", "9-0", "99999999999999999999-0", "1-x", "-1-0", "1--1", "1-0-0", "x" * 5000, "é", " "]
)
def test_an_event_id_that_was_never_given_is_refused(service: Service, last: str) -> None:
    headers = service.session("2025-11-25")
    streamed(service, PING, headers)
    found = resumed(service, headers, last.encode())
    assert found.status == 400
    assert "Last-Event-ID" in found.error()["data"]["detail"]


def test_the_answer_of_another_session_cannot_be_had(service: Service) -> None:
    one, two = service.session("2025-11-25"), service.session("2025-11-25")
    primer, _ = streamed(service, call(1, "get_schema", {"name": "tone"}), one).events()
    assert resumed(service, two, primer["id"]).status == 400
    _, his = streamed(service, request("his", "ping"), two).events()
    assert resumed(service, two, primer["id"]).events() == [his]


def test_without_a_session_events_have_no_id(service: Service) -> None:
    """There is nothing to come back to."""
    [event] = service.post(request(1, "list_schemas"), EVENTS).events()
    assert "id" not in event


def test_an_answer_is_not_lost_with_the_connection(tmp_path: Path) -> None:
    """2025-11-25, basic/transports: a disconnection is not to be taken for a cancellation."""
    with late_backend() as (backend, variable), serving(tmp_path, env=variable) as running:
        headers = running.session("2025-11-25")
        with running.open() as wire:
            wire.say("POST", "/mcp", frame_of(call(1, "populate_backend", STORE)), {**headers, **EVENTS})
            backend.was_asked()
        backend.allowed.set()
        until(lambda: resumed_if_there(running, headers) is not None)
        [event] = (resumed_if_there(running, headers) or Answer(0, [])).events()
        assert json.loads(event["data"])["result"]["structuredContent"]["data"]["asset_id"] == "stored"


def resumed_if_there(service: Service, headers: dict[str, str | bytes]) -> Answer | None:
    found = resumed(service, headers, "1-0")
    return found if found.status == 200 else None


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_session_too_many_ends_the_least_recently_used(tmp_path: Path) -> None:
    with serving(tmp_path, "http.sessions=3") as running:
        used, idle, listens = (running.session("2025-11-25") for _ in range(3))
        with listening(running, listens):
            assert running.post(PING, used).status == 200
            running.session("2025-11-25")
            assert [running.post(PING, each).status for each in (used, idle, listens)] == [200, 404, 200]
            running.session("2025-11-25")
            running.session("2025-11-25")
            assert [running.post(PING, each).status for each in (used, listens)] == [404, 200]


@pytest.mark.parametrize("limit", ["sessions", "sessions_each"])
def test_a_session_with_a_request_in_hand_is_not_pushed_out_and_a_client_can_go_on_without(
    tmp_path: Path, limit: str
) -> None:
    with late_backend() as (backend, env), serving(tmp_path, f"http.{limit}=2", env=env) as running:
        sessions = [running.session("2025-11-25") for _ in range(3)]
        assert [running.post(PING, each).status for each in sessions] == [404, 200, 200]
        wires = [running.open() for _ in sessions[1:]]
        for wire, headers in zip(wires, sessions[1:], strict=True):
            wire.say("POST", "/mcp", frame_of(call(1, "populate_backend", STORE)), headers)
            backend.was_asked()
        found = running.post(initialize("2025-11-25"))
        assert (found.status, found.header("mcp-session-id")) == (200, None)
        headers = {**BOTH, "mcp-protocol-version": "2025-11-25"}
        assert running.post(INITIALIZED, headers).status == 202
        assert "result" in running.post(request(1, "tools/list"), headers).json()
        backend.allowed.set()
        assert [wire.answer().json()["id"] for wire in wires] == [1, 1]
        assert [running.post(PING, each).status for each in sessions[1:]] == [200, 200]
        assert running.post(PING, running.session("2025-11-25")).status == 200


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Clock:
    """Stands still, unless it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Within:
    """An application in this process, and its clock."""

    def __init__(self, **http: Any) -> None:
        catalogue = Catalogue.read({"SYN_SCHEMAS_DIR": str(CATALOGUE / "jsonschema")}, CATALOGUE)
        self.methods = Methods(catalogue)
        self.clock = Clock()
        self.app = App(self.methods, Recorder("http", "/mcp"), http=Http(**http), clock=self.clock)

    async def ask(self, method: str, said: Any = None, ident: str = "") -> Answer:
        """One request, answered whole."""
        sent: list[dict[str, Any]] = []
        headers = {"host": "localhost", **BOTH, **({"mcp-session-id": ident} if ident else {})}
        body = b"" if said is None else frame_of(said)

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": method, "path": "/mcp", "headers": pairs, "scheme": "http"}
        await self.app(scope, receive, send)
        shown = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        return Answer(sent[0]["status"], shown, b"".join(each["body"] for each in sent[1:]))

    async def session(self) -> str:
        opened = await self.ask("POST", initialize("2025-11-25"))
        ident = opened.header("mcp-session-id") or ""
        assert (await self.ask("POST", INITIALIZED, ident)).status == 202
        return ident


def test_a_session_that_nobody_uses_ends() -> None:
    async def told() -> None:
        within = Within(session_seconds=100.0)
        ident = await within.session()
        for _ in range(5):  # use keeps it
            within.clock.now += 99
            within.app.sessions.sweep()
            assert (await within.ask("POST", PING, ident)).status == 200
        within.clock.now += 101
        for method, said in (("POST", PING), ("GET", None), ("DELETE", None)):
            assert (await within.ask(method, said, ident)).status == 404
        assert len(within.app.sessions) == 0

    asyncio.run(told())


def test_a_session_that_nobody_uses_is_swept_away() -> None:
    async def told() -> None:
        within = Within(session_seconds=100.0)
        for _ in range(10):
            await within.session()
            within.clock.now += 30
        within.app.sessions.sweep()
        assert len(within.app.sessions) == 3

    asyncio.run(told())


def test_a_session_that_somebody_listens_in_does_not_end() -> None:
    """And when the stream breaks off, its client has time to come back."""
    within = Within(session_seconds=100.0)
    held: Sessions[AssetServer] = Sessions(Http(session_seconds=100.0), within.clock)
    session = held.begin("somebody", AssetServer(within.methods))
    assert session is not None

    def close() -> None:
        """What would end the stream."""

    session.open_streams.add(close)
    for _ in range(50):
        within.clock.now += 10
        held.sweep()
    session.open_streams.discard(close)
    within.clock.now += 40
    held.sweep()
    assert held.find(session.ident.encode(), "somebody") is session
    within.clock.now += 101
    held.sweep()
    assert len(held) == 0


# ── what can be sent again takes bounded memory ──────────────────────────────────────────────────────────────────────


def test_what_a_session_keeps_is_bounded() -> None:
    within = Within()
    session = within.app.sessions.begin("somebody", AssetServer(within.methods))
    assert session is not None
    first = session.keep(session.new_stream(), 0, b"")
    for number in range(1, 200):
        session.keep(1, number, b"x" * 1000)
    assert len(session.after(first) or []) == REPLAYED
    session.keep(session.new_stream(), 1, b"x" * REPLAYED_BYTES)
    assert session.after(b"1-0") == []
    assert [len(data) for _, data in session.after(b"2-0") or []] == [REPLAYED_BYTES]
    session.keep(session.new_stream(), 1, b"x" * (REPLAYED_BYTES + 1))
    assert session.after(b"3-0") == []


def test_a_principal_that_keeps_much_loses_its_own_and_not_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "REPLAYED_BY_ALL", 10_000)
    within = Within()
    every = [within.app.sessions.begin(who, AssetServer(within.methods)) for who in ("alice", *["bob"] * 20)]
    for session in every:
        assert session is not None
        session.keep(session.new_stream(), 1, b"x" * 900)
    kept = [bool(session is not None and session.after(b"1-0")) for session in every]
    assert kept == [True] + [False] * 10 + [True] * 10


def test_what_all_sessions_keep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those used longest ago lose theirs first; a session that ends gives back what it had."""
    monkeypatch.setattr(sessions, "REPLAYED_BY_ALL", 10_000)
    within = Within()
    several = [within.app.sessions.begin("somebody", AssetServer(within.methods)) for _ in range(20)]
    for session in several:
        assert session is not None
        session.keep(session.new_stream(), 1, b"x" * 900)
    kept = [bool(session is not None and session.after(b"1-0")) for session in several]
    assert kept == [False] * 9 + [True] * 11
    last = several[-1]
    assert last is not None
    within.app.sessions.drop(last)
    fresh = within.app.sessions.begin("somebody", AssetServer(within.methods))
    assert fresh is not None
    fresh.keep(fresh.new_stream(), 1, b"x" * 900)
    assert [bool(session is not None and session.after(b"1-0")) for session in several[:-1]] == kept[:-1]

"""At the limit of children or sessions, the least recently used idle session ends for a new one."""

from pathlib import Path
from typing import Any

from assay.spec.revisions import LATEST
from kit.guard_process import Watched
from kit.hosted import NEWEST, begun, hosting
from kit.http_client import (
    BOTH,
    INITIALIZED,
    Answer,
    Service,
    Wire,
    call,
    initialize,
    modern,
    request,
    until,
)

ANSWER = {"jsonrpc": "2.0", "id": "open", "result": {"content": [], "isError": False}}
MUTE: dict[str, Any] = {"tools/call:mute": []}
LISTENING = {"accept": "text/event-stream"}

Headers = dict[str, Any]


def opening(service: Service, who: str = "anonymous", revision: str = NEWEST) -> Answer:
    """The answer to a client that begins."""
    return service.post(initialize(revision), x_principal=who)


def opened(service: Service, who: str = "anonymous", revision: str = NEWEST, *, calls: bool = True) -> Headers:
    """The headers of a session that a client has opened, and in which it has called a tool if it *calls*."""
    answer = opening(service, who, revision)
    assert answer.status == 200, answer
    headers = {**BOTH, "mcp-session-id": answer.header("mcp-session-id") or "", "x-principal": who}
    assert service.post(INITIALIZED, headers).status == 202
    if calls:
        assert service.post(call(1, "search", {"words": "sea"}), headers).json()["id"] == 1
    return headers


def statuses(service: Service, *sessions: Headers) -> list[int]:
    """What each session gets for a ping."""
    return [service.post(request(9, "ping"), each).status for each in sessions]


def asking(service: Service, headers: Headers, received: Path) -> Wire:
    """A request that stays open."""
    wire = begun(service, call("open", "mute", {}), headers)
    until(lambda: '"mute"' in received.read_text())
    return wire


def child(received: Path) -> Watched:
    """The child that was started last."""
    return Watched(int([each for each in received.read_text().split("\n") if each.isdigit()][-1]))


def test_clients_that_never_end_their_session_are_all_served(tmp_path: Path) -> None:
    """Each ends the least recently used session, with its child; a session that is gone gets 404."""
    received = tmp_path / "received"
    with hosting(tmp_path, "--children", "2", start=[["pid"]], received=str(received)) as service:
        runs, children = [], []
        for _ in range(5):
            runs.append(opened(service))
            children.append(child(received))
        assert statuses(service, *runs) == [404, 404, 404, 200, 200]
        assert service.ask("GET", headers={**runs[0], **LISTENING}).status == 404
        assert [each.is_alive() for each in children] == [False, False, False, True, True]
        opened(service)
        assert statuses(service, *runs[3:]) == [404, 200], "the ping before was the last use"


def test_a_client_that_is_refused_ends_no_session(tmp_path: Path) -> None:
    with hosting(tmp_path, "--children", "1", "--set", "sessions=1") as service:
        headers = opened(service)
        bad = initialize(NEWEST)
        del bad["params"]["clientInfo"]
        answer = service.post(bad)
        assert (answer.error()["code"], answer.header("mcp-session-id")) == (-32602, None)
        assert statuses(service, headers) == [200]


def test_a_session_with_an_open_request_is_never_ended(tmp_path: Path) -> None:
    received = tmp_path / "received"
    on = {**MUTE, "ping": [["say", ANSWER], ["good"]]}
    with hosting(tmp_path, "--children", "2", on=on, received=str(received)) as service:
        busy, idle = opened(service), opened(service)
        wire = asking(service, busy, received)
        opened(service)
        opened(service)
        assert statuses(service, busy, idle) == [200, 404]
        assert b'"id":"open"' in wire.until(b"isError")


def test_where_nothing_is_idle_a_new_session_has_to_wait(tmp_path: Path) -> None:
    received = tmp_path / "received"
    with hosting(tmp_path, "--children", "1", on=MUTE, received=str(received)) as service:
        busy = opened(service)
        asking(service, busy, received)
        answer = opening(service)
        assert (answer.status, answer.header("retry-after"), answer.error()["code"]) == (503, "1", -31016)
        assert service.ask("DELETE", headers=busy).status == 200
        assert opening(service).status == 200, "it waits for the child that is about to end"


def test_a_session_with_an_open_get_stream_is_idle(tmp_path: Path) -> None:
    """Its last message counts, as in any other session; the stream ends with it."""
    with hosting(tmp_path, "--children", "2") as service:
        listens, idle = opened(service), opened(service)
        wire = begun(service, None, {**listens, **LISTENING}, "GET")
        wire.head()
        assert statuses(service, idle) == [200]
        opened(service)
        assert statuses(service, listens, idle) == [404, 200]
        assert wire.until(b"\r\n0\r\n\r\n"), "its stream has ended"


def test_a_session_whose_server_waits_for_the_client_is_idle(tmp_path: Path) -> None:
    """The client may be gone: otherwise such sessions would take all places."""
    asks = {"jsonrpc": "2.0", "id": "s1", "method": "ping"}
    with hosting(tmp_path, "--children", "1", on={"notifications/initialized": [["say", asks]]}) as service:
        waiting = opened(service, calls=False)
        wire = begun(service, None, {**waiting, **LISTENING}, "GET")
        wire.until(b"ping")
        opened(service, calls=False)
        assert statuses(service, waiting) == [404]


def test_a_session_that_was_never_used_after_its_handshake_is_idle(tmp_path: Path) -> None:
    with hosting(tmp_path, "--children", "2") as service:
        used = opened(service)
        answer = opening(service)
        unused = {**BOTH, "mcp-session-id": answer.header("mcp-session-id") or ""}
        assert statuses(service, used) == [200]
        opened(service)
        assert statuses(service, used, unused) == [200, 404]


def test_a_principal_ends_its_own_sessions_at_its_own_limit(tmp_path: Path) -> None:
    received = tmp_path / "received"
    options = ("--children", "4", "--children-each", "2")
    with hosting(tmp_path, *options, on=MUTE, received=str(received)) as service:
        alice, bob = [opened(service, "alice")], [opened(service, "bob") for _ in range(3)]
        assert statuses(service, *alice, *bob) == [200, 404, 200, 200]
        asking(service, bob[2], received)
        bob.append(opened(service, "bob"))
        assert statuses(service, *alice, *bob) == [200, 404, 404, 200, 200]
        begun(service, call("open", "mute", {}), bob[3])
        until(lambda: received.read_text().count('"mute"') == 2)
        refused = opening(service, "bob")
        assert (refused.status, refused.header("retry-after")) == (429, "1")
        assert refused.error()["data"]["detail"] == "you have too many servers at once"
        for who in ("alice", "bob", "carl"):
            message = request(1, "tools/list", {}, LATEST)
            assert service.post(message, modern(message), x_principal=who).status == 200


def test_at_the_limit_of_all_a_principal_ends_its_own_sessions_first(tmp_path: Path) -> None:
    """However many sessions a principal opens one after the other, the others keep theirs."""
    with hosting(tmp_path, "--children", "4", "--children-each", "4") as service:
        alice = opened(service, "alice")
        bob = [opened(service, "bob") for _ in range(6)]
        assert statuses(service, alice, *bob) == [200, 404, 404, 404, 200, 200, 200]
        carl = opened(service, "carl")
        assert statuses(service, alice, *bob[3:], carl) == [404, 200, 200, 200, 200], "one without any ends the first"


def test_a_principal_with_busy_sessions_takes_its_share_and_no_more(tmp_path: Path) -> None:
    received = tmp_path / "received"
    options = ("--children", "4", "--children-each", "2")
    with hosting(tmp_path, *options, on=MUTE, received=str(received)) as service:
        others = [opened(service, who) for who in ("alice", "alice", "carl", "carl")]
        asking(service, opened(service, "bob"), received)
        begun(service, call("open", "mute", {}), opened(service, "bob"))
        until(lambda: received.read_text().count('"mute"') == 2)
        assert opening(service, "bob").status == 503
        assert statuses(service, *others) == [404, 404, 200, 200]

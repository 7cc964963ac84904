"""What of a client's request reaches a server at a URL: read once, written anew. Each row is an attack that fails."""

from typing import Any

from assay.settings.http_section import Http
from assay.spec.revisions import LATEST
from kit.http_client import BOTH, JSON, call, frame_of, modern, notification, request
from kit.memory_http import as_pairs
from kit.rows import rows
from kit.scripted_http import OPENED, REVISION, Peer, Received, answering, good, result
from kit.url_guard import BEARERS, UrlGuard

CALL = call(7, "search", {"words": "sea"})
LISTING = request(1, "tools/list", {}, LATEST)
PING = request(1, "ping")


@rows(
    ("ask", "status"),
    [
        (("POST", "/mcp", LISTING, modern(LISTING, origin="http://evil.example")), 403),
        (("POST", "/mcp", LISTING, modern(LISTING), "evil.example"), 403),
        (("POST", "/mcp", LISTING, {**JSON, "accept": "image/png"}), 406),
        (("GET", "/mcp", b"", {"accept": "application/json"}), 406),
        (("GET", "/nowhere"), 404),
    ],
)
def test_a_foreign_page_or_a_request_of_another_kind_does_not_get_through(ask: Any, status: int) -> None:
    with UrlGuard() as guard:
        assert guard.ask(*ask).status == status
        assert guard.server.seen == []


def test_a_page_of_this_machine_gets_through_and_a_preflight_echoes_names_and_nothing_else() -> None:
    friend, asked = (b"origin", b"http://localhost:6274"), b"access-control-request-headers"
    with UrlGuard() as guard:
        allowed = guard.post(LISTING, modern(LISTING, origin="http://localhost:6274"))
        assert allowed.header("access-control-allow-origin") == "http://localhost:6274"
        answer = guard.ask("OPTIONS", headers=[friend, (asked, b"mcp-method, x-a")])
        assert (answer.status, answer.header("access-control-allow-headers")) == (204, "mcp-method, x-a")
        assert guard.ask("OPTIONS", headers=[friend, (asked, b"a(b)\xff")]).status == 400


def test_the_server_gets_one_plain_content_type_and_no_header_that_changes_the_meaning_of_a_request() -> None:
    odd = {
        "x-http-method-override": "DELETE",
        "x-forwarded-for": "10.0.0.1",
        "x-original-url": "/admin",
        "cookie": "a=b",
    }
    with UrlGuard() as guard:
        headers = {**guard.session(REVISION), "content-type": "Application/JSON ; Charset=UTF-8", **odd}
        assert guard.post(CALL, headers).status == 200
        received = guard.server.last("tools/call")
    assert received.header("content-type") == "application/json"
    assert [received.header(name) for name in odd] == [None] * len(odd)


@rows("query", ["tenant=bob", "access_token=x", "a"])
def test_no_query_of_a_client_goes_on_under_enforce_or_behind_that_of_the_operator(query: str) -> None:
    with UrlGuard() as guard:
        assert guard.ask("POST", f"/mcp?{query}", CALL, guard.session(REVISION)).status == 400
        assert guard.server.asked() == ["initialize", "notifications/initialized"]
    with UrlGuard("audit", url="http://server.example/mcp?tenant=alice") as guard:
        assert guard.ask("POST", f"/mcp?{query}", LISTING, modern(LISTING)).status == 400
        guard.post(LISTING, modern(LISTING))
        assert [each.path for each in guard.server.seen] == ["/mcp?tenant=alice"]


def test_a_name_with_underscores_does_not_stand_beside_a_header_of_the_operator() -> None:
    """To servers behind WSGI both are one header."""
    with UrlGuard("audit", headers=[(b"x-tenant", b"operator")]) as guard:
        guard.post(LISTING, {**modern(LISTING), "X_Tenant": "evil", "x_other": "mine"})
        [received] = guard.server.seen
    assert [value for name, value in received.pairs if "tenant" in name] == ["operator"]
    assert received.header("x_other") == "mine"


def test_a_bad_request_never_reaches_the_server() -> None:
    modern_call, unknown = call(7, "search", {"words": "sea"}, LATEST), request(3, "ping", {}, LATEST)
    with UrlGuard() as guard:
        headers = guard.session(REVISION)
        guard.post(request("list", "tools/list"), headers)
        answer = guard.post(call(1, "search", {"words": 5}), headers)
        assert (answer.status, answer.json()["result"]["isError"]) == (200, True)
        answer = guard.post(request(2, "nope/nope"), headers)
        assert (answer.status, answer.error()["code"]) == (200, -32601)
        assert [guard.post(each, headers).status for each in (b"{", b"")] == [400, 400]
        answer = guard.post(unknown, modern(unknown))
        assert (answer.status, answer.json()["id"]) == (404, 3)
        assert guard.post(modern_call, modern(modern_call, mcp_name="another")).error()["code"] == -32020
        for ignored in (notification("nope/nope"), {"jsonrpc": "2.0", "id": 99, "result": {}}):
            answer = guard.post(ignored, headers)
            assert (answer.status, answer.body) == (202, b"")
        assert guard.post(notification("notifications/progress", {"progress": "much"}), headers).status == 400
        assert set(guard.server.asked()) == {"initialize", "notifications/initialized", "tools/list"}


def test_of_a_batch_what_is_bad_is_answered_here_and_the_rest_there() -> None:
    old = "2025-03-26"

    def batches(received: Received, peer: Peer) -> None:
        message = received.message
        if isinstance(message, list):
            peer.json([result(each, {}) for each in message])
        elif message.get("method") == "initialize":
            peer.json(result(message, {**OPENED, "protocolVersion": old}), mcp_session_id="a")
        else:
            good(received, peer)

    with UrlGuard("enforce", batches) as guard:
        headers = guard.session(old)
        answer = guard.post([request(1, "ping"), request(2, "nope/nope"), request(3, "ping")], headers)
        assert {each["id"]: "result" in each for each in answer.json()} == {1: True, 2: False, 3: True}
        assert [each["id"] for each in guard.server.seen[-1].message] == [1, 3]


# ── whose session it is ──────────────────────────────────────────────────────────────────────────────────────────────


@rows("spelling", [b"%b ", b"%b\t", b"  %b", b"\t%b \t", b"%b"])
@rows("version", [None, REVISION, "2025-03-26", LATEST, "2099-01-01"])
def test_no_principal_enters_the_session_of_another(version: str | None, spelling: bytes) -> None:
    """However its id is spelt, and whichever revision is named: the server never gets it from anybody else."""
    for mode in ("enforce", "audit"):
        with UrlGuard(mode, keys=True) as guard:
            hers = guard.session(REVISION, **BEARERS["alice"])
            guard.server.seen.clear()
            lines = [*as_pairs({**BOTH, **BEARERS["bob"]})]
            lines.append((b"mcp-session-id", spelling % str(hers["mcp-session-id"]).encode()))
            lines += [] if version is None else [(b"mcp-protocol-version", version.encode())]
            for method in ("POST", "GET", "DELETE"):
                answer = guard.ask(method, body=frame_of(PING) if method == "POST" else b"", headers=lines)
                assert answer.status in {200, 400, 404, 405}
            assert [each for each in guard.server.seen if each.header("mcp-session-id") is not None] == []
            assert guard.post(request(2, "ping"), hers).status == 200, "hers goes on"


@rows(
    ("mode", "keys", "statuses"),
    [
        ("enforce", False, [404, 404, 404]),
        ("enforce", True, [404, 404, 404]),
        ("audit", True, [404, 404, 404]),
        ("audit", False, [200, 405, 200]),
    ],
)
def test_a_session_that_the_guard_does_not_know_is_taken_up_only_under_audit_without_keys(
    mode: Any, keys: bool, statuses: list[int]
) -> None:
    """It was opened before the guard was started: whose it is, and which tools it has, is unknown."""
    with UrlGuard(mode, keys=keys) as guard:
        token = BEARERS["bob"] if keys else {}
        headers = {**BOTH, **token, "mcp-session-id": "opened-before", "mcp-protocol-version": REVISION}
        found = [guard.ask("POST", body=CALL, headers=headers)]
        found += [guard.ask(method, headers=headers) for method in ("GET", "DELETE")]
        assert [each.status for each in found] == statuses
        assert (guard.server.seen == []) is (statuses[0] == 404)


def test_a_principal_has_a_share_of_the_sessions() -> None:
    """Bob's many sessions push out his own, not hers."""
    count = iter(range(100))

    def numbered(received: Received, peer: Peer) -> None:
        peer.json(result(received.message, OPENED), mcp_session_id=f"number-{next(count)}")

    with UrlGuard(
        "audit", answering(numbered, "initialize"), keys=True, http=Http(sessions=4, sessions_each=2)
    ) as guard:
        hers = guard.session(REVISION, **BEARERS["alice"])
        his = [guard.session(REVISION, **BEARERS["bob"]) for _ in range(10)]
        assert guard.post(PING, hers).status == 200
        assert [guard.post(PING, each).status for each in his] == [404] * 8 + [200] * 2
        assert guard.backend.sessions == 3


@rows("by", ["delete", "the-server"])
def test_a_session_ends_with_delete_or_when_the_server_forgets_it(by: str) -> None:
    with UrlGuard("audit") as guard:
        headers = guard.session(REVISION)
        assert guard.backend.sessions == 1
        if by == "delete":
            assert guard.ask("DELETE", headers=headers).status == 200
        else:
            guard.server.script = lambda _, peer: peer.head(404, content_length="0")
            assert guard.post(CALL, headers).status == 404
        assert guard.backend.sessions == 0

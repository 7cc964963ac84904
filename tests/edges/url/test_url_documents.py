"""What a guard serves beside the endpoint of a server at a URL: sign-in documents, its card, and a page about it."""

import json
import socket
from functools import cache
from typing import Any

import pytest

from assay.edges.auth import Principal
from assay.edges.http.access import MOST_NAMES, Door
from assay.edges.http.listen_address import ListenAddress, called
from assay.edges.http.origin_check import Safety
from assay.edges.oauth_discovery import MOST_DOCUMENTS, challenges_for
from assay.edges.server_index import index, row
from assay.edges.upstream_target import UpstreamTarget
from assay.settings.http_section import Http
from kit.http_client import BOTH, Answer, initialize
from kit.memory_http import answer_of, as_pairs
from kit.rows import rows
from kit.scripted_http import REVISION, Peer, Received
from kit.url_guard import BEARERS, UrlGuard, holding

HERE, THERE = "http://localhost:8765", "http://server.example"
METADATA = "/.well-known/oauth-protected-resource"


@cache
def _known_target() -> UpstreamTarget:
    """It reads all certificates, so there is one."""
    return UpstreamTarget("https://a.example/mcp")


def fresh_target() -> UpstreamTarget:
    """A server at a URL that has not been asked anything yet."""
    target = _known_target()
    target.challenged, target.metadata = False, None
    return target


# ── where a server sends those who have no token ─────────────────────────────────────────────────────────────────────


def test_a_public_url_has_a_scheme_and_a_host() -> None:
    for wrong in ("mcp.example.com", "https://a.example/mcp", "ftp://a.example", "https://a b"):
        with pytest.raises(ValueError, match="a scheme and a host"):
            Http(public_url=wrong)


POINTER = 'resource_metadata="http://g/m"'


@rows(
    ("given", "led"),
    [
        ([], [f"Bearer {POINTER}"]),
        (["Bearer"], [f"Bearer {POINTER}"]),
        (['bearer realm="a", Basic realm="b"'], [f'bearer {POINTER}, realm="a", Basic realm="b"']),
        (['Basic realm="b"', 'DPoP algs="ES256"'], ['Basic realm="b"', f'DPoP {POINTER}, algs="ES256"']),
        (['Basic realm="b"'], ['Basic realm="b"']),
        (["Bearerish"], ["Bearerish"]),
    ],
)
def test_a_client_that_is_not_let_in_is_led_to_metadata(given: list[str], led: list[str]) -> None:
    """Unless the server asks for something else than a token."""
    target = fresh_target()
    values = [each.encode() for each in given]
    assert challenges_for(values, 401, target, "http://g/m") == [each.encode() for each in led]
    assert (target.challenged, target.metadata) == (True, None)
    target = fresh_target()
    assert challenges_for(values, 403, target, "http://g/m") == values
    assert (target.challenged, target.metadata) == (False, None)


@rows(
    ("named", "led", "remembered"),
    [
        ("https://a.example/n?o=1#p", "http://g/m", "/n?o=1"),
        ("https://A.example:443", "http://g/m", "/"),
        ("https://a.example/" + "n" * 3000, "http://g/m", None),
        ("https://a.example/\x7fn", "http://g/m", None),
        ("https://G/n", "https://g/m", "/n"),
        *((each, each, None) for each in ("https://b.example/n", "https://g@b.example/n", "ftp://g/n", "https://[/n")),
        *((f"{each}/mcp", f"{each}/mcp", None) for each in ("http://a.example", "https://a.example.evil")),
        *((f"https://a.example:{each}/", f"https://a.example:{each}/", None) for each in ("8443", "x")),
    ],
)
def test_what_a_challenge_names_is_remembered_if_it_is_the_servers(
    named: str, led: str, remembered: str | None
) -> None:
    for status in (401, 403):
        target = fresh_target()
        values = [f'Bearer resource_metadata="{named}", scope="a"'.encode()]
        expected = [f'Bearer resource_metadata="{led}", scope="a"'.encode()]
        assert challenges_for(values, status, target, "http://g/m") == expected
        assert target.metadata == remembered
        assert target.challenged == (status == 401 and led.endswith("://g/m"))


def metadata_at(place: str | None, *, named: bool) -> Any:
    """A server that wants a token, and has metadata at *place*, if anywhere; perhaps it names that place."""

    def script(received: Received, peer: Peer) -> None:
        if received.path == place:
            peer.json({"resource": f"{THERE}/mcp", "authorization_servers": ["https://login.example"]})
        elif received.method == "GET":
            peer.head(404, content_length="0")
        else:
            asks = {"www_authenticate": f'Bearer resource_metadata="{THERE}{place}"'} if named else {}
            peer.head(401, content_length="0", **asks)

    return script


@rows("mode", ["enforce", "audit"])
def test_metadata_are_found_wherever_the_server_has_them(mode: Any) -> None:
    """RFC 9728, 5.1: it may name any URL. And 2025-03-26 has none: there the server itself gives out tokens."""
    path = f"{METADATA}/mcp"
    with UrlGuard(mode, metadata_at(None, named=False)) as guard:
        assert guard.ask("GET", path).status == 404, "no client has been asked for a token"
        for place, named in (("/any/where.json?a=b", True), (METADATA, False)):
            guard.server.script = metadata_at(place, named=named)
            refusal = guard.post(initialize(REVISION), BOTH)
            assert refusal.status == 401
            assert refusal.header("www-authenticate") == f'Bearer resource_metadata="{HERE}{path}"'
            found = guard.ask("GET", path).json()
            assert found == {"resource": f"{HERE}/mcp", "authorization_servers": ["https://login.example"]}
        guard.server.script = metadata_at(None, named=False)
        own = {"resource": f"{HERE}/mcp", "authorization_servers": [THERE]}
        assert [guard.ask("GET", each).json() for each in (path, METADATA)] == [own, own]
        assert guard.ask("GET", "/.well-known/oauth-authorization-server").status == 404


@rows("place", ["/\x7f", "http://another.example/metadata"])
def test_a_place_that_cannot_be_asked_for_hides_no_metadata_and_another_server_is_not_asked(place: str) -> None:
    """What a server names may be where only the guard can go."""
    named = place if place.startswith("http") else THERE + place

    def script(received: Received, peer: Peer) -> None:
        asks = f'Bearer resource_metadata="{named}"'
        peer.head(401 if received.method == "POST" else 404, content_length="0", www_authenticate=asks)

    with UrlGuard("audit", script) as guard:
        refusal = guard.post(initialize(REVISION), BOTH)
        found = guard.ask("GET", f"{METADATA}/mcp")
        assert {each.header("host") for each in guard.server.seen} == {"server.example"}
    if place.startswith("http"):
        assert (refusal.header("www-authenticate"), found.status) == (f'Bearer resource_metadata="{named}"', 404)
    else:
        assert (found.status, found.json()["resource"]) == (200, f"{HERE}/mcp")


def test_behind_a_proxy_with_tls_a_client_finds_its_way_too() -> None:
    """The guard cannot see the scheme that the client uses."""
    public = "https://mcp.example.com"
    script = metadata_at(f"{METADATA}/mcp", named=True)
    with UrlGuard("enforce", script, http=Http(public_url=public)) as guard:
        refusal = guard.ask("POST", body=initialize(REVISION), headers=BOTH, host="mcp.example.com")
        assert refusal.header("www-authenticate") == f'Bearer resource_metadata="{public}{METADATA}/mcp"'
        metadata = guard.ask("GET", f"{METADATA}/mcp", host="mcp.example.com").json()
        assert metadata["resource"] == f"{public}/mcp"
        assert guard.ask("GET", METADATA, host="evil.example").status == 403


@rows("status", [200, 302, 500])
def test_documents_of_the_server_are_json_or_nothing(status: int) -> None:
    def document(_: Received, peer: Peer) -> None:
        peer.head(status, content_type="text/html", location="http://127.0.0.1:9/", set_cookie="a=b")
        peer.send(b"<script>")

    with UrlGuard("enforce", document) as guard:
        answer = guard.ask("GET", METADATA)
    assert (answer.status, answer.header("location"), answer.header("set-cookie")) == (502, None, None)


def test_only_so_many_documents_are_asked_for_at_once() -> None:
    """The clients have not shown who they are yet."""

    async def scenario() -> list[int]:
        begun = [await guard.begun("GET", METADATA) for _ in range(MOST_DOCUMENTS + 1)]
        guard.server.released.set()
        return [(await each.answer()).status for each in begun]

    with UrlGuard("audit", holding(then={"resource": "a"})) as guard:
        assert guard.run(scenario()) == [200] * MOST_DOCUMENTS + [503]


# ── the card ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CARD = "/mcp/server-card"
ODD = b'{ "name":  "no card at all",\n"version":"^1" }\n'
HEADERS = {
    "content-type": "application/mcp-server-card+json",
    "access-control-allow-origin": "*",
    "cache-control": "public, max-age=3600",
    "etag": '"one"',
}


def card(content: bytes = ODD, status: int = 200, **more: str) -> Any:
    """A server with this card."""

    def script(_: Received, peer: Peer) -> None:
        every = {**HEADERS, "content-length": str(len(content)), **more}
        peer.head(status, **{name.replace("-", "_"): value for name, value in every.items() if value})
        peer.send(content)

    return script


@rows("mode", ["enforce", "audit"])
def test_a_card_is_forwarded_byte_for_byte_and_not_judged(mode: Any) -> None:
    with UrlGuard(mode, card(), http=Http(origins=("https://page.example",))) as guard:
        answer = guard.ask("GET", CARD, headers={"accept": HEADERS["content-type"], "mcp-session-id": "another"})
        assert (answer.status, answer.body) == (200, ODD)
        assert {name: answer.header(name) for name in HEADERS} == HEADERS
        [received] = guard.server.seen
        assert (received.path, received.header("accept")) == (CARD, HEADERS["content-type"])
        assert received.header("mcp-session-id") is None
        origin = {"origin": "https://page.example"}
        assert guard.ask("GET", CARD, headers=origin).header("access-control-allow-origin") == "*"
        guard.server.script = card(ODD, 200, **{"access-control-allow-origin": ""})
        assert guard.ask("GET", CARD, headers=origin).header("access-control-allow-origin") == origin["origin"]
        preflight = guard.ask("OPTIONS", CARD, headers={**origin, "access-control-request-method": "GET"})
        assert preflight.status == 204


@rows("mode", ["enforce", "audit"])
def test_what_is_no_card_or_leads_away_is_an_error_of_the_guard(mode: Any) -> None:
    audit = mode == "audit"
    with UrlGuard(mode, card(b" " * ((1 << 20) + 1))) as guard:
        answer = guard.ask("GET", CARD)
        assert (answer.status, "the document is too long" in json.dumps(answer.error())) == (502, True)
        guard.server.script = lambda *_: None
        answer = guard.ask("GET", CARD)
        assert (answer.status, answer.error()["code"]) == (502, -31011)
        guard.server.script = card(b"", 404)
        assert guard.ask("GET", CARD).status == 404
        guard.server.script = card(b"", 302, location="https://away.example/card")
        answer = guard.ask("GET", CARD)
        assert (answer.status, answer.header("location") is not None) == ((302, True) if audit else (502, False))
        guard.server.script = card()
        assert guard.ask("GET", f"{CARD}?v=2").status == (200 if audit else 400)
        guard.server.seen.clear()
        for method in ("POST", "PUT", "DELETE"):
            answer = guard.ask(method, CARD, {}, {"content-type": "application/json"})
            assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")
        assert guard.ask("GET", CARD, headers={"origin": "https://evil.example"}).status == 403
        assert guard.ask("GET", CARD, host="evil.example").status == 403
        assert guard.server.seen == []


def test_a_card_needs_a_key_of_the_guard_and_the_server_gets_that_of_the_operator() -> None:
    own = [(b"x-api-key", b"k")]
    with UrlGuard("audit", card(), keys=True, url=f"{THERE}/mcp?key=hunter2", headers=own) as guard:
        assert guard.ask("GET", CARD).status == 401
        assert guard.server.seen == []
        assert guard.ask("GET", CARD, headers=BEARERS["alice"]).body == ODD
        [received] = guard.server.seen
        assert (received.path, received.header("x-api-key")) == (f"{CARD}?key=hunter2", "k")
        assert received.header("authorization") is None
        guard.server.script = card(b"", 302, location="https://away.example/card")
        answer = guard.ask("GET", CARD, headers=BEARERS["alice"])
        assert (answer.status, answer.header("location")) == (502, None)


# ── the page at / ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_browser_gets_a_page_without_anything_that_it_would_act_upon() -> None:
    shown = index(
        lambda: [row("/<b>/mcp", "<script>", object(), ["/bin/x", "--token=s3cret"])],
        Door(Safety(), None, Principal("anonymous", "community")),
    )

    def page(accept: str, host: str = "localhost") -> Answer:
        scope = {"method": "GET", "scheme": "http", "headers": as_pairs({"host": host, "accept": accept})}
        return answer_of(lambda receive, send: shown(scope, receive, send))

    found = page("text/html,application/xhtml+xml,*/*;q=0.8")
    assert (found.status, found.header("content-type")) == (200, "text/html; charset=utf-8")
    assert b"<td>&lt;script&gt;<td>running<td>/%3Cb%3E/mcp" in found.body
    assert b"s3cret" not in found.body
    assert page("*/*").body == b"running  /%3Cb%3E/mcp\n"
    assert page("application/json").json()["servers"][0]["server"] == "/bin/x"
    assert page("text/html", "evil.example").status == 403


# ── names of this machine ────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("name", "hosts", "url", "others", "unnamed"),
    [
        ("127.0.0.1", (), "http://127.0.0.1:80", (), False),
        ("::1", ("books.example",), "http://[::1]:80", (), False),
        ("192.0.2.7", (), "http://192.0.2.7:80", (), False),
        ("0.0.0.0", (), "http://127.0.0.1:80", (), True),  # noqa: S104 - not listened at
        ("0.0.0.0", ("books.example:443",), "http://127.0.0.1:80", ("http://books.example:80",), False),  # noqa: S104 - as above
        ("::", ("[2001:db8::1]",), "http://[::1]:80", ("http://[2001:db8::1]:80",), False),
    ],
)
def test_the_url_that_is_shown_can_be_used(
    name: str, hosts: tuple[str, ...], url: str, others: tuple[str, ...], unnamed: bool
) -> None:
    assert called(name, 80, hosts) == (url, others, unnamed)
    with socket.socket() as sock:
        notes = list(ListenAddress(sock, Safety(), url, others, unnamed).notes("/mcp"))
    assert notes[: len(others)] == [f"also at {each}/mcp" for each in others]
    assert ("--set http.hosts=NAME" in "".join(notes)) == unnamed


def test_a_refused_host_is_logged_once_with_the_setting_that_allows_it() -> None:
    advice = "if clients use this name for this machine: --set http.hosts=192.0.2.7"
    with UrlGuard() as guard:
        for _ in range(3):
            error = guard.ask("GET", host="192.0.2.7:8765").error()
        barred = "the Host '192.0.2.7' is not served here"
        assert error["data"]["detail"] == f"{barred}; the operator can allow it with http.hosts"
        assert guard.said == [f"assay: a request got 403: {barred}; {advice}"]
        assert b"http.origins" in guard.ask("GET", headers={"origin": "https://evil.example"}).body
        assert guard.said[1].endswith("if this is a page of yours: --set http.origins=https://evil.example")
        guard.ask("GET", host="a\x1b[2J b")
        assert guard.said[2] == "assay: a request got 403: the Host '' is not served here"
        for number in range(100):
            guard.ask("GET", host=f"{number}.example")
        assert len(guard.said) == MOST_NAMES

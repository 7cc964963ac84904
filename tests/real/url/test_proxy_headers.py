"""Tokens, headers and who gives them out, with a guard in front of a server at a URL."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from assay.edges.auth.api_keys import new_key, written_hash
from assay.edges.oauth_discovery import challenge, challenges_for, is_inside
from assay.edges.upstream_target import UpstreamTarget
from assay.spec.revisions import LATEST
from kit.http_client import BOTH, JSON, environment, initialize, modern, request
from kit.scripted_http import GUARD, REVISION, Peer, Received, guarding, lying

LISTING = request(1, "tools/list", {}, LATEST)


def test_headers_of_the_operator_win_over_those_of_the_client(tmp_path: Path) -> None:
    options = ("--header", "Authorization: env:TOKEN", "--header", "x-team:  blue ")
    with lying() as liar, guarding(tmp_path, liar.url, *options, env={"TOKEN": "Bearer operator"}) as guard:
        guard.post(LISTING, modern(LISTING, authorization="Bearer client", x_team="red"))
        received = liar.next()
        assert received.header("authorization") == "Bearer operator"
        assert received.header("x-team") == "blue"
        assert "operator" not in guard.log.so_far()


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("nothing", "expected 'Name: value'"),
        ("a b: c", "expected 'Name: value'"),
        ("a: env:NOWHERE", "the variable NOWHERE is not set"),
        ("a: b\nc: d", "characters that are invalid in a header"),
    ],
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, option: str, why: str) -> None:
    done = refused(tmp_path, "--target", "http://127.0.0.1:9/mcp", "--listen", "127.0.0.1:0", "--header", option)
    assert why in done


def refused(directory: Path, *options: str) -> str:
    """What a guard says that does not start."""
    done = subprocess.run(
        [*GUARD, *options],
        env=environment(directory),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "assay guard: give a COMMAND, --target URL or --config FILE.json\n"),
        (
            ("--target", "http://a/", "--listen", "127.0.0.1:0", "--", "server"),
            "assay guard: give only one of a COMMAND and --target URL\n",
        ),
        (("--target", "ftp://a/", "--listen", "127.0.0.1:0"), "--target ftp://a/: expected http://"),
        (("--target", "http://u:p@a/", "--listen", "127.0.0.1:0"), "a password in a URL"),
        (("--listen", "127.0.0.1:0", "--", "./nowhere"), "cannot start ./nowhere: No such file or directory"),
        (("--listen", "127.0.0.1:0", "--", "/etc/passwd"), "cannot start /etc/passwd: Permission denied"),
        (("--target", "http://a/", "--listen", "nowhere"), "--listen nowhere: expected HOST:PORT"),
        (
            ("--target", "http://a/", "--listen", "0.0.0.0:0"),
            "0.0.0.0 is reachable from other machines and [auth] is not configured",
        ),
        (("--listen", "127.0.0.1:0", "--header", "a: b", "--", "server"), "assay guard: --header needs --target URL\n"),
        (("--config", "mcp.json"), "--config mcp.json needs --listen ADDRESS"),
        (("--config", "a.toml", "--config", "b.toml", "--", "server"), "give only one file of settings"),
    ],
)
def test_what_is_configured_wrongly_is_told(tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    assert why in refused(tmp_path, *options)


def with_key(directory: Path) -> tuple[str, str]:
    """A settings file with a key of the guard's own, and the key."""
    key = new_key()
    file = directory / "settings.toml"
    file.write_text(f'[auth.keys.alice]\nhash = "{written_hash(key.encode())}"\n')
    return str(file), key


def test_a_token_for_the_guard_is_not_passed_on(tmp_path: Path) -> None:
    file, key = with_key(tmp_path)
    with lying() as liar, guarding(tmp_path, liar.url, "--config", file) as guard:
        assert guard.post(LISTING, modern(LISTING)).status == 401
        assert guard.post(LISTING, modern(LISTING, authorization="Bearer wrong")).status == 401
        assert liar.seen == []
        guard.post(LISTING, modern(LISTING, authorization=f"Bearer {key}"))
        assert liar.next().header("authorization") is None


def test_a_session_is_for_whom_the_guard_knows_as_the_one_who_opened_it(tmp_path: Path) -> None:
    """The server cannot tell them apart: to it all of them have the token of the guard's operator."""
    keys = {name: new_key() for name in ("alice", "bob")}
    file = tmp_path / "settings.toml"
    file.write_text("".join(f'[auth.keys.{name}]\nhash = "{written_hash(keys[name].encode())}"\n' for name in keys))
    with lying() as liar, guarding(tmp_path, liar.url, "--config", str(file)) as guard:
        hers = guard.session(REVISION, authorization=f"Bearer {keys['alice']}")
        his = {**hers, "authorization": f"Bearer {keys['bob']}"}
        before = len(liar.seen)
        assert guard.post(request(1, "ping"), his).status == 404
        assert guard.ask("GET", headers=his).status == 404
        assert guard.ask("DELETE", headers=his).status == 404
        assert len(liar.seen) == before
        assert guard.post(request(1, "ping"), hers).status == 200


# ── safety ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_foreign_page_does_not_get_through(tmp_path: Path) -> None:
    with lying() as liar, guarding(tmp_path, liar.url) as guard:
        assert guard.post(LISTING, modern(LISTING, origin="http://evil.example")).status == 403
        assert guard.ask("POST", "/mcp", LISTING, modern(LISTING), host="evil.example").status == 403
        assert guard.ask("POST", "/mcp", b"a=b", {"content-type": "text/plain"}).status == 415
        assert guard.post(LISTING, {**JSON, "accept": "image/png"}).status == 406
        assert guard.ask("GET", headers={"accept": "application/json"}).status == 406
        assert guard.ask("PUT").status == 405
        assert guard.ask("GET", "/nowhere").status == 404
        assert liar.seen == []
        friend = "http://localhost:6274"
        allowed = guard.post(LISTING, modern(LISTING, origin=friend))
        assert allowed.header("access-control-allow-origin") == friend
        preflight = guard.ask("OPTIONS", headers={"origin": friend, "access-control-request-headers": "mcp-method"})
        assert (preflight.status, preflight.header("access-control-allow-headers")) == (204, "mcp-method")


def test_too_much_at_once_is_refused(tmp_path: Path) -> None:
    def waits(_: Received, peer: Peer) -> None:
        peer.wait()

    with lying(waits) as liar, guarding(tmp_path, liar.url, "--set", "http.requests=1") as guard:
        with guard.open() as wire:
            wire.say("POST", "/mcp", json.dumps(LISTING).encode(), modern(LISTING))
            liar.next()
            assert guard.post(LISTING, modern(LISTING)).status == 503
        assert guard.ask("GET", "/readyz").body == b"ready\n"


# ── who gives out tokens ─────────────────────────────────────────────────────────────────────────────────────────────


def protected(received: Received, peer: Peer) -> None:
    origin = f"http://{received.header('host')}"
    document: dict[str, Any]
    if received.path == "/.well-known/oauth-protected-resource/mcp":
        document = {"resource": f"{origin}/mcp", "authorization_servers": ["https://login.example"]}
        peer.json(document)
    elif received.path == "/.well-known/oauth-protected-resource":
        peer.json({"resource": "https://elsewhere.example/mcp"})
    elif received.path == "/.well-known/oauth-authorization-server":
        peer.json({"issuer": origin, "token_endpoint": f"{origin}/token"})
    elif received.path.startswith("/.well-known/"):
        peer.head(404, content_length="0")
    else:
        where = f'{origin}/.well-known/oauth-protected-resource/mcp"'
        peer.head(401, www_authenticate=f'Bearer realm="a", resource_metadata="{where}, scope="b"', content_length="0")


def test_a_client_finds_its_way_to_the_authorization_server(tmp_path: Path) -> None:
    with lying(protected) as liar, guarding(tmp_path, liar.url, "--mode", "enforce") as guard:
        here = f"http://127.0.0.1:{guard.address[1]}"
        refusal = guard.post(initialize(REVISION), BOTH)
        assert refusal.status == 401
        where = f"{here}/.well-known/oauth-protected-resource/mcp"
        assert refusal.header("www-authenticate") == f'Bearer realm="a", resource_metadata="{where}", scope="b"'
        metadata = guard.ask("GET", "/.well-known/oauth-protected-resource/mcp").json()
        assert metadata == {"resource": f"{here}/mcp", "authorization_servers": ["https://login.example"]}
        foreign = guard.ask("GET", "/.well-known/oauth-protected-resource").json()
        assert foreign == {"resource": "https://elsewhere.example/mcp"}
        issuer = guard.ask("GET", "/.well-known/oauth-authorization-server").json()
        assert issuer["issuer"] == liar.url.removesuffix("/mcp")
        assert guard.ask("GET", "/.well-known/openid-configuration").status == 404
        assert guard.ask("GET", "/.well-known/oauth-protected-resource", host="evil.example").status == 403


def test_behind_a_proxy_with_tls_a_client_finds_its_way_too(tmp_path: Path) -> None:
    """The guard cannot see the scheme that the client uses."""
    public = "https://mcp.example.com"
    options = ("--mode", "enforce", "--set", f"http.public_url={public}")
    with lying(protected) as liar, guarding(tmp_path, liar.url, *options) as guard:
        refusal = guard.post(initialize(REVISION), {**BOTH, "host": "mcp.example.com"})
        where = f"{public}/.well-known/oauth-protected-resource/mcp"
        assert refusal.header("www-authenticate") == f'Bearer realm="a", resource_metadata="{where}", scope="b"'
        metadata = guard.ask("GET", "/.well-known/oauth-protected-resource/mcp", host="mcp.example.com").json()
        assert metadata["resource"] == f"{public}/mcp"


@pytest.mark.parametrize("wrong", ["mcp.example.com", "https://a.example/mcp", "ftp://a.example", "https://a b"])
def test_a_public_url_has_a_scheme_and_a_host(wrong: str) -> None:
    from assay.settings.http_section import Http

    with pytest.raises(ValueError, match="a scheme and a host"):
        Http(public_url=wrong)


@pytest.mark.parametrize(
    ("url", "inside"),
    [
        ("https://a.example/mcp", True),
        ("https://A.example:443", True),
        ("http://a.example/mcp", False),
        ("https://a.example.evil/mcp", False),
        ("https://a.example:8443/mcp", False),
        ("https://a.example:x/", False),
        ("", False),
    ],
)
def test_only_what_is_at_the_server_counts_as_its_own(url: str, inside: bool) -> None:
    assert is_inside(url, "https://a.example") == inside
    given = f'Bearer resource_metadata="{url}"'.encode()
    ours = b'Bearer resource_metadata="http://g/.well-known/oauth-protected-resource/mcp"'
    target = UpstreamTarget("https://a.example/mcp")
    led = challenge(given, target, "http://g/.well-known/oauth-protected-resource/mcp")
    assert led == (ours if inside else given)
    assert (target.metadata is not None) == inside


POINTER = 'resource_metadata="http://g/m"'


@pytest.mark.parametrize(
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
    target = UpstreamTarget("https://a.example/mcp")
    values = [each.encode() for each in given]
    assert challenges_for(values, 401, target, "http://g/m") == [each.encode() for each in led]
    assert (target.challenged, target.metadata) == (True, None)
    target = UpstreamTarget("https://a.example/mcp")
    assert challenges_for(values, 403, target, "http://g/m") == values
    assert (target.challenged, target.metadata) == (False, None)


@pytest.mark.parametrize(
    ("named", "led", "remembered"),
    [
        pytest.param("https://a.example/n?o=1#p", "http://g/m", "/n?o=1", id="at-the-server"),
        pytest.param("https://a.example", "http://g/m", "/", id="at-its-root"),
        pytest.param("https://a.example/" + "n" * 3000, "http://g/m", None, id="too-long"),
        pytest.param("https://a.example/\x7fn", "http://g/m", None, id="that-nobody-can-ask-for"),
        pytest.param("https://G/n", "https://g/m", "/n", id="at-an-address-that-is-the-guard's"),
        pytest.param("https://b.example/n", "https://b.example/n", None, id="elsewhere"),
        pytest.param("https://g@b.example/n", "https://g@b.example/n", None, id="elsewhere-in-disguise"),
        pytest.param("ftp://g/n", "ftp://g/n", None, id="no-http"),
        pytest.param("https://[/n", "https://[/n", None, id="no-url"),
    ],
)
@pytest.mark.parametrize("status", [401, 403])
def test_what_a_challenge_names_is_remembered_if_it_is_the_servers(
    named: str, led: str, remembered: str | None, status: int
) -> None:
    target = UpstreamTarget("https://a.example/mcp")
    values = [f'Bearer resource_metadata="{named}", scope="a"'.encode()]
    expected = [f'Bearer resource_metadata="{led}", scope="a"'.encode()]
    assert challenges_for(values, status, target, "http://g/m") == expected
    assert target.metadata == remembered
    assert target.challenged == (status == 401 and led.endswith("://g/m"))


def metadata_at(place: str | None, *, named: bool) -> Any:
    """A server that wants a token, and has metadata at *place*, if anywhere; perhaps it says so."""

    def script(received: Received, peer: Peer) -> None:
        origin = f"http://{received.header('host')}"
        if received.path == place:
            peer.json({"resource": f"{origin}/mcp", "authorization_servers": ["https://login.example"]})
        elif received.method == "GET":
            peer.head(404, content_length="0")
        else:
            asks = {"www_authenticate": f'Bearer resource_metadata="{origin}{place}"'} if named else {}
            peer.head(401, content_length="0", **asks)

    return script


@pytest.mark.parametrize("mode", ["enforce", "audit"])
def test_metadata_are_found_wherever_the_server_has_them(tmp_path: Path, mode: str) -> None:
    """RFC 9728, 5.1: it may name any URL. And 2025-03-26 has none: there the server itself gives out tokens."""
    with lying() as liar, guarding(tmp_path, liar.url, "--mode", mode) as guard:
        here = f"http://127.0.0.1:{guard.address[1]}"
        path = "/.well-known/oauth-protected-resource/mcp"
        liar.script = metadata_at(None, named=False)
        assert guard.ask("GET", path).status == 404, "nobody has been asked for a token"
        for place, named in (("/any/where.json?a=b", True), ("/.well-known/oauth-protected-resource", False)):
            liar.script = metadata_at(place, named=named)
            refusal = guard.post(initialize(REVISION), BOTH)
            assert (refusal.status, refusal.header("www-authenticate")) == (
                401,
                f'Bearer resource_metadata="{here}{path}"',
            )
            found = guard.ask("GET", path).json()
            assert found == {"resource": f"{here}/mcp", "authorization_servers": ["https://login.example"]}
        liar.script = metadata_at(None, named=False)
        own = {"resource": f"{here}/mcp", "authorization_servers": [liar.url.removesuffix("/mcp")]}
        assert guard.ask("GET", path).json() == own
        assert guard.ask("GET", "/.well-known/oauth-protected-resource").json() == own
        assert guard.ask("GET", "/.well-known/oauth-authorization-server").status == 404


def test_a_place_that_nobody_can_ask_for_hides_no_metadata(tmp_path: Path) -> None:
    with lying() as liar, guarding(tmp_path, liar.url) as guard:
        here = f"http://127.0.0.1:{guard.address[1]}"
        liar.script = metadata_at("/\x7f", named=True)
        assert guard.post(initialize(REVISION), BOTH).status == 401
        found = guard.ask("GET", "/.well-known/oauth-protected-resource/mcp")
        assert (found.status, found.json()["resource"]) == (200, f"{here}/mcp")


def test_metadata_elsewhere_are_not_fetched_by_the_guard(tmp_path: Path) -> None:
    """What a server names may be where only the guard can go."""
    with lying() as other, lying() as liar, guarding(tmp_path, liar.url) as guard:
        elsewhere = f'Bearer resource_metadata="{other.url}/metadata"'
        liar.script = lambda received, peer: peer.head(
            401 if received.method == "POST" else 404, content_length="0", www_authenticate=elsewhere
        )
        assert guard.post(initialize(REVISION), BOTH).header("www-authenticate") == elsewhere
        assert guard.ask("GET", "/.well-known/oauth-protected-resource/mcp").status == 404
        assert other.seen == []

"""Keys of an issuer over HTTP: a server on this machine that changes them, is slow, is down, or sends nonsense."""

import gzip
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import trustme

from assay.edges.auth import Denied, Principal, key_source
from assay.edges.auth.api_keys import new_key, written_hash
from assay.settings import Auth
from kit.issuers import SECONDS, Issuer, bearer, issuer, jwt_section, key_set, setup, signer, with_url
from kit.rows import rows

NO_KEYS = Denied(401, b'Bearer realm="assay"', "the keys that verify tokens are unavailable")

GOOD = bearer(signer().token())


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that no process listens on, nor can: it is bound, or another one could get it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_keys_are_asked_for_and_new_ones_used_whatever_proxy_the_environment_has(
    monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(key_source, "TIMEOUT", SECONDS)
    second = signer("ES256", "two")
    with issuer(signer()) as served:
        found = with_url(served)
        assert found.admit(GOOD) == Principal("alice", "community")
        served.body = key_set(signer(), second)
        found.clock.now += 30
        assert found.name(bearer(second.token())) == "alice"
        assert served.asked == ["/keys", "/keys"]
        assert found.said == [f"auth: {count} keys from {served.url}" for count in (1, 2)]


def redirect(state: Issuer) -> None:
    state.status, state.headers = 302, {"Location": state.url + "/other"}


def compress(state: Issuer) -> None:
    state.body, state.headers = gzip.compress(state.body), {"Content-Encoding": "gzip"}


def writes(data: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    """Writes *data* in place of an answer, and ends."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(data)
        request.close_connection = True

    return answer


def pour(request: BaseHTTPRequestHandler) -> None:
    """More than anybody wants, without an end and without saying how much."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        request.wfile.write(b" " * 65536)


Change = Callable[[Issuer], Any]


def does(answer: Callable[[BaseHTTPRequestHandler], None]) -> Change:
    return lambda state: setattr(state, "answer", answer)


def says(body: bytes, status: int = 200) -> Change:
    def change(state: Issuer) -> None:
        state.body, state.status = body, status

    return change


@rows(
    ("change", "reason"),
    [
        (says(b"oops", 500), "HTTP status 500"),
        (redirect, "HTTP status 302"),
        (compress, "compressed, although that was not requested"),
        *(
            (says(body), "not a JSON Web Key Set")
            for body in (b"<html>", b"\xff\x00", b"", b"[" * 100_000, b'{"keys": "none"}', b'{"keys": [], "keys": []}')
        ),
        (says(b" " * 300_000), "more than 256 KiB"),
        (does(pour), "more than 256 KiB"),
        (does(writes(b"")), "no HTTP response, or an incomplete one"),
        (does(writes(b"220 mail.example ESMTP\r\n")), "no HTTP response, or an incomplete one"),
        (
            does(writes(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"keys": [')),
            "no HTTP response, or an incomplete one",
        ),
    ],
)
def test_without_good_keys_no_token_can_be_checked_and_good_ones_go_on_being_used(
    monkeypatch: pytest.MonkeyPatch, change: Change, reason: str
) -> None:
    monkeypatch.setattr(key_source, "TIMEOUT", SECONDS)
    with issuer(signer()) as served:
        kept, none = with_url(served), with_url(served)
        assert kept.name(GOOD) == "alice"
        change(served)
        assert none.admit(GOOD) == NO_KEYS
        assert none.said == [f"auth: no keys from {served.url}: {reason}; no token can be verified"]
        kept.clock.now += 3600
        assert kept.name(bearer(signer().token(exp=kept.clock.now + 60))) == "alice"
        assert kept.said[1:] == [f"auth: no keys from {served.url}: {reason}; the previous keys stay in use"]
        assert len(served.asked) == 3


def never(state: Issuer) -> Callable[[BaseHTTPRequestHandler], None]:
    """Takes the request, and does not answer."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        state.end.wait(SECONDS)
        request.close_connection = True

    return answer


def drip(state: Issuer) -> Callable[[BaseHTTPRequestHandler], None]:
    """A byte now and then, so that no single wait takes long."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not state.end.wait(0.02):
            request.wfile.write(b" ")
        request.close_connection = True

    return answer


@rows("slow", [never, drip])
def test_an_issuer_that_is_slow_is_waited_for_no_longer_than_allowed(
    monkeypatch: pytest.MonkeyPatch, slow: Callable[[Issuer], Any]
) -> None:
    monkeypatch.setattr(key_source, "TIMEOUT", 0.1)
    with issuer(signer()) as served:
        served.answer = slow(served)
        found = with_url(served)
        assert found.admit(GOOD) == NO_KEYS
        assert found.said == [f"auth: no keys from {served.url}: no response in time; no token can be verified"]


def test_an_issuer_that_is_not_there_or_not_vouched_for_has_no_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    """Not even if a variable says that its certificate is good."""
    for url in (f"http://127.0.0.1:{closed_port}/keys", "https://a..b/keys", f"https://{'a' * 64}.example/keys"):
        found = setup(Auth(jwt=jwt_section(f"{url}?token=s3cret")))
        assert found.admit(GOOD) == NO_KEYS
        [line] = found.said
        assert line.startswith(f"auth: no keys from {url}: no connection: ")
        assert "s3cret" not in line
    authority, path = trustme.CA(), tmp_path / "own.pem"
    authority.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(SECONDS)
        thread = threading.Thread(target=shake_hands, args=(listening, context))
        thread.start()
        found = setup(Auth(jwt=jwt_section(f"https://127.0.0.1:{listening.getsockname()[1]}/keys")))
        assert found.admit(GOOD) == NO_KEYS
        thread.join(SECONDS)
    assert "unable to get local issuer certificate" in found.said[0]


def test_keys_need_nothing_that_only_tokens_need(tmp_path: Path) -> None:
    key = new_key()
    (tmp_path / "assay.toml").write_text(f'[auth.keys.ci]\nhash = "{written_hash(key.encode())}"\n')
    program = (
        "import sys\n"
        "from assay.settings import load\n"
        "from assay.edges.auth import Gate, Principal\n"
        "gate = Gate.read(load({}, '.').auth, cwd='.', tier='pro')\n"
        f"assert gate.known({bearer(key)!r}) == Principal('ci', 'pro')\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True, timeout=SECONDS
    )
    only_tokens = {b"jwt", b"aiohttp", b"cryptography", b"assay.edges.auth.tokens", b"assay.edges.auth.key_source"}
    assert not only_tokens & set(done.stdout.split())


def shake_hands(listening: socket.socket, context: ssl.SSLContext) -> None:
    """One connection, as far as it goes."""
    connection, _ = listening.accept()
    connection.settimeout(SECONDS)
    try:
        context.wrap_socket(connection, server_side=True).close()
    except OSError:
        connection.close()

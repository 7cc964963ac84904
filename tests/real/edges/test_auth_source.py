"""Where keys come from: a server on this machine that changes them, is slow, is down, or talks nonsense."""

import asyncio
import gzip
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from assay.edges.auth import Denied, Principal, key_source
from assay.settings import Auth, SettingsError
from kit.issuers import (
    SECONDS,
    Issuer,
    Setup,
    bearer,
    forged,
    issuer,
    jwt_section,
    key_set,
    run,
    setup,
    signer,
    with_file,
    with_url,
)

NO_KEYS = Denied(401, b'Bearer realm="assay"', "the keys that verify tokens are unavailable")
UNKNOWN = "the token is signed with an unknown key"
WRONG = "the signature of the token is invalid"

GOOD = bearer(signer().token())


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    """An issuer with one key, which is waited for as long as a test may take."""
    monkeypatch.setattr(key_source, "TIMEOUT", SECONDS)
    with issuer(signer()) as state:
        yield state


# ── when keys are asked for ──────────────────────────────────────────────────────────────────────────────────────────


def test_nobody_is_asked_before_the_first_token(served: Issuer) -> None:
    found = with_url(served)
    for header in (b"", bearer("assay_x"), bearer("a.b.c"), bearer(forged({"alg": "none"}))):
        assert isinstance(found.admit(header), Denied)
    assert served.asked == []
    assert found.admit(GOOD) == Principal("alice", "community")
    assert served.asked == ["/keys"]
    assert found.said == [f"auth: 1 keys from {served.url}"]


def test_keys_are_kept_for_an_hour(served: Issuer) -> None:
    found = with_url(served)
    assert found.name(GOOD) == "alice"
    for number, (after, times) in enumerate([(3599, 1), (1, 2), (3599, 2), (1, 3)]):
        found.clock.now += after
        assert (
            found.name(bearer(signer().token(sub=f"holder {number}", exp=found.clock.now + 60))) == f"holder {number}"
        )
        assert len(served.asked) == times
    # Nothing changed: there is nothing to say.
    assert len(found.said) == 1


def test_a_key_that_is_not_known_is_asked_for(served: Issuer) -> None:
    """Rotation: a new key is used as soon as it is there."""
    found, second = with_url(served), signer("ES256", "two")
    assert found.name(GOOD) == "alice"
    served.body = key_set(signer(), second)
    found.clock.now += 30
    assert found.name(bearer(second.token())) == "alice"
    assert found.name(bearer(signer().token(sub="bob"))) == "bob"
    assert len(served.asked) == 2
    assert found.said[1:] == [f"auth: 2 keys from {served.url}"]


def test_made_up_keys_make_no_flood(served: Issuer) -> None:
    found = with_url(served)
    assert found.name(GOOD) == "alice"
    for number in range(50):
        assert found.reason(bearer(forged({"alg": "ES256", "kid": f"made up {number}"}))) == UNKNOWN
    assert len(served.asked) == 1
    found.clock.now += 29.9
    assert found.reason(bearer(forged({"alg": "ES256", "kid": "x"}))) == UNKNOWN
    assert len(served.asked) == 1
    found.clock.now += 0.1
    for number in range(50):
        assert found.reason(bearer(forged({"alg": "ES256", "kid": f"made up {number}"}))) == UNKNOWN
    assert len(served.asked) == 2


def test_a_wrong_signature_asks_nobody(served: Issuer) -> None:
    found = with_url(served)
    assert found.name(GOOD) == "alice"
    found.clock.now += 100
    assert found.reason(bearer(signer("ES256", "other").token(header={"kid": "one"}))) == WRONG
    assert len(served.asked) == 1


def test_a_clock_that_is_set_back_does_not_keep_keys_for_ever(served: Issuer) -> None:
    found = with_url(served)
    found.clock.now += 1_000_000
    assert found.name(bearer(signer().token(exp=found.clock.now + 60))) == "alice"
    found.clock.now -= 1_000_000
    assert found.name(GOOD) == "alice"
    assert len(served.asked) == 2


# ── keys that are withdrawn ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_withdrawn_key_takes_its_tokens_with_it(served: Issuer) -> None:
    """Also those that are remembered, at the latest after an hour."""
    found, second = with_url(served), signer("ES256", "two")
    long = bearer(signer().token(exp=found.clock.now + 1_000_000))
    assert found.name(long) == "alice"
    served.body = key_set(second)
    found.clock.now += 3599
    assert found.gate.known(long) is not None
    found.clock.now += 1
    assert found.gate.known(long) is None
    assert found.reason(long) == UNKNOWN
    assert found.gate.known(long) is None


def test_a_new_key_leaves_what_is_remembered_alone(served: Issuer) -> None:
    found, second = with_url(served), signer("ES256", "two")
    assert found.name(GOOD) == "alice"
    served.body = key_set(signer(), second)
    found.clock.now += 30
    assert found.name(bearer(second.token())) == "alice"
    assert found.gate.known(GOOD) is not None


def test_a_set_without_keys_withdraws_all(served: Issuer) -> None:
    found = with_url(served)
    assert found.name(GOOD) == "alice"
    served.body = b'{"keys": []}'
    found.clock.now += 3600
    assert found.reason(bearer(signer().token(exp=found.clock.now + 60))) == UNKNOWN
    assert found.said[1:] == [f"auth: 0 keys from {served.url}"]


def test_the_same_kid_for_another_key_is_another_key(served: Issuer) -> None:
    found = with_url(served)
    long = bearer(signer().token(exp=found.clock.now + 10_000))
    assert found.name(long) == "alice"
    served.body = key_set(signer("EdDSA", "one"))
    found.clock.now += 3600
    assert found.reason(long) == UNKNOWN


# ── issuers that are not there ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody listens on, nor can: it is bound, or another process could get it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def redirect(state: Issuer) -> None:
    state.status, state.headers = 302, {"Location": state.url + "/elsewhere"}


def compress(state: Issuer) -> None:
    state.body, state.headers = gzip.compress(state.body), {"Content-Encoding": "gzip"}


def answer_nothing(request: BaseHTTPRequestHandler) -> None:
    request.close_connection = True


def answer_no_http(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"220 mail.example ESMTP\r\n")
    request.close_connection = True


def break_off(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"keys": [')
    request.close_connection = True


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


failures = pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(says(b"oops", 500), "HTTP status 500", id="500"),
        pytest.param(says(b"", 204), "HTTP status 204", id="204"),
        pytest.param(redirect, "HTTP status 302", id="redirect"),
        pytest.param(compress, "compressed, although that was not requested", id="compressed"),
        pytest.param(says(b"<html>"), "not a JSON Web Key Set", id="html"),
        pytest.param(says(b"\xff\x00"), "not a JSON Web Key Set", id="garbage"),
        pytest.param(says(b""), "not a JSON Web Key Set", id="nothing"),
        pytest.param(says(b"[" * 100_000), "not a JSON Web Key Set", id="deep"),
        pytest.param(says(b'{"keys": "none"}'), "not a JSON Web Key Set", id="other-json"),
        pytest.param(says(b'{"keys": [], "keys": []}'), "not a JSON Web Key Set", id="repeated-key"),
        pytest.param(says(b" " * 300_000), "more than 256 KiB", id="huge"),
        pytest.param(does(pour), "more than 256 KiB", id="without-an-end"),
        pytest.param(does(answer_nothing), "no HTTP response, or an incomplete one", id="closes"),
        pytest.param(does(answer_no_http), "no HTTP response, or an incomplete one", id="no-http"),
        pytest.param(does(break_off), "no HTTP response, or an incomplete one", id="breaks-off"),
    ],
)


@failures
def test_without_keys_no_token_can_be_checked(served: Issuer, change: Change, reason: str) -> None:
    change(served)
    found = with_url(served)
    assert found.admit(GOOD) == NO_KEYS
    assert found.said == [f"auth: no keys from {served.url}: {reason}; no token can be verified"]


@failures
def test_the_old_keys_go_on_being_used(served: Issuer, change: Change, reason: str) -> None:
    found = with_url(served)
    assert found.name(GOOD) == "alice"
    change(served)
    found.clock.now += 3600
    assert found.name(bearer(signer().token(exp=found.clock.now + 60))) == "alice"
    assert found.reason(bearer(forged({"alg": "ES256", "kid": "x"}))) == UNKNOWN
    assert found.said[1:] == [f"auth: no keys from {served.url}: {reason}; the previous keys stay in use"]
    assert len(served.asked) == 2


def test_an_issuer_that_is_down_is_asked_again_soon() -> None:
    with issuer(signer()) as served:
        url, served.body = served.url, b""
        found = setup(Auth(jwt=jwt_section(url)))
        for after, times in ((0, 1), (4.9, 1), (0.1, 2), (4.9, 2)):
            found.clock.now += after
            assert found.admit(GOOD) == NO_KEYS
            assert len(served.asked) == times
        served.body = key_set(signer())
        found.clock.now += 0.1
        assert found.name(GOOD) == "alice"
        assert found.said[1:] == [f"auth: 1 keys from {url}"]


def test_nobody_listens(closed_port: int) -> None:
    url = f"http://127.0.0.1:{closed_port}/keys?token=s3cret"
    found = setup(Auth(jwt=jwt_section(url)))
    assert found.admit(GOOD) == NO_KEYS
    [line] = found.said
    assert line.startswith(f"auth: no keys from {url.partition('?')[0]}: no connection: ")
    assert "s3cret" not in line


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
def test_a_host_that_cannot_be_one_has_no_keys(host: str) -> None:
    found = setup(Auth(jwt=jwt_section(f"https://{host}/keys")))
    assert found.admit(GOOD) == NO_KEYS
    assert found.said[0].startswith(f"auth: no keys from https://{host}/keys: no connection: ")


def test_an_address_that_cannot_be_asked_stops_the_server_before_it_starts() -> None:
    for host in ("a" * 70_000, "1.2.3.999", "a\tb"):
        with pytest.raises(SettingsError, match=r"^auth\.jwt\.jwks: https://.*: not a valid URL$"):
            setup(Auth(jwt=jwt_section(f"https://{host}/keys?token=s3cret")))


def test_keys_come_back_with_the_issuer(served: Issuer) -> None:
    found = with_url(served)
    assert found.name(GOOD) == "alice"
    good, served.body = served.body, b"x"
    found.clock.now += 3600
    later = bearer(signer().token(exp=found.clock.now + 10_000))
    assert found.name(later) == "alice"
    for _ in range(3):
        found.clock.now += 30
        assert found.name(later) == "alice"
    served.body = good
    found.clock.now += 30
    assert found.name(later) == "alice"
    run(settled(found))
    assert len(found.said) == 3
    assert found.said[2] == f"auth: 1 keys from {served.url}"


async def settled(found: Setup) -> None:
    """Asks for a key that is not there, which waits for whatever is under way."""
    found.clock.now += 30
    await found.gate.verify(bearer(forged({"alg": "ES256", "kid": "x"})))


# ── issuers that are slow ────────────────────────────────────────────────────────────────────────────────────────────


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


@pytest.mark.parametrize("slow", [never, drip])
def test_an_issuer_that_is_slow_is_waited_for_no_longer_than_allowed(
    served: Issuer, monkeypatch: pytest.MonkeyPatch, slow: Callable[[Issuer], Any]
) -> None:
    monkeypatch.setattr(key_source, "TIMEOUT", 0.2)
    served.answer = slow(served)
    found = with_url(served)
    assert found.admit(GOOD) == NO_KEYS
    assert found.said == [f"auth: no keys from {served.url}: no response in time; no token can be verified"]


def test_who_failed_once_is_not_waited_for_again(served: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: with keys in hand, an issuer that hangs costs one wait, and not one every half minute."""
    found = with_url(served)
    assert found.name(GOOD) == "alice"
    good = signer().token(exp=found.clock.now + 10_000)
    monkeypatch.setattr(key_source, "TIMEOUT", 0.1)
    served.answer = never(served)
    found.clock.now += 3600
    assert found.name(bearer(good)) == "alice"
    monkeypatch.setattr(key_source, "TIMEOUT", 10 * SECONDS)
    found.clock.now += 30

    async def both() -> None:
        # The first begins a request that nobody answers; neither waits for it.
        assert found.gate.known(bearer(good)) is None
        assert isinstance(await found.gate.verify(bearer(good)), Principal)
        assert isinstance(found.gate.known(bearer(good)), Principal)
        assert isinstance(
            await found.gate.verify(bearer(signer().token(sub="bob", exp=found.clock.now + 60))), Principal
        )

    run(both())
    served.end.set()


def test_the_limits_are_these() -> None:
    assert (key_source.TIMEOUT, key_source.SET_BYTES, key_source.HOUR, key_source.AGAIN) == (5, 262_144, 3600, 30)


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


def held(state: Issuer) -> threading.Event:
    """From now on requests are answered when the event is set, and not before."""
    release = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        while not release.wait(0.01) and not state.end.is_set():
            pass
        state.answer = None
        state.asked.pop()
        state.handle(request)

    state.answer = answer
    return release


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("first", [True, False])
def test_many_at_once_make_one_request(served: Issuer, first: bool) -> None:
    """Before there are any keys, and for one that is not known yet."""
    found, second = with_url(served), signer("ES256", "two")
    served.body = key_set(signer(), second)
    before = 0
    if not first:
        served.body = key_set(signer())
        assert found.name(GOOD) == "alice"
        found.clock.now += 30
        served.body, before = key_set(signer(), second), 1
    release = held(served)
    headers = [bearer(second.token(sub=f"holder {number}")) for number in range(100)]

    async def all_of_them() -> list[Principal | Denied]:
        tasks = [asyncio.create_task(found.gate.verify(header)) for header in headers]
        await until(lambda: len(served.asked) > before)
        assert not any(task.done() for task in tasks)
        release.set()
        return await asyncio.gather(*tasks)

    assert run(all_of_them()) == [Principal(f"holder {number}", "community") for number in range(100)]
    assert len(served.asked) == before + 1


def test_who_goes_away_takes_nothing_from_the_others(served: Issuer) -> None:
    """The client whose token began the request hangs up; the one behind it gets its answer, from the same request."""
    found, release = with_url(served), held(served)

    async def two() -> Principal | Denied:
        first = asyncio.create_task(found.gate.verify(GOOD))
        second = asyncio.create_task(found.gate.verify(GOOD))
        await until(lambda: bool(served.asked))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        release.set()
        return await second

    assert run(two()) == Principal("alice", "community")
    assert len(served.asked) == 1


def test_a_request_that_takes_long_is_not_made_twice(served: Issuer) -> None:
    found, release = with_url(served), held(served)

    async def two() -> list[Principal | Denied]:
        first = asyncio.create_task(found.gate.verify(GOOD))
        await until(lambda: bool(served.asked))
        found.clock.now += 100
        second = asyncio.create_task(found.gate.verify(GOOD))
        await asyncio.sleep(0)
        release.set()
        return list(await asyncio.gather(first, second))

    assert run(two()) == [Principal("alice", "community")] * 2
    assert len(served.asked) == 1


def test_known_tokens_do_not_wait_for_unknown_keys(served: Issuer) -> None:
    found = with_url(served)
    assert found.name(GOOD) == "alice"
    found.clock.now += 30
    release = held(served)

    async def two() -> None:
        stranger = asyncio.create_task(found.gate.verify(bearer(forged({"alg": "ES256", "kid": "x"}))))
        await until(lambda: len(served.asked) == 2)
        assert isinstance(found.gate.known(GOOD), Principal)
        assert isinstance(await found.gate.verify(bearer(signer().token(sub="bob"))), Principal)
        assert not stranger.done()
        release.set()
        assert isinstance(await stranger, Denied)

    run(two())


def test_a_loop_that_ended_in_the_middle_leaves_nothing_broken(served: Issuer) -> None:
    found, release = with_url(served), held(served)

    async def cut_short() -> None:
        asyncio.get_running_loop().create_task(found.gate.verify(GOOD))
        await until(lambda: bool(served.asked))

    run(cut_short())
    release.set()
    assert found.admit(GOOD) == NO_KEYS
    found.clock.now += 5
    assert found.name(GOOD) == "alice"


def test_a_request_that_was_cut_short_is_not_waited_for(served: Issuer) -> None:
    found, stranger = with_url(served), bearer(forged({"alg": "ES256", "kid": "x"}))
    assert found.name(GOOD) == "alice"
    found.clock.now += 30
    release = held(served)

    async def cut_short() -> None:
        asyncio.get_running_loop().create_task(found.gate.verify(stranger))
        await until(lambda: len(served.asked) == 2)

    run(cut_short())
    release.set()
    assert found.reason(stranger) == UNKNOWN


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_read_again_for_a_key_that_is_not_known(tmp_path: Path) -> None:
    found, second = with_file(tmp_path, signer()), signer("ES256", "two")
    assert found.said == ["auth: 1 keys from keys.json"]
    (tmp_path / "keys.json").write_bytes(key_set(second))
    assert found.reason(bearer(second.token())) == UNKNOWN
    found.clock.now += 30
    assert found.name(bearer(second.token())) == "alice"
    assert found.reason(GOOD) == UNKNOWN


def test_a_file_that_goes_away_leaves_its_keys(tmp_path: Path) -> None:
    found = with_file(tmp_path, signer())
    (tmp_path / "keys.json").unlink()
    found.clock.now += 3600
    assert found.name(bearer(signer().token(exp=found.clock.now + 60))) == "alice"
    said = "auth: no keys from keys.json: No such file or directory; the previous keys stay in use"
    assert found.said[1:] == [said]


# ── whom we ask ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_proxy_of_the_environment_is_used(served: Issuer, monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setitem(os.environ, name, f"http://127.0.0.1:{closed_port}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert with_url(served).name(GOOD) == "alice"


def test_a_server_that_nobody_vouches_for_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if a variable says that its certificate is good."""
    path = tmp_path / "own.pem"
    path.write_bytes(own_certificate())
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(SECONDS)
        thread = threading.Thread(target=shake_hands, args=(listening, context))
        thread.start()
        found = setup(Auth(jwt=jwt_section(f"https://127.0.0.1:{listening.getsockname()[1]}/keys")))
        assert found.admit(GOOD) == NO_KEYS
        thread.join(SECONDS)
    assert "self-signed certificate" in found.said[0]


def own_certificate() -> bytes:
    key, name = signer("RS256").private, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    today = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + certificate.public_bytes(Encoding.PEM)


def shake_hands(listening: socket.socket, context: ssl.SSLContext) -> None:
    """One connection, as far as it goes."""
    connection, _ = listening.accept()
    connection.settimeout(SECONDS)
    try:
        context.wrap_socket(connection, server_side=True).close()
    except OSError:
        connection.close()

"""An issuer of tokens for tests: real keys, real signatures, and a real server for its keys."""

import asyncio
import base64
import hmac
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

from assay.edges.auth import Denied, Gate, Principal
from assay.settings import Auth, Jwt

SECONDS = 60
"""What anything here may take; it takes a fraction of a second."""

NOW = 1_800_000_000.0
ISSUER = "https://issuer.example"
AUDIENCE = "https://assay.example/mcp"

Result = TypeVar("Result")


def run(doing: Coroutine[Any, Any, Result]) -> Result:
    async def bounded() -> Result:
        async with asyncio.timeout(SECONDS):
            return await doing

    return asyncio.run(bounded())


@dataclass
class Clock:
    """Stands still, unless it is moved."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


# ── keys and tokens ──────────────────────────────────────────────────────────────────────────────────────────────────


class Signer:
    """One key of an issuer."""

    def __init__(self, kid: str, algorithm: str, private: Any) -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.private = private

    def jwk(self, **more: Any) -> dict[str, Any]:
        """Its public half; what is None is left out."""
        members = {**_public(self.private.public_key()), "kid": self.kid, "use": "sig", "alg": self.algorithm, **more}
        return {name: value for name, value in members.items() if value is not None}

    def token(self, *, header: dict[str, Any] | None = None, algorithm: str = "", **claims: Any) -> bytes:
        """A good token, but for what *claims* say; what is None is left out."""
        every = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": int(NOW) + 300, **claims}
        return jwt.encode(
            {name: value for name, value in every.items() if value is not None},
            self.private,
            algorithm=algorithm or self.algorithm,
            headers={"kid": self.kid} if header is None else header,
        ).encode()


def _public(key: Any) -> dict[str, str]:
    """RFC 7518 §6, RFC 8037 §2."""
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        return {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
    if isinstance(key, ec.EllipticCurvePublicKey):
        point, bits = key.public_numbers(), key.curve.key_size
        names = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
        name = names.get(key.curve.name, key.curve.name)
        return {"kty": "EC", "crv": name, "x": _number(point.x, bits), "y": _number(point.y, bits)}
    name = "Ed448" if isinstance(key, ed448.Ed448PublicKey) else "Ed25519"
    return {"kty": "OKP", "crv": name, "x": b64(key.public_bytes_raw()).decode()}


def _number(number: int, bits: int = 0) -> str:
    return b64(number.to_bytes(((bits or number.bit_length()) + 7) // 8, "big")).decode()


_PRIVATE: dict[str, Callable[[], Any]] = {
    "R": lambda: rsa.generate_private_key(65537, 2048),
    "P": lambda: rsa.generate_private_key(65537, 2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ES512": lambda: ec.generate_private_key(ec.SECP521R1()),
    "Ed448": ed448.Ed448PrivateKey.generate,
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


@cache
def signer(algorithm: str = "ES256", kid: str = "one") -> Signer:
    """The same key for the same two words."""
    make = next(_PRIVATE[start] for start in _PRIVATE if algorithm.startswith(start))
    return Signer(kid, "EdDSA" if algorithm == "Ed448" else algorithm, make())


def b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def forged(header: Any, claims: Any = None, sign: Callable[[bytes], bytes] = lambda _: b"x") -> bytes:
    """A token of any making."""
    every = {"iss": ISSUER, "aud": AUDIENCE, "sub": "mallory", "exp": int(NOW) + 300} if claims is None else claims
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, every)]
    signed = b".".join(b64(part) for part in parts)
    return signed + b"." + b64(sign(signed))


def mac(secret: bytes) -> Callable[[bytes], bytes]:
    """Signs as HS256 does."""
    return lambda signed: hmac.digest(secret, signed, sha256)


def bearer(token: bytes | str) -> bytes:
    return b"Bearer " + (token if isinstance(token, bytes) else token.encode())


def key_set(*signers: Signer) -> bytes:
    return json.dumps({"keys": [each.jwk() for each in signers]}).encode()


# ── gates ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Setup:
    """A gate, and what surrounds it."""

    gate: Gate
    clock: Clock
    said: list[str]

    def admit(self, header: bytes) -> Principal | Denied:
        """As the HTTP edge does it."""

        async def admitted() -> Principal | Denied:
            found = self.gate.known(header)
            return found if found is not None else await self.gate.verify(header)

        return run(admitted())

    def reason(self, header: bytes) -> str:
        found = self.admit(header)
        assert isinstance(found, Denied), found
        return found.reason

    def name(self, header: bytes) -> str:
        found = self.admit(header)
        assert isinstance(found, Principal), found
        return found.name


def setup(section: Auth, cwd: Path | str = ".", *, tier: str = "community") -> Setup:
    clock, said = Clock(), list[str]()
    gate = Gate.read(section, cwd=cwd, tier=tier, log=said.append, clock=clock)
    assert gate is not None
    return Setup(gate, clock, said)


def jwt_section(jwks: str, **more: Any) -> Jwt:
    return Jwt(jwks=jwks, **{"audience": (AUDIENCE,), "issuer": ISSUER, **more})


def with_file(directory: Path, *signers: Signer, **more: Any) -> Setup:
    """A gate with the keys of *signers* from a file."""
    (directory / "keys.json").write_bytes(key_set(*signers))
    return setup(Auth(jwt=jwt_section("keys.json", **more)), directory)


# ── a server for keys ────────────────────────────────────────────────────────────────────────────────────────────────


Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Issuer:
    """Gives out keys, or does something else, at an address on this machine."""

    port: int = 0
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    answer: Answer | None = None
    """What is done in place of answering."""
    asked: list[str] = field(default_factory=list)
    end: threading.Event = field(default_factory=threading.Event)
    """Is set when the test is over: who waits for something waits no longer than that."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/keys"

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        if self.answer is not None:
            self.answer(request)
            return
        request.send_response(self.status)
        for name, value in {"Content-Length": str(len(self.body)), **self.headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(self.body)


@contextmanager
def issuer(*signers: Signer) -> Iterator[Issuer]:
    """An issuer with the keys of *signers*."""
    state = Issuer(body=key_set(*signers))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                state.handle(self)
            except ConnectionError:
                # The other side has had enough.
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield state
        finally:
            state.end.set()
            server.shutdown()
            thread.join(SECONDS)


def with_url(served: Issuer, **more: Any) -> Setup:
    """A gate with the keys that *served* gives out."""
    return setup(Auth(jwt=jwt_section(served.url, **more)))

"""
Where assets are stored: one POST, no retries, everything bounded. The only code here that waits; it knows no schemas.

`httpx` is imported when something is sent, so that whoever never does need not have it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from assay.ladder import syntax

if TYPE_CHECKING:
    import httpx

TIMEOUT = 5.0
"""Seconds for each of connecting, writing, and waiting for more to read (specs/001 §2)."""

OVERALL = 15.0
"""Seconds for all of it: the three of them once. A backend that sends a byte now and then never runs into the first."""

ASSETS_PATH = "/synesthetic-assets/"

ANSWER_BYTES = 64 << 10
"""What is read of an answer. It needs an id; real ones that also return the asset's record stay well below."""

ID_CHARACTERS = 1024
"""As many as an id may have anywhere else here (`Limits.id_bytes`)."""

DETAIL_CHARACTERS = 200
"""Enough for a sentence, too few for a traceback."""

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Backend:
    """A service that takes assets by POST and answers with their ``id``."""

    url: str = field(repr=False)
    """May have a name and a password in it."""
    path: str = ASSETS_PATH
    timeout: float = TIMEOUT
    overall: float = OVERALL

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Backend | None":
        """The backend that the variables name; None if they name none."""
        url = environ.get("SYN_BACKEND_URL", "").strip()
        path = environ.get("SYN_BACKEND_ASSETS_PATH", "").strip() or ASSETS_PATH
        return cls(url.rstrip("/"), f"/{path.lstrip('/')}") if url else None

    @property
    def address(self) -> str:
        """What is posted to."""
        return self.url + self.path

    @property
    def shown(self) -> str:
        """The URL as it may be told: without name and password."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def is_usable(self) -> bool:
        """Whether the URL is one that can be posted to."""
        parts = _split(self.url)
        return (
            parts is not None
            and parts.scheme in ("http", "https")
            and bool(parts.hostname)
            # The path of the assets comes behind it.
            and not (parts.query or parts.fragment)
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What the backend said."""

    status: int
    """0 if what it said is no HTTP."""
    body: bytes | None = None
    """None if it is longer than we read, or encoded although we did not ask for that."""


def store(backend: Backend | None, body: bytes) -> Result:
    """Posts *body*, and gives the object of specs/001 for what came of it. Raises nothing."""
    if backend is None:
        return unsupported("SYN_BACKEND_URL is not set")
    if not backend.is_usable():
        return unsupported("SYN_BACKEND_URL is no http or https URL, or has a query or a fragment")
    try:
        answer = _posted(backend, body)
    except ImportError:
        return unsupported("populate_backend needs httpx, which is not installed")
    if answer is None:
        return failed(HTTPStatus.SERVICE_UNAVAILABLE, "network_unreachable")
    return _result(backend, answer)


def unsupported(detail: str) -> Result:
    """The object for what this server is not set up to do."""
    return {"ok": False, "reason": "unsupported", "detail": detail}


def failed(status: int, detail: str) -> Result:
    """The object for a backend that did not do its part."""
    return {"ok": False, "reason": "backend_error", "status": int(status), "detail": detail}


def _posted(backend: Backend, body: bytes) -> Answer | None:
    """The answer, or None if there was none in time."""
    import threading  # noqa: PLC0415 - only who asks a backend needs it

    import httpx  # noqa: PLC0415 - as above

    # Proxies, certificates and a .netrc from the environment are left alone: the variables of specs/001 decide.
    client = httpx.Client(timeout=backend.timeout, trust_env=False, follow_redirects=False)
    came: list[Answer | None] = []
    # httpx bounds each wait, not their sum, and no look-up of a name at all. From the outside, everything is bounded.
    worker = threading.Thread(target=lambda: came.append(_exchanged(client, backend.address, body)), daemon=True)
    worker.start()
    worker.join(backend.overall)
    # If it is still at work, this ends it at its next wait.
    client.close()
    return came[0] if came else None


def _exchanged(client: "httpx.Client", address: str, body: bytes) -> Answer | None:
    import httpx  # noqa: PLC0415 - as above

    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    try:
        with client.stream("POST", address, content=body, headers=headers) as response:
            return Answer(response.status_code, _read(response))
    except httpx.RemoteProtocolError:
        return Answer(0)
    except Exception:
        # Refused, timed out, unknown host, closed from outside: to the caller it is all one, and the exception's text
        # may have the address with its password in it.
        return None


def _read(response: "httpx.Response") -> bytes | None:
    """The body, unless it is longer than `ANSWER_BYTES` or compressed: a few bytes can unpack to gigabytes."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return None
    body = b""
    for part in response.iter_raw():
        body += part
        if len(body) > ANSWER_BYTES:
            return None
    return body


def _result(backend: Backend, answer: Answer) -> Result:
    value = syntax.read(answer.body) if answer.body is not None else None
    members: dict[str, Any] = value if isinstance(value, dict) else {}
    if answer.status == 0:
        return failed(HTTPStatus.BAD_GATEWAY, "the backend gave no HTTP answer, or broke off in it")
    if answer.status >= 400:
        return failed(answer.status, _detail(answer.status, members))
    if not 200 <= answer.status < 300:
        return failed(answer.status, "the backend redirects, which is not followed; check SYN_BACKEND_URL")
    name = _id(members.get("id"))
    if name is None:
        return failed(HTTPStatus.BAD_GATEWAY, f"the backend answered {answer.status} without a usable id")
    return {"ok": True, "asset_id": name, "backend_url": backend.shown}


def _id(value: Any) -> str | None:
    """An id as text: backends count, too. bool is an int in Python, but no id."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and 0 < len(value) <= ID_CHARACTERS else None


def _detail(status: int, members: dict[str, Any]) -> str:
    """What the backend says is wrong, if it says so in a sentence; else what the status means."""
    said = next((members[key] for key in ("detail", "error", "message") if isinstance(members.get(key), str)), "")
    plain = " ".join("".join(char if char.isprintable() else " " for char in said).split())[:DETAIL_CHARACTERS]
    return plain or _phrase(status)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return "unknown error"


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts

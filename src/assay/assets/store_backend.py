"""
Where assets are stored: one POST, no retries, everything bounded. The only code here that waits; it knows no schemas.

`httpx` is imported when something is sent, so that whoever never does need not have it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from assay.base.verdict import Violation
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

_BROKEN_OFF = ("disconnected", "closed connection")
"""How httpx says that the other side hung up before its answer was whole."""

_SAID_IN = ("detail", "message", "error", "msg")
"""Members in which backends say what is wrong; FastAPI lists objects with `msg` in `detail`."""

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoreBackend:
    """A service that takes assets by POST and answers with their ``id``."""

    url: str = field(repr=False)
    """May have a name and a password in it."""
    path: str = ASSETS_PATH
    timeout: float = TIMEOUT
    overall: float = OVERALL

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "StoreBackend | None":
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
    is_text: bool = False
    """Whether the body may be plain text: its content type names no markup."""


def store(backend: StoreBackend | None, body: bytes) -> Result:
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


def _posted(backend: StoreBackend, body: bytes) -> Answer | None:
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
            return Answer(response.status_code, _read(response), _is_text(response))
    except httpx.RemoteProtocolError as error:
        # One exception for two things: a connection that broke off is a network error, bytes that are not HTTP are not.
        return None if any(words in str(error) for words in _BROKEN_OFF) else Answer(0)
    except Exception:
        # Refused, timed out, unknown host, closed from outside: to the caller it is all one, and the exception's text
        # may have the address with its password in it.
        return None


def _is_text(response: "httpx.Response") -> bool:
    kind = response.headers.get("content-type", "").lower()
    return not any(markup in kind for markup in ("html", "xml", "octet-stream"))


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


def _result(backend: StoreBackend, answer: Answer) -> Result:
    value = syntax.read(answer.body) if answer.body is not None else None
    members: dict[str, Any] = value if isinstance(value, dict) else {}
    if answer.status == 0:
        return failed(HTTPStatus.BAD_GATEWAY, "the backend gave no HTTP answer")
    if answer.status >= 400:
        said = _text(answer) if isinstance(value, Violation) else _sentence(value)
        return failed(answer.status, _short(said) or _phrase(answer.status))
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


def _sentence(value: Any, levels: int = 3) -> str:
    """Return what a JSON error body says is wrong: a string, or the first one in the members that carry it."""
    if isinstance(value, str):
        return value
    inside: list[Any] = []
    if isinstance(value, dict):
        inside = [value[key] for key in _SAID_IN if key in value]
    elif isinstance(value, list):
        inside = value[:1]
    return next((said for said in (_sentence(each, levels - 1) for each in inside if levels) if said.strip()), "")


def _text(answer: Answer) -> str:
    """Return a body that is not JSON as text; "" for markup, and for bytes that are not text."""
    try:
        text = (answer.body or b"").decode().strip()
    except UnicodeDecodeError:
        return ""
    return text if answer.is_text and not text.startswith("<") and "\0" not in text else ""


def _short(said: str) -> str:
    """Return *said* on one line without control characters, cut to `DETAIL_CHARACTERS`."""
    start = said[: 4 * DETAIL_CHARACTERS]
    return " ".join("".join(char if char.isprintable() else " " for char in start).split())[:DETAIL_CHARACTERS]


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

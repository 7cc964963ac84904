"""
Store assets in a backend: one POST, no retries, bounded time and size. The only code here that waits.

The HTTP client is imported when something is sent: servers without a backend start 8 ms earlier.
"""

import threading
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from assay.edges.threads import signals_held
from assay.judge import syntax
from assay.model.verdict import Violation

if TYPE_CHECKING:
    import socket
    from http.client import HTTPResponse

TIMEOUT = 5.0
"""Seconds for each of connecting, writing, and waiting for more to read (specs/001 §2)."""

OVERALL = 15.0
"""Seconds for the whole request: the three of them once. A backend that sends a byte now and then evades `TIMEOUT`."""

_BOTH_WAYS = 2
"""``socket.SHUT_RDWR``, without importing the module."""

ASSETS_PATH = "/synesthetic-assets/"

ANSWER_BYTES = 64 << 10
"""Maximal bytes of a response. It needs only an id; real ones that return the asset's record are much smaller."""

ID_CHARACTERS = 1024
"""Maximal characters of an id, as everywhere (`Limits.id_bytes`)."""

DETAIL_CHARACTERS = 200
"""Enough for a sentence, too few for a traceback."""

_SAID_IN = ("detail", "message", "error", "msg")
"""Members with the error message of a backend; FastAPI lists objects with `msg` in `detail`."""

_STATUSES = frozenset(HTTPStatus)

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoreBackend:
    """A service that stores assets by POST and returns their ``id``."""

    url: str = field(repr=False)
    """The URL, which may contain a user name and a password."""
    path: str = ASSETS_PATH
    timeout: float = TIMEOUT
    overall: float = OVERALL

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "StoreBackend | None":
        """Return the backend of the variables; None if they are not set."""
        url = environ.get("SYN_BACKEND_URL", "").strip()
        path = environ.get("SYN_BACKEND_ASSETS_PATH", "").strip() or ASSETS_PATH
        return cls(url.rstrip("/"), f"/{path.lstrip('/')}") if url else None

    @property
    def shown(self) -> str:
        """The URL for messages, without user name and password."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def is_usable(self) -> bool:
        """Whether the URL is valid for a POST request."""
        try:
            parts = urlsplit(self.url)
            _ = parts.port
        except ValueError:
            return False
        # The path of the assets is appended, so there is no query.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of the backend."""

    status: int
    """The status; 0 if the response is not HTTP."""
    body: bytes | None = None
    """The body; None if it is too long, or compressed although that was not requested."""
    is_text: bool = False
    """Whether the body may be plain text: its content type is not markup."""


def store(backend: StoreBackend, body: bytes) -> Result:
    """Post *body*, and return the result object of specs/001. Raises nothing."""
    if not backend.is_usable():
        return unsupported("SYN_BACKEND_URL must be an http or https URL without a query or a fragment")
    answer = _posted(backend, body)
    if answer is None:
        return _failed(503, "network_unreachable")
    if answer.status == 0:
        return _failed(502, "the backend sent no HTTP response")
    value = syntax.read(answer.body) if answer.body is not None else None
    if answer.status >= 400:
        return _failed(answer.status, _detail(answer, value))
    if not 200 <= answer.status < 300:
        return _failed(answer.status, "the backend redirects, which is not followed; check SYN_BACKEND_URL")
    name = value.get("id") if isinstance(value, dict) else None
    # Some backends use numbers. A bool is an int in Python, but not an id.
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not 0 < len(name) <= ID_CHARACTERS:
        return _failed(502, f"the backend answered {answer.status} without a usable id")
    return {"ok": True, "asset_id": name, "backend_url": backend.shown}


def unsupported(detail: str) -> Result:
    """Return the result for a feature that is not configured."""
    return {"ok": False, "reason": "unsupported", "detail": detail}


def _failed(status: int, detail: str) -> Result:
    return {"ok": False, "reason": "backend_error", "status": status, "detail": detail}


def _posted(backend: StoreBackend, body: bytes) -> Answer | None:
    """Return the response, or None without one in time."""
    came: list[Answer | None] = []
    sockets: list[socket.socket] = []
    # This limits everything, including a name look-up that hangs, and a byte now and then.
    worker = threading.Thread(target=lambda: came.append(_exchanged(backend, body, sockets)), daemon=True)
    # A signal that the worker took would not interrupt the wait for it.
    with signals_held():
        worker.start()
    worker.join(backend.overall)
    if came:
        return came[0]
    for each in sockets:
        # It ends the worker, which would read on for as long as something comes.
        with suppress(OSError):
            each.shutdown(_BOTH_WAYS)
    return None


def _exchanged(backend: StoreBackend, body: bytes, sockets: list["socket.socket"]) -> Answer | None:
    """
    Return the response; None if the network fails. Adds the connection to *sockets*.

    It knows no proxies: the variables of specs/001 decide.
    """
    import http.client as http  # noqa: PLC0415 - as above

    parts = urlsplit(backend.url + backend.path)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    try:
        opened, port = (http.HTTPSConnection, 443) if parts.scheme == "https" else (http.HTTPConnection, 80)
        with closing(opened(parts.hostname or "", parts.port or port, timeout=backend.timeout)) as connection:
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.connect()
            sockets.append(connection.sock)
            connection.request("POST", quote(target, safe="/?%:@!$&'()*+,;=~"), body, headers)
            return _read(connection.getresponse())
    except http.HTTPException as error:
        cut = isinstance(error, http.IncompleteRead | http.RemoteDisconnected | http.InvalidURL)
        return None if cut else Answer(0)
    except Exception:
        # Timed out, or an address that cannot be used. The text of the exception may have the password.
        return None


def _read(answer: "HTTPResponse") -> Answer | None:
    """Return the response; None if it breaks off. A body that is too long or compressed is not read."""
    body = answer.read(ANSWER_BYTES + 1)
    whole = len(body) <= ANSWER_BYTES
    # A head that is cut off looks like one without a length, and nothing comes after it.
    is_cut = answer.length is None and not answer.chunked and not body and answer.status < 300
    if is_cut or (whole and answer.length):
        return None
    # A few compressed bytes can unpack to gigabytes.
    plain = answer.getheader("Content-Encoding", "identity").strip().lower() == "identity"
    kind = answer.getheader("Content-Type", "").lower()
    is_text = not any(markup in kind for markup in ("html", "xml", "octet-stream"))
    return Answer(answer.status, body if whole and plain else None, is_text)


def _detail(answer: Answer, value: Any) -> str:
    """Return the backend's own words on one line, if its body has any; else the name of the status."""
    said = ""
    if not isinstance(value, Violation):
        said = _sentence(value)
    elif answer.is_text:
        # Not JSON, and neither markup nor bytes that are not text.
        with suppress(UnicodeDecodeError):
            text = (answer.body or b"").decode().strip()
            said = "" if text.startswith("<") or "\0" in text else text
    start = "".join(char if char.isprintable() else " " for char in said[: 4 * DETAIL_CHARACTERS])
    short = " ".join(start.split())[:DETAIL_CHARACTERS]
    return short or (HTTPStatus(answer.status).phrase.lower() if answer.status in _STATUSES else "unknown error")


def _sentence(value: Any, levels: int = 3) -> str:
    """Return the message in a JSON error body: a string, or the first one in the known members."""
    if isinstance(value, str):
        return value
    inside: list[Any] = []
    if isinstance(value, dict):
        inside = [value[key] for key in _SAID_IN if key in value]
    elif isinstance(value, list):
        inside = value[:1]
    return next((said for said in (_sentence(each, levels - 1) for each in inside if levels) if said.strip()), "")

"""
Compare a server card with what surrounds it: the HTTP response that had it, and what the server sends of itself.

No I/O, no clock: the response and the first result of the server are parameters.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from assay.base.meta import SERVER_KEY
from assay.base.verdict import Violation
from assay.core.extensions.card_rules import MEDIA_TYPE
from assay.engine.wording import listed, shown
from assay.rules import violation
from assay.spec.revisions import REVISIONS, handshake

_ANY_ORIGIN: Final = b"*"
_CACHING: Final = {b"cache-control": "Cache-Control", b"etag": "ETag"}
_PORTS: Final = {"http": 80, "https": 443}


# ── the HTTP response ────────────────────────────────────────────────────────────────────────────────────────────────


def check_response(headers: Mapping[bytes, bytes], *, card: bool = True) -> Iterator[Violation]:
    """Yield the violations of the *headers* of a response, names in lower case, with a *card* or with a catalog."""
    kind = headers.get(b"content-type", b"")
    if card and kind.partition(b";")[0].strip().lower() != MEDIA_TYPE.encode():
        yield violation("card/media-type", expected=f"Content-Type: {MEDIA_TYPE}", found=_text(kind))
    origin = headers.get(b"access-control-allow-origin", b"")
    if origin.strip() != _ANY_ORIGIN:
        yield violation("card/cors", expected="Access-Control-Allow-Origin: *", found=_text(origin))
    missing = [title for name, title in _CACHING.items() if not headers.get(name, b"").strip()]
    if missing:
        yield violation("card/caching", expected=listed(missing), found="none")


def not_encrypted() -> Violation:
    """Return the violation of a document that came over HTTP from another machine."""
    return violation("card/https", expected="an https URL", found="an http URL")


def not_revalidated(status: int) -> Violation:
    """Return the violation of a server that answers with *status* and not 304 to a request with the current ETag."""
    return violation("card/caching", expected="HTTP 304 to If-None-Match with the ETag", found=f"HTTP {status}")


def _text(value: bytes) -> str:
    return shown(value.decode("latin-1")) if value else "none"


# ── the server itself ────────────────────────────────────────────────────────────────────────────────────────────────


class Runtime(NamedTuple):
    """What a server sends of itself to a client that connects."""

    url: str
    """The endpoint that the client is connected to."""
    info: Mapping[str, Any]
    """Its serverInfo."""
    revisions: tuple[str, ...]
    """The revisions that it lists; after a handshake only the agreed one."""
    lists_revisions: bool

    @property
    def method(self) -> str:
        """The method whose result this is."""
        return "server/discover" if self.lists_revisions else "initialize"


def runtime_of(opening: Mapping[str, Any], url: str) -> Runtime:
    """Return the server at *url* by its first result, *opening*: that of server/discover or of initialize."""
    meta = opening.get("_meta")
    info = opening.get("serverInfo") or (meta.get(SERVER_KEY) if isinstance(meta, dict) else None)
    known = opening.get("supportedVersions")
    revisions = known if isinstance(known, list) else [opening.get("protocolVersion")]
    texts = tuple(each for each in revisions if isinstance(each, str))
    return Runtime(url, info if isinstance(info, dict) else {}, texts, isinstance(known, list))


def remote_at(card: Any, url: str) -> tuple[int, Mapping[str, Any]] | None:
    """Return the number and the remote of *card* with the endpoint *url*; Streamable HTTP first. None without one."""
    remotes = card.get("remotes") if isinstance(card, dict) else None
    known = enumerate(remotes if isinstance(remotes, list) else ())
    wanted = _spelt(url)
    found = [(number, each) for number, each in known if isinstance(each, dict) and _spelt(each.get("url")) == wanted]
    return min(found, key=lambda each: each[1].get("type") == "sse", default=None)


def _spelt(url: Any) -> tuple[str, ...] | None:
    """Return the parts of a URL that differ for different endpoints; None for what is not one."""
    try:
        split = urlsplit(url) if isinstance(url, str) else None
        port = (split.port or _PORTS.get(split.scheme)) if split else None
    except ValueError:
        return None
    if split is None or not split.hostname:
        return None
    return split.scheme, split.hostname, str(port), split.path.rstrip("/"), split.query


def check_runtime(card: Any, runtime: Runtime) -> Iterator[Violation]:
    """Yield where *card* contradicts the server. What only one of the two has is not a contradiction."""
    if not isinstance(card, dict):
        return
    info = runtime.info
    for member, agree in _AGREE.items():
        given, real = card.get(member), info.get(member)
        if isinstance(given, str) and isinstance(real, str) and real and not agree(given, real):
            expected = f"what the server sends, {shown(real)}"
            yield violation("card/runtime", f"/{member}", expected=expected, found=shown(given))
    yield from _check_icons(card, info)
    remote = remote_at(card, runtime.url)
    if remote is not None:
        yield from _check_remote(*remote, runtime)


def _same_name(given: str, real: str) -> bool:
    """Return whether a server has the name of its card; most have only the part after the slash."""
    return real in {given, given.partition("/")[2]}


def _same_text(given: str, real: str) -> bool:
    """Return whether two texts are equal, or one is the beginning of the other: that of a card has 100 characters."""
    one, other = (" ".join(each.split()).rstrip(".… ") for each in (given, real))
    return one.startswith(other) or other.startswith(one)


_AGREE: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "name": _same_name,
    "version": str.__eq__,
    "title": str.__eq__,
    "description": _same_text,
    "websiteUrl": lambda given, real: given.rstrip("/") == real.rstrip("/"),
}
"""The members that a card shares with the serverInfo, and whether two values of one agree."""


def _check_icons(card: Mapping[str, Any], info: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield a violation for icons that the server does not have. Embedded ones (``data:``) are not compared."""
    given, real = _sources(card), _sources(info)
    known = frozenset(real)
    other = [each for each in given if each not in known]
    if real and other:
        expected = f"icons that the server sends, such as {shown(real[0])}"
        yield violation("card/runtime", "/icons", expected=expected, found=shown(other[0]))


def _sources(owner: Mapping[str, Any]) -> list[str]:
    icons = owner.get("icons")
    known = (each.get("src") for each in (icons if isinstance(icons, list) else ()) if isinstance(each, dict))
    return [each for each in known if isinstance(each, str) and not each.startswith("data:")]


def _check_remote(number: int, remote: Mapping[str, Any], runtime: Runtime) -> Iterator[Violation]:
    at = f"/remotes/{number}"
    if remote.get("type") == "sse":
        expected = "streamable-http, by which the server answers"
        yield violation("card/runtime", f"{at}/type", expected=expected, found="sse")
    given = remote.get("supportedProtocolVersions")
    listed_here = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
    if listed_here and not _fits(listed_here, runtime):
        verb = "supports" if runtime.lists_revisions else "agrees to"
        expected = f"revisions that the server {verb}: {listed(runtime.revisions, joint='and')}"
        yield violation("card/runtime", f"{at}/supportedProtocolVersions", expected=expected, found=listed(listed_here))


def _fits(given: list[str], runtime: Runtime) -> bool:
    """Return whether the revisions of a card can be those of the server."""
    if not runtime.lists_revisions:
        return not runtime.revisions or runtime.revisions[0] in given
    # A server of both eras may list only the revisions without a handshake: about the others nothing is known then.
    known = frozenset(runtime.revisions)
    eras = {_has_handshake(each) for each in known}
    return all(each in known for each in given if _has_handshake(each) in eras)


def _has_handshake(revision: str) -> bool:
    return revision in REVISIONS and handshake(revision)

"""
A server at a URL, as the guard asks it: one request out, one answer or stream back.

It knows HTTP, but not MCP. Redirects are not followed, cookies are not kept, and the body is read only on demand.
"""

from typing import Final
from urllib.parse import urlsplit

from yarl import URL

from assay.edges.http.forwarding import UpstreamHead, end_to_end, read_upstream_head
from assay.edges.http.replies import Pairs
from assay.edges.upstream_client import (
    CONNECTIONS,
    DIRECTLY,
    Headed,
    HttpAnswer,
    UpstreamClient,
    origin_of,
    url_of,
    with_path,
    with_query,
)
from assay.edges.upstream_errors import NoAnswerError
from assay.settings.http_section import UpstreamSettings

_OF_ANSWERS: Final = frozenset({b"content-length", b"date"})
"""Headers of an answer that are written anew, whatever the mode."""

_SHARING: Final = b"access-control-"
"""What tells a browser which pages may read an answer: that depends on where we are, not where the server is."""


class Answered:
    """The head of an answer; its body is still to come."""

    __slots__ = ("_answer", "head", "piece")

    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer
        self.head: UpstreamHead = read_upstream_head(answer.status, answer.pairs)
        self.piece = answer.piece
        """The next bytes of the body, empty at its end. Raises `NoAnswerError` where it breaks off."""

    @property
    def pairs(self) -> Pairs:
        """Its end-to-end headers, names in lower case: what goes to a client under audit."""
        shown = end_to_end(self._answer.pairs, _OF_ANSWERS)
        return [pair for pair in shown if not pair[0].startswith(_SHARING)]

    @property
    def sharing(self) -> Pairs:
        """Its headers for pages of other origins, which matter for a public document only."""
        return [pair for pair in end_to_end(self._answer.pairs, frozenset()) if pair[0].startswith(_SHARING)]

    @property
    def length(self) -> bytes | None:
        """Its `Content-Length`, which is known without the body."""
        return self._answer.header(b"content-length")

    @property
    def is_whole(self) -> bool:
        """Whether nothing more follows; False if that is not known yet."""
        return self._answer.is_whole

    def close(self) -> None:
        """Read no more of it."""
        self._answer.close()


class UpstreamTarget:
    """One server."""

    __slots__ = (
        "_client",
        "_own",
        "_replaced",
        "_url",
        "challenged",
        "documents",
        "has_query",
        "metadata",
        "origin",
        "path",
    )

    def __init__(
        self,
        url: str,
        headers: Pairs = (),
        settings: UpstreamSettings = DIRECTLY,
        *,
        connections: int = CONNECTIONS,
    ) -> None:
        """
        *headers*, names in lower case, are added to each request, in place of the client's own of that name.

        Raises `ValueError` for what is no URL of a server, and for *settings* that cannot be used.
        """
        self._url = _parsed(url)
        self.origin = origin_of(self._url)
        self.path = self._url.path
        self.has_query = bool(self._url.raw_query_string)
        """Whether the operator's URL has a query: then no client may add to it."""
        self.documents = 0
        """How many documents beside the endpoint are being asked for."""
        self.challenged = False
        """Whether it has asked a client to show who it is."""
        self.metadata: str | None = None
        """Where it has said that metadata of its resource are: a path, perhaps with a query."""
        self._own = list(headers)
        self._replaced = {name.replace(b"_", b"-") for name, _ in headers}
        self._client = UpstreamClient(url, settings, connections=connections)

    async def ask(
        self, method: str, pairs: Pairs | Headed, query: bytes = b"", body: bytes | None = None, path: str | None = None
    ) -> Answered:
        """The answer to a request with these headers; at the URL, or at *path* of its origin. It has to be closed."""
        url = self._url if path is None else with_path(self._url, path)
        if query and path is None:
            url = with_query(url, query)
        answer = await self._client.answer(method, url, pairs, body)
        if not 200 <= answer.status < 600:
            answer.close()
            raise NoAnswerError(f"its answer has the HTTP status {answer.status}, which is invalid")
        return Answered(answer)

    def below(self, name: str) -> str:
        """Return the path of *name* below the endpoint, with the operator's query, which may be a key."""
        query = self._url.raw_query_string
        return f"{self._url.raw_path.rstrip('/')}/{name}{f'?{query}' if query else ''}"

    def with_own(self, pairs: Pairs) -> list[tuple[bytes, bytes]]:
        """
        These headers, with those of the operator in place of any that have the same name.

        To servers behind CGI or WSGI a name with underscores is the same as one with hyphens.
        """
        return [*(pair for pair in pairs if pair[0].replace(b"_", b"-") not in self._replaced), *self._own]

    async def close(self) -> None:
        """Ends every connection."""
        await self._client.close()


def _parsed(url: str) -> URL:
    try:
        split = urlsplit(url)
        _ = split.port
        found = url_of(url)
    except (ValueError, UnicodeError):
        raise ValueError("no URL") from None
    if found.scheme not in {"http", "https"} or not found.host:
        raise ValueError("expected http://… or https://…")
    if split.username is not None or split.password is not None:
        raise ValueError("a password in a URL is seen by everyone; give a header")
    return found

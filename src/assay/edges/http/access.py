"""
Who may come in over HTTP: where a request says it goes and comes from, and whose token it has. Answers those who may
not, and what browsers and clients ask before they come.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from assay.edges.auth import Denied, Gate, Principal
from assay.edges.http.heads import RequestHead, read_head, refuse_head
from assay.edges.http.origin_check import Barred, Safety
from assay.edges.http.replies import Send, reads, refuse, reply, shared
from assay.edges.http.request_headers import ENDPOINT, Headers, address_of, headers_of

METADATA: Final = "/.well-known/oauth-protected-resource"
"""Where clients look for who gives out tokens (RFC 9728); also with the path of the endpoint behind it."""

_NAMES: Final = re.compile(rb"[a-z0-9!#$%&'*+.^_`|~, \t-]{0,4096}", re.IGNORECASE)
"""A list of header names, as a browser writes it (RFC 9110, 5.1)."""


MOST_NAMES: Final = 20
"""Names that are not served of which an operator is told: they are the clients' own, and may be many."""


class Door:
    """Lets in, or sends away."""

    __slots__ = ("_anybody", "_log", "_told", "gate", "safety")

    def __init__(
        self, safety: Safety, gate: Gate | None, anybody: Principal, log: Callable[[str], None] = lambda _: None
    ) -> None:
        """Where there is no *gate*, everyone is *anybody*. *log* is told of each name that is not served, once."""
        self._log = log
        self._told: set[str] = set()
        self.safety = safety
        self.gate = gate
        self._anybody = anybody

    def known(self, headers: Headers) -> Principal | None:
        """Who asks, if that can be told at once, and may come in."""
        if not self._lets_in(headers):
            return None
        found = self._anybody if self.gate is None else self.gate.known(headers.get(b"authorization"))
        return found if isinstance(found, Principal) else None

    async def admitted(
        self, scope: dict[str, Any], headers: Headers, send: Send, endpoint: str = ENDPOINT
    ) -> Principal | None:
        """Who asks; None if nobody who may, who has been told so."""
        if not await self.passes(headers, send):
            return None
        if self.gate is None:
            return self._anybody
        given = headers.get(b"authorization")
        found = self.gate.known(given)
        if found is None:
            found = await self.gate.verify(given or b"")
        if not isinstance(found, Denied):
            return found
        challenge = self.gate.challenge(found, address_of(scope, headers) + METADATA + endpoint)
        code = "FORBIDDEN" if found.status == 403 else "UNAUTHENTICATED"
        told = [(b"www-authenticate", challenge), *shared(headers)]
        await refuse(send, code, found.reason, told, status=found.status)
        return None

    async def head(self, scope: dict[str, Any], send: Send) -> RequestHead | None:
        """Return the head of a request; None if it can be read in two ways, which has been answered."""
        head = read_head(scope["method"], scope["headers"])
        if isinstance(head, RequestHead):
            return head
        headers = headers_of(scope)
        if await self.passes(headers, send):
            await refuse_head(head, headers, send)
        return None

    async def passes(self, headers: Headers, send: Send) -> bool:
        """Whether a request goes to us and comes from a friend, whoever it is; else that has been told."""
        if self._lets_in(headers):
            return True
        barred = self.safety.objection(headers.get(b"host"), headers.get(b"origin"))
        self._note(barred)
        await refuse(send, "FORBIDDEN", f"{barred.what}; the operator can allow it with {barred.setting}", status=403)
        return False

    def _note(self, barred: Barred) -> None:
        """Tell the operator, once for each name, which setting would let it in."""
        if len(self._told) < MOST_NAMES and barred.name not in self._told:
            self._told.add(barred.name)
            self._log(f"assay: a request got 403: {barred.what}{'; ' if barred.advice else ''}{barred.advice}")

    def _lets_in(self, headers: Headers) -> bool:
        return self.safety.allows(headers.get(b"host"), headers.get(b"origin"))

    async def preflight(self, headers: Headers, send: Send) -> None:
        """What a browser asks before a page of a friendly origin may send a message."""
        if not await self.passes(headers, send):
            return
        asked = headers.get(b"access-control-request-headers", b"")
        if _NAMES.fullmatch(asked) is None:
            await refuse(send, "INVALID_ENVELOPE", "Access-Control-Request-Headers is not a list of names", status=400)
            return
        allowed = [
            (b"access-control-allow-methods", b"POST, GET, DELETE"),
            (b"access-control-allow-headers", asked),
            (b"access-control-max-age", b"600"),
        ]
        await reply(send, 204, headers=[*shared(headers), *allowed])

    async def metadata(self, scope: dict[str, Any], send: Send, endpoint: str = ENDPOINT) -> None:
        """Who gives out tokens for *endpoint*, if our own gate knows."""
        headers = headers_of(scope)
        if scope["method"] == "OPTIONS":
            await self.preflight(headers, send)
            return
        if not await self.passes(headers, send):
            return
        known = self.gate.metadata(address_of(scope, headers) + endpoint) if self.gate is not None else None
        if known is None:
            await refuse(send, "METHOD_NOT_FOUND", "no authorization server is configured", shared(headers))
        elif await reads(scope, send, shared(headers)):
            await reply(send, 200, orjson.dumps(known), shared(headers))

"""
Decide which requests may enter over HTTP: by `Host`, `Origin` and token. Answers rejected requests, preflight requests
of browsers, and requests for metadata.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from assay.edges.auth import Denied, Gate, Principal
from assay.edges.http.heads import RequestHead, read_head, refuse_head
from assay.edges.http.origin_check import Barred, Safety
from assay.edges.http.replies import Pairs, Send, reads, refuse, reply, shared
from assay.edges.http.request_headers import ENDPOINT, Headers, address_of, headers_of

METADATA: Final = "/.well-known/oauth-protected-resource"
"""The path of the metadata with the issuer of tokens (RFC 9728); also with the path of the endpoint appended."""

_NAMES: Final = re.compile(rb"[a-z0-9!#$%&'*+.^_`|~, \t-]{0,4096}", re.IGNORECASE)
"""A list of header names, as a browser sends it (RFC 9110, 5.1)."""


MOST_NAMES: Final = 20
"""Maximal refused names to log: clients choose them, so there may be many."""


class Door:
    """The access check of an HTTP endpoint."""

    __slots__ = ("_anybody", "_log", "_told", "gate", "safety")

    def __init__(
        self, safety: Safety, gate: Gate | None, anonymous: Principal, log: Callable[[str], None] = lambda _: None
    ) -> None:
        """Without a *gate*, every client is *anonymous*. Each refused name is logged once."""
        self._log = log
        self._told: set[str] = set()
        self.safety = safety
        self.gate = gate
        self._anybody = anonymous

    def known(self, headers: Headers) -> Principal | None:
        """Return the principal of a request without waiting; None if that is not possible, or it may not enter."""
        if not self._lets_in(headers):
            return None
        found = self._anybody if self.gate is None else self.gate.known(headers.get(b"authorization"))
        return found if isinstance(found, Principal) else None

    def owner_of(self, pairs: Pairs) -> str:
        """Return the name of the principal of a request, if the gate knows it without waiting; otherwise empty."""
        found = self.known(dict(pairs)) if self.gate is not None else None
        return found.name if found is not None else ""

    async def admitted(self, headers: Headers, send: Send, endpoint: str = ENDPOINT) -> Principal | None:
        """Return the principal of a request; None if it was rejected and answered."""
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
        challenge = self.gate.challenge(found, address_of(headers, self.safety.public_url) + METADATA + endpoint)
        code = "FORBIDDEN" if found.status == 403 else "UNAUTHENTICATED"
        extra = [(b"www-authenticate", challenge), *shared(headers)]
        await refuse(send, code, found.reason, extra, status=found.status)
        return None

    async def head(self, scope: dict[str, Any], send: Send) -> RequestHead | None:
        """Return the head of a request; None if it is ambiguous, and was answered."""
        head = read_head(scope["method"], scope["headers"])
        if isinstance(head, RequestHead):
            return head
        headers = headers_of(scope)
        if await self.passes(headers, send):
            await refuse_head(head, headers, send)
        return None

    async def passes(self, headers: Headers, send: Send) -> bool:
        """Whether `Host` and `Origin` are allowed; otherwise the request was answered."""
        if self._lets_in(headers):
            return True
        barred = self.safety.objection(headers.get(b"host"), headers.get(b"origin"))
        self._note(barred)
        await refuse(send, "FORBIDDEN", f"{barred.what}; the operator can allow it with {barred.setting}", status=403)
        return False

    def _note(self, barred: Barred) -> None:
        """Log, once for each name, the setting that would allow it."""
        if len(self._told) < MOST_NAMES and barred.name not in self._told:
            self._told.add(barred.name)
            self._log(f"assay: a request got 403: {barred.what}{'; ' if barred.advice else ''}{barred.advice}")

    def _lets_in(self, headers: Headers) -> bool:
        return self.safety.allows(headers.get(b"host"), headers.get(b"origin"))

    async def preflight(self, headers: Headers, send: Send) -> None:
        """Answer the preflight request of a browser."""
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
        """Send the metadata with the issuer of tokens for *endpoint*, if the gate has one."""
        headers = headers_of(scope)
        if scope["method"] == "OPTIONS":
            await self.preflight(headers, send)
            return
        if not await self.passes(headers, send):
            return
        own = address_of(headers, self.safety.public_url) + endpoint
        known = self.gate.metadata(own) if self.gate is not None else None
        if known is None:
            await refuse(send, "METHOD_NOT_FOUND", "no authorization server is configured", shared(headers))
        elif await reads(scope, send, shared(headers)):
            await reply(send, 200, orjson.dumps(known), shared(headers))

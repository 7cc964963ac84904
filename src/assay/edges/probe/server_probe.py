"""
A client that lists what a server offers. Every response is judged, and every wait is bounded.

A line sends and receives the frames; this module knows neither pipes nor HTTP.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, Literal, Protocol

from assay.edges.probe.capabilities import NO_CAPABILITIES, declared, reply_to
from assay.judge import syntax
from assay.judge.conversation import Conversation
from assay.judge.redaction import Redactor
from assay.lock.locked import KINDS, EntryKind, Locked, spelt
from assay.model.json_values import CAPABILITIES_KEY, REVISION_KEY, SERVER_KEY
from assay.model.limits import Limits
from assay.model.verdict import Party, Verdict, Violation
from assay.rules.sentences import located
from assay.schema.header_arguments import ParamHeaders
from assay.spec.revisions import LATEST, LATEST_HANDSHAKE, handshake

MOST_PAGES: Final = 1000
MOST_ENTRIES: Final = 10_000
"""Maximal entries of one list: as many tools as a conversation remembers."""

_MOST_LISTINGS: Final = 3
"""Maximal requests for one list, if the server reports each time that it has changed."""

_CHANGED: Final[Mapping[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/templates/list",),
}
"""The lists that are out of date after a notification."""

_QUIET: Final = 0.25
"""Seconds without a message after which a server has nothing more to say about its last response."""

_MOST_QUIET: Final = 2.0
"""Seconds to wait for that; some servers send logs without end."""

_OLDER: Final = LATEST_HANDSHAKE
"""The revision to request in a handshake."""

_NO_SUCH_METHOD: Final = -32601

REJECTED: Final = "the server rejects this client"
"""The reason of a server that gives none for a status 401 or 403."""

CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"

CLIENT: Final[Mapping[str, str]] = {"name": "mcp-client", "version": "1.0.0"}
"""The default client name. A name of our own would show a server that it is being reviewed."""

Log = Callable[[str], None]


class InquiryError(Exception):
    """A server could not be probed; the message is one line."""


class InterruptedInquiryError(InquiryError):
    """A signal interrupted the probe."""


class UnreachableError(InquiryError):
    """The server cannot be started, or rejects this client: trying another revision would not help."""


class LineError(InquiryError):
    """The server has ended, or does not respond in time. With another revision it might."""

    def __init__(self, reason: str, last_words: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.last_words = last_words
        """Its last lines on stderr."""


class LateError(LineError):
    """The server does not respond in time."""


class ServerLine(Protocol):
    """A connection to a server."""

    def say(
        self, frame: bytes, message: dict[str, Any], revision: str, deadline: float, params: ParamHeaders = ()
    ) -> None:
        """Send a message; *params* are the arguments that headers repeat over HTTP. Raises `LineError`."""

    def hear(self, deadline: float) -> bytes:
        """Return the next frame of the server, before *deadline* by `time.monotonic`. Raises `LineError`."""

    def close(self) -> Iterable[bytes]:
        """Send nothing more; return what the server sends until it ends, for a short time."""

    @property
    def status(self) -> int | None:
        """The exit status of a server that ended by itself; None if it has not, or is elsewhere."""


class Inquiry:
    """One conversation with a server, as its client."""

    def __init__(
        self,
        line: ServerLine,
        log: Log,
        limits: Limits,
        deadline: float,
        client: Mapping[str, str] = CLIENT,
        capabilities: Mapping[str, Any] = NO_CAPABILITIES,
        *,
        heard: Callable[[Verdict], None] | None = None,
        judge: Callable[..., Conversation] = Conversation,
    ) -> None:
        """
        *client* and *capabilities* are declared to the server; capabilities only if the revision has them.

        *heard* gets the verdict on every message of either side; nothing is stopped. Without it, findings go to *log*.
        *judge* makes the conversation, such as a recorded one.
        """
        self._line = line
        self._heard = heard
        self._client = dict(client)
        self._capabilities = capabilities
        self._log = log
        mode: Literal["enforce", "audit"] = "enforce" if heard is None else "audit"
        self._conversation = judge(limits=limits, mode=mode)
        self._deadline = deadline
        self._asked = 0
        self._outdated: set[str] = set()
        self.revision = LATEST

    # ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def discover(self, patience: float) -> dict[str, Any] | None:
        """Return the result of `server/discover`; None if the server needs a handshake. It has *patience* seconds."""
        limit = min(self._deadline, time.monotonic() + patience)
        answer = self._ask("server/discover", {}, limit)
        # Some older servers return a result for any method.
        result: dict[str, Any] | None = answer.value.get("result") if answer.accepted else None
        if result is None or LATEST not in result.get("supportedVersions", ()):
            return None
        return result

    def initialize(self) -> dict[str, Any]:
        """Return the result of `initialize`. Raises `InquiryError`."""
        self.revision = _OLDER
        capabilities = declared(self._capabilities, _OLDER)
        params = {"protocolVersion": _OLDER, "capabilities": capabilities, "clientInfo": self._client}
        answer = self._good("initialize", params)
        if "result" not in answer:
            raise InquiryError(f"initialize was refused: {_error(answer)}")
        result: dict[str, Any] = answer["result"]
        # An unknown revision was reported; the one it is judged by is used from now on.
        self.revision = self._conversation.revision or _OLDER
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"}, self._deadline)
        return result

    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def listed(self, kind: EntryKind) -> dict[str, dict[str, Any]]:
        """Return everything that the server offers of one kind, by its key. Raises `InquiryError`."""
        self._outdated.discard(kind.method)
        found: dict[str, dict[str, Any]] = {}
        for page in self._pages(kind):
            for entry in page:
                key = entry.get(kind.key) if isinstance(entry, dict) else None
                if not isinstance(key, str):
                    raise InquiryError(f"{kind.method}: a {kind.noun} without a {kind.key}")
                if spelt(found.setdefault(key, entry)) != spelt(entry):
                    raise InquiryError(f'{kind.method}: two different {kind.noun}s have the {kind.key} "{key[:100]}"')
            if len(found) > MOST_ENTRIES:
                raise InquiryError(f"{kind.method}: more than {MOST_ENTRIES:,} entries")
        return found

    def lists(self, kinds: Sequence[EntryKind]) -> dict[str, dict[str, dict[str, Any]]]:
        """
        Return everything that the server offers of some kinds, by the members of the lists. Raises `InquiryError`.

        Some servers add tools once they know the client, and send a notification: such a list is requested again.
        """
        found = {kind.member: self.listed(kind) for kind in kinds}
        for _ in range(_MOST_LISTINGS - 1):
            found |= {kind.member: self.listed(kind) for kind in kinds if kind.method in self._outdated}
        return found

    def _pages(self, kind: EntryKind) -> Iterator[list[Any]]:
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            answer = self._good(kind.method, params)
            if "result" not in answer:
                if answer["error"].get("code") != _NO_SUCH_METHOD or params:
                    raise InquiryError(f"{kind.method} was refused: {_error(answer)}")
                # Many servers with resources have no templates, and show it only by this error.
                self._log(f"{kind.method} is not supported")
                return
            result = answer["result"]
            yield result[kind.member]
            if "nextCursor" not in result:
                return
            params = {"cursor": result["nextCursor"]}
        raise InquiryError(f"{kind.method}: more than {MOST_PAGES:,} pages")

    # ── one exchange ─────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, method: str, params: dict[str, Any]) -> Verdict:
        """Send a request; return the verdict on its response, which may be invalid. Raises `InquiryError`."""
        return self._ask(method, params, self._deadline)

    def _good(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the response to a request: a valid result, or an error. Raises `InquiryError`."""
        verdict = self._ask(method, params, self._deadline)
        if not verdict.accepted:
            raise InquiryError(f"the response to {method} breaks the protocol: {located(verdict.violations[0])}")
        answer: dict[str, Any] = verdict.value
        return answer

    def _ask(self, method: str, params: dict[str, Any], limit: float) -> Verdict:
        """Return the verdict on the response to a request."""
        self._asked += 1
        ident = self._asked
        if not handshake(self.revision):
            capabilities = declared(self._capabilities, self.revision)
            meta = {REVISION_KEY: self.revision, CLIENT_KEY: self._client, CAPABILITIES_KEY: capabilities}
            params = {**params, "_meta": {**params.get("_meta", {}), **meta}}
        message = {"jsonrpc": "2.0", "id": ident, "method": method} | ({"params": params} if params else {})
        try:
            self._say(message, limit)
            while True:
                verdict = self._hear(self._line.hear(limit))
                exchange = verdict.exchange
                ours = exchange is not None and exchange.asker is Party.CLIENT and exchange.id == ident
                if ours and verdict.kind in {"result", "error"}:
                    return verdict
        except LateError as error:
            about = f" {params['name']}" if method == "tools/call" else ""
            raise LateError(f"no response to {method}{about}", error.last_words) from None
        except LineError as error:
            if method != "server/discover":
                self._lose(str(error))
            raise

    def _lose(self, why: str) -> None:
        """Judge the end of a server that has not responded."""
        for verdict in self._conversation.end(Party.SERVER, why):
            if self._heard is not None:
                self._heard(verdict)

    def finish(self) -> int | None:
        """
        Judge what the server still sends, until it is quiet for a moment, and until it ends; return its exit status.

        A second response, or a line that is not JSON, often comes right after the response.
        """
        until = min(self._deadline, time.monotonic() + _MOST_QUIET)
        with suppress(LineError):
            while True:
                self._hear(self._line.hear(min(until, time.monotonic() + _QUIET)))
        for frame in self._line.close():
            self._judge(frame)
        return self._line.status

    def _say(self, message: dict[str, Any], limit: float) -> None:
        frame = syntax.write(message)
        verdict = self._conversation.hear(Party.CLIENT, frame)
        if self._heard is not None:
            self._heard(verdict)
        contract = verdict.exchange.contract if verdict.exchange is not None else None
        self._line.say(frame, message, self.revision, limit, contract.headers if contract is not None else ())

    def _hear(self, frame: bytes) -> Verdict:
        """Read a frame of the server: report its findings, and answer its request."""
        verdict = self._judge(frame)
        for part in verdict.parts or (verdict,):
            if part.kind == "request":
                self._reply(part)
            elif part.kind == "notification" and part.method is not None:
                self._outdated.update(_CHANGED.get(part.method, ()))
        return verdict

    def _judge(self, frame: bytes) -> Verdict:
        """Judge a frame of the server, and report its findings."""
        verdict = self._conversation.hear(Party.SERVER, frame)
        if self._heard is not None:
            self._heard(verdict)
        elif verdict.method != "server/discover":
            for each in verdict.violations:
                self._log(str(self._discreet(each)))
        return verdict

    def _discreet(self, violation: Violation) -> Violation:
        """Return a violation without secrets in the found value."""
        return replace(violation, found=Redactor().found(violation))

    def _reply(self, verdict: Verdict) -> None:
        """Answer a request of the server, as a client without a user."""
        back = verdict.back
        if back is None:
            back = reply_to(verdict.value, self._capabilities, self.revision)
            self._conversation.hear(Party.CLIENT, back)
        self._line.say(back, {}, self.revision, self._deadline)


def _error(answer: dict[str, Any]) -> str:
    error = answer["error"]
    text = "".join(each if each.isprintable() else " " for each in error_text(error)[:400])
    return f"{error.get('code')} {text}"


def error_text(error: Mapping[str, Any]) -> str:
    """Return the message of a JSON-RPC error, with the detail of guards and some servers."""
    data = error.get("data")
    detail = data.get("detail") if isinstance(data, dict) else data
    message = str(error.get("message"))
    return f"{message}: {detail}" if isinstance(detail, str) and detail and detail not in message else message


def server_of(opening: Mapping[str, Any]) -> dict[str, str]:
    """Return the name and the version that a server gives itself, if any."""
    server = opening.get("serverInfo") or opening.get("_meta", {}).get(SERVER_KEY) or {}
    return {member: server[member] for member in ("name", "version") if isinstance(server.get(member), str)}


def asked(inquiry: Inquiry, opening: dict[str, Any], *, command: tuple[str, ...] = (), url: str = "") -> Locked:
    """Return what the server offers, after its *opening*. Raises `InquiryError`."""
    declared = opening.get("capabilities", {})
    owners = {"tools": "tools", "resourceTemplates": "resources", "prompts": "prompts"}
    listed = inquiry.lists([kind for kind in KINDS if owners[kind.member] in declared])
    return Locked(
        command=command,
        url=url,
        revision=inquiry.revision,
        server=server_of(opening),
        instructions=(opening.get("instructions"),),
        listed={member: {name: (each,) for name, each in found.items()} for member, found in listed.items()},
    )


def inquire(
    opened: Callable[[], AbstractContextManager[ServerLine]],
    log: Log,
    limits: Limits,
    timeout: float,
    *,
    client: Mapping[str, str] = CLIENT,
    capabilities: Mapping[str, Any] = NO_CAPABILITIES,
    command: tuple[str, ...] = (),
    url: str = "",
    discovers: bool = True,
) -> Locked:
    """
    Return what the server behind *opened* offers, within *timeout* seconds. Raises `InquiryError`.

    *client* and *capabilities* are declared to the server; for *discovers* see `conversing`.
    """
    with conversing(opened, log, limits, timeout, client=client, capabilities=capabilities, discovers=discovers) as (
        inquiry,
        opening,
    ):
        return asked(inquiry, opening, command=command, url=url)


@contextmanager
def conversing(
    opened: Callable[[], AbstractContextManager[ServerLine]],
    log: Log,
    limits: Limits,
    timeout: float,
    *,
    client: Mapping[str, str] = CLIENT,
    capabilities: Mapping[str, Any] = NO_CAPABILITIES,
    heard: Callable[[Verdict], None] | None = None,
    discovers: bool = True,
    judge: Callable[..., Conversation] = Conversation,
) -> Iterator[tuple[Inquiry, dict[str, Any]]]:
    """
    Open a conversation in the newest revision of the server; yield it, and the server's description of itself.

    With *discovers* false, server/discover is not sent: the server is known to need a handshake. Some servers exit, or
    stop responding, after any request before a handshake: those are opened again. *judge* is as for `Inquiry`.
    Raises `InquiryError`.
    """
    deadline = time.monotonic() + timeout

    def inquiring(line: ServerLine) -> Inquiry:
        return Inquiry(line, log, limits, deadline, client, capabilities, heard=heard, judge=judge)

    if discovers:
        with opened() as line:
            inquiry = inquiring(line)
            answers = True
            try:
                opening = inquiry.discover(timeout / 3)
            except LineError:
                answers = False
            if answers:
                yield inquiry, opening or inquiry.initialize()
                return
    with opened() as line:
        inquiry = inquiring(line)
        yield inquiry, inquiry.initialize()

"""
The fast path for tool calls and their results, which are most of the traffic and mostly valid.

Each method returns the exchange of an accepted message, or None: then the thorough way decides. Whatever is accepted
here is accepted there too; tests/judge/laws/test_quick_look.py compares the two. Without this module a call through the
guard over pipes takes 44 µs of CPU in place of 17.
"""

from typing import Any

from assay.judge.headers import Headers, keeps_headers
from assay.judge.state import State
from assay.judge.topics.capabilities import declared_in
from assay.judge.topics.extensions import RequestExtensions
from assay.judge.topics.logs import RANKS
from assay.model.json_values import CAPABILITIES_KEY, LEVEL_KEY, REVISION_KEY
from assay.model.verdict import Exchange, Party


class QuickLook:
    """Accepts valid calls and results of tools."""

    __slots__ = ("_client", "_extensions", "_id_bytes", "_most_open", "_server", "_state")

    def __init__(self, state: State) -> None:
        self._state = state
        self._client, self._server = state.parties[Party.CLIENT], state.parties[Party.SERVER]
        self._extensions = state.own(RequestExtensions)
        self._id_bytes = state.limits.id_bytes
        self._most_open = state.limits.open_requests

    def call(self, message: dict[str, Any]) -> Exchange | None:
        """Return the exchange of a call that is certainly valid."""
        try:
            if message["method"] != "tools/call" or message["jsonrpc"] != "2.0" or len(message) != 4:
                return None
            ident = message["id"]
            params = message["params"]
            # A known name is a string. Of these two members no revision asks more than that the arguments are an
            # object; a test compares this with the schema.
            known = self._state.tools.known[params["name"]]
            arguments = params["arguments"]
        except (KeyError, TypeError):
            return None
        if type(ident) is not int and (type(ident) is not str or len(ident) > self._id_bytes):
            return None
        if type(arguments) is not dict or not known.valid_input(arguments):
            return None
        names = known.names
        if names is not None:
            # A loop, not a set operation: for a few keys it takes half of the time.
            for name in arguments:
                if name not in names:
                    if known.is_odd(arguments):
                        return None
                    break
        client = self._client
        entry = client.call
        requests = client.open
        # 0 may have been written as -0; the thorough way keeps the spelling.
        if entry is None or not ident or ident in requests or len(requests) >= self._most_open:
            return None
        stateless = client.stateless
        if not stateless and (len(params) != 2 or ident in client.settled):
            return None
        exchange = Exchange()
        exchange.entry = entry
        exchange.id = ident
        exchange.contract = known
        exchange.as_task = False
        if stateless and not _quick_meta(exchange, params, self._extensions.plain):
            return None
        requests[ident] = exchange
        client.garbage = 0
        return exchange

    def result(self, message: dict[str, Any]) -> Exchange | None:
        """Return the exchange of a result that is certainly valid, and close it."""
        client = self._client
        try:
            ident = message["id"]
            exchange = client.open[ident]
            result = message["result"]
            known = exchange.contract
            if message["jsonrpc"] != "2.0" or len(message) != 3 or not known.plain or exchange.as_task:
                return None
        except (KeyError, TypeError, AttributeError):
            return None
        entry = exchange.entry
        shape = entry.result
        # A request of an unknown revision, which passes under audit, has no shape for its result.
        if shape is None or type(ident) is not type(exchange.id):
            return None
        common = not entry.stateless and _is_common(result)
        if not common and not shape.is_valid(result):
            return None
        if client.call is None or (entry.stateless and result.get("resultType") != "complete"):
            return None
        if known.output is not None:
            # A result that reports a failure needs no content.
            if "structuredContent" not in result:
                if result.get("isError") is not True:
                    return None
            elif not known.valid_output(result["structuredContent"]):
                return None
        if not common:
            keys = shape.keys
            for key in result:
                if key not in keys:
                    if not shape.is_plain(result):
                        return None
                    break
        client.close(exchange, "answered")
        self._server.garbage = 0
        return exchange

    def keeps_headers(self, message: dict[str, Any], headers: Headers) -> bool:
        """Return whether the headers of a message certainly say what its body says."""
        known = self._state.called(message)
        if known is not None and not known.ready:
            return False
        params = () if known is None else known.headers
        return keeps_headers(message, headers, self._state.lifecycle.rules.revision, params)


def _is_common(result: Any) -> bool:
    """
    Return whether a result is texts, perhaps with structured content: what every revision with a handshake allows.

    A test compares it with the schemas. The engine would look at all of the structured content, which the tool's own
    schema has to judge all the same.
    """
    try:
        others = len(result) - 1
        if "isError" in result:
            if type(result["isError"]) is not bool:
                return False
            others -= 1
        if others and (others > 1 or type(result["structuredContent"]) is not dict):
            return False
        content = result["content"]
        if type(content) is not list:
            return False
        for each in content:
            if len(each) != 2 or each["type"] != "text" or type(each["text"]) is not str:
                return False
    except (KeyError, TypeError):
        return False
    return True


def _quick_meta(exchange: Exchange, params: dict[str, Any], plain: Any) -> bool:
    """
    Return whether params have a name, arguments, and just the `_meta` that a revision without a handshake needs.

    *plain* are the extensions that an earlier request declared without a violation.
    """
    meta = params.get("_meta")
    if type(meta) is not dict or len(params) != 3 or "progressToken" in meta:
        return False
    known = exchange.entry.params
    if (
        meta.get(REVISION_KEY) != exchange.entry.revision
        or not known.is_valid(params)
        or not known.has_plain_meta(meta)
    ):
        return False
    capabilities = meta[CAPABILITIES_KEY]
    if "extensions" in capabilities and capabilities["extensions"] != plain:
        return False
    # The server may answer an experimental capability with a result type of its own: the thorough way notes that.
    if "experimental" in capabilities:
        return False
    exchange.declared = declared_in(capabilities)
    if LEVEL_KEY in meta:
        exchange.level = RANKS[meta[LEVEL_KEY]]
    return True

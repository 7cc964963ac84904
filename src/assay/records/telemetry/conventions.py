"""
Requests in the words of OpenTelemetry's semantic conventions for MCP: names and attributes, as plain data.

From https://github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/mcp.md, at commit 0393513c908b
(status: development). Attributes of our own begin with `assay.`.
"""

from typing import Final

from assay.base.errors import CanonicalError
from assay.records.telemetry.span_snapshot import OTHER, Seen

DURATION: Final = "mcp.server.operation.duration"
DURATION_UNIT: Final = "s"
DURATION_TEXT: Final = (
    "MCP request or notification duration as observed on the receiver from the time it was received until the result"
    " or ack is sent."
)
DURATION_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

MOST_TARGETS: Final = 1000
"""Tools and prompts that are told apart by name. The largest server we know lists under 300 tools."""

Attributes = dict[str, str | tuple[str, ...]]

_NETWORK: Final[dict[str, Attributes]] = {
    "stdio": {"network.transport": "pipe"},
    "http": {"network.transport": "tcp", "network.protocol.name": "http"},
}

_CODES: Final = frozenset(CanonicalError.codes())


class Targets:
    """
    The names of tools and prompts that may stand in the name of a span and in the attributes of a metric.

    Those are kept apart for ever, so a client that makes up names must not get them in: one is admitted when its server
    has listed it or has answered without an error, and only so many are.
    """

    def __init__(self) -> None:
        self._admitted: set[str] = set()

    def of(self, request: Seen) -> str | None:
        """The name that *request* is about, if it may be used."""
        name = request.tool or request.prompt
        if name is None or name in self._admitted:
            return name
        if len(self._admitted) >= MOST_TARGETS or not (request.listed or error_type(request) is None):
            return None
        self._admitted.add(name)
        return name


def span_name(request: Seen, target: str | None) -> str:
    """`{mcp.method.name} {target}`; a bare method is its own target."""
    return request.method if target is None or target == request.method else f"{request.method} {target}"


def error_type(request: Seen) -> str | None:
    """
    What went wrong, in one word; None if nothing did.

    The canonical error where there is one, which tells apart more than its JSON-RPC code does; that is in
    `rpc.response.status_code`.
    """
    if request.code is not None:
        return request.code if request.code in _CODES else OTHER
    if request.failed:
        return "tool_error" if request.tool is not None else OTHER
    return None


def status_text(request: Seen) -> str | None:
    """The message of the error that was answered."""
    return str(CanonicalError.to_jsonrpc_error(request.code)["message"]) if request.code in _CODES else None


def metric_attributes(request: Seen, target: str | None) -> Attributes:
    """What a duration is recorded with: nothing that a peer could make many of."""
    found: Attributes = {"mcp.method.name": request.method}
    if request.tool is not None:
        found["gen_ai.operation.name"] = "execute_tool"
    if target is not None:
        found["gen_ai.tool.name" if request.tool is not None else "gen_ai.prompt.name"] = target
    if request.revision is not None:
        found["mcp.protocol.version"] = request.revision
    found |= _NETWORK.get(request.transport, {})
    wrong = error_type(request)
    if wrong is not None:
        found["error.type"] = wrong
    if wrong in _CODES and not request.refused_by_result:
        found["rpc.response.status_code"] = str(CanonicalError.to_jsonrpc_error(wrong)["code"])
    return found


def span_attributes(request: Seen, common: Attributes) -> Attributes:
    """What a span has: the *common* attributes, and what is of this request alone."""
    alone = {
        "gen_ai.tool.name": request.tool,
        "gen_ai.prompt.name": request.prompt,
        "mcp.resource.uri": request.uri,
        "mcp.session.id": request.session,
        "jsonrpc.request.id": request.ident,
        "jsonrpc.protocol.version": request.jsonrpc,
        "assay.party": request.party,
    }
    found = common | {name: value for name, value in alone.items() if value is not None}
    if request.code is not None and _is_number(request.code):
        # An error of the server's own, which has no canonical name.
        found["rpc.response.status_code"] = request.code
    if request.rules:
        found["assay.rules"] = request.rules
    return found


def _is_number(code: str) -> bool:
    return len(code) <= 12 and code.removeprefix("-").isdecimal()

"""
Map requests to OpenTelemetry's semantic conventions for MCP: names and attributes, as plain data.

From https://github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/mcp.md, at commit 0393513c908b
(status: development). Our own attributes have the prefix `assay.`.
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
"""Maximal names of tools and prompts. The largest server we know lists under 300 tools."""

Attributes = dict[str, str | tuple[str, ...]]

_NETWORK: Final[dict[str, Attributes]] = {
    "stdio": {"network.transport": "pipe"},
    "http": {"network.transport": "tcp", "network.protocol.name": "http"},
}

_CODES: Final = frozenset(CanonicalError.codes())


class Targets:
    """
    The names of tools and prompts that may be used in span names and metric attributes.

    Each name creates a series that never goes away, so clients must not be able to invent names: a name is used once
    its server has listed it or answered it without an error, up to `MOST_TARGETS`.
    """

    def __init__(self) -> None:
        self._admitted: set[str] = set()

    def of(self, request: Seen) -> str | None:
        """Return the tool or prompt of *request*, if its name may be used."""
        name = request.tool or request.prompt
        if name is None or name in self._admitted:
            return name
        if len(self._admitted) >= MOST_TARGETS or not (request.listed or error_type(request) is None):
            return None
        self._admitted.add(name)
        return name


def span_name(request: Seen, target: str | None) -> str:
    """Return `{mcp.method.name} {target}`; the method alone if there is no target."""
    return request.method if target is None or target == request.method else f"{request.method} {target}"


def error_type(request: Seen) -> str | None:
    """
    Return the error as one word; None without an error.

    The canonical error if there is one: it is more specific than its JSON-RPC code, which is in
    `rpc.response.status_code`.
    """
    if request.code is not None:
        return request.code if request.code in _CODES else OTHER
    if request.failed:
        return "tool_error" if request.tool is not None else OTHER
    return None


def status_text(request: Seen) -> str | None:
    """Return the message of the error response."""
    return str(CanonicalError.to_jsonrpc_error(request.code)["message"]) if request.code in _CODES else None


def metric_attributes(request: Seen, target: str | None) -> Attributes:
    """Return the attributes of a duration: no values that a peer could invent."""
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
    """Return the attributes of a span: the *common* ones, and those of this request."""
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
        # A server's own error, which has no canonical name.
        found["rpc.response.status_code"] = request.code
    if request.rules:
        found["assay.rules"] = request.rules
    return found


def _is_number(code: str) -> bool:
    return len(code) <= 12 and code.removeprefix("-").isdecimal()

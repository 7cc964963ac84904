"""
The capabilities that our client declares, and its responses to the server's requests. No I/O.

Servers offer some tools only to clients with certain capabilities: a tool that asks the user, for example, only to a
client with elicitation.
"""

from collections.abc import Mapping
from typing import Any, Final

from assay.judge import render, syntax
from assay.judge.topics.capabilities import has_capability
from assay.model.errors import CanonicalError
from assay.spec.methods import methods
from assay.spec.revisions import handshake

NO_CAPABILITIES: Final[Mapping[str, Any]] = {}

ALL_CAPABILITIES: Final[Mapping[str, Any]] = {
    "roots": {"listChanged": True},
    "sampling": {"context": {}, "tools": {}},
    "elicitation": {"form": {}, "url": {}},
    "tasks": {
        "list": {},
        "cancel": {},
        "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
    },
    "extensions": {
        # SEP-1865, MCP Apps: servers look for this media type before they offer a tool with an interface.
        "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]},
        "io.modelcontextprotocol/tasks": {},
    },
}
"""Every capability that a client can have in any revision; `declared` leaves out those of other revisions."""

_INVALID_PARAMS: Final = -32602

_DECLINED: Final = -1
"""The code for a declined request in the examples of the specification."""

_RESULTS: Final[Mapping[str, dict[str, Any]]] = {
    "ping": {},
    "roots/list": {"roots": []},
    "elicitation/create": {"action": "decline"},
    "tasks/list": {"tasks": []},
}


def declared(capabilities: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Return the part of *capabilities* that a client can declare in *revision*."""
    if handshake(revision):
        # Extensions came with 2026-07-28; servers that offer MCP Apps look for them in handshakes as well.
        return dict(capabilities)
    # 2026-07-28 has tasks as an extension, and no notification that the roots have changed.
    kept = {name: value for name, value in capabilities.items() if name != "tasks"}
    return kept | ({"roots": {}} if "roots" in kept else {})


def reply_to(request: Mapping[str, Any], capabilities: Mapping[str, Any], revision: str) -> bytes:
    """
    Return the answer to a server's *request* from a client that declared *capabilities* and has no user.

    Elicitation and sampling are declined, and there are no roots. A method without its capability is unknown.
    """
    ident = syntax.write(request["id"])
    method, params = request["method"], request.get("params")
    if not _is_known(method, capabilities, revision):
        return render.error_frame(ident, CanonicalError.to_jsonrpc_error("METHOD_NOT_FOUND"), None, revision)
    # A request that runs as a task expects a task first, which this client does not have.
    if method in _RESULTS and not (isinstance(params, dict) and "task" in params):
        return render.result_frame(ident, syntax.write(_RESULTS[method]))
    if method.startswith("tasks/"):
        return render.error_frame(ident, {"code": _INVALID_PARAMS, "message": "Unknown task"}, None, revision)
    return render.error_frame(ident, {"code": _DECLINED, "message": "The user declined the request"}, None, revision)


def _is_known(method: str, capabilities: Mapping[str, Any], revision: str) -> bool:
    if method == "ping":  # some servers send it before the revision is agreed
        return True
    row = methods(revision).get(method)
    if row is None or "server" not in row.senders:
        return False
    needed = row.needs("server")
    return needed is None or needed[0] != "client" or has_capability(capabilities, needed[1])

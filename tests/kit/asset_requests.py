"""Ways to ask an `AssetServer`: frames in, values out, with integers to the last digit."""

import json
from collections.abc import Mapping
from typing import Any

from assay.assets.asset_server import AssetServer
from assay.assets.asset_sources import Catalogue
from assay.assets.mcp_methods import Methods
from assay.spec.revisions import LATEST, handshake
from kit.catalogues import BUNDLED, variables
from kit.places import ROOT

REVISION = "io.modelcontextprotocol/protocolVersion"


def meta(revision: str = LATEST, **more: Any) -> dict[str, Any]:
    """The `_meta` of a request, as revisions without a handshake want it."""
    return {REVISION: revision, "io.modelcontextprotocol/clientCapabilities": {}, **more}


def request(ident: Any, method: str, params: Mapping[str, Any] | None = None, revision: str = "") -> dict[str, Any]:
    """A request; with a *revision* that has no handshake, it says so."""
    whole = dict(params or {})
    if revision and not handshake(revision):
        whole["_meta"] = {**meta(revision), **whole.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": whole}


def call(ident: Any, tool: str, arguments: Any, revision: str = "", **more: Any) -> dict[str, Any]:
    """A call of a tool; *more* goes into `_meta`."""
    params = {"name": tool, "arguments": arguments, **({"_meta": more} if more else {})}
    return request(ident, "tools/call", params, revision)


def cancelled(ident: Any) -> dict[str, Any]:
    """That nobody waits for the answer any more."""
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}}


def frame_of(message: Any) -> bytes:
    """*message* as a frame; bytes are one already."""
    if isinstance(message, bytes):
        return message
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def said(server: AssetServer, message: Any) -> list[Any]:
    """What the server says to *message*."""
    return [json.loads(each) for each in server.respond(frame_of(message))]


def answer(server: AssetServer, message: Any) -> Any:
    """The one answer to *message*."""
    [one] = said(server, message)
    return one


def opening(revision: str) -> list[dict[str, Any]]:
    """What a client says before anything else."""
    if not handshake(revision):
        return []
    client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    return [request("open", "initialize", client), {"jsonrpc": "2.0", "method": "notifications/initialized"}]


def opened(methods: Methods, revision: str, **options: Any) -> AssetServer:
    """A connection that is open in *revision*; one without handshake needs no opening."""
    server = AssetServer(methods, **options)
    for message in opening(revision):
        assert all("result" in each for each in said(server, message))
    return server


def bundled_methods(**options: Any) -> Methods:
    """What the catalogue in `examples` is asked by."""
    return Methods(Catalogue.read(variables(BUNDLED), ROOT), **options)

"""Ways to ask an `AssetServer`: frames in, values out, with integers to the last digit."""

import json
from typing import Any

from assay.assets.asset_server import AssetServer
from assay.assets.mcp_methods import Methods
from assay.spec.revisions import handshake
from kit.catalogues import bundled
from kit.http_client import INITIALIZED, frame_of, initialize


def said(server: AssetServer, message: Any) -> list[Any]:
    """What the server says to *message*."""
    return [json.loads(each) for each in server.respond(frame_of(message))]


def answer(server: AssetServer, message: Any) -> Any:
    """The one answer to *message*."""
    [one] = said(server, message)
    return one


def opening(revision: str) -> list[dict[str, Any]]:
    """What a client says before anything else."""
    return [initialize(revision), INITIALIZED] if handshake(revision) else []


def opened(methods: Methods, revision: str, **options: Any) -> AssetServer:
    """A connection that is open in *revision*; one without handshake needs no opening."""
    server = AssetServer(methods, **options)
    for message in opening(revision):
        assert all("result" in each for each in said(server, message))
    return server


def bundled_methods(**options: Any) -> Methods:
    """What the catalogue in `examples` is asked by."""
    return Methods(bundled(), **options)

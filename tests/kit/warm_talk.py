"""
A short conversation in each revision, held when this is imported: what the judging prepares for it stays prepared.

Tables of the official schemas are made when they are first needed. A process that is forked after this has them.
"""

from typing import Any, Final

import orjson

from assay.base.meta import CAPABILITIES_KEY, REVISION_KEY
from assay.base.verdict import Party
from assay.core.conversation import Conversation
from assay.spec.revisions import REVISIONS, handshake

PARTY: Final = {"name": "a", "version": "1"}
TOOL: Final = {"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}


def hold(revision: str) -> None:
    """Hold a conversation in *revision*; nothing depends on what is concluded."""
    conversation = Conversation()
    meta = {REVISION_KEY: revision, CAPABILITIES_KEY: {}}
    shared: dict[str, Any] = {} if handshake(revision) else {"_meta": meta}
    complete: dict[str, Any] = {} if handshake(revision) else {"resultType": "complete"}
    opening = {"protocolVersion": revision, "capabilities": {"tools": {}}}
    asked: tuple[tuple[str, Any, Any], ...] = (
        ("initialize", {**opening, "clientInfo": PARTY}, {**opening, "serverInfo": PARTY}),
        ("ping", {}, {}),
        ("tools/list", {}, {"tools": [TOOL]}),
        ("tools/call", {"name": "a", "arguments": {}}, {"content": [], "structuredContent": {}}),
        ("tools/call", {"name": "b"}, {"content": 5}),
    )
    for ident, (method, params, result) in enumerate(asked):
        if method == "initialize" and not handshake(revision):
            continue
        request = {"jsonrpc": "2.0", "id": ident, "method": method, "params": {**params, **shared}}
        conversation.hear(Party.CLIENT, orjson.dumps(request))
        conversation.hear(Party.SERVER, orjson.dumps({"jsonrpc": "2.0", "id": ident, "result": {**result, **complete}}))
        if method == "initialize":
            conversation.hear(Party.CLIENT, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')


for each in REVISIONS:
    hold(each)

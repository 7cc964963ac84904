"""The documents that these tests add: a draft of the next revision, and a small extension, both written here."""

import copy
import json
from pathlib import Path
from typing import Any

from assay.spec.document_facts import DocumentFacts
from assay.spec.draft_revisions import DraftRevision
from assay.spec.revisions import LATEST, LATEST_HANDSHAKE
from assay.spec.schema import DIALECT, protocol_schema

NAME = "DRAFT-2027-v1"
OPENED = "DRAFT-2027-opened"
"""The name of a draft that opens with `initialize`."""

REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

IDENTIFIER = "com.example/x"


def draft_document() -> dict[str, Any]:
    """The latest revision with one more method, `tools/preview`, and one more required field of `tools/list`."""
    document = copy.deepcopy(protocol_schema(LATEST, errata=False).document())
    defs = document["$defs"]
    params = {"type": "object", "properties": {"_meta": _to("RequestMetaObject"), "name": {"type": "string"}}}
    envelope = {"jsonrpc": {"const": "2.0", "type": "string"}, "id": _to("RequestId")}
    defs["PreviewToolRequest"] = {
        "type": "object",
        "properties": {**envelope, "method": {"const": "tools/preview"}, "params": {**params, "required": ["name"]}},
        "required": ["jsonrpc", "id", "method", "params"],
    }
    defs["PreviewToolResult"] = {
        "type": "object",
        "properties": {"resultType": _to("ResultType"), "cost": {"type": "integer", "minimum": 0}},
        "required": ["resultType", "cost"],
    }
    defs["PreviewToolResultResponse"] = {
        "type": "object",
        "description": "An answer.",
        "properties": {**envelope, "result": {"anyOf": [_to("InputRequiredResult"), _to("PreviewToolResult")]}},
    }
    defs["ClientRequest"]["anyOf"].append(_to("PreviewToolRequest"))
    defs["ListToolsResult"]["properties"]["total"] = {"type": "integer"}
    defs["ListToolsResult"]["required"].append("total")
    return document


def opened_document() -> dict[str, Any]:
    """The newest revision with a handshake, in which a ping has to say why."""
    document = copy.deepcopy(protocol_schema(LATEST_HANDSHAKE, errata=False).document())
    document["$defs"]["PingRequest"]["properties"]["params"] = {
        "type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"],
    }  # fmt: skip
    return document


def extension_document() -> dict[str, Any]:
    """A third-party extension: `x/run` of clients, `x/ask` and `notifications/x/done` of servers."""
    return {
        "$schema": DIALECT,
        "$defs": {
            "RunParams": {
                "type": "object",
                "properties": {"job": {"$ref": "#/$defs/Job"}, "tool": {"$ref": "#/$defs/Tool"}},
                "required": ["job"],
            },
            "Job": {
                "type": "object",
                "properties": {"steps": {"type": "integer", "minimum": 1}},
                "required": ["steps"],
            },
            "RunResult": {
                "type": "object",
                "properties": {"ran": {"type": "integer"}},
                "required": ["ran"],
                "additionalProperties": False,
            },
            "AskParams": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            "DoneParams": {
                "type": "object",
                "properties": {"ran": {"type": "integer"}},
                "required": ["ran"],
                "additionalProperties": False,
            },
        },
    }


SETTINGS = f"""\
[extensions."{IDENTIFIER}"]
schema = "x.schema.json"

[extensions."{IDENTIFIER}".methods."x/run"]
sender = "client"
params = "RunParams"
result = "RunResult"

[extensions."{IDENTIFIER}".methods."x/ask"]
sender = "server"
params = "AskParams"

[extensions."{IDENTIFIER}".methods."notifications/x/done"]
sender = "server"
params = "DoneParams"
"""


def _to(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def facts(document: Any) -> DocumentFacts:
    """The definitions of *document*, as if it had been read from a file."""
    return DocumentFacts(json.loads(json.dumps(document)))


def draft() -> DraftRevision:
    """The draft without a handshake."""
    return DraftRevision(NAME, facts(draft_document()))


def opened_draft() -> DraftRevision:
    """The draft that opens with `initialize`."""
    return DraftRevision(OPENED, facts(opened_document()))


def written(path: Path, document: Any) -> Path:
    """The file at *path* with *document*; bytes and text as they are."""
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    path.write_bytes(content)
    return path


def meta(revision: str = NAME, **declared: Any) -> dict[str, Any]:
    """The `_meta` of a request without a handshake."""
    return {REVISION_KEY: revision, CAPABILITIES_KEY: declared}

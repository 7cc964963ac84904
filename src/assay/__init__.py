"""
Assay judges every message of a Model Context Protocol conversation before it passes on.

The public names; each is loaded when it is first used, so that a program pays for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.conversation import Conversation
    from assay.errors import CanonicalError
    from assay.faces.exceptions import JsonRpcError, ValidationError
    from assay.faces.jsonrpc import JsonRpc, JsonRpcClient, JsonRpcServer, JsonRpcValidator
    from assay.faces.registry import SchemaRegistry
    from assay.faces.schema_validator import SchemaValidator, ValidationMiddleware
    from assay.response import (
        ResponseEnvelope,
        ToolError,
        UpgradeHint,
        UpgradeRequiredError,
        envelop_tool_function,
    )
    from assay.verdict import Party, Verdict, Violation

__version__ = "0.1.0"

__all__ = [
    "CanonicalError",
    "Conversation",
    "JsonRpc",
    "JsonRpcClient",
    "JsonRpcError",
    "JsonRpcServer",
    "JsonRpcValidator",
    "Party",
    "ResponseEnvelope",
    "SchemaRegistry",
    "SchemaValidator",
    "ToolError",
    "UpgradeHint",
    "UpgradeRequiredError",
    "ValidationError",
    "ValidationMiddleware",
    "Verdict",
    "Violation",
    "envelop_tool_function",
]

_HOMES = {
    "CanonicalError": "errors",
    "Conversation": "conversation",
    "JsonRpc": "faces.jsonrpc",
    "JsonRpcClient": "faces.jsonrpc",
    "JsonRpcError": "faces.exceptions",
    "JsonRpcServer": "faces.jsonrpc",
    "JsonRpcValidator": "faces.jsonrpc",
    "Party": "verdict",
    "ResponseEnvelope": "response",
    "SchemaRegistry": "faces.registry",
    "SchemaValidator": "faces.schema_validator",
    "ToolError": "response",
    "UpgradeHint": "response",
    "UpgradeRequiredError": "response",
    "ValidationError": "faces.exceptions",
    "ValidationMiddleware": "faces.schema_validator",
    "Verdict": "verdict",
    "Violation": "verdict",
    "envelop_tool_function": "response",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    found = getattr(import_module(f"assay.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    # Also the names that are not loaded yet: `dir` and `help` find only what stands here.
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

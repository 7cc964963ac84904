"""
Assay judges every message of a Model Context Protocol conversation before it passes on.

The public names; each is loaded when it is first used, so that a program pays for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.api.exceptions import JsonRpcError, ValidationError
    from assay.api.jsonrpc import JsonRpc, JsonRpcClient, JsonRpcServer, JsonRpcValidator
    from assay.api.registry import SchemaRegistry
    from assay.api.schema_validator import SchemaValidator, ValidationMiddleware
    from assay.assets.response import (
        ResponseEnvelope,
        ToolError,
        UpgradeHint,
        UpgradeRequiredError,
        envelop_tool_function,
    )
    from assay.base.errors import CanonicalError
    from assay.base.verdict import Party, Verdict, Violation
    from assay.core.conversation import Conversation

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
    "CanonicalError": "base.errors",
    "Conversation": "core.conversation",
    "JsonRpc": "api.jsonrpc",
    "JsonRpcClient": "api.jsonrpc",
    "JsonRpcError": "api.exceptions",
    "JsonRpcServer": "api.jsonrpc",
    "JsonRpcValidator": "api.jsonrpc",
    "Party": "base.verdict",
    "ResponseEnvelope": "assets.response",
    "SchemaRegistry": "api.registry",
    "SchemaValidator": "api.schema_validator",
    "ToolError": "assets.response",
    "UpgradeHint": "assets.response",
    "UpgradeRequiredError": "assets.response",
    "ValidationError": "api.exceptions",
    "ValidationMiddleware": "api.schema_validator",
    "Verdict": "base.verdict",
    "Violation": "base.verdict",
    "envelop_tool_function": "assets.response",
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

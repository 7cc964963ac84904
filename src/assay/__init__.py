"""
Assay judges every message of a Model Context Protocol conversation before it is forwarded.

These are the stable names. Each is loaded when it is first used, so that a program loads only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.assets.sources import Catalogue
    from assay.assets.tools import TOOLS as ASSET_TOOLS
    from assay.auth import Denied, Gate, Principal
    from assay.conversation import Conversation
    from assay.engine.admission import admit
    from assay.engine.limits import SchemaLimits
    from assay.errors import CanonicalError
    from assay.faces.exceptions import JsonRpcError, ValidationError
    from assay.faces.jsonrpc import JsonRpc, JsonRpcClient, JsonRpcServer, JsonRpcValidator
    from assay.faces.registry import SchemaRegistry
    from assay.faces.schema_validator import SchemaValidator, ValidationMiddleware
    from assay.journal import Journal
    from assay.ladder.framing import Splitter
    from assay.limits import Limits
    from assay.lock.file import read as read_lock
    from assay.lock.inspection import Inspection
    from assay.lock.locked import Locked
    from assay.metrics import Metrics
    from assay.response import (
        Enveloper,
        ResponseEnvelope,
        Tiers,
        ToolError,
        UpgradeHint,
        UpgradeRequiredError,
        envelop_tool_function,
        enveloped,
    )
    from assay.settings import SettingsError, TelemetrySettings
    from assay.settings import load as load_settings
    from assay.telemetry import Telemetry
    from assay.verdict import Party, Verdict, Violation

__version__ = "0.1.0"

__all__ = [
    "ASSET_TOOLS",
    "CanonicalError",
    "Catalogue",
    "Conversation",
    "Denied",
    "Enveloper",
    "Gate",
    "Inspection",
    "Journal",
    "JsonRpc",
    "JsonRpcClient",
    "JsonRpcError",
    "JsonRpcServer",
    "JsonRpcValidator",
    "Limits",
    "Locked",
    "Metrics",
    "Party",
    "Principal",
    "ResponseEnvelope",
    "SchemaLimits",
    "SchemaRegistry",
    "SchemaValidator",
    "SettingsError",
    "Splitter",
    "Telemetry",
    "TelemetrySettings",
    "Tiers",
    "ToolError",
    "UpgradeHint",
    "UpgradeRequiredError",
    "ValidationError",
    "ValidationMiddleware",
    "Verdict",
    "Violation",
    "admit",
    "envelop_tool_function",
    "enveloped",
    "load_settings",
    "read_lock",
]

_HOMES = {
    "ASSET_TOOLS": "assets.tools",
    "CanonicalError": "errors",
    "Catalogue": "assets.sources",
    "Conversation": "conversation",
    "Denied": "auth",
    "Enveloper": "response",
    "Gate": "auth",
    "Inspection": "lock.inspection",
    "Journal": "journal",
    "JsonRpc": "faces.jsonrpc",
    "JsonRpcClient": "faces.jsonrpc",
    "JsonRpcError": "faces.exceptions",
    "JsonRpcServer": "faces.jsonrpc",
    "JsonRpcValidator": "faces.jsonrpc",
    "Limits": "limits",
    "Locked": "lock.locked",
    "Metrics": "metrics",
    "Party": "verdict",
    "Principal": "auth",
    "ResponseEnvelope": "response",
    "SchemaLimits": "engine.limits",
    "SchemaRegistry": "faces.registry",
    "SchemaValidator": "faces.schema_validator",
    "SettingsError": "settings",
    "Splitter": "ladder.framing",
    "Telemetry": "telemetry",
    "TelemetrySettings": "settings",
    "Tiers": "response",
    "ToolError": "response",
    "UpgradeHint": "response",
    "UpgradeRequiredError": "response",
    "ValidationError": "faces.exceptions",
    "ValidationMiddleware": "faces.schema_validator",
    "Verdict": "verdict",
    "Violation": "verdict",
    "admit": "engine.admission",
    "envelop_tool_function": "response",
    "enveloped": "response",
    "load_settings": "settings",
    "read_lock": "lock.file",
}
"""The module of each name."""

_REAL_NAMES = {"ASSET_TOOLS": "TOOLS", "load_settings": "load", "read_lock": "read"}
"""The names that are too short to be clear outside of their module."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    found = getattr(import_module(f"assay.{_HOMES[name]}"), _REAL_NAMES.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    # Also the names that are not loaded yet: `dir` and `help` list only these.
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

"""
Assay judges every message of a Model Context Protocol conversation before it is forwarded.

These are the stable names. Each is loaded when it is first used, so that a program loads only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.api.exceptions import JsonRpcError, ValidationError
    from assay.api.jsonrpc import JsonRpc, JsonRpcClient, JsonRpcServer, JsonRpcValidator
    from assay.api.registry import SchemaRegistry
    from assay.api.schema_validator import SchemaValidator, ValidationMiddleware
    from assay.assets.asset_sources import Catalogue
    from assay.assets.asset_tools import TOOLS as ASSET_TOOLS
    from assay.assets.enveloper import Enveloper, envelop_tool_function, enveloped
    from assay.assets.response_envelope import ResponseEnvelope, Tiers, ToolError, UpgradeHint, UpgradeRequiredError
    from assay.edges.auth import Denied, Gate, Principal
    from assay.judge.conversation import Conversation
    from assay.judge.framing import Splitter
    from assay.lock.inspection import Inspection
    from assay.lock.lock_file import read as read_lock
    from assay.lock.locked import Locked
    from assay.model.errors import CanonicalError
    from assay.model.limits import Limits
    from assay.model.verdict import Party, Verdict, Violation
    from assay.records.journal import Journal
    from assay.records.metrics import Metrics
    from assay.records.telemetry import Telemetry
    from assay.schema.admission import admit
    from assay.schema.fault import SchemaLimits
    from assay.settings import SettingsError, TelemetrySettings
    from assay.settings import load as load_settings

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
    "ASSET_TOOLS": "assets.asset_tools",
    "CanonicalError": "model.errors",
    "Catalogue": "assets.asset_sources",
    "Conversation": "judge.conversation",
    "Denied": "edges.auth",
    "Enveloper": "assets.enveloper",
    "Gate": "edges.auth",
    "Inspection": "lock.inspection",
    "Journal": "records.journal",
    "JsonRpc": "api.jsonrpc",
    "JsonRpcClient": "api.jsonrpc",
    "JsonRpcError": "api.exceptions",
    "JsonRpcServer": "api.jsonrpc",
    "JsonRpcValidator": "api.jsonrpc",
    "Limits": "model.limits",
    "Locked": "lock.locked",
    "Metrics": "records.metrics",
    "Party": "model.verdict",
    "Principal": "edges.auth",
    "ResponseEnvelope": "assets.response_envelope",
    "SchemaLimits": "schema.fault",
    "SchemaRegistry": "api.registry",
    "SchemaValidator": "api.schema_validator",
    "SettingsError": "settings",
    "Splitter": "judge.framing",
    "Telemetry": "records.telemetry",
    "TelemetrySettings": "settings",
    "Tiers": "assets.response_envelope",
    "ToolError": "assets.response_envelope",
    "UpgradeHint": "assets.response_envelope",
    "UpgradeRequiredError": "assets.response_envelope",
    "ValidationError": "api.exceptions",
    "ValidationMiddleware": "api.schema_validator",
    "Verdict": "model.verdict",
    "Violation": "model.verdict",
    "admit": "schema.admission",
    "envelop_tool_function": "assets.enveloper",
    "enveloped": "assets.enveloper",
    "load_settings": "settings",
    "read_lock": "lock.lock_file",
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

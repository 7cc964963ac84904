"""The examples of specs/004, to the letter, ways to change one, and tools in envelopes."""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from assay.assets.enveloper import envelop_tool_function
from assay.assets.response_envelope import ResponseEnvelope, ToolError

SUCCESS: Final[dict[str, Any]] = {
    "tier": "pro",
    "tool_version": "3.2.8",
    "tool_id": "security_scan",
    "request_id": "8b3e5f6c0a2f4ed4a3fb9e0b2f8f8d3a",
    "capabilities": ["envelope-v1"],
    "duration_ms": 27,
    "error": None,
    "upgrade_hints": [],
    "data": {"success": True, "risk_level": "high", "findings": []},
}
FAILURE: Final[dict[str, Any]] = {
    "tier": "community",
    "tool_version": "3.2.8",
    "tool_id": "extract_code",
    "request_id": "0a46e6c2b6df4e938e8d16ffb567a9b2",
    "capabilities": ["envelope-v1"],
    "duration_ms": 3,
    "error": {"error": "File not found: /missing.py.", "error_code": "not_found", "error_details": None},
    "upgrade_hints": [],
    "data": {"success": False, "error": "File not found: /missing.py."},
}
HINT: Final = {"feature": "deep_scan", "tier": "pro", "reason": "deep_scan needs the pro tier."}


def but(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**deepcopy(base), **changes}


def without(base: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in base.items() if key != name}


def wrapped(fn: Callable[..., Any], tier: Callable[[], str] = lambda: "pro") -> Callable[..., Any]:
    return envelop_tool_function(fn, tool_id="a_tool", tool_version="1.0.0", tier_getter=tier)


def answer(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> ResponseEnvelope:
    """The envelope of a call, which keeps its contract."""
    made: ResponseEnvelope = asyncio.run(wrapped(fn)(*args, **kwargs))
    assert ResponseEnvelope.from_dict(made.to_dict()) == made
    return made


def failure(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> ToolError:
    """The error of a call."""
    error = answer(fn, *args, **kwargs).error
    assert error is not None
    return error

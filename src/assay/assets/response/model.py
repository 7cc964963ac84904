"""
The models of specs/004. They are valid by construction: invalid values are refused.

No tools, no exceptions, no clocks.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, NoReturn

import orjson

from assay.assets.response import envelope_schema
from assay.assets.response.envelope_schema import ERROR_CODES, TIMED
from assay.assets.response.text import check_utf8, written
from assay.base.limits import TIERS

_VERSION: Final = re.compile(envelope_schema.SEMANTIC_VERSION)


@dataclass(frozen=True, slots=True)
class ToolError:
    """The failure of a tool (specs/004, Error Model)."""

    error: str
    """The message. It must contain nothing of the input; code that makes a `ToolError` itself has to ensure that."""
    error_code: str
    """One of `ERROR_CODES`."""
    error_details: Mapping[str, Any] | None = None
    """A JSON object that is safe for clients."""

    def __post_init__(self) -> None:
        check_text("error", self.error)
        check_word("error_code", self.error_code, ERROR_CODES)
        if self.error_details is not None:
            if not isinstance(self.error_details, dict):
                _refuse_type("error_details", "an object or null", self.error_details)
            written("error_details", self.error_details)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of specs/004, with all fields."""
        return {"error": self.error, "error_code": self.error_code, "error_details": self.error_details}

    @classmethod
    def from_dict(cls, value: Any) -> "ToolError":
        """Return the error in a JSON object; `error_details` may be missing, which means null."""
        return cls(**_fields("error", value, required=("error", "error_code"), optional=("error_details",)))


@dataclass(frozen=True, slots=True)
class UpgradeHint:
    """A feature of a higher tier (specs/004, Upgrade Hints)."""

    feature: str
    tier: str
    """The lowest tier that has it."""
    reason: str

    def __post_init__(self) -> None:
        check_text("feature", self.feature)
        check_word("tier", self.tier, TIERS)
        check_text("reason", self.reason)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of specs/004."""
        return {"feature": self.feature, "tier": self.tier, "reason": self.reason}

    @classmethod
    def from_dict(cls, value: Any) -> "UpgradeHint":
        """Return the hint in a JSON object."""
        return cls(**_fields("upgrade_hints", value, required=("feature", "tier", "reason")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseEnvelope:
    """The result of every tool (specs/004, Envelope Schema). The fields are in the order of the output."""

    tier: str
    """One of `TIERS`."""
    tool_version: str
    """A semantic version (semver.org): `3.2.8`, `1.0.0-rc.1`."""
    tool_id: str
    request_id: str
    """The id from the caller, or a new one."""
    capabilities: Sequence[str]
    """The capabilities of this call, as a tuple."""
    duration_ms: float | None = None
    """The duration in milliseconds. None leaves the field out, and is allowed only in the community tier."""
    error: ToolError | None = None
    upgrade_hints: Sequence[UpgradeHint] = ()
    """The hints, as a tuple."""
    data: Any = None
    """The tool's own JSON value. `to_json` writes its content at the time when the envelope was made."""

    _data_text: bytes = field(init=False, repr=False, compare=False)
    """`data` as JSON: serializing it once proves that it is JSON."""

    def __post_init__(self) -> None:
        check_word("tier", self.tier, TIERS)
        check_text("tool_version", self.tool_version)
        if not _VERSION.fullmatch(self.tool_version):
            raise ValueError("tool_version must be a semantic version, such as 1.0.0")
        check_text("tool_id", self.tool_id)
        check_text("request_id", self.request_id)
        _check_duration(self.duration_ms, self.tier)
        if self.error is not None and not isinstance(self.error, ToolError):
            _refuse_type("error", "a ToolError or None", self.error)
        # As a frozen dataclass sets its own fields.
        fill = object.__setattr__
        fill(self, "capabilities", _checked_capabilities(self.capabilities))
        fill(self, "upgrade_hints", _checked_hints(self.upgrade_hints))
        fill(self, "_data_text", written("data", self.data))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of specs/004 with all fields; `duration_ms` only if it is set."""
        made: dict[str, Any] = {
            "tier": self.tier,
            "tool_version": self.tool_version,
            "tool_id": self.tool_id,
            "request_id": self.request_id,
            "capabilities": list(self.capabilities),
            "duration_ms": self.duration_ms,
            "error": self.error.to_dict() if self.error else None,
            "upgrade_hints": [hint.to_dict() for hint in self.upgrade_hints],
            "data": self.data,
        }
        if self.duration_ms is None:
            del made["duration_ms"]
        return made

    def to_json(self) -> bytes:
        """Return the same as UTF-8, without white space. `data` is not serialized again."""
        made = self.to_dict()
        made["data"] = orjson.Fragment(self._data_text)
        try:
            return orjson.dumps(made)
        except TypeError:
            # An integer beyond 64 bits in the error's details.
            return written("the envelope", self.to_dict())

    @classmethod
    def from_dict(cls, value: Any) -> "ResponseEnvelope":
        """
        Return the envelope in a JSON object. Accepts exactly what `json_schema` accepts.

        An unknown field is refused (our choice): it is more often mistyped than new.
        """
        parts = _fields("the envelope", value, required=envelope_schema.REQUIRED, optional=("duration_ms",))
        if "duration_ms" in parts and parts["duration_ms"] is None:
            raise TypeError("duration_ms must be a number; leave the field out if there is no duration")
        for name in ("capabilities", "upgrade_hints"):
            if not isinstance(parts[name], list | tuple):
                _refuse_type(name, "an array", parts[name])
        if parts["error"] is not None:
            parts["error"] = ToolError.from_dict(parts["error"])
        parts["upgrade_hints"] = [UpgradeHint.from_dict(hint) for hint in parts["upgrade_hints"]]
        return cls(**parts)

    @staticmethod
    def json_schema(data: Mapping[str, Any] | bool = True) -> dict[str, Any]:
        """
        Return a JSON Schema 2020-12 of the envelope, for a tool's `outputSchema`; *data* is the schema of its `data`.

        References inside *data* keep their targets. An error may come with any `data`, usually null, so *data* applies
        only if `error` is null.
        """
        return envelope_schema.envelope(data)


def sealed(
    tier: str,
    tool_version: str,
    tool_id: str,
    request_id: str,
    capabilities: tuple[str, ...],
    duration_ms: float,
    error: ToolError | None,
    upgrade_hints: tuple[UpgradeHint, ...],
    data: Any,
) -> ResponseEnvelope:
    """
    Return an envelope of valid parts; only *data* is checked.

    One is made for every call of a tool, and this takes less than half the time of the constructor: 2 µs against 5.
    """
    data_text = written("data", data)
    made = object.__new__(ResponseEnvelope)
    fill = object.__setattr__
    fill(made, "tier", tier)
    fill(made, "tool_version", tool_version)
    fill(made, "tool_id", tool_id)
    fill(made, "request_id", request_id)
    fill(made, "capabilities", capabilities)
    fill(made, "duration_ms", duration_ms)
    fill(made, "error", error)
    fill(made, "upgrade_hints", upgrade_hints)
    fill(made, "data", data)
    fill(made, "_data_text", data_text)
    return made


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# These messages do not contain the refused value: they can end up in a response.


def _refuse_type(name: str, wanted: str, found: object) -> NoReturn:
    raise TypeError(f"{name} must be {wanted}, not of type {type(found).__name__}")


def check_text(name: str, value: object) -> None:
    """Raise unless *value*, of the field *name*, is a string that is not empty."""
    if not isinstance(value, str):
        _refuse_type(name, "a string", value)
    if not value:
        raise ValueError(f"{name} must not be empty")
    check_utf8(name, value)


def check_word(name: str, value: object, words: Iterable[str]) -> None:
    """Raise unless *value*, of the field *name*, is one of *words*."""
    if not isinstance(value, str):
        _refuse_type(name, "a string", value)
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(words)}")


def _check_duration(value: object, tier: str) -> None:
    if value is None:
        if tier in TIMED:
            raise ValueError(f"duration_ms must be there in the {tier} tier")
    # bool is an int in Python: without this, `true` would be a millisecond.
    elif isinstance(value, bool) or not isinstance(value, int | float):
        _refuse_type("duration_ms", "a number", value)
    elif not 0 <= value < inf:  # NaN is neither
        raise ValueError("duration_ms must be a number of milliseconds, 0 or more")


def _checked_capabilities(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        _refuse_type("capabilities", "a list or a tuple of strings", value)
    for each in value:
        check_text("capabilities", each)
    return tuple(value)


def _checked_hints(value: object) -> tuple[UpgradeHint, ...]:
    if not isinstance(value, list | tuple):
        _refuse_type("upgrade_hints", "a list or a tuple of UpgradeHint", value)
    for each in value:
        if not isinstance(each, UpgradeHint):
            _refuse_type("upgrade_hints", "a list of UpgradeHint", each)
    return tuple(value)


def _fields(name: str, value: Any, *, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Any]:
    """Return the fields of a JSON object. Raises for a missing or unknown field."""
    if not isinstance(value, Mapping):
        _refuse_type(name, "an object", value)
    required = tuple(required)
    missing = [each for each in required if each not in value]
    if missing:
        raise ValueError(f"{', '.join(missing)} must be there in {name}")
    if any(each not in {*required, *optional} for each in value):
        raise ValueError(f"{name} must have no fields but {', '.join((*required, *optional))}")
    return dict(value)

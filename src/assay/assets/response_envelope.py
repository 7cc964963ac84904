"""
The response envelope of specs/004: models, which refuse invalid values, their JSON Schema, and the tiers of features.

No tools, no clocks.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any, Final

import orjson

from assay.assets.json_text import is_text, written
from assay.model.limits import TIERS
from assay.schema.drafts import DRAFT_2020_12, subschemas

_TIMED: Final = ("pro", "enterprise")
"""The tiers in which `duration_ms` is required (specs/004, Envelope Schema)."""

ENVELOPE: Final = "envelope-v1"
"""The capability of every result in this shape, as in the examples of specs/004."""

ERROR_CODES: Final[Mapping[str, str]] = MappingProxyType({
    "invalid_argument": "An argument is invalid.",
    "invalid_path": "A path is invalid.",
    "forbidden": "Not allowed.",
    "not_found": "Not found.",
    "timeout": "The operation timed out.",
    "too_large": "The input or output is too large.",
    "resource_exhausted": "The server ran out of memory or another resource.",
    "not_implemented": "Not implemented.",
    "upgrade_required": "A higher tier is required.",
    "dependency_unavailable": "A service that the tool depends on did not respond.",
    "internal_error": "The tool failed; the request is not the cause.",
})  # fmt: skip
"""Every error code with its meaning, which is the message if nothing more specific is safe to show."""

_REQUIRED: Final = (
    "tier", "tool_version", "tool_id", "request_id", "capabilities", "error", "upgrade_hints", "data",
)  # fmt: skip
"""The fields of every envelope; `duration_ms` is required by tier."""

_NUMBER = "(?:0|[1-9][0-9]*)"
_LABEL = f"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = "[0-9A-Za-z-]+"
_SEMANTIC: Final = rf"^{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_LABEL}(?:\.{_LABEL})*)?(?:\+{_BUILD}(?:\.{_BUILD})*)?$"
"""The grammar of semver.org, version 2.0.0."""
_VERSION: Final = re.compile(_SEMANTIC)


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
            _check_type("error_details", "an object or null", self.error_details, dict)
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
        _check_type("capabilities", "a list or a tuple of strings", self.capabilities, list, tuple)
        for each in self.capabilities:
            check_text("capabilities", each)
        if self.duration_ms is None:
            if self.tier in _TIMED:
                raise ValueError(f"duration_ms must be there in the {self.tier} tier")
        # bool is an int in Python: without this, `true` would be a millisecond.
        elif isinstance(self.duration_ms, bool) or not isinstance(self.duration_ms, int | float):
            raise TypeError(f"duration_ms must be a number, not of type {type(self.duration_ms).__name__}")
        elif not 0 <= self.duration_ms < inf:  # NaN is neither
            raise ValueError("duration_ms must be a number of milliseconds, 0 or more")
        _check_type("error", "a ToolError or None", self.error, ToolError, type(None))
        _check_type("upgrade_hints", "a list or a tuple of UpgradeHint", self.upgrade_hints, list, tuple)
        for hint in self.upgrade_hints:
            _check_type("upgrade_hints", "a list or a tuple of UpgradeHint", hint, UpgradeHint)
        # As a frozen dataclass sets its own fields.
        fill = object.__setattr__
        fill(self, "capabilities", tuple(self.capabilities))
        fill(self, "upgrade_hints", tuple(self.upgrade_hints))
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
        parts = _fields("the envelope", value, required=_REQUIRED, optional=("duration_ms",))
        if "duration_ms" in parts and parts["duration_ms"] is None:
            raise TypeError("duration_ms must be a number; leave the field out if there is no duration")
        if parts["error"] is not None:
            parts["error"] = ToolError.from_dict(parts["error"])
        _check_type("upgrade_hints", "an array", parts["upgrade_hints"], list, tuple)
        parts["upgrade_hints"] = [UpgradeHint.from_dict(hint) for hint in parts["upgrade_hints"]]
        return cls(**parts)

    @staticmethod
    def json_schema(data: Mapping[str, Any] | bool = True) -> dict[str, Any]:
        """
        Return a JSON Schema 2020-12 of the envelope, for a tool's `outputSchema`; *data* is the schema of its `data`.

        References inside *data* keep their targets. An error may come with any `data`, usually null, so *data* applies
        only if `error` is null.
        """
        error = {"error": _text(), "error_code": _word(ERROR_CODES), "error_details": {"type": ["object", "null"]}}
        hint = {"feature": _text(), "tier": _word(TIERS), "reason": _text()}
        made: dict[str, Any] = {
            "$schema": DRAFT_2020_12.uri,
            "type": "object",
            "properties": {
                "tier": _word(TIERS),
                "tool_version": {"type": "string", "pattern": _SEMANTIC},
                "tool_id": _text(),
                "request_id": _text(),
                "capabilities": {"type": "array", "items": _text()},
                "duration_ms": {"type": "number", "minimum": 0},
                "error": {"anyOf": [_object(error, ("error", "error_code")), {"type": "null"}]},
                "upgrade_hints": {"type": "array", "items": _object(hint, tuple(hint))},
                # Anything; not `true`, because MCP requires each property of an outputSchema to be an object.
                "data": {},
            },
            "required": list(_REQUIRED),
            "additionalProperties": False,
            "allOf": [{"if": {"properties": {"tier": _word(_TIMED)}}, "then": {"required": ["duration_ms"]}}],
        }
        if data is not True:
            good = {"properties": {"error": {"type": "null"}}}
            made["allOf"].append({"if": good, "then": {"properties": {"data": {"$ref": _AT}}}})
            made["$defs"] = {"data": _embedded(data)}
        return made


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# These messages do not contain the refused value: they can end up in a response.


def _check_type(name: str, wanted: str, value: object, *kinds: type) -> None:
    if not isinstance(value, kinds):
        raise TypeError(f"{name} must be {wanted}, not of type {type(value).__name__}")


def check_text(name: str, value: object) -> None:
    """Raise unless *value*, of the field *name*, is a string that is not empty."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not of type {type(value).__name__}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    if not value.isascii() and not is_text(value):
        raise ValueError(f"{name} must be text that UTF-8 can write")


def check_word(name: str, value: object, words: Iterable[str]) -> None:
    """Raise unless *value*, of the field *name*, is one of *words*."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not of type {type(value).__name__}")
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(words)}")


def _fields(name: str, value: Any, *, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields of a JSON object. Raises for a missing or unknown field."""
    _check_type(name, "an object", value, Mapping)
    missing = [each for each in required if each not in value]
    if missing:
        raise ValueError(f"{', '.join(missing)} must be there in {name}")
    if any(each not in {*required, *optional} for each in value):
        raise ValueError(f"{name} must have no fields but {', '.join((*required, *optional))}")
    return dict(value)


# ── the schema ───────────────────────────────────────────────────────────────────────────────────────────────────────

_AT: Final = "#/$defs/data"
"""The place of the schema of `data`."""


def _object(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text() -> dict[str, Any]:
    return {"type": "string", "minLength": 1}


def _word(words: Iterable[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def _embedded(data: Mapping[str, Any] | bool) -> Any:
    """Return *data* with its references adapted to its new place."""
    if isinstance(data, bool):
        return data
    _check_type("data", "a JSON Schema, an object or a boolean", data, Mapping)
    if data.get("$schema", DRAFT_2020_12.uri) != DRAFT_2020_12.uri:
        raise ValueError(f"data must be a schema of {DRAFT_2020_12.uri}")
    made = deepcopy({key: value for key, value in data.items() if key != "$schema"})
    waiting = [made]
    for schema in waiting:  # which grows meanwhile
        # A schema with its own base is a separate document, wherever it is.
        if "$id" in schema:
            continue
        for keyword in DRAFT_2020_12.references & schema.keys():
            target = schema[keyword]
            # An anchor (`#name`) keeps its name; only pointers start at the root.
            if isinstance(target, str) and (target == "#" or target.startswith("#/")):
                schema[keyword] = _AT + target[1:]
        waiting += [each for _, _, each in subschemas(schema, DRAFT_2020_12) if isinstance(each, dict)]
    return made


# ── tiers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def needs(feature: str, tier: str) -> UpgradeHint:
    """Return the hint about the needed tier."""
    return UpgradeHint(feature, tier, f"{feature} needs the {tier} tier.")


class UpgradeRequiredError(Exception):
    """The client's tier does not have a feature. In an envelope it becomes `upgrade_required` and a hint."""

    def __init__(self, tool_id: str, feature: str, required_tier: str) -> None:
        self.tool_id = tool_id
        self.feature = feature
        self.required_tier = required_tier
        self.hint = needs(feature, required_tier)
        """The hint of specs/004."""
        # All arguments, so that the exception can be pickled between processes.
        super().__init__(tool_id, feature, required_tier)

    def __str__(self) -> str:
        return f"{self.tool_id}: {self.hint.reason}"


class Tiers:
    """
    The tier of each feature; a feature that is not in the table is in every tier.

    Raises `ValueError` for an unknown tier: a mistyped table would open or close a feature for everyone.
    """

    __slots__ = ("_needs",)

    def __init__(self, needs: Mapping[str, str] | None = None) -> None:
        self._needs = dict(needs or {})
        for tier in self._needs.values():
            check_word("tier", tier, TIERS)

    def needed(self, feature: str) -> str:
        """Return the lowest tier with *feature*."""
        return self._needs.get(feature, TIERS[0])

    def allows(self, feature: str, tier: str) -> bool:
        """Whether *tier* has *feature*."""
        check_word("tier", tier, TIERS)
        return TIERS.index(tier) >= TIERS.index(self.needed(feature))

    def check(self, tool_id: str, feature: str, tier: str) -> None:
        """Raise `UpgradeRequiredError` if *tier* does not have *feature*."""
        if not self.allows(feature, tier):
            raise UpgradeRequiredError(tool_id, feature, self.needed(feature))

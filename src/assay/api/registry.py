"""
The registry of specs/000: validators for the envelope, and for the input and output of tools.

Reads only files of its root; references are never fetched.
"""

from collections.abc import Mapping
from os import PathLike, fspath
from os.path import basename, isfile, join
from typing import Any, Literal, NamedTuple

from assay.api.exceptions import ValidationError
from assay.api.jsonrpc import plain
from assay.assets.own_tools import TOOLS
from assay.judge import envelope, syntax
from assay.model.limits import DEFAULT
from assay.model.verdict import Violation
from assay.rules import broken
from assay.schema.admission import SchemaRefusal
from assay.schema.canonical import fingerprint
from assay.schema.compiled import Compiled
from assay.schema.store import wholly_compiled

Direction = Literal["input", "output"]


class EnvelopeSchema:
    """The envelope of specs/000: id, jsonrpc, method and params, all of them required."""

    def __init__(self, profile: envelope.Profile) -> None:
        self._profile = profile

    def validate(self, instance: Any) -> None:
        """Raise `ValidationError` with every fault of an invalid envelope."""
        faults = tuple(envelope.check_call(instance, self._profile, needs_id=True))
        if faults:
            raise ValidationError(faults)


class RecordSchema:
    """One direction of a tool's I/O: a record with the tool's name and its input, or also its output."""

    def __init__(self, tool: str, direction: Direction, schemas: Mapping[Direction, Any]) -> None:
        self._tool = tool
        self._direction = direction
        payload = {"type": "object"}
        properties: dict[str, Any] = {"tool": {"const": tool}, direction: payload, "input": payload}
        self._record = self._usable({"type": "object", "required": ["tool", direction], "properties": properties})
        # Separate from the record's schema: their references start at their own root.
        self._members = {member: self._usable(schema) for member, schema in schemas.items()}

    def validate(self, instance: Any) -> None:
        """Raise `ValidationError` for an invalid record."""
        record = plain(instance)
        if isinstance(record, Violation):
            raise ValidationError([record])
        found = [(self._direction, self._record.faults(record))]
        for member, schema in self._members.items():
            # A value that is not an object is a fault of the record, already reported.
            if isinstance(record, dict) and isinstance(record.get(member), dict):
                found.append((member, schema.faults(record[member], at=f"/{member}")))
        listed = [
            broken(f"contract/{member}", each, detail=f"{member} of {self._tool}")
            for member, faults in found
            for each in faults.listed
        ]
        if listed:
            raise ValidationError(listed, sum(faults.more for _, faults in found))

    def _usable(self, schema: Any) -> Compiled:
        usable = wholly_compiled(schema)
        if isinstance(usable, SchemaRefusal):
            where = f"{self._direction} of {self._tool}: {usable.at}"
            raise ValueError(f"{where}: expected {usable.expected}, found {usable.found} [{usable.rule}]")
        return usable


class ToolIO(NamedTuple):
    """A tool's two schemas. One object for one fingerprint."""

    tool: str
    input: RecordSchema
    output: RecordSchema
    fingerprint: str
    """SHA-256 of the tool's name and its two schemas as canonical JSON."""


class SchemaRegistry:
    """
    The schemas of the asset server's tools; with *schema_root*, those in ``<tool>.input.schema.json`` and
    ``<tool>.output.schema.json`` of that directory instead.

    Files are read on every call: a changed file has a new fingerprint, and so gives a new object.
    """

    def __init__(self, schema_root: str | PathLike[str] | None = None, *, deterministic_ids: bool = False) -> None:
        self._root = None if schema_root is None else fspath(schema_root)
        self._deterministic = deterministic_ids
        self._envelope = EnvelopeSchema(envelope.STRICT_UUID if deterministic_ids else envelope.STRICT)
        self._by_fingerprint: dict[str, ToolIO] = {}

    def __repr__(self) -> str:
        root = "" if self._root is None else repr(self._root)
        ids = "deterministic_ids=True" if self._deterministic else ""
        return f"SchemaRegistry({', '.join(filter(None, (root, ids)))})"

    def load_envelope(self) -> EnvelopeSchema:
        """Return the schema of the envelope."""
        return self._envelope

    def load_tool_io(self, tool_id: str) -> ToolIO:
        """Return the schemas of *tool_id*. Raises ``KeyError`` if it is unknown, ``ValueError`` for invalid schemas."""
        if self._root is not None:
            arguments, result = _read(self._root, tool_id, "input"), _read(self._root, tool_id, "output")
        elif isinstance(tool_id, str) and tool_id in TOOLS:
            arguments, result = TOOLS[tool_id]
        else:
            raise KeyError(f"no tool {repr(tool_id)[:80]}; there are {', '.join(TOOLS)}")
        known_by = fingerprint([tool_id, arguments, result])
        if known_by not in self._by_fingerprint:
            self._by_fingerprint[known_by] = ToolIO(
                tool_id,
                RecordSchema(tool_id, "input", {"input": arguments}),
                RecordSchema(tool_id, "output", {"input": arguments, "output": result}),
                known_by,
            )
        return self._by_fingerprint[known_by]


def _read(root: str, tool_id: str, direction: Direction) -> Any:
    # A tool's name comes from a message: it must not lead out of the directory.
    usable = isinstance(tool_id, str) and tool_id != "" and basename(tool_id) == tool_id
    path = join(root, f"{tool_id}.{direction}.schema.json")
    if not usable or not isfile(path):
        raise KeyError(f"no tool {repr(tool_id)[:80]} in {root}")
    with open(path, "rb") as file:
        schema = syntax.read(file.read(), DEFAULT.depth)
    if isinstance(schema, Violation):
        raise ValueError(f"{path}: {schema}")
    return schema

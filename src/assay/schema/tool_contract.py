"""
The contract of one tool: its two schemas, compiled when they are needed. No I/O, no clock.

Schemas are untrusted: each is admitted before it is compiled, and one that is not admitted is reported, never used.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from hashlib import blake2b
from os import urandom
from typing import Any, Final

import orjson

from assay.schema.admission import SchemaLimits, SchemaRefusal, too_long
from assay.schema.budget import affordable
from assay.schema.compiled import Compiled
from assay.schema.header_arguments import MARK, ParamHeaders, param_headers
from assay.schema.look_alikes import ArgumentNames
from assay.schema.store import SchemaText, compiled, effort, is_compiled, kept

_MOST_PARTS: Final = 100
"""Unusable parts of one schema that are reported: one tool must not fill the report for all others."""

Unusable = tuple[tuple[str, SchemaRefusal], ...]
"""The unusable parts of the schemas of a tool, each with the member that has it."""


class Contract:
    """
    A tool's name and its two compiled schemas; None for a missing or unusable one.

    It never changes, except that its schemas are compiled and released, so conversations share it.

    `valid_input` and `valid_output` are the engine's own methods if that is safe, so that judging takes one call. Until
    the schemas are compiled, or if judging could take too long, they return False; the caller then checks in detail.
    """

    __slots__ = (
        "__weakref__", "_schemas", "arguments", "asks_back", "has_page", "has_room", "headers", "input", "is_listed",
        "key", "name", "names", "output", "plain", "ready", "size", "task_support", "unusable", "valid_input",
        "valid_output",
    )  # fmt: skip

    def __init__(self, tool: Mapping[str, Any], *, outputs: bool = True, owner: str = "") -> None:
        """
        *tool* is the definition with a name, as a list has it; *outputs* says whether its revision has output schemas.

        *owner* is the principal that the texts of the schemas are counted for.
        """
        self.name: str = tool["name"]
        self.has_page = has_page_for_model(tool)
        """Whether a page shows the results, which the model does not see: they need content as well."""
        self.task_support = _task_support(tool)
        """Whether a call may, or must, be run as a task (2025-11-25): forbidden, optional or required."""
        self.asks_back = False
        """Whether a call was answered by asking for input: see `asking_back`."""
        self.is_listed = False
        """Whether its unusable parts are reported with the list that it is in, and not with its first call."""
        self.input: Compiled | None = None
        self.output: Compiled | None = None
        self.headers: ParamHeaders = ()
        """The headers that repeat arguments, over HTTP."""
        self.arguments: ArgumentNames | None = None
        """The arguments in the input schema; None if a call cannot confuse them, or have others."""
        self.names: frozenset[str] | None = None
        """The names of those arguments."""
        self.unusable: Unusable = ()
        """What cannot be used of its schemas, once they were compiled."""
        self.ready = False
        self.plain = False
        """Whether the schemas are compiled, and decide alone whether a result is valid."""
        # As text, since the schema of a tool without calls is never compiled.
        members = ("inputSchema", "outputSchema") if outputs else ("inputSchema",)
        self._schemas = {member: _kept(tool[member], owner) for member in members if member in tool}
        self.has_room = _NO_ROOM not in self._schemas.values()
        """Whether there was room for its schemas: without them no call is judged."""
        self.size = 4 * len(self.name) + sum(len(each.text) for each in self._texts())
        """At most the bytes of its name and of the text of both schemas."""
        self.key = self._digest()
        """A digest of all that it was made of, 16 bytes."""
        self.valid_input: Callable[[Any], bool] = _nothing
        self.valid_output: Callable[[Any], bool] = _nothing

    def _texts(self) -> Iterator[SchemaText]:
        """Yield the schemas that may be compiled."""
        return (each for each in self._schemas.values() if isinstance(each, SchemaText))

    def _digest(self) -> bytes:
        parts = [self.name.encode(), self.task_support.encode(), b"%d" % self.has_page]
        for member, each in self._schemas.items():
            if isinstance(each, SchemaRefusal):
                # What was refused now may be kept another time, so such a contract is equal to no other one.
                return urandom(16)
            parts += member.encode(), each.text
        # Each with its length, so that no two rows of parts have the same bytes.
        return blake2b(b"".join(b"%d:%b" % (len(each), each) for each in parts), digest_size=16).digest()

    def prepare(self) -> None:
        """Compile both schemas, unless they are."""
        if self.ready:
            return
        self.ready = True
        self.plain = not self.has_page
        refused: list[tuple[str, SchemaRefusal]] = []
        usable: dict[str, Compiled] = {}
        for member, known in self._schemas.items():
            found = compiled(known.text, self) if isinstance(known, SchemaText) else known
            if isinstance(found, Compiled):
                usable[member] = found
                refused += [(member, each) for each in found.left_out[:_MOST_PARTS]]
            else:
                refused.append((member, found))
        self.input, self.output = usable.get("inputSchema"), usable.get("outputSchema")
        self.valid_input, self.valid_output = _validity(self.input), _validity(self.output)
        refused += [("inputSchema", each) for each in self._read_input()]
        self.unusable = tuple(refused)
        if self.task_support == "required" or self.asks_back or not self.has_room or (refused and not self.is_listed):
            # The arguments do not show whether a call is a task, or continues a round, and each conversation reports
            # what cannot be used with its first call, or with each call: it is always checked in detail.
            self.valid_input = _nothing

    def _read_input(self) -> list[SchemaRefusal]:
        """Read the arguments and their headers from the input schema; return what is wrong with the headers."""
        known = self._schemas.get("inputSchema")
        if not isinstance(known, SchemaText):
            return []
        # A schema that was refused when it was compiled is parsed again.
        schema = orjson.loads(known.text) if self.input is None else self.input.schema
        self.arguments = ArgumentNames.of(schema)
        self.names = self.arguments.names if self.arguments is not None else None
        # Most tools mark no argument.
        repeated = param_headers(schema) if MARK in known.text else ()
        if isinstance(repeated, list):
            return repeated
        self.headers = repeated
        return []

    def compiling(self) -> Iterator[None]:
        """Compile each schema that is not compiled, and yield after it. `prepare` then takes no time."""
        for each in self._texts():
            if not is_compiled(each.text):
                compiled(each.text)
                yield

    def asking_back(self) -> "Contract":
        """Return the contract of a tool that asks for input: its calls are checked in detail, and kept for later."""
        made = copy(self)
        made.asks_back = True
        made.key = blake2b(b"asks back" + self.key, digest_size=16).digest()
        # Compiled anew, for the store to know that it has the compiled schemas, too.
        made.release()
        return made

    def release(self) -> None:
        """Release the compiled schemas; they are compiled again when they are needed."""
        self.ready = self.plain = False
        self.input = self.output = None
        self.valid_input = self.valid_output = _nothing

    def runs(self, *, as_task: bool) -> bool:
        """Whether the tool can be called as a task, or without one."""
        return self.task_support != ("forbidden" if as_task else "required")

    @property
    def has_output_schema(self) -> bool:
        """Whether the tool was listed with an output schema, usable or not."""
        return "outputSchema" in self._schemas

    @property
    def effort(self) -> int:
        """How long its patterns may take to compile."""
        return sum(effort(each.text) for each in self._texts())

    def is_odd(self, arguments: dict[str, Any]) -> bool:
        """Whether *arguments* have a name that is not, or only looks like, one of the input schema."""
        return self.arguments is not None and self.arguments.is_odd(arguments)


_NO_ROOM: Final = SchemaRefusal("contract/schema-size", "", "room for one more schema", "none")


def _kept(schema: Any, owner: str) -> SchemaText | SchemaRefusal:
    """Return the text of *schema*, or why it is not kept."""
    text, limits = orjson.dumps(schema), SchemaLimits()
    if len(text) > limits.size:
        return too_long(limits)
    return kept(text, owner) or _NO_ROOM


def _validity(schema: Compiled | None) -> Callable[[Any], bool]:
    if schema is None:
        return _anything
    if schema.always_affordable and schema.is_sure:
        return schema.is_valid
    return lambda instance: affordable(schema, instance) and schema.surely_fits(instance)


def _anything(_: Any) -> bool:
    return True


def _nothing(_: Any) -> bool:
    return False


def _task_support(tool: Mapping[str, Any]) -> str:
    execution = tool.get("execution")
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    return support if support in ("optional", "required") else "forbidden"


# ── pages, by the extension `io.modelcontextprotocol/ui` ─────────────────────────────────────────────────────────────

PAGE_SCHEME: Final = "ui://"

FLAT_KEY: Final = "ui/resourceUri"
"""The deprecated member of `_meta` for the page."""


def page_of(tool: Mapping[str, Any]) -> str | None:
    """Return the URI of the page that shows the results of *tool*; None without one."""
    meta = tool.get("_meta")
    if not isinstance(meta, dict):
        return None
    ui = meta.get("ui")
    uri = ui.get("resourceUri") if isinstance(ui, dict) and "resourceUri" in ui else meta.get(FLAT_KEY)
    return uri if isinstance(uri, str) and uri.startswith(PAGE_SCHEME) else None


def has_page_for_model(tool: Mapping[str, Any]) -> bool:
    """Return whether *tool* has a page and is offered to the model, which does not see the page."""
    if page_of(tool) is None:
        return False
    ui = tool["_meta"].get("ui")
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return not isinstance(visibility, list) or "model" in visibility

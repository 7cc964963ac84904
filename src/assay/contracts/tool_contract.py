"""
The contract of one tool: its two schemas, compiled when they are needed. No I/O, no clock.

Schemas are untrusted: each is admitted before it is compiled, and one that is not admitted is reported, never used.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from os import urandom
from typing import Any, Final

import orjson

from assay.contracts.argument_names import ArgumentNames
from assay.contracts.header_arguments import ParamHeaders, param_headers
from assay.contracts.store import compiled, effort, hold, is_compiled, let_go, of_text
from assay.engine.admission import SchemaLimits, SchemaRefusal, too_long
from assay.engine.budget import affordable
from assay.engine.compiled import Compiled

_MOST_PARTS: Final = 100
"""Unusable parts of one schema that are reported: one tool must not fill the report for all others."""

Unusable = tuple[tuple[str, SchemaRefusal], ...]
"""The unusable parts of the schemas of a tool, each with the member that has it."""

NO_SCHEMA: Final[Any] = object()
"""In place of a schema that a tool does not have."""


class Contract:
    """
    A tool's name and its two compiled schemas; None for a missing or unusable one.

    It never changes, except that its schemas are compiled and released, so conversations share it.

    `valid_input` and `valid_output` are the engine's own methods if that is safe, so that judging takes one call. Until
    the schemas are compiled, or if judging could take too long, they return False; the caller then checks in detail.
    """

    __slots__ = (
        "__weakref__", "_texts", "arguments", "asks_back", "has_page", "has_room", "headers", "input", "is_listed",
        "key", "name", "names", "output", "plain", "ready", "size", "task_support", "unusable", "valid_input",
        "valid_output",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        input_schema: Any,
        output_schema: Any = NO_SCHEMA,
        task_support: str = "forbidden",
        *,
        has_page: bool = False,
        owner: str = "",
    ) -> None:
        """*owner* is the principal that the texts of the schemas are counted for."""
        self.name = name
        self.has_page = has_page
        """Whether a page shows the results, which the model does not see: they need content as well."""
        self.task_support = task_support
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
        # As text: a parsed schema takes 25 times as much, and the schema of a tool without calls is never compiled.
        self._texts = {"inputSchema": _text(input_schema, owner), "outputSchema": _text(output_schema, owner)}
        self.has_room = _NO_ROOM not in self._texts.values()
        """Whether there was room for its schemas: without them no call is judged."""
        self.key = self._digest()
        """A digest of all that it was made of."""
        self.size = 4 * len(name) + sum(len(text) for text in self._texts.values() if isinstance(text, bytes))
        """At most the bytes of its name and of the text of both schemas."""
        self.valid_input: Callable[[Any], bool] = _nothing
        self.valid_output: Callable[[Any], bool] = _nothing

    def _digest(self) -> bytes:
        kept = self._texts.values()
        if not all(isinstance(each, bytes) or each is NO_SCHEMA for each in kept):
            # What was refused now may be kept another time, so such a contract is equal to no other one.
            return urandom(16)
        texts = [each if isinstance(each, bytes) else b"" for each in kept]
        parts = (self.name.encode(errors="surrogatepass"), *texts, self.task_support.encode(), b"%d" % self.has_page)
        digest = blake2b(digest_size=16)
        for each in parts:
            # Each with its length, so that no two rows of parts have the same bytes.
            digest.update(b"%d:" % len(each))
            digest.update(each)
        return digest.digest()

    def prepare(self) -> None:
        """Compile both schemas, unless they are."""
        if self.ready:
            return
        self.ready = True
        self.plain = not self.has_page
        found = {
            member: of_text(text, user=self) if isinstance(text, bytes) else text
            for member, text in self._texts.items()
        }
        schema = _read(found["inputSchema"], self._texts["inputSchema"])
        repeated = param_headers(schema)
        self.arguments = ArgumentNames.of(schema)
        self.names = self.arguments.names if self.arguments is not None else None
        if isinstance(repeated, tuple):
            self.headers = repeated
        self.input, self.output = (each if isinstance(each, Compiled) else None for each in found.values())
        self.valid_input, self.valid_output = _validity(self.input), _validity(self.output)
        refused = [(member, each) for member, usable in found.items() for each in _unjudged(usable)]
        if isinstance(repeated, list):
            refused += [("inputSchema", each) for each in repeated]
        self.unusable = tuple(refused)
        if self.task_support == "required" or self.asks_back or not self.has_room or (refused and not self.is_listed):
            # The arguments do not show whether a call is a task, or continues a round, and each conversation reports
            # what cannot be used with its first call, or with each call: it is always checked in detail.
            self.valid_input = _nothing

    def compiling(self) -> Iterator[None]:
        """Compile each schema that is not compiled, and yield after it. `prepare` then takes no time."""
        for text in self._texts.values():
            if isinstance(text, bytes) and not is_compiled(text):
                of_text(text)
                yield

    def __del__(self) -> None:
        # Counted by hand: bytes have no weak references.
        for text in getattr(self, "_texts", {}).values():
            if isinstance(text, bytes):
                let_go(text)

    def asking_back(self) -> "Contract":
        """Return the contract of a tool that asks for input: its calls are checked in detail, and kept for later."""
        made = Contract.__new__(Contract)
        for name in _COPIED:
            setattr(made, name, getattr(self, name))
        made.asks_back = True
        made.key = b"asks " + self.key
        made.valid_input = _nothing
        for text in self._texts.values():
            if isinstance(text, bytes):
                # The text is kept already, so there is room for it.
                hold(text)
                if self.ready:
                    of_text(text, user=made)
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
        return self._texts["outputSchema"] is not NO_SCHEMA

    @property
    def effort(self) -> int:
        """How long its patterns may take to compile."""
        return sum(effort(text) for text in self._texts.values() if isinstance(text, bytes))

    def is_odd(self, arguments: dict[str, Any]) -> bool:
        """Whether *arguments* have a name that is not, or only looks like, one of the input schema."""
        return self.arguments is not None and self.arguments.is_odd(arguments)


_COPIED: Final = tuple(name for name in Contract.__slots__ if name != "__weakref__")


_NO_ROOM: Final = SchemaRefusal("contract/schema-size", "", "room for one more schema", "none")


def _text(schema: Any, owner: str) -> Any:
    """Return *schema* as text, or why it is not kept; `NO_SCHEMA` if missing, compiled if it cannot be serialized."""
    if schema is NO_SCHEMA:
        return NO_SCHEMA
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        return compiled(schema)
    limits = SchemaLimits()
    if len(text) > limits.size:
        return too_long(limits)
    kept = hold(text, owner)
    return kept if kept is not None else _NO_ROOM


def _read(schema: Any, text: Any) -> Any:
    """Return the parsed schema; a refused one is parsed again."""
    if isinstance(schema, Compiled):
        return schema.schema
    return orjson.loads(text) if isinstance(text, bytes) else None


def _unjudged(schema: Any) -> tuple[SchemaRefusal, ...]:
    """Return why a schema, or parts of it, cannot be used."""
    if isinstance(schema, SchemaRefusal):
        return (schema,)
    return schema.left_out[:_MOST_PARTS] if isinstance(schema, Compiled) else ()


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

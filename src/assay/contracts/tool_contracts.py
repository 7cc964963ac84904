"""
The contracts of a server's tools, learned from its lists. No I/O, no clock.

Schemas are untrusted: each is admitted before it is compiled, and one that is not admitted is reported, never used.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from assay.base.limits import DEFAULT
from assay.base.verdict import Violation
from assay.contracts.header_arguments import ParamHeaders, param_headers
from assay.contracts.look_alikes import Keys
from assay.contracts.store import compiled, hold, let_go, of_text, patterns
from assay.contracts.tool_pages import has_page_for_model
from assay.engine.admission import SchemaLimits, SchemaRefusal, too_long
from assay.engine.budget import affordable
from assay.engine.compiled import Compiled
from assay.engine.schema_index import RESOLVED
from assay.rules import violation
from assay.spec.revisions import handshake

MOST_QUARANTINED: Final = 500
"""Entries of one list that are quarantined one by one. The largest known server lists fewer than 300 tools."""

_MOST_PARTS: Final = 100
"""Unusable parts of one schema that are reported: one tool must not fill the report for all others."""

_LONGEST_QUARANTINED: Final = 1024
"""Characters of a quarantined name that is remembered; the specification allows 128."""


class Contract:
    """
    A tool's name and its two compiled schemas; None for a missing or unusable one.

    `valid_input` and `valid_output` are the engine's own methods if that is safe, so that judging takes one call. Until
    the schemas are compiled, or if judging could take too long, they return False; the caller then checks in detail.
    """

    __slots__ = (
        "__weakref__", "_keys", "_reported", "_texts", "asks_back", "has_page", "headers", "input", "is_shared",
        "name", "names", "output", "plain", "ready", "size", "task_support", "valid_input", "valid_output",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        input_schema: Any,
        output_schema: Any,
        task_support: str = "forbidden",
        *,
        has_page: bool = False,
    ) -> None:
        self.name = name
        self.has_page = has_page
        """Whether a page shows the results, which the model does not see: they need content as well."""
        self.task_support = task_support
        """Whether a call may, or must, be run as a task (2025-11-25): forbidden, optional or required."""
        self.asks_back = False
        """Whether a call was answered by asking for input: see `asked_back`."""
        self.is_shared = False
        """Whether conversations use it that know nothing of each other: see `Tools.asked_back`."""
        self.input: Compiled | None = None
        self.output: Compiled | None = None
        self.headers: ParamHeaders = ()
        """The headers that repeat arguments, over HTTP."""
        self.names: frozenset[str] | None = None
        """The arguments in the input schema; None without any, or if others are forbidden: no key can be confused."""
        self._keys: Keys | None = None
        self.ready = False
        self.plain = False
        """Whether the schemas are compiled, and decide alone whether a result is valid."""
        self._reported = False
        # As text: a parsed schema takes 25 times as much, and the schema of a tool without calls is never compiled.
        self._texts = {"inputSchema": _text(input_schema), "outputSchema": _text(output_schema)}
        self.size = 4 * len(name) + sum(len(text) for text in self._texts.values() if isinstance(text, bytes))
        """At most the bytes of its name and of the text of both schemas."""
        self.valid_input: Callable[[Any], bool] = _nothing
        self.valid_output: Callable[[Any], bool] = _nothing

    @classmethod
    def of_input(cls, name: str, schema: Any) -> "Contract":
        """Return the contract of a tool without an output schema, or whose results are checked elsewhere."""
        return cls(name, schema, _NONE)

    def prepare(self) -> list[tuple[str, SchemaRefusal]]:
        """
        Compile both schemas if necessary, and return their unusable parts, each with its member.

        A released schema is compiled again, and its unusable parts are not reported a second time.
        """
        if self.ready:
            return []
        self.ready = True
        self.plain = not self.has_page
        found = {
            member: of_text(text, user=self) if isinstance(text, bytes) else text
            for member, text in self._texts.items()
        }
        schema = _read(found["inputSchema"], self._texts["inputSchema"])
        repeated = param_headers(schema)
        self.names = _names(schema)
        if isinstance(repeated, tuple):
            self.headers = repeated
        self.input, self.output = (each if isinstance(each, Compiled) else None for each in found.values())
        self.valid_input, self.valid_output = _validity(self.input), _validity(self.output)
        if self.task_support == "required" or self.asks_back:
            # The arguments do not show whether a call is a task, or continues a round: it is always checked in detail.
            self.valid_input = _nothing
        refused = [(member, each) for member, usable in found.items() for each in _unjudged(usable)]
        if isinstance(repeated, list):
            refused += [("inputSchema", each) for each in repeated]
        reported, self._reported = self._reported, True
        return [] if reported else refused

    def __del__(self) -> None:
        # Counted by hand: bytes have no weak references.
        for text in getattr(self, "_texts", {}).values():
            if isinstance(text, bytes):
                let_go(text)

    def copied(self) -> "Contract":
        """Return the same contract for another conversation, in which the tool may behave differently."""
        made = Contract.__new__(Contract)
        for name in _COPIED:
            setattr(made, name, getattr(self, name))
        made.is_shared = False
        for text in self._texts.values():
            if isinstance(text, bytes):
                # The text is kept already, so there is room for it.
                hold(text)
                if self.ready:
                    of_text(text, user=made)
        return made

    def shared(self) -> "Contract | None":
        """Return this contract for conversations that know nothing of each other; None if each needs its own."""
        # What is unusable in its schemas is reported once, where it is compiled first.
        if not self._reported or self.asks_back:
            return None
        self.is_shared = True
        return self

    def release(self) -> None:
        """Release the compiled schemas; they are compiled again when they are needed."""
        self.ready = self.plain = False
        self.input = self.output = None
        self.valid_input = self.valid_output = _nothing

    def asked_back(self) -> None:
        """Note that the tool asks for input: what its calls have is needed later, so they are checked in detail."""
        self.asks_back = True
        self.valid_input = _nothing

    def runs(self, *, as_task: bool) -> bool:
        """Whether the tool can be called as a task, or without one."""
        return self.task_support != ("forbidden" if as_task else "required")

    @property
    def has_output_schema(self) -> bool:
        """Whether the tool was listed with an output schema, usable or not."""
        return self._texts["outputSchema"] is not _NONE

    @property
    def patterns(self) -> int:
        """A bound on the regular expressions to compile."""
        return sum(patterns(text) for text in self._texts.values() if isinstance(text, bytes))

    def has_look_alikes(self, arguments: dict[str, Any]) -> bool:
        """Whether one of *arguments* is another spelling of an argument in the input schema."""
        return self.names is not None and not self._named(self.names).is_plain(arguments)

    def look_alikes(self, arguments: dict[str, Any], at: str, most: int, revision: str | None) -> list[Violation]:
        """Return a violation for each argument that is another spelling of one in the input schema."""
        if self.names is None:
            return []
        return self._named(self.names).check("contract/look-alike-key", arguments, at, most, revision)

    def _named(self, names: frozenset[str]) -> Keys:
        # Most tools never need it.
        if self._keys is None:
            self._keys = Keys(names)
        return self._keys


_COPIED: Final = tuple(name for name in Contract.__slots__ if name != "__weakref__")

_NONE: Any = object()


def _names(schema: Any) -> frozenset[str] | None:
    if not isinstance(schema, dict) or (
        schema.get("additionalProperties") is False and "patternProperties" not in schema
    ):
        return None
    named = schema.get("properties")
    return frozenset(named) if isinstance(named, dict) and named else None


def _text(schema: Any) -> Any:
    """Return *schema* as text, or why it is not kept; `_NONE` if missing, compiled if it cannot be serialized."""
    if schema is _NONE:
        return _NONE
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        return compiled(schema)
    limits = SchemaLimits()
    if len(text) > limits.size:
        return too_long(limits)
    kept = hold(text)
    return kept if kept is not None else SchemaRefusal("contract/schema-size", "", "room for one more schema", "none")


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


class Tools:
    """
    The tools that a server has listed, page by page.

    Each page is used at once. After the last page, tools that the listing did not name are forgotten.
    """

    __slots__ = (
        "__weakref__",
        "_bytes",
        "_forgetful",
        "_limit",
        "_listed",
        "_most_bytes",
        "_overflowing",
        "_quarantined",
        "beyond",
        "complete",
        "declared",
        "known",
        "rounds",
        "tags",
    )

    def __init__(self, limit: int, most_bytes: int = DEFAULT.contract_bytes) -> None:
        """*limit* is how many tools are remembered, *most_bytes* how much text their schemas may have together."""
        self.known: dict[str, Contract] = {}
        """Contracts by tool; always the same dict."""
        self.complete = False
        """Whether all pages have been received since the list last changed."""
        self.declared: Mapping[str, Any] | None = None
        """
        The capabilities that the server has declared in a conversation without handshake; None before. Kept here,
        because each request may be a conversation of its own, and these share what they know of the server.
        """
        self.beyond: Any = None
        """What extensions know of the server, such as its tasks; shared for the same reason."""
        self.rounds: Any = None
        """The requests for input of all conversations without handshake about the server, kept here for the same
        reason; None before the first."""
        self.tags: Any = None
        """What a preview of drafts remembers of the tags of lists; None before the first. Kept here for that reason."""
        self._limit = limit
        self._most_bytes = most_bytes
        self._bytes = 0
        self._listed: set[str] = set()
        self._overflowing = False
        self._quarantined: set[str] = set()
        self._forgetful = False

    def learn(
        self, page: list[Any], *, first: bool, last: bool, outputs: bool, revision: str, over_http: bool = False
    ) -> Iterator[Violation]:
        """
        Learn one page of a list, and yield the violations of its tools.

        *outputs* says whether the revision has output schemas, *over_http* whether the client uses HTTP.
        """
        if first:
            self._listed = set()
            self._overflowing = False
        here: set[str] = set()
        budget = _SchemaBudget()
        wrong = quarantined = 0
        for index, tool in enumerate(page[: self._limit + MOST_QUARANTINED + 1]):
            # An entry that is not a tool breaks the schema of the result; here it is only skipped.
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                for each in self._learn_one(tool, f"/result/tools/{index}", outputs, revision, here, budget):
                    found = each if over_http else over_stdio(each)
                    wrong += 1
                    quarantined += found.action == "quarantine"
                    yield found
            if wrong > MOST_QUARANTINED:
                break
        if wrong > MOST_QUARANTINED or len(page) > self._limit + MOST_QUARANTINED:
            # Each is reported, quarantined and remembered; a list with hundreds of them is useless.
            self._overflowing = True
            yield _too_many("/result/tools", revision, useless=quarantined > MOST_QUARANTINED)
        if last:
            for name in self.known.keys() - self._listed:
                self._drop(name)
        self.complete = last and not self._overflowing

    def _learn_one(
        self, tool: dict[str, Any], at: str, outputs: bool, revision: str, here: set[str], budget: "_SchemaBudget"
    ) -> Iterator[Violation]:
        name = tool["name"]
        # Only within a page: a page that is fetched again has the same names, and its new definitions count.
        if name in here:
            yield violation(
                "contract/duplicate-tool",
                f"{at}/name",
                expected="a name of its own",
                found=f"{orjson.dumps(name[:60]).decode()} again",
                revision=revision,
            )
            return
        here.add(name)
        self._quarantined.discard(name)
        if name not in self.known and len(self.known) >= self._limit:
            self._overflowing = True
            yield self._one_too_many(name, at, revision)
            return
        output = tool.get("outputSchema", _NONE) if outputs else _NONE
        has_page = "_meta" in tool and has_page_for_model(tool)
        contract = Contract(name, tool.get("inputSchema", _NONE), output, _task_support(tool), has_page=has_page)
        self._drop(name)
        if self._bytes + contract.size > self._most_bytes:
            self._overflowing = True
            yield self._too_much(name, at, revision)
            return
        self._listed.add(name)
        self.known[name] = contract
        self._bytes += contract.size
        if budget.allows(contract):
            for member, refusal in contract.prepare():
                if concerns(refusal, revision):
                    yield refused(refusal, f"{at}/{member}", revision)

    def _drop(self, name: str) -> None:
        known = self.known.pop(name, None)
        self._bytes -= known.size if known is not None else 0

    def _one_too_many(self, name: str, at: str, revision: str) -> Violation:
        hint = "List fewer tools, or increase limits.tools."
        return _unkept(f"at most {self._limit:,} tools", name, at, revision, hint)

    def _too_much(self, name: str, at: str, revision: str) -> Violation:
        hint = "Shorten the schemas, or increase limits.contract_bytes."
        return _unkept(f"at most {self._most_bytes:,} bytes of schemas", name, at, revision, hint)

    def adopt(self, contracts: dict[str, Contract], declared: Mapping[str, Any]) -> None:
        """Use *contracts* and what was *declared* without a listing, for our own tools."""
        self.declared = declared
        self.known.update(contracts)
        self._bytes = sum(each.size for each in self.known.values())
        self._listed = set(contracts)
        self.complete = True

    def forget(self, page: list[Any], numbers: Collection[int]) -> None:
        """Quarantine the tools of these *numbers* on a page that was just learned: they were not forwarded."""
        # Later entries were not learned.
        learned = page[: self._limit + MOST_QUARANTINED + 1]
        kept = {_name(tool) for number, tool in enumerate(learned) if number not in numbers}
        for number in numbers:
            name = _name(page[number])
            if name is not None and name not in kept:
                self.quarantine(name)

    def quarantine(self, name: str) -> None:
        """Quarantine a tool: it must not be called until a list brings it back without faults."""
        self._drop(name)
        if len(self._quarantined) < self._limit and len(name) <= _LONGEST_QUARANTINED:
            self._quarantined.add(name)
        else:
            self._forgetful = True

    def is_quarantined(self, name: str) -> bool:
        """Whether a tool is quarantined. After too many to remember, every unknown tool counts as quarantined."""
        return name in self._quarantined or (self._forgetful and name not in self.known)

    def handed_down(self) -> "Tools":
        """Return a copy for a restarted server: what is known stays until it lists its own tools."""
        made = Tools(self._limit, self._most_bytes)
        made.known.update(self.known)
        made._bytes = self._bytes
        made._quarantined, made._forgetful = set(self._quarantined), self._forgetful
        # A server without sessions has what it needs in the state itself, and a new process continues.
        made.rounds = self.rounds
        made.tags = self.tags.handed_down() if self.tags is not None else None
        return made

    def asked_back(self, contract: Contract) -> None:
        """Note that the tool of *contract* asks for input, here and not in other conversations."""
        if not contract.is_shared:
            contract.asked_back()
        elif self.known.get(contract.name) is contract:
            self.known[contract.name] = own = contract.copied()
            own.asked_back()

    def changed(self) -> None:
        """Record that the list has changed: what is known stays until it is listed again."""
        self.complete = False


def _unkept(expected: str, name: str, at: str, revision: str, hint: str) -> Violation:
    """Return the violation of a tool that cannot be remembered; its calls are not judged."""
    found = f"{orjson.dumps(name[:60]).decode()} beyond them"
    return violation("contract/schema-size", at, expected=expected, found=found, revision=revision, hint=hint)


def _too_many(at: str, revision: str, *, useless: bool) -> Violation:
    """Return the violation of a list with too many faults; *useless* if too many entries would be quarantined."""
    wrong = violation(
        "contract/unjudged",
        at,
        expected=f"at most {MOST_QUARANTINED} entries with something wrong",
        found="more",
        revision=revision,
        hint="Correct the named entries.",
    )
    return replace(wrong, action="refuse") if useless else wrong


def over_stdio(wrong: Violation) -> Violation:
    """Return *wrong* for a client that sends no headers: it has no reason to drop a tool for a header."""
    return replace(wrong, action="report") if wrong.rule == "contract/header" else wrong


def _name(tool: Any) -> str | None:
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else None


def _task_support(tool: dict[str, Any]) -> str:
    execution = tool.get("execution")
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    return support if support in ("optional", "required") else "forbidden"


def concerns(refusal: SchemaRefusal, revision: str) -> bool:
    """Whether *refusal* applies in *revision*: before 2026-07-28 no header repeats an argument."""
    return refusal.rule != "contract/header" or not handshake(revision)


def refused(refusal: SchemaRefusal, at: str, revision: str, detail: str = "") -> Violation:
    """Return the violation of an unusable schema; *detail* says where it is, if not at *at*."""
    place = at if detail else at + refusal.at
    return violation(
        refusal.rule,
        place,
        expected=refusal.expected,
        found=refusal.found,
        revision=revision,
        detail=detail,
        hint=_remedy(refusal),
    )


def _remedy(refusal: SchemaRefusal) -> str | None:
    """Return the remedy for a dangling reference; None for the remedy of the rule."""
    if refusal.expected != RESOLVED:
        return None
    return f"Define {refusal.found} in the same schema, or correct the reference."


class _SchemaBudget:
    """
    The part of one page that is compiled when it is listed; the rest is compiled on its first call.

    Real lists have up to 77 KB of schemas and ten patterns. A hostile one of a megabyte could take seconds and
    gigabytes: a pattern of ten characters can compile to a megabyte.
    """

    __slots__ = ("_bytes", "_patterns")

    def __init__(self) -> None:
        self._bytes = 128 << 10
        self._patterns = 32

    def allows(self, contract: Contract) -> bool:
        self._bytes -= contract.size
        if self._bytes >= 0:
            self._patterns -= contract.patterns
        return self._bytes >= 0 and self._patterns >= 0

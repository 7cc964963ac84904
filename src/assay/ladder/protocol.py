"""
The fourth rung, as far as the schema goes: params, results and errors by the official definitions of a revision.

Rules about earlier messages (ids, lifecycle, capabilities) are in the conversation. No I/O, no state.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from assay.base.verdict import Party, Violation
from assay.contracts.look_alikes import Keys
from assay.engine.budget import Budget
from assay.engine.compiled import Compiled
from assay.engine.drafts import BASE64
from assay.engine.fault import Faults
from assay.rules import broken, violation
from assay.rules.report import Report
from assay.spec.extensions import OFFICIAL, Extension, extended_methods, owner_of
from assay.spec.methods import Method, method_meant, methods, revisions_of
from assay.spec.notation import Schema
from assay.spec.revisions import FEATURES, newer_than, position
from assay.spec.schema import ProtocolSchema, extension_schema, protocol_schema

MAY_ASK_BACK = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that may be answered by asking back, in the revisions with result types."""


class Definition:
    """
    One part of the schema, compiled when it is first needed.

    From then on `is_valid` is the engine's own method: judging a valid message adds no cost. Formats are asserted, so
    that one call decides the common case; `check` distinguishes a bad format, which is only reported, from a bad
    structure.
    """

    __slots__ = (
        "_compile", "_errata", "_extension", "_loose", "_meta", "_named", "_part", "_strict", "is_valid", "keys",
        "name",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        part: str,
        compiler: Callable[[bool], Compiled],
        named: "Callable[[], Named]",
        *,
        errata: bool,
        extension: Extension | None = None,
    ) -> None:
        """
        *named* returns the members that the definition names, and those of its `_meta`; *extension* is that which the
        definition belongs to, if any.
        """
        self.name = name
        self._part = part
        self._errata = errata
        self._extension = extension
        self._compile = compiler
        self._named = named
        self.keys: frozenset[str] = frozenset()
        """The members that need no second look. None before the first call of `is_valid`."""
        self._meta: tuple[Keys, Keys] | None = None
        self._strict: Compiled | None = None
        self._loose: Compiled | None = None
        self.is_valid: Callable[[Any], bool] = self._first

    def _first(self, instance: Any) -> bool:
        self._strict = self._compile(True)
        self.is_valid = self._strict.is_valid
        self.keys = self._both()[0].defined - {"_meta"}
        return self.is_valid(instance)

    def _both(self) -> tuple[Keys, Keys]:
        if self._meta is None:
            self._meta = _keys(self._named())
        return self._meta

    def defines(self, name: str) -> bool:
        """Return whether an object of this definition has a member *name*."""
        return name in self._both()[0].defined

    def has_plain_meta(self, meta: dict[str, Any]) -> bool:
        """Return whether no member of *meta*, the `_meta` of such an object, resembles a defined one."""
        return self._both()[1].is_plain(meta)

    def is_plain(self, instance: dict[str, Any]) -> bool:
        """Whether no member, here or in `_meta`, resembles a defined one."""
        keys, of_meta = self._meta or self._both()
        meta = instance.get("_meta")
        return keys.is_plain(instance) and (type(meta) is not dict or of_meta.is_plain(meta))

    def check_look_alikes(self, instance: dict[str, Any], at: str, report: Report) -> None:
        """Report each member that resembles a defined one, here or in `_meta`."""
        if self.is_plain(instance):
            return
        keys, of_meta = self._both()
        report.take(keys.check("protocol/look-alike-key", instance, at, report.most, report.revision))
        meta = instance.get("_meta")
        if type(meta) is dict:
            place = f"{at}/_meta"
            report.take(of_meta.check("protocol/look-alike-key", meta, place, report.most, report.revision))

    def check(self, rule: str, instance: Any, at: str, report: Report) -> bool:
        """Report the violations of *instance*; return whether there are none."""
        if self.is_valid(instance) or self._strict is None:
            return True
        if self._loose is None:
            self._loose = self._compile(False)
        if self._loose.is_valid(instance):
            rule, faults = "protocol/format", self._strict.explained(instance, report.budget, at=at)
        else:
            faults = self._loose.explained(instance, report.budget, at=at)
        revision = str(report.revision)
        hint = self._newer(instance, revision, report.budget) if rule != "protocol/format" else None
        report.take(self._violations(rule, faults, revision, hint), faults.more)
        return False

    def hint(self, instance: Any, revision: str, budget: Budget) -> str:
        """Return where to look the definition up, or that a newer revision allows the value."""
        return self._newer(instance, revision, budget) or self._look_up(revision, self.name)

    def _newer(self, instance: Any, revision: str, budget: Budget) -> str | None:
        """Return that a newer revision allows the value, if one does: servers often run ahead."""
        for newer in newer_than(revision):
            schema = protocol_schema(newer, errata=self._errata)
            if self.name not in schema.definitions:
                continue
            validator = schema.validator(self.name, self._part)
            if budget.affords(validator, instance) and validator.is_valid(instance):
                return f"This is valid in {newer}, but the conversation uses {revision}: send what {revision} defines."
        return None

    def _violations(self, rule: str, faults: Faults, revision: str, hint: str | None) -> Iterator[Violation]:
        for fault in faults.distinct():
            shown = hint
            if shown is None and rule != "protocol/format":
                shown = self._look_up(revision, definition_of(fault.schema_at) or self.name)
            kind = "protocol/base64" if rule == "protocol/format" and fault.expected == BASE64 else rule
            yield broken(kind, fault, revision=revision, detail=self.name, hint=shown, page=self.page)

    @property
    def page(self) -> str | None:
        """The source of its rules in place of the revision: the extension that it belongs to."""
        return None if self._extension is None else f"{self._extension.identifier}, schema"

    def _look_up(self, revision: str, name: str) -> str:
        place = revision if self._extension is None else self._extension.name
        return f"`assay schemas show {place} {name}` shows the expected shape."


def definition_of(schema_at: str) -> str | None:
    """Return the definition at a place in a schema, ``#/$defs/Tool/required``; None for the schema as a whole."""
    head, _, rest = schema_at.partition("/$defs/")
    return rest.partition("/")[0] or None if head == "#" else None


class Entry:
    """One method of one revision, as one party may use it."""

    __slots__ = (
        "extension", "features", "judge", "name", "params", "params_required", "party", "result", "revision",
        "stateless",
    )  # fmt: skip

    def __init__(self, party: Party, name: str, judge: "Judge", method: Method | None, schema: ProtocolSchema) -> None:
        self.party = party
        self.name = name
        self.judge = judge
        self.revision = judge.revision
        self.features = judge.features
        self.stateless = not judge.features.handshake
        self.params_required = False
        self.params: Definition | None = None
        self.result: Definition | None = None
        self.extension = schema.extension if method is not None else None
        if method is None:
            return
        if method.params is not None:
            self.params = whole(schema, method.params)
            self.params_required = not self.params.is_valid({})
        else:
            self.params_required = "params" in schema.definition(method.definition).get("required", ())
            self.params = Definition(
                method.definition,
                "/properties/params",
                lambda formats: _params(schema, method, formats),
                lambda: _named(schema, *_definitions_of_params(schema, method)),
                errata=schema.errata,
                extension=schema.extension,
            )
        if method.result:
            own = schema.extension is not None
            self.result = whole(schema, method.result) if own else judge.definition(method.result)


class Judge:
    """The methods of one revision, by sender and kind, each with its judges."""

    __slots__ = (
        "_cache", "_defined_errors", "_extended", "_forms", "_schema", "calls", "features", "revision",
    )  # fmt: skip

    def __init__(self, schema: ProtocolSchema) -> None:
        self.revision = schema.revision
        self._extended: dict[tuple[Party, str, str], Entry] = {}
        self._forms: dict[tuple[str, str], Definition] = {}
        self.features = FEATURES[schema.revision]
        self._defined_errors = dict(self.features.error_codes)
        self._schema = schema
        self._cache: dict[str, Definition] = {}
        self.calls: dict[tuple[Party, str], dict[str, Entry]] = {
            (party, kind): {
                name: Entry(party, name, self, method, schema)
                for name, method in methods(schema.revision).items()
                if method.kind == kind and party in method.senders
            }
            for party in Party
            for kind in ("request", "notification")
        }

    def extended(self, party: Party, kind: str, name: str) -> Entry | None:
        """Return the entry of *name* if it is a method of a known extension that *party* may send as *kind*."""
        key = (party, kind, name)
        known = self._extended.get(key)
        if known is not None:
            return known
        found = extended_methods(self.revision).get(name)
        if found is None or found.method.kind != kind or party not in found.method.senders:
            return None
        schema = extension_schema(found.extension, self.revision, errata=self._schema.errata)
        self._extended[key] = made = Entry(party, name, self, found.method, schema)
        return made

    def result_form(self, method: str, kind: str) -> tuple[Extension, Definition] | None:
        """Return the extension and the definition of a result of the type *kind* to *method*; None without one."""
        for extension in OFFICIAL:
            for form in extension.results:
                if (form.method, form.kind) == (method, kind) and position(self.revision) >= extension.first:
                    return extension, self.extension_definition(extension, form.definition)
        return None

    def extension_definition(self, extension: Extension, name: str) -> Definition:
        """Return the judge of the definition *name* of *extension*."""
        key = (extension.name, name)
        if key not in self._forms:
            self._forms[key] = whole(extension_schema(extension, self.revision, errata=self._schema.errata), name)
        return self._forms[key]

    def stranger(self, party: Party, name: str) -> Entry:
        """Return the entry of a method that this revision does not have for *party*: it cannot be judged."""
        # The start of the name is enough to recognise it: the peer chose it, and it may have a megabyte.
        return Entry(party, name[:100], self, None, self._schema)

    def knows(self, method: str) -> bool:
        """Return whether this revision, or a known extension, has *method*, for either party and kind."""
        return self._known(method) is not None

    def _known(self, name: str) -> Method | None:
        found = methods(self.revision).get(name)
        if found is None and (beyond := extended_methods(self.revision).get(name)) is not None:
            return beyond.method
        return found

    def definition(self, name: str) -> Definition:
        """Return the judge of the definition *name*."""
        if name not in self._cache:
            self._cache[name] = whole(self._schema, name)
        return self._cache[name]

    def result_definition(self, method: str, result: dict[str, Any], *, as_task: bool) -> str | None:
        """
        Return the definition of a *result* of *method*; None for a method that this revision does not have.

        A request made as a task is answered by the task. From 2026-07-28 on a result has a type: it may ask for more
        input first; of an unknown type, which only an extension can define, the common part is judged.
        """
        known = methods(self.revision).get(method)
        kind = result.get("resultType")
        if known is None or as_task:
            return "CreateTaskResult" if as_task else None
        if not self.features.result_types or kind == "complete" or not isinstance(kind, str):
            return known.result
        return "InputRequiredResult" if kind == "input_required" and method in MAY_ASK_BACK else "Result"

    def check_params(self, entry: Entry, message: dict[str, Any], report: Report) -> None:
        """Report the violations of the params of a request or notification."""
        if entry.params is None:
            return
        if "params" in message:
            params = message["params"]
            if type(params) is dict:
                entry.params.check_look_alikes(params, "/params", report)
            entry.params.check("protocol/params", params, "/params", report)
        elif entry.params_required:
            hint = entry.params.hint(None, self.revision, report.budget)
            report.add("protocol/params", expected="params", found="nothing", detail=entry.params.name, hint=hint)

    def check_error(self, message: dict[str, Any], report: Report) -> None:
        """Report the violations of an error whose code the specification defines."""
        name = self._defined_errors.get(message["error"]["code"])
        if name is not None:
            self.definition(name).check("protocol/error", message, "", report)

    def wrong_result_type(self, method: str, result: dict[str, Any]) -> Violation | None:
        """Return the violation of a result type that the specification does not have, or not for this method."""
        kind = result.get("resultType")
        if not self.features.result_types or kind == "complete" or not isinstance(kind, str):
            return None
        if kind == "input_required" and method in MAY_ASK_BACK:
            return None
        return violation(
            "protocol/result-type",
            "/result/resultType",
            expected='"complete" or "input_required"' if method in MAY_ASK_BACK else '"complete"',
            found=f'"{kind[:40]}"',
            revision=self.revision,
        )

    def check_method(self, party: Party, kind: str, name: str) -> Violation:
        """Return why *party* may not send *name* as *kind*: unknown, of another revision, or of the other party."""
        known = self._known(name)
        shown = f'"{name[:60]}"'
        if known is None:
            return violation(
                "protocol/method",
                "/method",
                expected=f"a method of {self.revision}",
                found=shown,
                revision=self.revision,
                hint=self.hint_on(name),
            )
        if known.kind != kind:
            asks = known.kind == "request"
            return violation(
                "protocol/method",
                "/method",
                expected=f"{known.name} as a {known.kind}",
                found=f"a {kind}",
                revision=self.revision,
                hint="Add an id: it is a request."
                if asks
                else "Remove the id: it is a notification, which is never answered.",
            )
        return violation(
            "protocol/direction",
            "/method",
            expected=f"a method that a {party} may send",
            found=f"{shown}, which only a {party.other} may send",
            revision=self.revision,
        )

    def hint_on(self, name: str) -> str | None:
        """Return the hint for *name*, a method that this revision does not have; None without one."""
        elsewhere = revisions_of(name)
        if elsewhere:
            return f"{name} exists in {', '.join(elsewhere)}; this conversation is {self.revision}."
        owner = owner_of(name, self.revision)
        if owner is not None and not owner.methods:
            return f"Methods such as {name[:60]} stay between the host and the page that it shows; do not send them on."
        meant = method_meant(name, self.revision)
        return None if meant is None else f"Did you mean {meant}?"


def judge(revision: str, *, errata: bool = True) -> Judge:
    """Return the judge of *revision*; the same one for every conversation."""
    return _judge_by(protocol_schema(revision, errata=errata))


@cache
def _judge_by(schema: ProtocolSchema) -> Judge:
    return Judge(schema)


def whole(schema: ProtocolSchema, name: str) -> Definition:
    """Return the judge of the definition *name* of *schema*."""
    return Definition(
        name,
        "",
        lambda formats: schema.validator(name, formats=formats),
        lambda: _named(schema, schema.definition(name)),
        errata=schema.errata,
        extension=schema.extension,
    )


Named = tuple[frozenset[str], frozenset[str]]
"""Return the members that a definition names, and those of its `_meta`."""


def _named(schema: ProtocolSchema, *nodes: Schema) -> Named:
    members = schema.members({"allOf": list(nodes)})
    return frozenset(members), frozenset(schema.members({"allOf": members.get("_meta", [])}))


@cache
def _keys(named: Named) -> tuple[Keys, Keys]:
    """Return the keys to compare; definitions with the same members share them."""
    return Keys(named[0]), Keys(named[1])


def _definitions_of_params(schema: ProtocolSchema, method: Method) -> list[Schema]:
    names = [method.definition]
    if FEATURES[schema.revision].bare_envelopes:
        names.append("JSONRPCRequest" if method.kind == "request" else "JSONRPCNotification")
    return [schema.definition(name)["properties"].get("params", {}) for name in names]


def _params(schema: ProtocolSchema, method: Method, formats: bool) -> Compiled:
    """
    Return the compiled params of a method.

    Up to 2025-06-18 the definition of a request leaves out `_meta`, which that of JSONRPCRequest has. So the params are
    judged by both, in one call of the engine.
    """
    base = "JSONRPCRequest" if method.kind == "request" else "JSONRPCNotification"
    document = schema.closure(method.definition)
    if not FEATURES[schema.revision].bare_envelopes:
        return schema.compiled({"$ref": f"#/$defs/{method.definition}/properties/params"} | document, formats=formats)
    both = [{"$ref": f"#/$defs/{name}/properties/params"} for name in (method.definition, base)]
    definitions = document["$defs"] | schema.closure(base)["$defs"]
    return schema.compiled({"allOf": both} | document | {"$defs": definitions}, formats=formats)

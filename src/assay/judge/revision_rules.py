"""
The fourth rung, as far as the schema goes: params, results and errors by the official definitions of a revision.

Rules about earlier messages (ids, lifecycle, capabilities) are in the conversation. No I/O, no state.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from assay.model.verdict import Party, Violation
from assay.rules import broken, violation
from assay.rules.report import Report
from assay.schema.budget import Budget
from assay.schema.compiled import Compiled
from assay.schema.drafts import BASE64
from assay.schema.look_alikes import Keys
from assay.spec.extensions import OFFICIAL, Extension, extended_methods, owner_of
from assay.spec.methods import Method, method_meant, methods, revisions_of
from assay.spec.revisions import FEATURES, newer_than, position
from assay.spec.schema import ProtocolSchema, extension_schema, protocol_schema

MAY_ASK_BACK = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that may be answered by asking back, in the revisions with result types."""


class Definition:
    """
    One definition of the schema, or the params of the message that it defines, compiled when it is first needed.

    From then on `is_valid` is the engine's own method: judging a valid message adds no cost. Formats are asserted, so
    that one call decides the common case; `check` distinguishes a bad format, which is only reported, from a bad
    structure.
    """

    __slots__ = ("_both", "_loose", "_method", "_schema", "_strict", "is_valid", "keys", "name")

    def __init__(self, schema: ProtocolSchema, name: str, method: Method | None = None) -> None:
        """With *method* these are the params of that method, whose message has the definition *name*."""
        self.name = name
        self._schema = schema
        self._method = method
        self.keys: frozenset[str] = frozenset()
        """The members that need no second look. None before the first call of `is_valid`."""
        self._both: tuple[Keys, Keys] | None = None
        self._strict: Compiled | None = None
        self._loose: Compiled | None = None
        self.is_valid: Callable[[Any], bool] = self._first

    def _first(self, instance: Any) -> bool:
        self._strict = self._compiled(formats=True)
        self.is_valid = self._strict.is_valid
        self.keys = self._known()[0].defined - {"_meta"}
        return self.is_valid(instance)

    def _messages(self) -> list[str]:
        """
        Return the definitions of the message whose params these are.

        Up to 2025-06-18 the definition of a request leaves out `_meta`, which that of JSONRPCRequest has. So the params
        are judged by both, in one call of the engine.
        """
        if self._method is None or not FEATURES[self._schema.revision].bare_envelopes:
            return [self.name]
        return [self.name, "JSONRPCRequest" if self._method.kind == "request" else "JSONRPCNotification"]

    def _compiled(self, *, formats: bool) -> Compiled:
        schema = self._schema
        if self._method is None:
            return schema.validator(self.name, formats=formats)
        parts = [{"$ref": f"#/$defs/{name}/properties/params"} for name in self._messages()]
        definitions = {key: each for name in self._messages() for key, each in schema.closure(name)["$defs"].items()}
        whole = parts[0] if len(parts) == 1 else {"allOf": parts}
        return schema.compiled(whole | schema.closure(self.name) | {"$defs": definitions}, formats=formats)

    def _known(self) -> tuple[Keys, Keys]:
        """Return the members that the definition names, and those of its `_meta`."""
        if self._both is None:
            nodes = [self._schema.definition(name) for name in self._messages()]
            if self._method is not None:
                nodes = [each["properties"].get("params", {}) for each in nodes]
            members = self._schema.members({"allOf": nodes})
            self._both = Keys(members), Keys(self._schema.members({"allOf": members.get("_meta", [])}))
        return self._both

    def defines(self, name: str) -> bool:
        """Return whether an object of this definition has a member *name*."""
        return name in self._known()[0].defined

    def has_plain_meta(self, meta: dict[str, Any]) -> bool:
        """Return whether no member of *meta*, the `_meta` of such an object, resembles a defined one."""
        return self._known()[1].is_plain(meta)

    def is_plain(self, instance: dict[str, Any]) -> bool:
        """Whether no member, here or in `_meta`, resembles a defined one."""
        keys, of_meta = self._both or self._known()
        meta = instance.get("_meta")
        return keys.is_plain(instance) and (type(meta) is not dict or of_meta.is_plain(meta))

    def check_look_alikes(self, instance: dict[str, Any], at: str, report: Report) -> None:
        """Report each member that resembles a defined one, here or in `_meta`."""
        if self.is_plain(instance):
            return
        keys, of_meta = self._known()
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
            self._loose = self._compiled(formats=False)
        is_format = self._loose.is_valid(instance)
        faults = (self._strict if is_format else self._loose).explained(instance, report.budget, at=at)
        revision = str(report.revision)
        newer = None if is_format else self._newer(instance, revision, report.budget)
        found = []
        for fault in faults.distinct():
            kind, hint = rule, newer
            if is_format:
                kind = "protocol/base64" if fault.expected == BASE64 else "protocol/format"
            elif hint is None:
                hint = self._look_up(revision, definition_of(fault.schema_at) or self.name)
            found.append(broken(kind, fault, revision=revision, detail=self.name, hint=hint, page=self.page))
        report.take(found, faults.more)
        return False

    def hint(self, instance: Any, revision: str, budget: Budget) -> str:
        """Return where to look the definition up, or that a newer revision allows the value."""
        return self._newer(instance, revision, budget) or self._look_up(revision, self.name)

    def _newer(self, instance: Any, revision: str, budget: Budget) -> str | None:
        """Return that a newer revision allows the value, if one does: servers often run ahead."""
        for newer in newer_than(revision):
            schema = protocol_schema(newer, errata=self._schema.errata)
            if self.name not in schema.definitions:
                continue
            validator = schema.validator(self.name, "" if self._method is None else "/properties/params")
            if budget.affords(validator, instance) and validator.is_valid(instance):
                return f"This is valid in {newer}, but the conversation uses {revision}: send what {revision} defines."
        return None

    @property
    def page(self) -> str | None:
        """The source of its rules in place of the revision: the extension that it belongs to."""
        extension = self._schema.extension
        return None if extension is None else f"{extension.identifier}, schema"

    def _look_up(self, revision: str, name: str) -> str:
        place = revision if self._schema.extension is None else self._schema.extension.name
        return f"`assay schemas show {place} {name}` shows the expected shape."


@cache
def _definition(schema: ProtocolSchema, name: str) -> Definition:
    return Definition(schema, name)


def definition_of(schema_at: str) -> str | None:
    """Return the definition at a place in a schema, ``#/$defs/Tool/required``; None for the schema as a whole."""
    head, _, rest = schema_at.partition("/$defs/")
    return rest.partition("/")[0] or None if head == "#" else None


class Entry:
    """One method of one revision, as one party may use it."""

    __slots__ = (
        "extension",
        "features",
        "name",
        "params",
        "params_required",
        "party",
        "result",
        "revision",
        "rules",
        "stateless",
    )  # fmt: skip

    def __init__(
        self, party: Party, name: str, rules: "RevisionRules", method: Method | None, schema: ProtocolSchema
    ) -> None:
        self.party = party
        self.name = name
        self.rules = rules
        self.revision = rules.revision
        self.features = rules.features
        self.stateless = not rules.features.handshake
        self.params_required = False
        self.params: Definition | None = None
        self.result: Definition | None = None
        self.extension = schema.extension if method is not None else None
        if method is None:
            return
        if method.params is not None:
            self.params = _definition(schema, method.params)
            self.params_required = not self.params.is_valid({})
        else:
            self.params = Definition(schema, method.definition, method)
            self.params_required = "params" in schema.definition(method.definition).get("required", ())
        if method.result:
            self.result = _definition(schema, method.result)


class RevisionRules:
    """The methods of one revision, by sender and kind, each with its definitions."""

    __slots__ = ("_errors", "_extended", "_schema", "calls", "features", "revision")

    def __init__(self, schema: ProtocolSchema) -> None:
        self.revision = schema.revision
        self.features = FEATURES[schema.revision]
        self._errors = dict(self.features.error_codes)
        self._schema = schema
        self._extended: dict[tuple[Party, str, str], Entry] = {}
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
        self._extended[key] = made = Entry(party, name, self, found.method, self._extension_schema(found.extension))
        return made

    def _extension_schema(self, extension: Extension) -> ProtocolSchema:
        return extension_schema(extension, self.revision, errata=self._schema.errata)

    def result_form(self, method: str, kind: str) -> tuple[Extension, Definition] | None:
        """Return the extension and the definition of a result of the type *kind* to *method*; None without one."""
        for extension in OFFICIAL:
            for form in extension.results:
                if (form.method, form.kind) == (method, kind) and position(self.revision) >= extension.first:
                    return extension, self.extension_definition(extension, form.definition)
        return None

    def extension_definition(self, extension: Extension, name: str) -> Definition:
        """Return the definition *name* of *extension*."""
        return _definition(self._extension_schema(extension), name)

    def definition(self, name: str) -> Definition:
        """Return the definition *name* of the revision."""
        return _definition(self._schema, name)

    def stranger(self, party: Party, name: str) -> Entry:
        """Return the entry of a method that this revision does not have for *party*: it cannot be judged."""
        # The start of the name is enough to recognise it: the peer chose it, and it may have a megabyte.
        return Entry(party, name[:100], self, None, self._schema)

    def method(self, name: str) -> Method | None:
        """Return the method *name* of this revision, or of a known extension, for either party; None without one."""
        found = methods(self.revision).get(name)
        if found is None and (beyond := extended_methods(self.revision).get(name)) is not None:
            return beyond.method
        return found

    def result_definition(self, method: str, result: dict[str, Any], *, as_task: bool) -> str | None:
        """
        Return the definition of a *result* of *method*; None for a method that this revision does not have.

        A request made as a task is answered by the task. From 2026-07-28 on a result has a type: it may ask for more
        input first; of an unknown type, which only an extension can define, the common part is judged.
        """
        if as_task:
            return "CreateTaskResult"
        known = methods(self.revision).get(method)
        if known is None:
            return None
        kind = self._unusual_type(result)
        if kind is None:
            return known.result
        return "InputRequiredResult" if kind == "input_required" and method in MAY_ASK_BACK else "Result"

    def wrong_result_type(self, method: str, result: dict[str, Any]) -> Violation | None:
        """Return the violation of a result type that the specification does not have, or not for this method."""
        kind = self._unusual_type(result)
        if kind is None:
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

    def _unusual_type(self, result: dict[str, Any]) -> str | None:
        """Return the type of a result that is not complete; None in revisions without result types."""
        kind = result.get("resultType") if self.features.result_types else None
        return kind if isinstance(kind, str) and kind != "complete" else None

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
        name = self._errors.get(message["error"]["code"])
        if name is not None:
            self.definition(name).check("protocol/error", message, "", report)

    def check_method(self, party: Party, kind: str, name: str) -> Violation:
        """Return why *party* may not send *name* as *kind*: unknown, of another revision, or of the other party."""
        known = self.method(name)
        rule, found, hint = "protocol/method", f'"{name[:60]}"', None
        if known is None:
            expected, hint = f"a method of {self.revision}", self.hint_on(name)
        elif known.kind != kind:
            expected, found = f"{known.name} as a {known.kind}", f"a {kind}"
            hint = "Remove the id: it is a notification, which is never answered."
            if known.kind == "request":
                hint = "Add an id: it is a request."
        else:
            rule, expected = "protocol/direction", f"a method that a {party} may send"
            found = f"{found}, which only a {party.other} may send"
        return violation(rule, "/method", expected=expected, found=found, revision=self.revision, hint=hint)

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


def rules_of(revision: str, *, errata: bool = True) -> RevisionRules:
    """Return the rules of *revision*; the same ones for every conversation."""
    return _rules_of(protocol_schema(revision, errata=errata))


@cache
def _rules_of(schema: ProtocolSchema) -> RevisionRules:
    return RevisionRules(schema)

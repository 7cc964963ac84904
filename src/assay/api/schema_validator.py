"""
The schema validator and the middleware of specs/003: one step between a transport and a router.

They use the same rungs as `Conversation`, without its state: each message is judged alone.
"""

import logging
from collections.abc import Callable, Iterable
from os import PathLike, fspath
from typing import Any, Final

from assay.api.exceptions import ValidationError
from assay.api.schema_override import Override, load, shown_uri
from assay.base.limits import DEFAULT
from assay.base.verdict import Party, Violation
from assay.core import render
from assay.engine.compiled import Compiled
from assay.engine.fault import Fault
from assay.engine.wording import name as shown_name
from assay.ladder import envelope, framing, syntax
from assay.ladder.envelope import kind_of
from assay.ladder.framing import Text
from assay.ladder.protocol import definition_of, judge
from assay.rules import broken, violation
from assay.spec.methods import methods
from assay.spec.revisions import LATEST_HANDSHAKE, features_of
from assay.spec.schema import protocol_schema, suggestion

Handler = Callable[[bytes], bytes | None]

Found = tuple[list[Violation], int]
"""Violations, and the least number of further ones."""

# Generic message types, and their definitions in the revisions.
_GENERIC: Final = {
    "request": ("JSONRPCRequest", "JSONRPCMessage"),
    "notification": ("JSONRPCNotification", "JSONRPCMessage"),
    "response": ("JSONRPCResultResponse", "JSONRPCResponse", "JSONRPCMessage"),
    "error": ("JSONRPCErrorResponse", "JSONRPCError", "JSONRPCMessage"),
}
_CONTENT: Final = frozenset({"params", "result", "error"})
"""Members of a message that have definitions of their own."""
_GENERIC_NAMES: Final = frozenset(name for names in _GENERIC.values() for name in names)


class SchemaValidator:
    """
    Judges single messages by the schema of one revision, or by an operator's own schema.

    *schema_override_uri* (a path, ``file:`` or ``http(s):``) replaces the bundled schema. If it cannot be loaded or
    does not compile, that is logged as critical and the bundled one is used. Everything is loaded once, compiled once,
    kept. An override that defines only generic messages (``JSONRPCRequest`` …) judges every method by those.

    An unknown *revision* is a `ValueError`.
    """

    def __init__(
        self,
        *,
        revision: str = LATEST_HANDSHAKE,
        schema_override_uri: str | PathLike[str] | None = None,
        errata: bool = True,
    ) -> None:
        self.revision = revision
        self._bundled = protocol_schema(revision, errata=errata)
        self._override_uri = schema_override_uri
        self._initialized = False
        self._override: Override | None = None
        self._any_method = False
        """Whether the schema in force has no methods, so that the generic definitions judge all of them."""
        self._methods = {name: method.definition for name, method in methods(revision).items()}

    def __repr__(self) -> str:
        parts = [f"revision={self.revision!r}"]
        if self._override_uri is not None:
            parts.append(f"schema_override_uri={shown_uri(fspath(self._override_uri))!r}")
        if not self._bundled.errata:
            parts.append("errata=False")
        return f"SchemaValidator({', '.join(parts)})"

    @property
    def overridden(self) -> bool:
        """Whether an operator's own schema is in force."""
        return self._override is not None

    def initialize(self) -> None:
        """
        Load the override, if there is one. A second call does nothing.

        The first validation calls it, too; call it at start-up, where waiting does no harm.
        """
        if self._initialized:
            return
        self._initialized = True
        if self._override_uri is not None:
            self._override = load(fspath(self._override_uri))
        if self._override is not None:
            self._methods = self._override.methods
            self._any_method = not self._methods and not _GENERIC_NAMES.isdisjoint(self._override.definitions)

    def validate(self, message_type: str, data: Text) -> None:
        """
        Raise `ValidationError` for an invalid message.

        *message_type* is a method's name (``tools/call``), a definition's name (``CallToolResult``), or one of
        ``request``, ``notification``, ``response``, ``error``; any other raises ``KeyError``. *data* is the message as
        text or bytes; anything else raises ``TypeError``.
        """
        self._definitions(message_type)
        value = _read(framing.as_frame(data))
        found, more = ([value], 0) if isinstance(value, Violation) else self.check(message_type, value)
        if found:
            raise ValidationError(found, more)

    def check(self, message_type: str, value: Any) -> Found:
        """
        Return the violations of *value* as a *message_type*. Raises `KeyError` as `validate` does.

        The envelope rung checks what the schema does not: a notification has no id, and a result no error beside it.
        """
        names = self._definitions(message_type)
        head = list(self._check_envelope(message_type, value))
        found, more = list(head), 0
        for name in names:
            faults = self._compiled(name).faults(value)
            # Findings of the envelope rung are not repeated.
            listed = [each for each in faults.listed if not head or each.at.startswith(("/params/", "/result/"))]
            found += [self._violation(message_type, name, each) for each in listed]
            more += faults.more
        # The first one decides the code of the answer: structure before params.
        found.sort(key=lambda each: not each.rule.startswith("envelope/"))
        return found[: DEFAULT.violations], more + max(0, len(found) - DEFAULT.violations)

    def _violation(self, message_type: str, name: str, fault: Fault) -> Violation:
        rule = self._rule(message_type)
        if fault.at == "/method":
            rule = "protocol/method"
        elif self._is_message(message_type) and _is_structure(fault):
            rule = "envelope/schema"
        hint = self._hint(definition_of(fault.schema_at) or name)
        return broken(rule, fault, revision=self.revision, detail=name, hint=hint)

    def knows(self, message_type: str) -> bool:
        """Whether there is a definition for *message_type*."""
        try:
            self._definitions(message_type)
        except KeyError:
            return False
        return True

    def type_of(self, kind: str, method: str) -> str:
        """Return the message type that judges a *kind* of message with *method*."""
        return kind if self._any_method else method

    def check_method(self, kind: str, method: str) -> Violation | None:
        """Return a violation if *method* cannot be sent as *kind*, else None."""
        self.initialize()
        if self._any_method:
            return None
        if method in self._methods:
            known = "notification" if self._methods[method].endswith("Notification") else "request"
            if known == kind:
                return None
        if self._override is None:
            # The sender is unknown here, and matters only for known methods.
            return judge(self.revision).check_method(Party.CLIENT, kind, method)
        expected = "a method of the schema in force, with an id if it is a request"
        return violation("protocol/method", "/method", expected=expected, found=f'"{method[:60]}"')

    def _check_envelope(self, message_type: str, value: Any) -> Iterable[Violation]:
        """Yield the faults of *value* as a message; nothing for a definition, which may be only a part of one."""
        if message_type in {"response", "error"}:
            return envelope.check_answer(value, envelope.MCP, error_id=not features_of(self.revision).optional_error_id)
        if message_type in {"request", "notification"}:
            return _check_call(value, message_type == "request")
        if message_type in self._methods:
            return _check_call(value, not self._methods[message_type].endswith("Notification"))
        if self._is_any_method(message_type):
            return _check_named_call(value, message_type, self._generic_kind(message_type) == "request")
        return ()

    def _is_message(self, message_type: str) -> bool:
        """Whether *message_type* stands for whole messages; a definition may be only a part of one."""
        return message_type in _GENERIC or message_type in self._methods or self._is_any_method(message_type)

    def _rule(self, message_type: str) -> str:
        """Return the rule for a schema violation: params for requests and notifications, result for everything else."""
        asks = message_type in {"request", "notification", *self._methods} or self._is_any_method(message_type)
        named = message_type.endswith(("Request", "Notification", "Params"))
        return "protocol/params" if asks or named else "protocol/result"

    def _hint(self, definition: str) -> str:
        if self._override is not None:
            return f"Correct the named field; see {definition} in the schema in force."
        return f"`assay schemas show {self.revision} {definition}` shows the expected shape."

    def _definitions(self, message_type: str) -> tuple[str, ...]:
        """Return all definitions that a *message_type* must match."""
        self.initialize()
        known = self._names()
        if message_type in _GENERIC:
            # Empty for an override without one: the envelope is judged anyway.
            return tuple(name for name in _GENERIC[message_type] if name in known)[:1]
        own = self._methods.get(message_type)
        if own is not None:
            # Up to 2025-06-18 a method's definition lacks the JSON-RPC head and the common params.
            base = "JSONRPCNotification" if own.endswith("Notification") else "JSONRPCRequest"
            whole = "jsonrpc" in self._definition(own).get("properties", {})
            return (own,) if whole or base not in known else (base, own)
        if message_type in known:
            return (message_type,)
        if self._is_any_method(message_type):
            return self._definitions(self._generic_kind(message_type))
        near = suggestion(message_type[:100], (*self._methods, *known, *_GENERIC))
        raise KeyError(f"unknown message type {message_type[:100]!r}{near}")

    def _is_any_method(self, message_type: str) -> bool:
        """Whether *message_type* is a method that the generic definitions judge."""
        return self._any_method and bool(message_type) and message_type not in {*_GENERIC, *self._names()}

    def _generic_kind(self, method: str) -> str:
        """Return the kind of a message with *method*, by the bundled revision, else by its name."""
        known = methods(self.revision).get(method)
        if known is not None:
            return known.kind
        return "notification" if method.startswith("notifications/") else "request"

    def _names(self) -> Iterable[str]:
        return self._bundled.definitions if self._override is None else self._override.definitions

    def _definition(self, name: str) -> dict[str, Any]:
        return self._bundled.definition(name) if self._override is None else self._override.definitions[name]

    def _compiled(self, name: str) -> Compiled:
        return self._bundled.validator(name) if self._override is None else self._override.validator(name)


class ValidationMiddleware:
    """
    Middleware in front of *next_handler*: bytes in, bytes or None out.

    An invalid message is answered here and never reaches the handler; with *strict* off it is logged and passed on. The
    handler's response is checked, too; an invalid one is logged, and with *strict_outgoing* replaced by an error. A
    notification gets no response, whatever the handler returns.
    """

    def __init__(
        self,
        validator: SchemaValidator,
        next_handler: Handler,
        *,
        strict: bool = True,
        validate_outgoing: bool = True,
        strict_outgoing: bool = False,
    ) -> None:
        self._validator = validator
        self._next = next_handler
        self._strict = strict
        self._validate_outgoing = validate_outgoing
        self._strict_outgoing = strict_outgoing
        validator.initialize()

    def __call__(self, data: Text) -> bytes | None:
        """Return the response to *data*, text or bytes; None if there is no response."""
        data = framing.as_frame(data)
        if framing.is_blank(data):
            return None
        value = _read(data)
        if isinstance(value, list) and self._takes_batch(value):
            # Each entry is a separate message, and reaches the handler as one.
            entries = zip(render.entries(data), value, strict=True)
            return render.array([self._single(spelt, each, batched=True) for spelt, each in entries])
        return self._single(data, value)

    def _takes_batch(self, values: list[Any]) -> bool:
        return features_of(self._validator.revision).batches and 0 < len(values) <= DEFAULT.open_requests

    def _single(self, data: bytes, value: Any, *, batched: bool = False) -> bytes | None:
        found, more = self._check(value)
        if batched and isinstance(value, dict) and value.get("method") == "initialize":
            found.append(
                violation("protocol/batched-initialize", "/method", expected="initialize alone", found="in a batch")
            )
        if not found:
            return self._passed(data, value)
        self._log("refused" if self._strict else "passed on", found)
        return self._refusal(data, value, found, more) if self._strict else self._passed(data, value)

    def _check(self, value: Any) -> Found:
        """Return the violations of a message in either direction."""
        if isinstance(value, Violation):
            return [value], 0
        if isinstance(value, list):
            return [self._no_batch(len(value))], 0
        kind = kind_of(value)
        if kind == "error":
            return self._check_error(value)
        if kind == "result":
            return self._validator.check("response", value)
        faults = list(envelope.check(value))
        method = value.get("method") if isinstance(value, dict) else None
        if kind == "unreadable" or not isinstance(method, str) or not method:
            return faults, 0
        wrong = self._validator.check_method(kind, method)
        if wrong is not None:
            return [*faults, wrong], 0
        return self._validator.check(self._validator.type_of(kind, method), value)

    def _check_error(self, value: dict[str, Any]) -> Found:
        """Yield the faults of an error. A null id is allowed: JSON-RPC requires it for unreadable messages."""
        found, more = self._validator.check("error", value)
        if value.get("id", "") is None:
            found = [each for each in found if each.rule != "envelope/id"]
        return found, more

    def _no_batch(self, size: int) -> Violation:
        revision = self._validator.revision
        expected = "one message (only 2025-03-26 has batches)"
        if features_of(revision).batches:
            expected = f"at most {DEFAULT.open_requests:,} messages" if size else "a batch that is not empty"
        return violation("envelope/batch", expected=expected, found=f"an array of {size:,} items", revision=revision)

    def _refusal(self, data: bytes, value: Any, found: list[Violation], more: int) -> bytes | None:
        if not _wants_answer(value):
            return None
        return render.refusal(_id_token(data, value), found, more, self._validator.revision)

    def _passed(self, data: bytes, value: Any) -> bytes | None:
        answer = self._next(data)
        if answer is None:
            return None
        if not _wants_answer(value):
            self._log("dropped", [violation("protocol/unsolicited", expected="no answer", found="one")])
            return None
        return self._checked(answer, data, value) if self._validate_outgoing else answer

    def _checked(self, answer: bytes, data: bytes, request: Any) -> bytes:
        """Return the handler's *answer* if it is valid; otherwise, with *strict_outgoing*, an error in its place."""
        found, more = self._check_answer(_read(answer), request)
        if not found:
            return answer
        self._log("replaced the answer" if self._strict_outgoing else "passed on the answer", found)
        if not self._strict_outgoing:
            return answer
        return render.failure(_id_token(data, request), "INTERNAL_ERROR", found, more, self._validator.revision)

    def _check_answer(self, value: Any, request: Any) -> Found:
        found, more = self._check(value)
        if found:
            return found, more
        if kind_of(value) not in {"result", "error"}:
            return [violation("envelope/members", expected="a result or an error", found=f"a {kind_of(value)}")], 0
        asked = request.get("id") if isinstance(request, dict) else None
        if asked is not None and value.get("id") != asked:
            # The content is not logged: payloads do not belong into the log.
            return [violation("protocol/unsolicited", "/id", expected="the id of the request", found="another")], 0
        name = self._result_definition(request, value)
        if name is None or not self._validator.knows(name):
            return [], 0
        found, more = self._validator.check(name, value["result"])
        return [each.under("/result") for each in found], more

    def _result_definition(self, request: Any, answer: dict[str, Any]) -> str | None:
        """Return the definition for the result in *answer*, if the *request* shows it."""
        if not isinstance(request, dict) or not isinstance(request.get("method"), str) or "result" not in answer:
            return None
        revision, params = self._validator.revision, request.get("params")
        as_task = features_of(revision).tasks and isinstance(params, dict) and "task" in params
        return judge(revision).result_definition(request["method"], answer["result"], as_task=as_task)

    def _log(self, what: str, found: list[Violation]) -> None:
        log = logging.getLogger("assay")
        for each in found:
            # Place, rule and expected value, but never the found value, which is the payload. A place can contain keys
            # of the message, so it is quoted and cut.
            log.warning(
                "%s: %.200r: expected %s [%s] (schema %s)", what, each.at, each.expected, each.rule, each.schema_at
            )


def _read(frame: bytes) -> Any | Violation:
    return framing.check(frame, DEFAULT.frame_bytes) or syntax.read(frame, DEFAULT.depth)


def _check_call(value: Any, is_request: bool) -> Iterable[Violation]:
    yield from envelope.check_call(value, envelope.MCP, needs_id=is_request)
    if not is_request and isinstance(value, dict) and "id" in value:
        yield violation("envelope/id", "/id", expected="no id in a notification", found="one")


def _check_named_call(value: Any, method: str, is_request: bool) -> Iterable[Violation]:
    yield from _check_call(value, is_request)
    named = value.get("method") if isinstance(value, dict) else None
    if isinstance(named, str) and named and named != method:
        yield violation("protocol/method", "/method", expected=f'"{method[:60]}"', found=f'"{named[:60]}"')


def _is_structure(fault: Fault) -> bool:
    """Whether *fault* is about a message itself, and not about its params, its result or its error."""
    if fault.at:
        return fault.at.split("/")[1] not in _CONTENT
    # A message without its params lacks params, not structure.
    return fault.keyword != "required" or fault.expected != f"the property {shown_name('params')}"


def _wants_answer(value: Any) -> bool:
    """Whether *value* expects a response: a request, or something that may have been meant as one."""
    return not isinstance(value, dict) or kind_of(value) not in {"notification", "result", "error"}


def _id_token(frame: bytes, value: Any) -> bytes | None:
    """Return the id as written in *frame*; None without a usable id."""
    return None if render.usable_id(frame, value) is None else render.id_token(frame, value["id"])

"""
The schema validator and the middleware of specs/003: one step between a transport and a router.

They use the same rungs as `Conversation`, without its state: each message is judged alone.
"""

import logging
from collections.abc import Callable, Iterable
from os import PathLike, fspath
from typing import Any, Final, NamedTuple

from assay.api.exceptions import ValidationError
from assay.api.schema_override import Override, load, shown_uri
from assay.judge import envelope, framing, render, syntax
from assay.judge.envelope import kind_of
from assay.judge.framing import Text
from assay.judge.revision_rules import definition_of, rules_of
from assay.model.limits import DEFAULT
from assay.model.verdict import Party, Violation
from assay.rules import broken, violation
from assay.schema.fault import Fault
from assay.schema.wording import name as shown_name
from assay.spec.methods import methods
from assay.spec.revisions import LATEST_HANDSHAKE, features_of
from assay.spec.schema import ProtocolSchema, protocol_schema, suggestion

Handler = Callable[[bytes], bytes | None]

Found = tuple[list[Violation], int]
"""Violations, and the least number of further ones."""

_GENERIC: Final = {
    "request": ("JSONRPCRequest", "JSONRPCMessage"),
    "notification": ("JSONRPCNotification", "JSONRPCMessage"),
    "response": ("JSONRPCResultResponse", "JSONRPCResponse", "JSONRPCMessage"),
    "error": ("JSONRPCErrorResponse", "JSONRPCError", "JSONRPCMessage"),
}
"""Generic message types, and their definitions in the revisions."""


class _Type(NamedTuple):
    """The meaning of a message type in the schema in force."""

    kind: str
    """A key of `_GENERIC`; empty for a definition, which may be only a part of a message."""
    definitions: tuple[str, ...]
    """All definitions that a message must match."""
    method: str = ""
    """The method that a message must have, if no definition says so."""


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
        self._schema: ProtocolSchema | Override = protocol_schema(revision, errata=errata)
        self._errata = errata
        self._override_uri = schema_override_uri
        self._initialized = False
        self._any_method = False
        """Whether the schema in force has no methods, so that the generic definitions judge all of them."""
        self._methods = {name: method.definition for name, method in methods(revision).items()}

    def __repr__(self) -> str:
        parts = [f"revision={self.revision!r}"]
        if self._override_uri is not None:
            parts.append(f"schema_override_uri={shown_uri(fspath(self._override_uri))!r}")
        if not self._errata:
            parts.append("errata=False")
        return f"SchemaValidator({', '.join(parts)})"

    @property
    def overridden(self) -> bool:
        """Whether an operator's own schema is in force."""
        return isinstance(self._schema, Override)

    def initialize(self) -> None:
        """
        Load the override, if there is one. A second call does nothing.

        The first validation calls it, too; call it at start-up, where waiting does no harm.
        """
        if self._initialized:
            return
        self._initialized = True
        override = None if self._override_uri is None else load(fspath(self._override_uri))
        if override is not None:
            self._schema, self._methods = override, override.methods
            generic = {name for names in _GENERIC.values() for name in names}
            self._any_method = not self._methods and not generic.isdisjoint(override.definitions)

    def validate(self, message_type: str, data: Text) -> None:
        """
        Raise `ValidationError` for an invalid message.

        *message_type* is a method's name (``tools/call``), a definition's name (``CallToolResult``), or one of
        ``request``, ``notification``, ``response``, ``error``; any other raises ``KeyError``. *data* is the message as
        text or bytes; anything else raises ``TypeError``.
        """
        self._meaning(message_type)
        value = _read(framing.as_frame(data))
        found, more = ([value], 0) if isinstance(value, Violation) else self.check(message_type, value)
        if found:
            raise ValidationError(found, more)

    def check(self, message_type: str, value: Any) -> Found:
        """
        Return the violations of *value* as a *message_type*. Raises `KeyError` as `validate` does.

        The envelope rung checks what the schema does not: a notification has no id, and a result no error beside it.
        """
        meant = self._meaning(message_type)
        asks = meant.kind in {"request", "notification"}
        asks = asks or message_type.endswith(("Request", "Notification", "Params"))
        rule = "protocol/params" if asks else "protocol/result"
        head = list(self._check_envelope(meant, value))
        found, more = list(head), 0
        for name in meant.definitions:
            faults = self._schema.validator(name).faults(value)
            more += faults.more
            for each in faults.listed:
                # Findings of the envelope rung are not repeated.
                if head and not each.at.startswith(("/params/", "/result/")):
                    continue
                about = rule
                if each.at == "/method":
                    about = "protocol/method"
                elif meant.kind and _is_structure(each):
                    about = "envelope/schema"
                shown = definition_of(each.schema_at) or name
                hint = f"`assay schemas show {self.revision} {shown}` shows the expected shape."
                if self.overridden:
                    hint = f"Correct the named field; see {shown} in the schema in force."
                found.append(broken(about, each, revision=self.revision, detail=name, hint=hint))
        # The first one decides the code of the answer: structure before params.
        found.sort(key=lambda each: not each.rule.startswith("envelope/"))
        return found[: DEFAULT.violations], more + max(0, len(found) - DEFAULT.violations)

    def knows(self, message_type: str) -> bool:
        """Whether there is a definition for *message_type*."""
        try:
            self._meaning(message_type)
        except KeyError:
            return False
        return True

    def check_call(self, kind: str, method: str, value: Any) -> Found:
        """Return the violations of *value*, a *kind* of message with *method*, which may not exist as this kind."""
        self.initialize()
        if self._any_method:
            return self.check(kind, value)
        definition = self._methods.get(method)
        if definition is not None and _kind(definition) == kind:
            return self.check(method, value)
        if self.overridden:
            expected = "a method of the schema in force, with an id if it is a request"
            wrong = violation("protocol/method", "/method", expected=expected, found=f'"{method[:60]}"')
        else:
            # The sender is unknown here, and matters only for known methods.
            wrong = rules_of(self.revision).check_method(Party.CLIENT, kind, method)
        return self.check(method, value) if wrong is None else ([*envelope.check(value), wrong], 0)

    def _check_envelope(self, meant: _Type, value: Any) -> Iterable[Violation]:
        """Yield the faults of *value* as a message; nothing for a definition, which may be only a part of one."""
        if meant.kind in {"response", "error"}:
            error_id = not features_of(self.revision).optional_error_id
            yield from envelope.check_answer(value, envelope.MCP, error_id=error_id)
        elif meant.kind:
            yield from envelope.check_call(value, envelope.MCP, needs_id=meant.kind == "request")
            if not isinstance(value, dict):
                return
            if meant.kind == "notification" and "id" in value:
                yield violation("envelope/id", "/id", expected="no id in a notification", found="one")
            named = value.get("method")
            if meant.method and isinstance(named, str) and named and named != meant.method:
                expected = f'"{meant.method[:60]}"'
                yield violation("protocol/method", "/method", expected=expected, found=f'"{named[:60]}"')

    def _meaning(self, message_type: str) -> _Type:
        """Return the meaning of *message_type*. Raises `KeyError` for an unknown one."""
        self.initialize()
        known = self._schema.definitions
        if message_type in _GENERIC:
            # No definition for an override without one: the envelope is judged anyway.
            return _Type(message_type, tuple(name for name in _GENERIC[message_type] if name in known)[:1])
        own = self._methods.get(message_type)
        if own is not None:
            # Up to 2025-06-18 a method's definition lacks the JSON-RPC head and the common params.
            kind = _kind(own)
            base = "JSONRPCNotification" if kind == "notification" else "JSONRPCRequest"
            whole = "jsonrpc" in self._schema.definition(own).get("properties", {})
            return _Type(kind, (own,) if whole or base not in known else (base, own))
        if message_type in known:
            return _Type("", (message_type,))
        if self._any_method and message_type:
            # The kind is that of the bundled revision, else by the name.
            method = methods(self.revision).get(message_type)
            kind = "notification" if message_type.startswith("notifications/") else "request"
            return self._meaning(kind if method is None else method.kind)._replace(method=message_type)
        near = suggestion(message_type[:100], (*self._methods, *known, *_GENERIC))
        raise KeyError(f"unknown message type {message_type[:100]!r}{near}")


def _kind(definition: str) -> str:
    """Return the kind of the messages of a method, by the name of its definition."""
    return "notification" if definition.endswith("Notification") else "request"


def _is_structure(fault: Fault) -> bool:
    """Whether *fault* is about a message itself, and not about its params, its result or its error."""
    if fault.at:
        return fault.at.split("/")[1] not in {"params", "result", "error"}
    # A message without its params lacks params, not structure.
    return fault.keyword != "required" or fault.expected != f"the property {shown_name('params')}"


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
        batches = features_of(self._validator.revision).batches
        if batches and isinstance(value, list) and 0 < len(value) <= DEFAULT.open_requests:
            # Each entry is a separate message, and reaches the handler as one.
            entries = zip(render.entries(data), value, strict=True)
            return render.array([self._single(spelt, each, batched=True) for spelt, each in entries])
        return self._single(data, value)

    def _single(self, data: bytes, value: Any, *, batched: bool = False) -> bytes | None:
        found, more = self._check(value)
        if batched and isinstance(value, dict) and value.get("method") == "initialize":
            found.append(
                violation("protocol/batched-initialize", "/method", expected="initialize alone", found="in a batch")
            )
        if not found:
            return self._passed(data, value)
        self._log("refused" if self._strict else "passed on", found)
        if not self._strict:
            return self._passed(data, value)
        if not _wants_answer(value):
            return None
        return render.refusal(_id_token(data, value), found, more, self._validator.revision)

    def _check(self, value: Any) -> Found:
        """Return the violations of a message in either direction."""
        if isinstance(value, Violation):
            return [value], 0
        if isinstance(value, list):
            revision, size = self._validator.revision, len(value)
            expected = "one message (only 2025-03-26 has batches)"
            if features_of(revision).batches:
                expected = f"at most {DEFAULT.open_requests:,} messages" if size else "a batch that is not empty"
            found = f"an array of {size:,} items"
            return [violation("envelope/batch", expected=expected, found=found, revision=revision)], 0
        kind = kind_of(value)
        if kind == "error":
            faults, more = self._validator.check("error", value)
            # JSON-RPC requires a null id for unreadable messages.
            null = value.get("id", "") is None
            return [each for each in faults if not (null and each.rule == "envelope/id")], more
        if kind == "result":
            return self._validator.check("response", value)
        method = value.get("method") if isinstance(value, dict) else None
        if kind == "unreadable" or not isinstance(method, str) or not method:
            return list(envelope.check(value)), 0
        return self._validator.check_call(kind, method, value)

    def _passed(self, data: bytes, value: Any) -> bytes | None:
        """Return the handler's answer if it is valid; otherwise, with *strict_outgoing*, an error in its place."""
        answer = self._next(data)
        if answer is None:
            return None
        if not _wants_answer(value):
            self._log("dropped", [violation("protocol/unsolicited", expected="no answer", found="one")])
            return None
        found, more = self._check_answer(_read(answer), value) if self._validate_outgoing else ([], 0)
        if not found:
            return answer
        self._log("replaced the answer" if self._strict_outgoing else "passed on the answer", found)
        if not self._strict_outgoing:
            return answer
        return render.failure(_id_token(data, value), "INTERNAL_ERROR", found, more, self._validator.revision)

    def _check_answer(self, value: Any, request: Any) -> Found:
        """Return the violations of *value* as the answer to *request*, which shows what its result has to be."""
        found, more = self._check(value)
        if found:
            return found, more
        if kind_of(value) not in {"result", "error"}:
            return [violation("envelope/members", expected="a result or an error", found=f"a {kind_of(value)}")], 0
        asked = request.get("id") if isinstance(request, dict) else None
        if asked is not None and value.get("id") != asked:
            # The content is not logged: payloads do not belong into the log.
            return [violation("protocol/unsolicited", "/id", expected="the id of the request", found="another")], 0
        if not isinstance(request, dict) or not isinstance(request.get("method"), str) or "result" not in value:
            return [], 0
        revision, params = self._validator.revision, request.get("params")
        as_task = features_of(revision).tasks and isinstance(params, dict) and "task" in params
        name = rules_of(revision).result_definition(request["method"], value["result"], as_task=as_task)
        if name is None or not self._validator.knows(name):
            return [], 0
        found, more = self._validator.check(name, value["result"])
        return [each.under("/result") for each in found], more

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


def _wants_answer(value: Any) -> bool:
    """Whether *value* expects a response: a request, or something that may have been meant as one."""
    return not isinstance(value, dict) or kind_of(value) not in {"notification", "result", "error"}


def _id_token(frame: bytes, value: Any) -> bytes | None:
    """Return the id as written in *frame*; None without a usable id."""
    return None if render.usable_id(frame, value) is None else render.id_token(frame, value["id"])

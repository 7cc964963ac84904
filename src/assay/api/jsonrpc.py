"""
Plain JSON-RPC 2.0 (specs/002): build, check, serve and call. A thin layer on the syntax and envelope rungs.

No I/O: a client gets its transport, a server gets text. The framing and syntax rungs decide what is valid. Two things
are added for callers: numbers stay exact, and a value that is not JSON (a cycle, NaN, a thousand levels) is rejected
before it reaches an engine that would crash.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from inspect import Signature, iscoroutinefunction, signature
from itertools import count
from typing import Any, TypedDict
from uuid import uuid4

from assay.api.exceptions import JsonRpcError
from assay.assets.json_text import why_not_json
from assay.judge import envelope, framing, render, syntax
from assay.model.errors import CanonicalError
from assay.model.limits import DEFAULT
from assay.model.verdict import Violation
from assay.rules import violation
from assay.schema.admission import SchemaRefusal
from assay.schema.store import wholly_compiled

Transport = Callable[[str], str | bytes | None]
"""Function that sends one message and returns the response; None or "" without one."""

Params = Mapping[str, Any] | list[Any] | None


def frame_of(text: Any) -> bytes:
    """Return *text* as a frame; an empty one, which is not a message, if it is not text."""
    if isinstance(text, str):
        # One character past the limit is enough to refuse it, so a long text is not copied. Half a surrogate becomes
        # bytes that are not UTF-8, and is refused.
        return text[: DEFAULT.frame_bytes + 1].encode("utf-8", "surrogatepass")
    return bytes(text) if isinstance(text, bytes | bytearray | memoryview) else b""


def read_value(frame: bytes) -> Any | Violation:
    """Return the JSON value in *frame*, or the violation; integers are exact, however long."""
    value = framing.check(frame, DEFAULT.frame_bytes) or syntax.read(frame, DEFAULT.depth)
    if isinstance(value, Violation):
        return value

    # Parsed again: the rung reads integers beyond 64 bits as floats, which is enough to judge, but not to use them.
    return json.loads(frame)


def written(value: Any) -> bytes | Violation:
    """Return the frame for *value*, which `read_value` accepts; or the violation."""
    try:
        frame = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        # The message of the exception may contain the value, so only its type is used.
        return violation("syntax/json", expected="a value that JSON can write", found=f"a {type(error).__name__}")
    wrong = read_value(frame)
    return wrong if isinstance(wrong, Violation) else frame


def plain(value: Any) -> Any | Violation:
    """Return *value* as JSON, safe to judge; or the violation."""
    frame = written(value)
    return frame if isinstance(frame, Violation) else read_value(frame)


class Report(TypedDict):
    """The result of a check: every fault as text."""

    valid: bool
    errors: list[str]


class JsonRpc:
    """Builds and checks messages."""

    @staticmethod
    def create_request(method: str, params: Params = None, request_id: str | float | None = None) -> dict[str, Any]:
        """Return a request; without *request_id* it gets a new UUID."""
        made = JsonRpc.create_notification(method, params)
        return {"jsonrpc": "2.0", "id": str(uuid4()) if request_id is None else request_id, **made}

    @staticmethod
    def create_notification(method: str, params: Params = None) -> dict[str, Any]:
        """Return a notification."""
        made = {"jsonrpc": "2.0", "method": method}
        return made if params is None else {**made, "params": params}

    @staticmethod
    def create_response(request_id: str | float | None, result: Any) -> dict[str, Any]:
        """Return the response to a request that succeeded."""
        return {"jsonrpc": "2.0", "id": request_id, "result": result}

    @staticmethod
    def create_error_response(
        request_id: str | float | None, code: int, message: str, data: Any = None
    ) -> dict[str, Any]:
        """Return the response to a request that failed; the id is None if it could not be read."""
        error = {"code": code, "message": message}
        return {"jsonrpc": "2.0", "id": request_id, "error": error if data is None else {**error, "data": data}}

    @staticmethod
    def validate_request(message: Any) -> Report:
        """Check a request; without an id it is a notification."""
        return _report(envelope.check_call(message, envelope.JSONRPC), message)

    @staticmethod
    def validate_response(message: Any) -> Report:
        """Check a result or an error. Their content, including `error.data`, must be JSON."""
        return _report(envelope.check_answer(message, envelope.JSONRPC), message)

    @staticmethod
    def validate_batch_request(messages: Any) -> Report:
        """Check an array of requests, which must not be empty; each fault has the index of its entry."""
        return _batch_report(messages, JsonRpc.validate_request)

    @staticmethod
    def validate_batch_response(messages: Any) -> Report:
        """Check an array of responses, which must not be empty; each fault has the index of its entry."""
        return _batch_report(messages, JsonRpc.validate_response)

    @staticmethod
    def validate_tool_params(tool: str, schema: Any, arguments: Any) -> Report:
        """Check *arguments* against a tool's schema; both are untrusted."""
        usable = wholly_compiled(schema)
        if isinstance(usable, SchemaRefusal):
            wrong = f"{tool}: the schema cannot be used: expected {usable.expected}, found {usable.found}"
            return _found([f"{wrong} [{usable.rule}]"])
        value = plain(arguments)
        if isinstance(value, Violation):
            return _found([f"{tool}: arguments: expected {value.expected}, found {value.found} [{value.rule}]"])
        faults = usable.faults(value)
        listed = [
            f"{tool}: {each.at or 'arguments'}: expected {each.expected}, found {each.found}" for each in faults.listed
        ]
        return _found([*listed, f"{tool}: and at least {faults.more} more"] if faults.more else listed)

    @staticmethod
    def validate_resource_uri(uri: Any) -> bool:
        """Whether *uri* is ``resource://`` and a provider."""
        if not isinstance(uri, str) or not uri.startswith("resource://"):
            return False
        # As in every URI, a query or a fragment ends the provider, as a path does.
        provider = uri.removeprefix("resource://").replace("?", "/").replace("#", "/").partition("/")[0]
        return bool(provider.strip())

    @staticmethod
    def validate_json_string(text: str | bytes) -> tuple[bool, Any, str | None]:
        """Return whether *text* is a JSON value that a message may contain, the value, and the faults."""
        value = read_value(frame_of(text))
        return (False, None, str(value)) if isinstance(value, Violation) else (True, value, None)


class JsonRpcValidator(JsonRpc):
    """The checks of `JsonRpc` under the name of specs/002."""


def _found(errors: list[str]) -> Report:
    return {"valid": not errors, "errors": errors}


def _report(faults: Iterable[Violation], message: Any) -> Report:
    """Return *faults*, those of the envelope, and the parts of *message* that JSON cannot write."""
    errors = [str(each) for each in faults]
    if isinstance(message, dict):
        # The envelope rung does not check these parts: its input was parsed from JSON. Here Python code may have
        # built the message.
        error = message.get("error")
        parts = {f"/{name}": message.get(name) for name in ("params", "result")}
        parts["/error/data"] = error.get("data") if isinstance(error, dict) else None
        for at, value in parts.items():
            why = why_not_json(value)
            if why is not None:
                errors.append(str(violation(f"envelope/{at.split('/')[1]}", at, expected="a JSON value", found=why)))
    return _found(errors)


def _batch_report(messages: Any, check: Callable[[Any], Report]) -> Report:
    if not isinstance(messages, list):
        return _found(["a batch is an array"])
    if not messages:
        return _found(["a batch is not empty"])
    return _found([f"entry {index}: {error}" for index, each in enumerate(messages) for error in check(each)["errors"]])


class JsonRpcServer:
    """Calls registered functions by name. Every incoming and outgoing message is checked."""

    def __init__(self, server_id: str) -> None:
        self.server_id = server_id
        self._methods: dict[str, tuple[Callable[..., Any], Signature | None]] = {}

    def register_method(self, name: str, function: Callable[..., Any]) -> None:
        """Register *function* for calls of *name*: params that are an object become keywords, an array positions."""
        if not isinstance(name, str) or not name:
            raise ValueError("a method's name is a string that is not empty")
        if not callable(function) or any(map(iscoroutinefunction, (function, type(function).__call__))):
            raise TypeError(f"{name}: a plain function is needed")
        try:
            self._methods[name] = function, signature(function)
        except ValueError:  # some built-in functions have none
            self._methods[name] = function, None

    def process_request(self, text: str | bytes) -> str:
        """Return the response to one message or batch, "" if there is no response. Never raises."""
        frame = frame_of(text)
        value = read_value(frame)
        answer: bytes | None
        if isinstance(value, Violation):
            answer = _refusal(None, [value])
        elif not isinstance(value, list):
            answer = self._one(frame, value)
        elif 0 < len(value) <= DEFAULT.batch_entries:
            answer = render.array([self._one(*each) for each in zip(render.entries(frame), value, strict=True)])
        else:
            # A frame can have half a million entries such as `1`: a peer may not have so many open requests or errors.
            answer = _refusal(None, [_no_batch(len(value))])
        return "" if answer is None else answer.decode()

    def _one(self, frame: bytes, message: Any) -> bytes | None:
        """Return the response to one message; None for a notification, which gets none whatever else is wrong."""
        faults = list(envelope.check_call(message, envelope.JSONRPC))
        if not faults:
            outcome = self._called(message)
            return self._answer(_id_token(frame, message) or b"null", outcome) if "id" in message else None
        if isinstance(message, dict) and "id" not in message and message.get("jsonrpc") == "2.0":
            method = message.get("method")
            # One without a method gets an error (-32600).
            if isinstance(method, str) and method:
                return None
        return _refusal(_id_token(frame, message), faults)

    def _answer(self, ident: bytes, outcome: dict[str, Any]) -> bytes:
        """Return *outcome*, a result or an error, as a frame; an internal error if it is not a valid response."""
        answer = {"jsonrpc": "2.0", "id": None, **outcome}
        frame = next(envelope.check_answer(answer, envelope.JSONRPC), None) or written(answer)
        if isinstance(frame, Violation):
            self._log(f"the result of a handler cannot be sent: {frame}")
            frame = render.failure(None, "INTERNAL_ERROR", (), 0, None)
        # The first null is the id, which keeps its spelling: 1e2 stays 1e2.
        return frame.replace(b"null", ident, 1)

    def _called(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the outcome of a call: ``{"result": …}`` or ``{"error": …}``."""
        if message["method"] not in self._methods:
            return {"error": CanonicalError.to_jsonrpc_error("METHOD_NOT_FOUND")}
        function, takes = self._methods[message["method"]]
        params = message.get("params", {})
        args, kwargs = (params, {}) if isinstance(params, list) else ((), params)
        try:
            if takes is not None:
                takes.bind(*args, **kwargs)
        except TypeError as wrong:
            return _wrong_params(wrong)
        try:
            return {"result": function(*args, **kwargs)}
        except JsonRpcError as error:
            return {"error": JsonRpc.create_error_response(None, error.code, error.message, error.data)["error"]}
        except (Exception, SystemExit) as error:
            # SystemExit, too: a handler that parses a command line must not end the server.
            if takes is None and isinstance(error, TypeError):
                return _wrong_params(error)
            self._log(f"the handler of {message['method']} failed", exc_info=True)
            return {"error": CanonicalError.to_jsonrpc_error("INTERNAL_ERROR")}

    def _log(self, what: str, *, exc_info: bool = False) -> None:
        logging.getLogger("assay").error("%s: %s", self.server_id, what, exc_info=exc_info)


def _wrong_params(wrong: TypeError) -> dict[str, Any]:
    # The reason has names of parameters, which may come from the message, so it is cut.
    return {"error": {**CanonicalError.to_jsonrpc_error("INVALID_PARAMS"), "data": {"reason": str(wrong)[:200]}}}


def _refusal(ident: bytes | None, faults: list[Violation]) -> bytes:
    # No revision: in plain JSON-RPC an unreadable id becomes null.
    return render.refusal(ident, faults, 0, None)


def _id_token(frame: bytes, message: Any) -> bytes | None:
    """Return the id as written in *frame*; None without a usable id."""
    ident = message.get("id") if isinstance(message, dict) else None
    if not isinstance(ident, str | int | float) or isinstance(ident, bool):
        return None
    # An integer other than 0 has one spelling, and may be longer than 64 bits.
    return str(ident).encode() if type(ident) is int and ident != 0 else render.id_token(frame, ident)


def _no_batch(size: int) -> Violation:
    expected = f"at most {DEFAULT.batch_entries:,} messages" if size else "a batch that is not empty"
    return violation("envelope/batch", expected=expected, found=f"{size:,} messages")


class JsonRpcClient:
    """Calls methods over a transport. Every outgoing and incoming message is checked."""

    def __init__(self, client_id: str, transport: Transport) -> None:
        self.client_id = client_id
        self._transport = transport
        self._numbers = count(1)

    def call(self, method: str, params: Params = None) -> Any:
        """Return the result of *method*. Raises `JsonRpcError` for an error or an invalid response."""
        request = self._request(method, params)
        return _result_of(self._exchanged(request), request["id"])

    def notify(self, method: str, params: Params = None) -> None:
        """Send a notification."""
        self._transport(_text(_checked(JsonRpc.create_notification(method, params))))

    def batch(self, calls: Iterable[tuple[str, Params]]) -> list[Any]:
        """Return the results of several calls in one message, in order; a failed call gives a `JsonRpcError`."""
        requests = [self._request(method, params) for method, params in calls]
        if not requests:
            raise _error("INVALID_ENVELOPE", _no_batch(0))
        answers = self._exchanged(requests)
        if not isinstance(answers, list):
            # One error for the whole batch, or something that is not a response.
            _result_of(answers, None)
            raise _unlike("an array of answers", "one answer")
        return [_outcome(answers, request["id"]) for request in requests]

    def _request(self, method: str, params: Params) -> dict[str, Any]:
        return _checked(JsonRpc.create_request(method, params, f"{self.client_id}-{next(self._numbers)}"))

    def _exchanged(self, message: Any) -> Any:
        """Return the response to *message* as a JSON value."""
        answer = self._transport(_text(message))
        if not answer:
            raise _error("UPSTREAM_FAILURE")
        value = read_value(frame_of(answer))
        if isinstance(value, Violation):
            raise _error("UPSTREAM_INVALID", value)
        return value


def _checked(message: dict[str, Any]) -> dict[str, Any]:
    """Return *message*, a request or a notification. Raises for an invalid one."""
    faults = list(envelope.check_call(message, envelope.JSONRPC))
    if faults:
        raise _error("INVALID_ENVELOPE", *faults)
    return message


def _text(message: Any) -> str:
    """Return *message* as text. Raises for params that are not JSON or too large for a frame."""
    frame = written(message)
    if isinstance(frame, Violation):
        raise _error("INVALID_ENVELOPE", frame)
    return frame.decode()


def _error(code: str, *faults: Violation) -> JsonRpcError:
    error: dict[str, Any] = CanonicalError.to_jsonrpc_error(code)
    return JsonRpcError(**error, data={"violations": [render.as_json(each) for each in faults]} if faults else None)


def _unlike(expected: str, found: str) -> JsonRpcError:
    """Return the error about a response to another request."""
    return _error("UPSTREAM_INVALID", violation("protocol/unsolicited", "/id", expected=expected, found=found))


def _outcome(answers: list[Any], ident: str) -> Any:
    """Return the result for *ident* among *answers*, in any order; a `JsonRpcError` without exactly one."""
    mine = [each for each in answers if isinstance(each, dict) and each.get("id") == ident]
    if len(mine) != 1:
        return _unlike("one answer", f"{len(mine)} answers") if mine else _error("UPSTREAM_FAILURE")
    try:
        return _result_of(mine[0], ident)
    except JsonRpcError as error:
        return error


def _result_of(answer: Any, ident: str | None) -> Any:
    """Return the result in *answer*. Raises for an error, and for a response to another request."""
    faults = list(envelope.check_answer(answer, envelope.JSONRPC))
    if faults:
        raise _error("UPSTREAM_INVALID", *faults)
    # An error without an id is for a request that the other side could not read, possibly this one.
    if answer["id"] != ident and not (answer["id"] is None and "error" in answer):
        raise _unlike("the id of the request", render.shown_id(answer["id"]))
    if "error" in answer:
        error = answer["error"]
        raise JsonRpcError(error["code"], error["message"], error.get("data"))
    return answer["result"]

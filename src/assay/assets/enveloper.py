"""
Put the result or the failure of a tool into an envelope.

Runs a plain function in place: no threads. Clock and ids are parameters, so that a run can be repeated exactly.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from os.path import basename
from time import perf_counter
from typing import Any, Final, NamedTuple, ParamSpec
from uuid import UUID

import orjson

from assay.assets.failures import Heard, discreet, heard, hints_in, raised, reported
from assay.assets.response_envelope import (
    ENVELOPE,
    ERROR_CODES,
    ResponseEnvelope,
    ToolError,
    UpgradeHint,
    UpgradeRequiredError,
    check_text,
    check_word,
)
from assay.base.json_values import written
from assay.base.limits import TIERS
from assay.records.moments import FRESH

P = ParamSpec("P")

REQUEST_IDS: Final = ("request_id", "requestId", "correlation_id", "correlationId")
"""The names of a request id from the caller."""

Written = tuple[dict[str, Any], bytes, bytes]
"""The result of a tool, the same as JSON text, and the text as inside a JSON string."""

Failure = tuple[ToolError | None, tuple[UpgradeHint, ...]]

_NO_JSON: Final = ToolError("The tool returned a result that is not JSON.", "internal_error")
_NO_TIER: Final = ToolError(ERROR_CODES["internal_error"], "internal_error")
_JSON: Final = (dict, list, str, int, float)
_SENT: Final = (*_JSON, Mapping, tuple, set, frozenset, bytes, bytearray)


def fresh_id() -> str:
    """Return a unique request id: 32 hexadecimal digits."""
    return FRESH.request_id().replace("-", "")


class Enveloper:
    """
    Makes the envelopes of one tool. The common parts are checked once, here.

    *parameters* are the names of the tool's parameters, which an error may contain. *clock* returns seconds.
    """

    __slots__ = ("_capabilities", "_clock", "_listed", "_named", "_new_id", "_parameters", "tool_id", "tool_version")

    def __init__(
        self,
        tool_id: str,
        tool_version: str,
        capabilities: Sequence[str] = (ENVELOPE,),
        *,
        parameters: Iterable[str] = (),
        clock: Callable[[], float] = perf_counter,
        new_id: Callable[[], str] = fresh_id,
    ) -> None:
        checked = ResponseEnvelope(
            tier=TIERS[0], tool_version=tool_version, tool_id=tool_id, request_id="-", capabilities=capabilities
        )
        self.tool_id = tool_id
        self.tool_version = tool_version
        self._capabilities = checked.capabilities
        self._named = _json({"tool_version": tool_version, "tool_id": tool_id})[1:-1]
        self._listed = _json(self._capabilities)
        self._parameters = frozenset(parameters)
        self._clock = clock
        self._new_id = new_id

    def run(
        self, call: Callable[[], Any], *, tier: str, request_id: str | None = None, arguments: Any = None
    ) -> ResponseEnvelope:
        """
        Return the envelope of *call*, also if it fails. Raises only non-`Exception`s, such as `KeyboardInterrupt`.

        An envelope that *call* made itself is returned unchanged, except for an error that reveals too much.

        *arguments* is the input, as a value or as JSON text, so that none of it gets into an error. None means unknown:
        errors then have only the meaning of their code.
        """
        begun = self._begun(tier, request_id, arguments)
        try:
            given = call()
        except Exception as error:
            return self._failed(error, begun)
        return self._answered(given, begun)

    async def run_async(
        self, call: Callable[[], Any], *, tier: str, request_id: str | None = None, arguments: Any = None
    ) -> ResponseEnvelope:
        """Run a *call* whose result may have to be awaited. `asyncio.CancelledError` is raised, too."""
        begun = self._begun(tier, request_id, arguments)
        try:
            given = call()
            if isinstance(given, Awaitable):
                given = await given
        except Exception as error:
            return self._failed(error, begun)
        return self._answered(given, begun)

    def write(
        self, call: Callable[[], "Written"], *, tier: str, request_id: str | None, arguments: dict[str, Any]
    ) -> tuple[bytes, bytes, bool]:
        """
        Return what `run` does as JSON text, the text as inside a JSON string, and whether the call succeeded.

        Without a model, which takes three times as long as this. *call* must not change *arguments*.
        """
        started = self._clock()
        try:
            value, data, escaped = call()
            error, hints = self._reported(value, arguments) if value.get("ok") is False else (None, ())
        except Exception as failure:
            data = escaped = b"null"
            error, hints = self._raised(failure, arguments)
        head = self._head(tier, request_id, self._clock() - started, error, hints)
        return head.encode() + data + b"}", orjson.dumps(head)[1:-1] + escaped + b"}", error is None

    def write_refusal(self, error: ToolError, *, tier: str, request_id: str | None) -> tuple[bytes, bytes, bool]:
        """Return the same for a call that was not made because of *error*."""
        head = self._head(tier, request_id, 0.0, error, ())
        return head.encode() + b"null}", orjson.dumps(head)[1:-1] + b"null}", False

    def _head(
        self, tier: str, request_id: str | None, lasted: float, error: ToolError | None, hints: Sequence[UpgradeHint]
    ) -> str:
        """Return the JSON text of an envelope up to its data. By hand: half the time, and nothing to collect."""
        ident = _json(request_id or self._new_id())
        failure = "null" if error is None else _json(error.to_dict())
        listed = _json([hint.to_dict() for hint in hints]) if hints else "[]"
        return (
            f'{{"tier":"{tier}",{self._named},"request_id":{ident},"capabilities":{self._listed},'
            f'"duration_ms":{max(0.0, lasted * 1000):.3f},"error":{failure},"upgrade_hints":{listed},"data":'
        )

    def refused(self, error: ToolError, *, tier: str, request_id: str | None = None) -> ResponseEnvelope:
        """Return the envelope of a call that was not made because of *error*."""
        return self._made(self._begun(tier, request_id, None), error)

    def _begun(self, tier: str, request_id: str | None, arguments: Any) -> "_Call":
        """Check the parts of the envelope before the tool runs."""
        check_word("tier", tier, TIERS)
        if request_id is None:
            request_id = self._new_id()
        check_text("request_id", request_id)
        return _Call(tier, request_id, heard(arguments, self._parameters), self._clock())

    def _failed(self, error: Exception, call: "_Call") -> ResponseEnvelope:
        return self._made(call, *self._raised(error, call.said))

    def _answered(self, given: Any, call: "_Call") -> ResponseEnvelope:
        if isinstance(given, ResponseEnvelope):
            return discreet(given, call.said, self._parameters)
        try:
            data = _plain(given)
            return self._made(call, *self._reported(data, call.said), data)
        except Exception as error:
            _log(self.tool_id, error)
            return self._made(call, _NO_JSON)

    def _raised(self, error: Exception, said: Heard) -> Failure:
        """Return the error for the caller, and the hint if it needs a higher tier."""
        shown = raised(error, said, self._parameters)
        if shown.error_code == "internal_error":
            _log(self.tool_id, error)
        return shown, (error.hint,) if isinstance(error, UpgradeRequiredError) else ()

    def _reported(self, data: Any, said: Heard) -> Failure:
        """Return the failure that *data* reports, and its hints; None for a good result."""
        error = reported(data, said, self._parameters)
        return error, hints_in(data, said, self._parameters) if error else ()

    def _made(
        self, call: "_Call", error: ToolError | None, hints: tuple[UpgradeHint, ...] = (), data: Any = None
    ) -> ResponseEnvelope:
        return ResponseEnvelope(
            tier=call.tier,
            tool_version=self.tool_version,
            tool_id=self.tool_id,
            request_id=call.request_id,
            capabilities=self._capabilities,
            duration_ms=self._lasted(call.started),
            error=error,
            upgrade_hints=hints,
            data=data,
        )

    def _lasted(self, started: float) -> float:
        """Return the duration in milliseconds, rounded to microseconds. If the clock was set back it is 0."""
        return max(0.0, round((self._clock() - started) * 1000, 3))


def _json(value: Any) -> str:
    return written("the envelope", value).decode()


class _Call(NamedTuple):
    """The common parts of the envelope of a call."""

    tier: str
    request_id: str
    said: Heard
    started: float


def enveloped(
    call: Callable[[], Any],
    *,
    tool_id: str,
    tool_version: str,
    tier: str,
    request_id: str | None = None,
    arguments: Any = None,
) -> ResponseEnvelope:
    """Return one call in an envelope. For many calls, keep an `Enveloper` for each tool."""
    return Enveloper(tool_id, tool_version).run(call, tier=tier, request_id=request_id, arguments=arguments)


def envelop_tool_function(
    fn: Callable[P, Any],
    *,
    tool_id: str,
    tool_version: str,
    tier_getter: Callable[[], str],
    capabilities: Sequence[str] = (ENVELOPE,),
    clock: Callable[[], float] = perf_counter,
    new_id: Callable[[], str] = fresh_id,
) -> Callable[P, Coroutine[Any, Any, ResponseEnvelope]]:
    """
    Return *fn*, plain or async, with its result in an envelope. The signature stays the same.

    The request id is that of an argument called `ctx`, if it has one. If *tier_getter* fails, *fn* is not called.
    """
    parameters = signature(fn).parameters.values()
    positional = [each.name for each in parameters if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}]
    named = [each.name for each in parameters if each.kind not in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}]
    enveloper = Enveloper(tool_id, tool_version, capabilities, parameters=named, clock=clock, new_id=new_id)

    @wraps(fn)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> ResponseEnvelope:
        arguments: dict[str, Any] = dict(zip(positional, args, strict=False)) | kwargs
        if len(args) > len(positional):
            # A keyword argument can have any name, this one included.
            arguments["*"] = [arguments.get("*"), args]
        ctx = arguments.get("ctx")
        if not isinstance(ctx, _SENT):
            # An object comes from the server: a client cannot send one.
            arguments.pop("ctx", None)
        request_id = _id_in(ctx)
        try:
            tier = tier_getter()
            check_word("tier", tier, TIERS)
        except Exception as error:
            _log(tool_id, error)
            return enveloper.refused(_NO_TIER, tier=TIERS[0], request_id=request_id)
        return await enveloper.run_async(
            lambda: fn(*args, **kwargs), tier=tier, request_id=request_id, arguments=arguments
        )

    return wrapper


def _id_in(ctx: Any) -> str | None:
    """Return the request id in *ctx*, under any of its names, as a key or an attribute."""
    for name in REQUEST_IDS if ctx is not None else ():
        try:
            found = _id(ctx.get(name) if isinstance(ctx, Mapping) else getattr(ctx, name, None))
        except Exception:  # a context outside of a request may raise anything
            found = None
        if found:
            return found
    return None


def _id(value: Any) -> str | None:
    """Return *value* as a request id; None if it is invalid. MCP has strings and numbers, other contexts UUIDs."""
    if isinstance(value, str):
        check_text("request_id", value)
        return value
    if isinstance(value, bool) or value is None:
        return None

    return str(value) if isinstance(value, int | float | UUID) else None


def _plain(given: Any) -> Any:
    """Return the result of a tool as a value for `data`: a model (pydantic, dataclass, ours) becomes its object."""
    if given is None or isinstance(given, _JSON):
        return given
    if hasattr(given, "model_dump"):
        return given.model_dump(mode="json")
    if hasattr(given, "to_dict"):
        return given.to_dict()
    return asdict(given) if is_dataclass(given) and not isinstance(given, type) else given


def _log(tool_id: str, error: Exception) -> None:
    """Log the type of *error* and its place, without its text: it may contain input of the caller."""
    at = error.__traceback__
    while at and at.tb_next:
        at = at.tb_next
    place = f"{basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}" if at else "nowhere"
    logging.getLogger("assay").error("tool %s: %s at %s", tool_id, type(error).__name__, place)

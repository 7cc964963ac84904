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
from typing import Any, Final, ParamSpec
from uuid import UUID

from assay.assets.failures import Failure, Sent, discreet, raised, reported, texts_in
from assay.assets.response_envelope import (
    ENVELOPE,
    ERROR_CODES,
    ResponseEnvelope,
    ToolError,
    check_text,
    check_word,
)
from assay.base.limits import TIERS
from assay.records.moments import FRESH

P = ParamSpec("P")

REQUEST_IDS: Final = ("request_id", "requestId", "correlation_id", "correlationId")
"""The names of a request id from the caller."""

_NO_JSON: Final = ToolError("The tool returned a result that is not JSON.", "internal_error")
_JSON: Final = (dict, list, str, int, float)
_SENT: Final = (*_JSON, Mapping, tuple, set, frozenset, bytes, bytearray)


def fresh_id() -> str:
    """Return a unique request id: 32 hexadecimal digits."""
    return FRESH.request_id().replace("-", "")


class Enveloper:
    """
    Makes the envelopes of one tool. The common parts are checked once, here.

    *parameters* are the names of the tool's parameters, which an error may contain. *clock* returns seconds. The
    arguments of a call are read before it, because a tool may remove secrets from them before it fails; those of a
    *pure* tool, which changes nothing, are read only after a failure.
    """

    __slots__ = ("_capabilities", "_clock", "_new_id", "_parameters", "_pure", "tool_id", "tool_version")

    def __init__(
        self,
        tool_id: str,
        tool_version: str,
        capabilities: Sequence[str] = (ENVELOPE,),
        *,
        parameters: Iterable[str] = (),
        pure: bool = False,
        clock: Callable[[], float] = perf_counter,
        new_id: Callable[[], str] = fresh_id,
    ) -> None:
        checked = ResponseEnvelope(
            tier=TIERS[0], tool_version=tool_version, tool_id=tool_id, request_id="-", capabilities=capabilities
        )
        self.tool_id = tool_id
        self.tool_version = tool_version
        self._capabilities = checked.capabilities
        self._parameters = frozenset(parameters)
        self._pure = pure
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
        ended = self._begun(tier, request_id, arguments)
        try:
            given = call()
        except Exception as error:
            return ended(None, error)
        return ended(given, None)

    async def run_async(
        self, call: Callable[[], Any], *, tier: str, request_id: str | None = None, arguments: Any = None
    ) -> ResponseEnvelope:
        """Run a *call* whose result may have to be awaited. `asyncio.CancelledError` is raised, too."""
        ended = self._begun(tier, request_id, arguments)
        try:
            given = call()
            if isinstance(given, Awaitable):
                given = await given
        except Exception as error:
            return ended(None, error)
        return ended(given, None)

    def _begun(
        self, tier: str, request_id: str | None, arguments: Any
    ) -> Callable[[Any, Exception | None], ResponseEnvelope]:
        """Check the parts of the envelope before the tool runs; return what makes it of a result or an exception."""
        check_word("tier", tier, TIERS)
        ident = self._new_id() if request_id is None else request_id
        check_text("request_id", ident)
        texts = None if self._pure else texts_in(arguments, self._parameters)
        sent = Sent(lambda: texts_in(arguments, self._parameters) if self._pure else texts)
        started = self._clock()

        def ended(given: Any, failure: Exception | None) -> ResponseEnvelope:
            if failure is not None:
                return self._made(tier, ident, self._raised(failure, sent), None, started)
            if isinstance(given, ResponseEnvelope):
                return discreet(given, sent)
            try:
                data = _plain(given)
                return self._made(tier, ident, reported(data, sent), data, started)
            except Exception as error:
                _log(self.tool_id, error)
                return self._made(tier, ident, (_NO_JSON, ()), None, started)

        return ended

    def refused(self, error: ToolError, *, tier: str, request_id: str | None = None) -> ResponseEnvelope:
        """Return the envelope of a call that was not made because of *error*."""
        ident = self._new_id() if request_id is None else request_id
        return self._made(tier, ident, (error, ()), None, self._clock())

    def _raised(self, error: Exception, sent: Sent) -> Failure:
        """Return the failure of a call that raised *error*; an unexpected one is logged."""
        failure = raised(error, sent)
        if failure[0] is not None and failure[0].error_code == "internal_error":
            _log(self.tool_id, error)
        return failure

    def _made(self, tier: str, request_id: str, failure: Failure, data: Any, started: float) -> ResponseEnvelope:
        return ResponseEnvelope(
            tier=tier,
            tool_version=self.tool_version,
            tool_id=self.tool_id,
            request_id=request_id,
            capabilities=self._capabilities,
            # To microseconds. If the clock was set back it is 0.
            duration_ms=max(0.0, round((self._clock() - started) * 1000, 3)),
            error=failure[0],
            upgrade_hints=failure[1],
            data=data,
        )


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
            no_tier = ToolError(ERROR_CODES["internal_error"], "internal_error")
            return enveloper.refused(no_tier, tier=TIERS[0], request_id=request_id)
        return await enveloper.run_async(
            lambda: fn(*args, **kwargs), tier=tier, request_id=request_id, arguments=arguments
        )

    return wrapper


def _id_in(ctx: Any) -> str | None:
    """
    Return the request id in *ctx*, under any of its names, as a key or an attribute; None without a valid one.

    MCP has strings and numbers, other contexts UUIDs.
    """
    for name in REQUEST_IDS if ctx is not None else ():
        try:
            found = ctx.get(name) if isinstance(ctx, Mapping) else getattr(ctx, name, None)
            if isinstance(found, int | float | UUID) and not isinstance(found, bool):
                return str(found)
            if isinstance(found, str):
                check_text("request_id", found)
                return found
        except Exception:  # noqa: S112 - a context outside of a request may raise anything
            continue
    return None


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

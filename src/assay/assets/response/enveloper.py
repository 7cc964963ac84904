"""
Put the result or the failure of a tool into an envelope.

Runs a plain function in place: no threads. Clock and ids are parameters, so that a run can be repeated exactly.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from itertools import count
from os import urandom
from os.path import basename
from time import perf_counter
from typing import Any, Final, NamedTuple, ParamSpec
from uuid import UUID

import orjson

from assay.assets.response.discretion import Heard, heard
from assay.assets.response.envelope_schema import ENVELOPE, ERROR_CODES
from assay.assets.response.failures import discreet, hints_in, raised, reported
from assay.assets.response.feature_tiers import UpgradeRequiredError
from assay.assets.response.model import ResponseEnvelope, ToolError, UpgradeHint, check_text, check_word, sealed
from assay.assets.response.text import written
from assay.base.limits import TIERS

P = ParamSpec("P")

_NO_JSON: Final = ToolError("The tool returned a result that is not JSON.", "internal_error")
_NO_TIER: Final = ToolError(ERROR_CODES["internal_error"], "internal_error")
_JSON: Final = (dict, list, str, int, float)
_SENT: Final = (*_JSON, Mapping, tuple, set, frozenset, bytes, bytearray)


def _both(text: bytes) -> tuple[bytes, bytes]:
    """Return JSON *text*, and its escaped form inside a string."""
    return text, orjson.dumps(text.decode())[1:-1]


_REST, _QUOTED_REST = _both(b',"error":null,"upgrade_hints":[],"data":')
REQUEST_IDS: Final = ("request_id", "requestId", "correlation_id", "correlationId")


def fresh_id() -> str:
    """
    Return a unique request id in the form of a UUID: 32 hexadecimal digits.

    The first half is random once for a process, the rest is a counter: a tenth of the time of a UUID. Not a secret.
    """
    return f"{_ids.mine}{next(_ids.count):015x}"


class _Ids:
    """The random part of the ids of this process."""

    __slots__ = ("count", "mine")

    def __init__(self) -> None:
        self.draw()

    def draw(self) -> None:
        drawn = urandom(8).hex()
        # The version digits of a random UUID (version 4).
        self.mine = f"{drawn[:12]}4{drawn[12:15]}8"
        self.count = count()


_ids: Final = _Ids()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.draw)


class Enveloper:
    """
    Makes the envelopes of one tool. The common parts are checked once, here.

    *parameters* are the names of the tool's parameters, which an error may contain. *clock* returns seconds.
    """

    __slots__ = ("_capabilities", "_clock", "_heads", "_middle", "_new_id", "_parameters", "tool_id", "tool_version")

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
        self._capabilities = tuple(checked.capabilities)
        self._parameters = frozenset(parameters)
        self._clock = clock
        self._new_id = new_id
        # The start of an envelope as JSON text is the same in all calls of a tier.
        named = orjson.dumps({"tool_version": tool_version, "tool_id": tool_id})[1:-1]
        self._heads = {tier: _both(b'{"tier":"%b",%b,"request_id":"' % (tier.encode(), named)) for tier in TIERS}
        self._middle = _both(b'","capabilities":%b,"duration_ms":' % orjson.dumps(list(self._capabilities)))

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
        self, call: Callable[[], "Text"], *, tier: str, request_id: str | None = None, arguments: Any = None
    ) -> tuple[bytes, bytes, bool]:
        """
        Return the envelope of *call* as JSON text, the same text escaped for a string, and whether the call succeeded.

        The same as `run` and `to_json`, without a model for a successful call: a third of the time. *call* must not
        change *arguments*.
        """
        if tier not in self._heads:
            check_word("tier", tier, TIERS)
        if request_id is None:
            request_id = self._new_id()
        started = self._clock()
        try:
            data, text, quoted = call()
        except Exception as error:
            envelope = self._failed(error, _Call(tier, request_id, heard(arguments, self._parameters), started))
            return (*_both(envelope.to_json()), False)
        if data.get("ok") is False or data.get("success") is False:
            envelope = self._answered(data, _Call(tier, request_id, heard(arguments, self._parameters), started))
            return (*_both(envelope.to_json()), False)
        ident = quoted_ident = request_id.encode()
        # A UUID needs no escapes, with dashes or without.
        if not ident.replace(b"-", b"").isalnum():
            ident = orjson.dumps(request_id)[1:-1]
            quoted_ident = orjson.dumps(ident.decode())[1:-1]
        lasted = b"%.3f" % max(0.0, (self._clock() - started) * 1000)
        (head, quoted_head), (middle, quoted_middle) = self._heads[tier], self._middle
        return (
            b"".join((head, ident, middle, lasted, _REST, text, b"}")),
            b"".join((quoted_head, quoted_ident, quoted_middle, lasted, _QUOTED_REST, quoted, b"}")),
            True,
        )

    def failed(self, error: ToolError, *, tier: str, request_id: str | None = None) -> bytes:
        """Return the envelope of a call that was not made because of *error*, as JSON text."""
        return self._sealed(self._begun(tier, request_id, None), error).to_json()

    def without_tier(self, request_id: str | None = None) -> ResponseEnvelope:
        """Return the envelope for an unknown tier: the tool was not run."""
        return self._sealed(self._begun(TIERS[0], request_id, None), _NO_TIER)

    def _begun(self, tier: str, request_id: str | None, arguments: Any) -> "_Call":
        """Check the parts of the envelope before the tool runs."""
        check_word("tier", tier, TIERS)
        if request_id is None:
            request_id = self._new_id()
        check_text("request_id", request_id)
        return _Call(tier, request_id, heard(arguments, self._parameters), self._clock())

    def _failed(self, error: Exception, call: "_Call") -> ResponseEnvelope:
        shown = raised(error, call.said, self._parameters)
        if shown.error_code == "internal_error":
            _log(self.tool_id, error)
        return self._sealed(call, shown, (error.hint,) if isinstance(error, UpgradeRequiredError) else ())

    def _answered(self, given: Any, call: "_Call") -> ResponseEnvelope:
        if isinstance(given, ResponseEnvelope):
            return discreet(given, call.said, self._parameters)
        try:
            data = _plain(given)
            failure = reported(data, call.said, self._parameters)
            hints = hints_in(data, call.said, self._parameters) if failure else ()
            return self._sealed(call, failure, hints, data)
        except Exception as error:
            _log(self.tool_id, error)
            return self._sealed(call, _NO_JSON)

    def _sealed(
        self, call: "_Call", error: ToolError | None, hints: tuple[UpgradeHint, ...] = (), data: Any = None
    ) -> ResponseEnvelope:
        return sealed(
            call.tier,
            self.tool_version,
            self.tool_id,
            call.request_id,
            self._capabilities,
            self._lasted(call.started),
            error,
            hints,
            data,
        )

    def _lasted(self, started: float) -> float:
        """Return the duration in milliseconds, rounded to microseconds. If the clock was set back it is 0."""
        return max(0.0, round((self._clock() - started) * 1000, 3))


class Text(NamedTuple):
    """The result of a tool as text."""

    value: dict[str, Any]
    text: bytes
    """The result as JSON."""
    quoted: bytes
    """The same text escaped for a JSON string, without the quotes."""

    @classmethod
    def of(cls, value: dict[str, Any]) -> "Text":
        """Return *value* as text. Raises `TypeError` or `ValueError` if it is not JSON."""
        return cls(value, *_both(written("data", value)))


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
        tier = _tier(tier_getter, tool_id)
        if tier is None:
            return enveloper.without_tier(request_id)
        return await enveloper.run_async(
            lambda: fn(*args, **kwargs), tier=tier, request_id=request_id, arguments=arguments
        )

    return wrapper


def _tier(getter: Callable[[], str], tool_id: str) -> str | None:
    try:
        tier = getter()
        check_word("tier", tier, TIERS)
    except Exception as error:
        _log(tool_id, error)
        return None
    return tier


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

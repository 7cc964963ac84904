"""
Put the result or the failure of a tool into an envelope.

Runs a plain function in place: no threads. Clock and ids are parameters, so that a run can be repeated exactly.

An error has nothing of the input (specs/004: no code contents in error responses). Of an exception only its type and
its own text are used: never its notes, its cause, its traceback. A text is shown unchanged or not at all: nothing is
removed from it, because the rest could still reveal the input. In doubt it is not shown.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass, replace
from functools import wraps
from inspect import Parameter, signature
from os.path import basename
from time import perf_counter
from typing import Any, Final, NamedTuple, ParamSpec
from uuid import UUID

import orjson

from assay.assets.response_envelope import (
    ENVELOPE,
    ERROR_CODES,
    ResponseEnvelope,
    ToolError,
    UpgradeHint,
    UpgradeRequiredError,
    check_text,
    check_word,
    needs,
)
from assay.model.limits import TIERS
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


_RUN: Final = 4
"""
Consecutive characters that a text must not share with an argument. A PIN or a short name has four; any two sentences
share three.
"""

_LONGEST: Final = 200
"""Maximal characters of a text. A longer one was composed from other data."""

_LONGEST_WORD: Final = 40
"""Maximal characters without a space. Encoded data (base64, hexadecimal) is longer, names and most paths are not."""

_MOST_CHARACTERS: Final = 16 * 1024
"""Maximal characters of all arguments. Beyond it nearly every sentence shares a run; the search takes at most 2 ms."""

_MOST_VALUES: Final = 1000
"""Maximal values in all arguments, at about 1 µs each."""

_MOST_BITS: Final = 10_000
"""Maximal bits of an integer. Python converts at most 4,300 digits, a little over 14,000 bits."""

_ESCAPED: Final = re.compile(r"\\|%[0-9A-Fa-f]{2}|&#?\w+;")
"""Signs of encoded text, which cannot be compared: repr and JSON, URLs, HTML."""

_WORDS: Final = re.compile(r"\w+")

_BY_EXCEPTION: Final[Mapping[type, str]] = {
    FileNotFoundError: "not_found",
    PermissionError: "forbidden",
    TimeoutError: "timeout",
    ValueError: "invalid_argument",
    TypeError: "invalid_argument",
    NotImplementedError: "not_implemented",
    MemoryError: "resource_exhausted",
}
"""Our choice. A subclass counts as its nearest base; everything else is an `internal_error`."""

_BY_REASON: Final[Mapping[str, str]] = {
    "backend_error": "dependency_unavailable",
    "unsupported": "not_implemented",
    "validation_failed": "invalid_argument",
    **{code: code for code in ERROR_CODES},
}
"""Codes by the reason in a payload: those of specs/001, section 6, and the codes themselves."""

_BY_PHRASE: Final[tuple[tuple[str, str], ...]] = (
    ("not found", "not_found"),
    ("no such file", "not_found"),
    ("does not exist", "not_found"),
    ("permission denied", "forbidden"),
    ("forbidden", "forbidden"),
    ("timed out", "timeout"),
    ("timeout", "timeout"),
    ("too large", "too_large"),
    ("not implemented", "not_implemented"),
)
"""Codes by a phrase in a payload without a reason, as in the second example of specs/004."""

_TEXTS: Final = ("error", "message", "detail", "reason", "msg")


# ── what may be shown ────────────────────────────────────────────────────────────────────────────────────────────────


Texts = tuple[str, ...] | None
"""Every text in the arguments of a call; None if they are unknown, and then no text is safe."""


def texts_in(arguments: Any, parameters: Collection[str]) -> Texts:
    """
    Return every text in *arguments*, and every number as text; None if something is not JSON, or too much.

    Bytes are their JSON text. The names of *parameters* are the tool's own; every other key comes from the caller.
    """
    if isinstance(arguments, bytes):
        try:
            arguments = orjson.loads(arguments) if len(arguments) <= _MOST_CHARACTERS else None
        except ValueError:
            return None
    if arguments is None:
        return None
    if type(arguments) is dict:
        arguments = [*arguments.values(), *(key for key in arguments if key not in parameters)]
    texts: list[str] = []
    waiting = [arguments]
    for value in waiting:  # which grows meanwhile
        # Not a subclass: its content may be more than what it shows.
        kind = type(value)
        if kind is str:
            texts.append(value)
        elif kind is float:
            texts += (str(value), f"{value:,}", f"{value:g}", f"{value:f}")
        elif kind is int and value.bit_length() <= _MOST_BITS:
            texts += (str(value), f"{value:,}")
        elif kind in (dict, list, tuple) and 2 * len(value) + len(waiting) <= _MOST_VALUES:
            waiting += value
            waiting += value.values() if kind is dict else ()
        elif value is not None and kind is not bool:
            return None
    return tuple(texts) if sum(map(len, texts)) <= _MOST_CHARACTERS else None


class Sent(NamedTuple):
    """The input of a caller, of which an error must have nothing."""

    texts: Callable[[], Texts]

    def error(self, text: str, code: str) -> ToolError:
        """Return the error with *text* if that is safe, else with the meaning of its code."""
        return ToolError(text if self.allows(text) else ERROR_CODES[code], code)

    def allows(self, text: str) -> bool:
        """Whether *text* can be shown to the caller."""
        if not 0 < len(text) <= _LONGEST or not text.isprintable() or _ESCAPED.search(text):
            return False
        if any(len(word) > _LONGEST_WORD for word in text.split()):
            return False
        texts = self.texts()
        if texts is None:
            return False
        text = text.casefold()
        folded = {each.casefold() for each in texts}
        # Code is often quoted on one line. The newline between texts, which no printable text has, separates them.
        flat = {" ".join(each.split()) for each in folded}
        everything = "\n".join(folded | flat)
        if any(text[at : at + _RUN] in everything for at in range(len(text) - _RUN + 1)):
            return False
        words = set(_WORDS.findall(text))
        short = (each for each in flat if len(each) < _RUN)
        return not any(each in words if each.isalnum() else len(each) > 1 and each in text for each in short)


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Failure = tuple[ToolError | None, tuple[UpgradeHint, ...]]
"""The error of a call and its hints; None and none for a good result."""


def raised(error: Exception, sent: Sent) -> Failure:
    """Return the failure for *error*: with its own text if that is safe, else with the meaning of its code."""
    if isinstance(error, UpgradeRequiredError):
        return ToolError(f"This needs the {error.required_tier} tier.", "upgrade_required"), (error.hint,)
    code = next((_BY_EXCEPTION[kind] for kind in type(error).__mro__ if kind in _BY_EXCEPTION), "internal_error")
    text = ""
    # The text of an unexpected exception is for the operator: it may contain a password or a query of ours.
    if isinstance(error, OSError) and error.filename is not None and code != "internal_error":
        # Without the path, which the caller may not know.
        text = str(error.strerror or "")
    elif code != "internal_error":
        with suppress(Exception):
            text = str(error)
    return sent.error(text, code), ()


def discreet(envelope: ResponseEnvelope, sent: Sent) -> ResponseEnvelope:
    """Return *envelope*, which a tool made itself, with an error that is safe for the caller."""
    error = envelope.error
    safe = error and sent.error(error.error, error.error_code)
    return envelope if safe == error else replace(envelope, error=safe)


def reported(data: Any, sent: Sent) -> Failure:
    """Return the failure that the result *data* itself reports; the details stay in *data*."""
    if not isinstance(data, dict) or (data.get("success") is not False and data.get("ok") is not False):
        return None, ()
    parts: list[Any] = []
    for name in _TEXTS:
        value = data.get(name)
        parts += [value.get(inner) for inner in _TEXTS] if isinstance(value, dict) else [value]
    texts = [text for text in parts if isinstance(text, str)]
    error = data.get("error")
    within = error if isinstance(error, dict) else {}
    words = (data.get("error_code"), within.get("error_code"), within.get("code"), *texts)
    code = next((_BY_REASON[word] for word in words if isinstance(word, str) and word in _BY_REASON), None)
    if code is None:
        folded = "\n".join(texts).casefold()
        code = next((code for phrase, code in _BY_PHRASE if phrase in folded), "internal_error")
    # A single word is for programs (`validation_failed`): the code means the same.
    shown = next((text for text in texts if " " in text and sent.allows(text)), ERROR_CODES[code])
    hints = data.get("upgrade_hints")
    try:
        listed = [UpgradeHint.from_dict(hint) for hint in hints] if isinstance(hints, list) else []
    except (TypeError, ValueError):
        listed = []  # they are not as in specs/004
    # The feature is the tool's own word; a reason may contain other data.
    safe = (hint if sent.allows(hint.reason) else needs(hint.feature, hint.tier) for hint in listed)
    return ToolError(shown, code), tuple(safe)


# ── envelopes ────────────────────────────────────────────────────────────────────────────────────────────────────────


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

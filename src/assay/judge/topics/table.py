"""Which function of a topic hears which message, and when. No I/O, no state."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

from assay.judge.revision_rules import RevisionRules
from assay.model.verdict import Exchange
from assay.rules.report import Report

if TYPE_CHECKING:
    from assay.judge.party_state import PartyState
    from assay.judge.state import State


class Note(NamedTuple):
    """A notification."""

    sender: "PartyState"
    """The party that sent it."""
    method: str
    params: Mapping[str, Any]
    rules: RevisionRules


Check = Callable[["State", Exchange, dict[str, Any], Report], None]
"""Reports what is wrong with the params of a request, a result or an error."""
Effect = Callable[["State", Exchange, dict[str, Any]], None]
"""Changes the state once a request was forwarded; gets its params."""
NoteCheck = Callable[["State", Note, Report], None]
NoteEffect = Callable[["State", Note], Exchange | None]
"""Changes the state once a notification was forwarded, and returns the exchange that it concerns, if any."""

Moment = Literal["request", "forwarded", "result", "entries", "error", "answered", "note", "noted"]
"""
When a function is called.

Before a message is forwarded: `request` (params that fit their definition), `result` (one that fits its definition),
`entries` (of a list, also if some do not fit), `error`, `note`. After it: `forwarded`, `answered`, `noted`.
"""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_TABLE: dict[tuple[str, str | None], tuple[Callable[..., Any], ...]] = {}


@overload
def on(
    moment: Literal["request", "result", "entries", "error", "answered"], *methods: str
) -> Callable[[Check], Check]: ...
@overload
def on(moment: Literal["forwarded"], *methods: str) -> Callable[[Effect], Effect]: ...
@overload
def on(moment: Literal["note"], *methods: str) -> Callable[[NoteCheck], NoteCheck]: ...
@overload
def on(moment: Literal["noted"], *methods: str) -> Callable[[NoteEffect], NoteEffect]: ...
def on(moment: Moment, *methods: str) -> Callable[[_Function], _Function]:
    """Let a function hear the messages of these *methods*, or of all methods, at a *moment*."""

    def register(function: _Function) -> _Function:
        for method in methods or (None,):
            _TABLE[moment, method] = (*_TABLE.get((moment, method), ()), function)
        return function

    return register


def hearing(moment: Moment, method: str) -> tuple[Callable[..., Any], ...]:
    """Return the functions that hear a message of *method*; those for all methods come first."""
    every = _TABLE.get((moment, None), ())
    own = _TABLE.get((moment, method))
    return every if own is None else every + own

"""
What stands against a message by what was said before: an id in use, a capability not declared, an answer to nothing.

Each function words one violation; whether it applies is for the conversation to see. No state of its own.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from assay.base.limits import Limits
from assay.base.meta import CAPABILITIES_KEY
from assay.base.no_answer import WITHIN
from assay.base.verdict import Exchange, Kind, Party, Violation
from assay.core.party_state import Id, Side, missing_capability
from assay.core.render import shown_id
from assay.engine.pointers import escaped
from assay.ladder.envelope import Profile
from assay.ladder.protocol import Judge
from assay.rules import violation
from assay.spec.methods import revisions_of
from assay.spec.revisions import handshake

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_MOST_LISTED: Final = 3
"""Tools that are listed for a client that names another one."""

_TAKEN_OVER: Final = ("tasks/", "notifications/tasks")
"""What a revision with a handshake had itself, and an official extension has after it."""

_ABOUT_IDS: Final = frozenset({"envelope/id", "envelope/null-id"})
_UNANSWERED: Final = "Do not answer notifications (messages without an id)."

_LATE: Final = "Answer sooner, or send progress: the request had timed out, and the client got an error."


def no_such_method(judge: Judge, party: Party, kind: Kind, message: dict[str, Any], beyond: str | None) -> Violation:
    """A method that *party* may not send; *beyond* is the rule for one that an extension may have, if one may."""
    wrong = judge.check_method(party, kind, message["method"])
    if beyond is None or wrong.rule != "protocol/method" or not _may_be_extension(judge, message["method"]):
        return wrong
    return violation(
        beyond,
        "/method",
        expected="a method of the specification",
        found=wrong.found,
        revision=judge.revision,
        hint=None if revisions_of(message["method"]) else judge.hint_on(message["method"]),
    )


def _may_be_extension(judge: Judge, method: str) -> bool:
    """Whether an extension may define *method*: it is in no revision, or one that an extension has taken over."""
    if judge.knows(method):
        # As the other kind of message.
        return False
    taken_over = not handshake(judge.revision) and method.startswith(_TAKEN_OVER)
    return taken_over or not revisions_of(method)


def no_room(side: Side, ident: Id, limits: Limits, revision: str) -> Violation:
    """A request with the id of another one that is open, or one too many."""
    if ident in side.open:
        found = f"{shown_id(ident)}, which is still open for {side.open[ident].method}"
        return violation("protocol/id-in-use", "/id", expected="an id of its own", found=found, revision=revision)
    return violation(
        "protocol/too-many-open",
        expected=f"at most {limits.open_requests:,} open requests",
        found="one more",
        revision=revision,
    )


def undeclared(sides: Mapping[Party, Side], party: Party, method: str, revision: str) -> Violation:
    """A method of a capability that was not declared."""
    declared = {each: side.capabilities for each, side in sides.items()}
    owner, path = missing_capability(method, party, revision, declared) or (party, method)
    return violation(
        "protocol/capability",
        "/method",
        expected=f"the {owner}'s capability {path}",
        found=f"{method}, although it was not declared",
        revision=revision,
        hint=_declare(owner, path, revision),
    )


def _declare(owner: Party, path: str, revision: str) -> str:
    """Return where *owner* has to declare the capability *path*."""
    if handshake(revision):
        where = f"the capabilities of its initialize {'request' if owner is Party.CLIENT else 'result'}"
    elif owner is Party.CLIENT:
        where = f"{CAPABILITIES_KEY} in params._meta"
    else:
        where = "the capabilities of its server/discover result"
    return f'The {owner} must declare "{path}" in {where}.'


def batched_initialize(revision: str) -> Violation:
    """The handshake inside a batch."""
    return violation(
        "protocol/batched-initialize", "/method", expected="initialize alone", found="in a batch", revision=revision
    )


def no_batch(entries: int, limits: Limits, revision: str | None, *, allowed: bool) -> Violation:
    """An array where none may be, or of a length that none may have."""
    return violation(
        "envelope/batch",
        expected=f"1 to {limits.batch_entries:,} messages" if allowed else "one message, not a batch",
        found=f"an array of {entries:,} {'item' if entries == 1 else 'items'}" if entries else "an empty array",
        revision=revision,
    )


def no_whole_number(profile: Profile, revision: str | None) -> Violation:
    """An id that only rounds to an integer."""
    return violation(
        "envelope/id", "/id", expected=profile.id_words, found="a number that is not whole", revision=revision
    )


def null_id(revision: str) -> Violation:
    """Return the finding about an error with the id null, in a revision whose schema forbids that."""
    return violation("envelope/null-id", "/id", expected="a string or an integer", found="null", revision=revision)


def answers_nothing(faults: Iterable[Violation], value: Any, asker: Side) -> list[Violation]:
    """
    Return the *faults* of an answer, with another hint if it can only be the answer to a notification.

    An answer without an id may belong to any open request; if *asker* has none, a notification was answered.
    """
    if value.get("id") is not None or asker.open or asker.irregular.requests:
        return list(faults)
    return [replace(each, hint=f"{each.hint} {_UNANSWERED}") if each.rule in _ABOUT_IDS else each for each in faults]


def unsolicited(ident: Any, exchange: Exchange | None, asker: Side, revision: str | None) -> Violation:
    """An answer that nobody waits for; *exchange* is the request that it comes too late for, if there was one."""
    alike = _other_type(ident, asker) if exchange is None else None
    return violation(
        "protocol/unsolicited" if exchange is None else "protocol/answered-twice",
        "/id",
        expected="the id of an open request",
        found=shown_id(ident) if exchange is None else f"that of a request already {exchange.state}",
        revision=revision,
        hint=alike or (_LATE if exchange is not None and exchange.state == "timed-out" else None),
    )


def _other_type(ident: Any, asker: Side) -> str | None:
    """What to do where the id is that of an open request, but for its type."""
    other: Id | None = str(ident) if type(ident) is int else None
    if type(ident) is str and _WHOLE.fullmatch(ident):
        other = int(ident)
    if other not in asker.open:
        return None
    return f"Echo the id of the request unchanged: {shown_id(other)}, not {shown_id(ident)}."


def cancels_other(exchange: Exchange, revision: str) -> Violation:
    """A request that its receiver takes back, and which is no subscription."""
    return violation(
        "protocol/cancel-other",
        "/params/requestId",
        expected="the id of a subscription",
        found=f"that of {exchange.method}",
        revision=revision,
    )


def cancels_nothing(ident: Id, revision: str) -> Violation:
    """A request that is not there to be cancelled."""
    expected, found = "the id of an open request of its own", shown_id(ident)
    return violation("protocol/cancel", "/params/requestId", expected=expected, found=found, revision=revision)


def cancels_initialize(ident: Id, revision: str) -> Violation:
    """The one request that must not be cancelled."""
    return violation(
        "protocol/cancel",
        "/params/requestId",
        expected="another request than initialize",
        found=shown_id(ident),
        revision=revision,
        hint="Wait for the answer to initialize, or close the connection.",
    )


def cancels_task(revision: str) -> Violation:
    """A request that runs as a task, cancelled as if it did not."""
    return violation(
        "protocol/cancel",
        "/params/requestId",
        expected="tasks/cancel for a request that runs as a task",
        found="notifications/cancelled",
        revision=revision,
        hint="Send tasks/cancel with the taskId; its result is the final state of the task.",
    )


def unrelated(key: str, ident: str | None, revision: str) -> Violation:
    """The payload of a task that does not say which task it belongs to, or names another one."""
    return violation(
        "protocol/related-task",
        f"/result/_meta/{escaped(key)}",
        expected="the taskId that was asked for",
        found="nothing" if ident is None else f'"{ident[:60]}"',
        revision=revision,
    )


def no_progress(token: Id, revision: str) -> Violation:
    """Progress of nothing."""
    expected, found = "the token of an open request", shown_id(token)
    return violation("protocol/progress", "/params/progressToken", expected=expected, found=found, revision=revision)


def no_rise(last: float, progress: float, revision: str) -> Violation:
    """Progress that does not rise."""
    return violation(
        "protocol/progress",
        "/params/progress",
        expected=f"more than {last:g}",
        found=f"{progress:g}",
        revision=revision,
        hint="Increase progress with each notification, even if the total is unknown.",
    )


def too_long(at: str, text: str, most: int) -> Violation:
    """A token, or a cursor, that would take too much room."""
    return violation(
        "protocol/token-size", at, expected=f"at most {most:,} characters", found=f"{len(text):,} characters"
    )


def lacks(at: str, party: Party, path: str, revision: str) -> Violation:
    """Something in a message that *party* has not declared."""
    return violation(
        "protocol/capability",
        at,
        expected=f"the {party}'s capability {path}",
        found="not declared",
        revision=revision,
        hint=_declare(party, path, revision),
    )


def beyond(wrong: Violation, revision: str) -> Violation:
    """A type of result that is *wrong* by the specification, and may be that of a declared extension."""
    return violation(
        "protocol/extension",
        wrong.at,
        expected="a result of the specification",
        found=wrong.found,
        revision=revision,
    )


def unknown_tool(name: str, known: Iterable[str], revision: str) -> Violation:
    """A call of a tool that the list does not have."""
    from difflib import get_close_matches  # noqa: PLC0415 - only where somebody is mistaken

    listed = list(known)
    near = get_close_matches(name[:100], listed[:500], n=1)
    return violation(
        "contract/unknown-tool",
        "/params/name",
        expected=f"a listed tool, such as {near[0]}" if near else _one_of(listed),
        found=f'"{name[:60]}"',
        revision=revision,
    )


def _one_of(tools: Sequence[str]) -> str:
    """The tools that there are, where a few words can say it."""
    if not tools:
        return "a listed tool, but the list is empty"
    if len(tools) > _MOST_LISTED:
        return f"one of {len(tools):,} listed tools"
    *before, last = (each[:60] for each in tools)
    names = f"{', '.join(before)} or {last}" if before else last
    return f"a listed tool: {names}"


def set_aside(tool: str, revision: str) -> Violation:
    """A call of a tool that nobody was told of."""
    return violation(
        "contract/set-aside",
        "/params/name",
        expected="a tool of the list as it was forwarded",
        found=f'"{tool[:60]}", which is quarantined',
        revision=revision,
    )


def failure(why: str, revision: str | None) -> Violation:
    """A message that we failed to judge; *why*, in a word."""
    return violation("guard/failure", expected="a verdict", found=f"a fault in the guard ({why})", revision=revision)


UNSTARTED: Final = "cannot start "
"""How the reason for an answer that never came begins, where there was no server to give one."""

_STARTING: Final = "Check that the guard can run the server's command: its name, path and permissions."


def _none(why: str) -> str:
    return f"none {why}" if why.startswith(WITHIN) else f"none: {why}" if why else "none"


def unanswered(exchange: Exchange, why: str = "") -> Violation:
    """A request that never got its answer."""
    return violation(
        "protocol/unanswered",
        expected=f"an answer to {exchange.method}",
        found=_none(why),
        revision=exchange.revision,
        # Who was never there cannot answer anything.
        hint=_STARTING if why.startswith(UNSTARTED) else None,
    )

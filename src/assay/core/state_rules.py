"""
Violations of the state of a conversation: an id in use, a missing capability, an answer without a request.

Each function builds one violation; the caller decides whether it applies. No state.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from assay.base.limits import Limits
from assay.base.meta import CAPABILITIES_KEY, SUBSCRIPTION_KEY
from assay.base.no_answer import named
from assay.base.verdict import Exchange, Kind, Party, Violation
from assay.core.party_state import Id, Side, missing_capability
from assay.core.render import shown_id
from assay.engine.pointers import escaped
from assay.ladder.envelope import Profile
from assay.ladder.protocol import Judge
from assay.rules import violation
from assay.spec.methods import revisions_of
from assay.spec.revisions import handshake
from assay.spec.schema import closest

NOT_JUDGED: Final = "contract/not-judged"
"""The rule of a call that is not judged by the schemas of its tool."""

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_MOST_LISTED: Final = 3
"""The number of tools to list for a client that names an unknown one."""

_ABOUT_IDS: Final = frozenset({"envelope/id", "envelope/null-id"})
_UNANSWERED: Final = "Do not answer notifications (messages without an id)."

_LATE: Final = "Answer sooner, or send progress: the request had timed out, and the client got an error."


def no_such_method(
    judge: Judge, party: Party, kind: Kind, message: dict[str, Any], beyond: str | None, *, left_out: bool = False
) -> Violation:
    """
    Return the violation of sending an unknown method; *beyond* is the rule for a method of an extension, if any.

    *left_out* means that the extension which such names are reserved for is not judged.
    """
    wrong = judge.check_method(party, kind, message["method"])
    unknown = wrong.rule == "protocol/method" and _may_be_extension(judge, message["method"])
    if beyond is None or not (unknown or left_out):
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
    """Return whether an unknown extension may define *method*: no revision and no known extension has such names."""
    # A method that is known may be the other kind of message.
    if judge.knows(method) or revisions_of(method):
        return False
    return judge.extensions.owner(method, judge.revision) is None


def no_room(side: Side, ident: Id, limits: Limits, revision: str) -> Violation:
    """Return the violation of a request whose id is in use, or which is one too many."""
    if ident in side.open:
        found = f"{shown_id(ident)}, the id of an open {side.open[ident].method}"
        return violation("protocol/id-in-use", "/id", expected="an unused id", found=found, revision=revision)
    return violation(
        "protocol/too-many-open",
        expected=f"at most {limits.open_requests:,} open requests",
        found="one more",
        revision=revision,
    )


def undeclared(sides: Mapping[Party, Side], party: Party, method: str, revision: str) -> Violation:
    """Return the violation of using a capability that was not declared."""
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
    """Return the violation of `initialize` inside a batch."""
    return violation(
        "protocol/batched-initialize", "/method", expected="initialize alone", found="in a batch", revision=revision
    )


def no_batch(entries: int, limits: Limits, revision: str | None, *, allowed: bool) -> Violation:
    """Return the violation of an array where no batch is allowed, or of a wrong length."""
    return violation(
        "envelope/batch",
        expected=f"1 to {limits.batch_entries:,} messages" if allowed else "one message, not a batch",
        found=f"an array of {entries:,} {'item' if entries == 1 else 'items'}" if entries else "an empty array",
        revision=revision,
    )


def no_whole_number(profile: Profile, revision: str | None) -> Violation:
    """Return the violation of an id that only rounds to an integer."""
    return violation("envelope/id", "/id", expected=profile.id_words, found="a fraction", revision=revision)


def null_id(revision: str) -> Violation:
    """Return the finding about an error with the id null, which the schema of every revision forbids."""
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
    """
    Return the violation of an answer without an open request; *exchange* is the request that it is too late for, if
    any.
    """
    alike = _other_type(ident, asker) if exchange is None else None
    return violation(
        "protocol/unsolicited" if exchange is None else "protocol/answered-twice",
        "/id",
        expected="the id of an open request",
        found=shown_id(ident) if exchange is None else f"the id of a request already {exchange.state}",
        revision=revision,
        hint=alike or (_LATE if exchange is not None and exchange.state == "timed-out" else None),
    )


def _other_type(ident: Any, asker: Side) -> str | None:
    """Return the hint for an id that differs from that of an open request only in its type."""
    other: Id | None = str(ident) if type(ident) is int else None
    if type(ident) is str and _WHOLE.fullmatch(ident):
        other = int(ident)
    if other not in asker.open:
        return None
    return f"Echo the id of the request unchanged: {shown_id(other)}, not {shown_id(ident)}."


def cancels_other(exchange: Exchange, revision: str) -> Violation:
    """Return the violation of a receiver that cancels a request which is not a subscription."""
    return violation(
        "protocol/cancel-other",
        "/params/requestId",
        expected="the id of a subscription",
        found=f"the id of {exchange.method}",
        revision=revision,
    )


def cancels_nothing(ident: Id, revision: str) -> Violation:
    """Return the violation of a cancellation without an open request."""
    expected, found = "the id of an open request from the sender", shown_id(ident)
    return violation("protocol/cancel", "/params/requestId", expected=expected, found=found, revision=revision)


def cancels_initialize(ident: Id, revision: str) -> Violation:
    """Return the violation of cancelling `initialize`."""
    return violation(
        "protocol/cancel",
        "/params/requestId",
        expected="a request other than initialize",
        found=shown_id(ident),
        revision=revision,
        hint="Wait for the answer to initialize, or close the connection.",
    )


def cancels_task(revision: str) -> Violation:
    """Return the violation of cancelling a task like a plain request."""
    return violation(
        "protocol/cancel",
        "/params/requestId",
        expected="tasks/cancel for a request that runs as a task",
        found="notifications/cancelled",
        revision=revision,
        hint="Send tasks/cancel with the taskId; its result is the final state of the task.",
    )


def unrelated(key: str, ident: str | None, revision: str) -> Violation:
    """Return the violation of a task result that names no task, or another one."""
    return violation(
        "protocol/related-task",
        f"/result/_meta/{escaped(key)}",
        expected="the taskId that was asked for",
        found="nothing" if ident is None else f'"{ident[:60]}"',
        revision=revision,
    )


def no_progress(token: Id, revision: str) -> Violation:
    """Return the violation of progress without an open request."""
    expected, found = "the token of an open request", shown_id(token)
    return violation("protocol/progress", "/params/progressToken", expected=expected, found=found, revision=revision)


def progress_on_subscription(revision: str) -> Violation:
    """Return the violation of progress that is sent on a subscription, for a task or for anything else."""
    return violation(
        "protocol/progress",
        f"/params/_meta/{escaped(SUBSCRIPTION_KEY)}",
        expected="progress on the response to its request",
        found="progress on a subscription",
        revision=revision,
        hint="Send notifications/tasks on a subscription; progress belongs to an open request.",
    )


def no_rise(last: float, progress: float, revision: str) -> Violation:
    """Return the violation of progress that does not increase."""
    return violation(
        "protocol/progress",
        "/params/progress",
        expected=f"more than {last:g}",
        found=f"{progress:g}",
        revision=revision,
        hint="Increase progress with each notification, even if the total is unknown.",
    )


def too_long(at: str, text: str, most: int) -> Violation:
    """Return the violation of a token or a cursor that is too long."""
    return violation(
        "protocol/token-size", at, expected=f"at most {most:,} characters", found=f"{len(text):,} characters"
    )


def lacks(at: str, party: Party, path: str, revision: str) -> Violation:
    """Return the violation of using something that *party* did not declare."""
    return violation(
        "protocol/capability",
        at,
        expected=f"the {party}'s capability {path}",
        found="not declared",
        revision=revision,
        hint=_declare(party, path, revision),
    )


def beyond(wrong: Violation, revision: str) -> Violation:
    """Return the report about a result type that is *wrong* by the specification, and may be that of an extension."""
    return violation(
        "protocol/extension",
        wrong.at,
        expected="a result of the specification",
        found=wrong.found,
        revision=revision,
    )


def undeclared_result(wrong: Violation, identifier: str) -> Violation:
    """Return *wrong*, a result type of an extension that the request did not declare, with a hint that says so."""
    return replace(wrong, hint=f'Send it only to a request that declares "{identifier}" in its clientCapabilities.')


def unknown_tool(name: str, known: Iterable[str], revision: str) -> Violation:
    """Return the violation of a call of an unknown tool."""
    listed = list(known)
    near = closest(name[:100], listed[:500])
    return violation(
        "contract/unknown-tool",
        "/params/name",
        expected=f"a listed tool, such as {near[0]}" if near else _one_of(listed),
        found=f'"{name[:60]}"',
        revision=revision,
    )


def _one_of(tools: Sequence[str]) -> str:
    """Return the listed tools, if a few words can name them."""
    if not tools:
        return "a listed tool, but the list is empty"
    if len(tools) > _MOST_LISTED:
        return f"one of {len(tools):,} listed tools"
    *before, last = (each[:60] for each in tools)
    names = f"{', '.join(before)} or {last}" if before else last
    return f"a listed tool: {names}"


def not_judged(tool: str, revision: str) -> Violation:
    """Return the violation of a call of a tool whose contract is not known."""
    return violation(
        NOT_JUDGED,
        "/params/name",
        expected="a tool that was listed before",
        found=f'"{tool[:60]}", whose schemas are unknown',
        revision=revision,
    )


def forgotten(what: str, at: str, revision: str) -> Violation:
    """Return the violation of a message that cannot be judged, because *what* it depends on is not remembered."""
    return violation(
        "contract/unjudged",
        at,
        expected=f"{what} that is remembered",
        found="one that is unknown or forgotten",
        revision=revision,
        hint="It was forwarded without a check. The guard remembers the most recent ones only.",
    )


def quarantined(tool: str, revision: str) -> Violation:
    """Return the violation of a call of a quarantined tool."""
    return violation(
        "contract/set-aside",
        "/params/name",
        expected="a tool in the forwarded list",
        found=f'"{tool[:60]}", which is quarantined',
        revision=revision,
    )


def failure(why: str, revision: str | None) -> Violation:
    """Return the violation for a message that could not be judged; *why* is one word."""
    return violation("guard/failure", expected="a verdict", found=f"an error in the guard ({why})", revision=revision)


_STARTING: Final = "Check that the guard can run the server's command: its name, path and permissions."


def unanswered(exchange: Exchange, why: str = "", *, late: bool = False, unstarted: bool = False) -> Violation:
    """Return the violation of a missing answer; *unstarted* means that there was no server to answer."""
    cause = named(why, exchange.asker.other)
    return violation(
        "protocol/unanswered",
        expected=f"an answer to {exchange.method}",
        found=f"none{' ' if late else ': '}{cause}" if cause else "none",
        revision=exchange.revision,
        # A server that never started cannot answer.
        hint=_STARTING if unstarted else None,
    )

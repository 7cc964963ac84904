"""
Violations of the exchange of messages: unknown methods, batches, answers without a request, missing answers. No state.

Each function builds one violation; the caller decides whether it applies.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from assay.base.json_values import Id
from assay.base.limits import Limits
from assay.base.no_answer import named
from assay.base.verdict import Exchange, Kind, Party, Violation
from assay.core.party_state import Side
from assay.core.render import shown_id
from assay.ladder.envelope import Profile
from assay.ladder.protocol import Judge
from assay.rules import violation
from assay.spec.methods import revisions_of

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")

_ABOUT_IDS: Final = frozenset({"envelope/id", "envelope/null-id"})
_UNANSWERED: Final = "Do not answer notifications (messages without an id)."

_LATE: Final = "Answer sooner, or send progress: the request had timed out, and the client got an error."

_STARTING: Final = "Check that the guard can run the server's command: its name, path and permissions."


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

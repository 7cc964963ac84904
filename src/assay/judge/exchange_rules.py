"""Violations of the exchange of messages: unknown methods, ids, batches, unsolicited and missing answers."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from assay.judge.envelope import Profile
from assay.judge.party_state import PartyState
from assay.judge.render import shown_id
from assay.judge.revision_rules import Entry, RevisionRules
from assay.judge.state import State
from assay.judge.topics import extensions
from assay.model.errors import with_party
from assay.model.json_values import Id, named_revision
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Kind, Party, Violation
from assay.rules import violation
from assay.rules.report import Report
from assay.spec.extensions import owner_of
from assay.spec.methods import revisions_of
from assay.spec.revisions import handshake

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")

_ABOUT_IDS: Final = frozenset({"envelope/id", "envelope/null-id"})
_UNANSWERED: Final = "Do not answer notifications (messages without an id)."

_LATE: Final = "Answer sooner, or send progress: the request had timed out, and the client got an error."

_STARTING: Final = "Check that the guard can run the server's command: its name, path and permissions."


def entry(state: State, rules: RevisionRules, party: Party, kind: Kind, message: dict[str, Any]) -> Entry | None:
    """Return the entry of the method of *message*; None if *party* may not send it as *kind*."""
    method = message["method"]
    known = rules.calls[party, kind].get(method) or rules.extended(party, kind, method)
    if known is None or known.extension is None:
        return known
    left_out = extensions.leaves_out(state, known.extension, extensions.declared_by(message))
    return rules.stranger(party, method) if left_out else known


def no_such_method(state: State, rules: RevisionRules, party: Party, kind: Kind, message: dict[str, Any]) -> Violation:
    """Return the violation of sending a method that has no `entry`."""
    wrong = rules.check_method(party, kind, message["method"])
    beyond = extensions.rule_beyond(state, rules, party, message)
    unknown = wrong.rule == "protocol/method" and _may_be_extension(rules, message["method"])
    owner = owner_of(message["method"], rules.revision)
    left_out = owner is not None and extensions.leaves_out(state, owner, extensions.declared_by(message))
    if beyond is None or not (unknown or left_out):
        return wrong
    return violation(
        beyond,
        "/method",
        expected="a method of the specification",
        found=wrong.found,
        revision=rules.revision,
        hint=None if revisions_of(message["method"]) else rules.hint_on(message["method"]),
    )


def check_id(sender: PartyState, ident: Id, method: str, most_open: int, report: Report) -> None:
    """Report an id of a request that is in use or was used before, or one request too many."""
    if ident in sender.open:
        found = f"{shown_id(ident)}, the id of an open {sender.open[ident].method}"
        report.add("protocol/id-in-use", "/id", expected="an unused id", found=found)
    elif len(sender.open) >= most_open:
        report.add("protocol/too-many-open", expected=f"at most {most_open:,} open requests", found="one more")
    elif ident in sender.settled and method != "initialize" and handshake(str(report.revision)):
        # 2026-07-28 has no sessions, and forbids only ids that are still open.
        before = sender.settled[ident]
        if not before.reusable:
            found = f"{shown_id(ident)}, already used for {before.method}"
            report.add("protocol/id-reused", "/id", expected="a new id", found=found)


def _may_be_extension(rules: RevisionRules, method: str) -> bool:
    """Return whether an unknown extension may define *method*: no revision and no known extension has such names."""
    # A method that is known may be the other kind of message.
    if rules.method(method) or revisions_of(method):
        return False
    return owner_of(method, rules.revision) is None


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


def answers_nothing(faults: Iterable[Violation], value: Any, asker: PartyState) -> list[Violation]:
    """
    Return the *faults* of an answer, with another hint if it can only be the answer to a notification.

    An answer without an id may belong to any open request; if *asker* has none, a notification was answered.
    """
    if value.get("id") is not None or asker.open:
        return list(faults)
    return [replace(each, hint=f"{each.hint} {_UNANSWERED}") if each.rule in _ABOUT_IDS else each for each in faults]


def unsolicited(ident: Any, exchange: Exchange | None, asker: PartyState, revision: str | None) -> Violation:
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


def _other_type(ident: Any, asker: PartyState) -> str | None:
    """Return the hint for an id that differs from that of an open request only in its type."""
    other: Id | None = str(ident) if type(ident) is int else None
    if type(ident) is str and _WHOLE.fullmatch(ident):
        other = int(ident)
    if other not in asker.open:
        return None
    return f"Echo the id of the request unchanged: {shown_id(other)}, not {shown_id(ident)}."


def unanswered(exchange: Exchange, why: str = "", *, late: bool = False, unstarted: bool = False) -> Violation:
    """Return the violation of a missing answer; *unstarted* means that there was no server to answer."""
    cause = with_party(why, exchange.asker.other)
    return violation(
        "protocol/unanswered",
        expected=f"an answer to {exchange.method}",
        found=f"none{' ' if late else ': '}{cause}" if cause else "none",
        revision=exchange.revision,
        # A server that never started cannot answer.
        hint=_STARTING if unstarted else None,
    )


# ── what a server over HTTP refuses in a revision without a handshake ────────────────────────────────────────────────
#
# If the guard itself is that server, these messages are stopped in both modes. The process behind it never sees a
# header, so it cannot judge one. All clients share that process, and servers choose their era by the first message: one
# message without a revision would lock out every other client.

HEADER_RULES: Final = frozenset({"protocol/header-missing", "protocol/header-mismatch", "protocol/header-encoding"})

_CANCELS: Final = "notifications/cancelled"
_OPENS: Final = "initialize"


def stands_alone(message: Any) -> bool:
    """
    Return whether a message names its revision and opens no handshake, so that it does not affect other messages.

    A cancellation need not name one: it only reaches the server that runs the request.
    """
    if not isinstance(message, dict) or message.get("method") == _OPENS:
        return False
    named = isinstance(message.get("params"), dict) and named_revision(message) is not None
    return named or message.get("method") == _CANCELS


def check_alone(message: dict[str, Any], found: Sequence[Violation], revision: str) -> list[Violation]:
    """Return the violation of a message that does not stand alone, unless *found* has one already."""
    if stands_alone(message) or any(each.stops for each in found):
        return []
    if message["method"] == _OPENS:
        return [violation("protocol/method", "/method", expected="no handshake", found=_OPENS, revision=revision)]
    # The cancellation above is the only notification that this revision has.
    rule = "protocol/params" if "id" in message else "protocol/method"
    expected = "revision: each message must name it, because all clients share this server"
    return [violation(rule, "/params/_meta", expected=expected, found="nothing", revision=revision)]


def must_stop(message: Any, found: Sequence[Violation], spoken: Collection[str] | None) -> bool:
    """
    Return whether a message with these violations is stopped in both modes.

    *spoken* are the revisions that the server behind the guard declared; None if they are unknown. A server that has
    chosen its era may not check the revision of each message, so an unsupported one is stopped here.
    """
    if not stands_alone(message) or any(each.stops and each.rule in HEADER_RULES for each in found):
        return True
    unsupported = any(each.stops and each.rule == "protocol/unsupported-revision" for each in found)
    return unsupported and spoken is not None and named_revision(message) not in spoken

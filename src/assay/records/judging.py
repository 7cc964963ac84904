"""
Judge a recording: repeat the calls that it lists, for each conversation. No I/O, no clock.

The verdicts are those of the guard that wrote it, as far as a recording carries what they depend on.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from assay.judge import syntax
from assay.judge.conversation import Conversation
from assay.judge.lifecycle import preferred
from assay.model.errors import CanonicalError
from assay.model.limits import DEFAULT, Limits
from assay.model.verdict import Exchange, Findings, Party, Verdict, Violation, verdict
from assay.records.listed_tools import ListedTools, ListPlace
from assay.records.outcomes import outcome_of
from assay.records.rows import (
    Effect,
    Judged,
    Meeting,
    TranscriptRow,
    conversation_of,
    findings_of,
    frame_of,
    kind_of,
    party_of,
    read_facts,
    with_findings,
)
from assay.rules.policy import Policy
from assay.schema.tool_contracts import Tools
from assay.spec.revisions import is_known

Ident = str | int


class RecordingOpening(NamedTuple):
    """The start of a conversation."""

    server: str = ""
    mode: Literal["audit", "enforce"] = "audit"
    revision: str | None = None
    """The revision of a conversation that was opened elsewhere; None otherwise."""
    lines: bool = False
    frame_bytes: int | None = None
    """The guard's limit for a message in bytes; None if it is unknown."""
    tools: Tools | None = None
    """The tools it shares with another conversation; None if they are its own."""
    effect: Effect | None = None
    """The actions of the guard; None if the recording is not from a guard."""
    is_assets: bool = False
    """Whether it is a conversation with the asset server, whose tools are known from the start."""
    place: str = ""
    """What the server is known by in all files: its name, or without one its route."""

    def limited(self, limits: Limits) -> Limits:
        """Return *limits* with the recorder's limit for a message, unless the settings have another one."""
        if self.frame_bytes in {None, limits.frame_bytes} or limits.frame_bytes != DEFAULT.frame_bytes:
            return limits
        return replace(limits, frame_bytes=self.frame_bytes or limits.frame_bytes)


class JudgedConversation:
    """One conversation of a recording."""

    __slots__ = ("blind", "is_met", "judge", "number", "opening", "touched", "unheard")

    def __init__(self, number: int, judge: Conversation, opening: RecordingOpening, line: int) -> None:
        self.number = number
        self.judge = judge
        self.opening = opening
        self.unheard: set[tuple[Party, Ident]] = set()
        """Requests that are not in the recording: their responses cannot be judged."""
        self.blind: frozenset[str] = frozenset()
        """Rules that cannot be judged any more, because messages are missing."""
        self.touched = line
        """The line of its last message, or of its start."""
        self.is_met = False
        """Whether a message was judged."""

    def give_up(self, row: TranscriptRow) -> Verdict | None:
        """Return the verdict on a missing response; None if the request was no longer open."""
        ident, code, why = row.members.get("id"), str(row.members.get("code") or "TIMEOUT"), row.members.get("why")
        if not isinstance(ident, str | int):
            return None
        if code not in CanonicalError.codes():
            # A later version of the guard may have others.
            code = "UPSTREAM_FAILURE"
        unstarted, excused = (row.members.get(name) is True for name in ("unstarted", "excused"))
        missing = self.judge.give_up(
            party_of(row).other, ident, code, str(why or ""), unstarted=unstarted, excused=excused
        )
        # A guard records a reason for each one, except for a timeout.
        return missing if row.record is not None or ((why or code == "TIMEOUT") and not excused) else None

    def answers(self, party: Party, verdict: Verdict) -> bool:
        """Whether a message is the response to a request that is not in the recording."""
        ident = verdict.value.get("id") if isinstance(verdict.value, dict) else None
        known = (party.other, ident)
        if verdict.kind not in {"result", "error"} or not isinstance(ident, str | int) or known not in self.unheard:
            return False
        self.unheard.discard(known)
        return True

    def let_go(self, party: Party, ident: Ident) -> Exchange | None:
        """Close and return the request of a response of *party* that is left out."""
        self.unheard.discard((party.other, ident))
        missing = self.judge.give_up(party.other, ident)
        return None if missing is None else missing.exchange

    def settle(self, heard: Verdict, found: Verdict) -> None:
        """Forget a request that the guard refused but that is accepted with a mask in place of a secret."""
        enforced = self.opening.mode == "enforce" and heard.kind == "request"
        if enforced and heard.accepted and not found.accepted and heard.exchange is not None:
            self.judge.give_up(heard.party, heard.exchange.id)


AFTER_CUT: Final = frozenset(
    {
        # The list of tools, or what was declared in the handshake, may be in the message that is missing.
        "contract/set-aside",
        "contract/unknown-tool",
        "protocol/before-initialize",
        "protocol/before-initialized",
        "protocol/capability",
        "protocol/extension",
        "protocol/log",
        "protocol/progress",
        "protocol/subscription",
        "protocol/unheard-extension",
        "tasks/undeclared",
    }
)
"""Rules that cannot be judged after a message whose content is missing, although its id is known."""

AFTER_GAP: Final = AFTER_CUT | {
    "protocol/cache-scope",
    "protocol/cancel",
    "protocol/cancel-other",
    "protocol/input-kind",
    "protocol/input-responses",
    "protocol/related-task",
    "protocol/request-state",
    "protocol/retry-id",
    "protocol/retry-target",
    "protocol/unanswered",
    "protocol/unsolicited",
    "tasks/input-responses",
    "tasks/not-found",
}
"""Rules that cannot be judged after messages that are missing altogether."""

_MOST: Final = 10_000
"""Values of a message to search for a mask. A larger part of a message counts as masked: nothing is certain there."""


def is_masked(message: Any, at: str, mask: re.Pattern[str]) -> bool:
    """Return whether the value at the JSON Pointer *at*, or a part of it, was replaced by a *mask*."""
    value = message
    for token in at.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            # The place is a member that is missing: it is about the value that should have it.
            break
    return _has_mask(value, mask)


def _has_mask(value: Any, mask: re.Pattern[str]) -> bool:
    waiting = [value]
    for _ in range(_MOST):
        if not waiting:
            return False
        each = waiting.pop()
        if isinstance(each, str) and mask.search(each):
            return True
        if isinstance(each, dict | list):
            waiting.extend(each.values() if isinstance(each, dict) else each)
    return True


MOST_CONVERSATIONS: Final = 10_000
"""Maximal conversations in memory. A guard has at most some thousand sessions; the longest idle ones are dropped."""

_MOST_NOTES: Final = 100
"""Maximal notes about places of a recording. A guard leaves one or two; a row of twenty bytes can ask for one."""

_LONGEST_REASON: Final = 200
"""Maximal characters of the reason why a recording stops. Those of a guard have less than a hundred."""

_LEFT_OUT: Final = {
    "omitted": "too large to record",
    "cut": "too large to record in full",
    "unrecorded": "no payload in the journal",
    "blocked": "blocked because of HTTP headers",
}
"""Members that mark a message that cannot be judged, with the reason."""

_RECALLED: Final = {
    "partial": "the list of tools is not in the recording",
    "locked": "the lock is not in the journal",
    "redacted": "secrets were redacted",
}
"""Members that mark a message whose verdict is the recorded one, with the reason."""

_UNREADABLE: Final = b"(masked)"
"""Replacement for an unreadable message whose masked form is readable."""

_DEPTH: Final = 200
"""Maximal levels of a masked message to search."""

_UNANSWERED: Final = "protocol/unanswered"

State = Literal["foreign", "open", "closed", "stopped"]
"""State of a recording: not from a guard, so without a last row; from a guard, last row not seen yet; or complete."""


class Judging:
    """The verdicts on one recording, and notes about it."""

    def __init__(
        self,
        begin: Callable[[RecordingOpening], Conversation],
        policy: Policy | None = None,
        blind: Collection[str] = (),
        *,
        every: bool = True,
        listed: ListedTools | None = None,
    ) -> None:
        """
        *begin* creates the conversations; *policy* applies to them, None for the recorded actions.

        *blind* are the rules that the recording cannot prove; their findings are dropped. Without *every*, messages
        without findings are only counted. *listed* is kept at the place of the message that is judged.
        """
        self._policy = policy
        self._blind = frozenset(blind)
        self._begin = begin
        self._every = every
        self._listed = listed
        self._conversations: OrderedDict[int, JudgedConversation] = OrderedDict()
        """The longest idle one comes first."""
        self._tools: OrderedDict[int, Tools] = OrderedDict()
        """The tools of each conversation."""
        self._dropped: set[int] = set()
        self._ended: set[int] = set()
        """Conversations that the guard has released. Nothing of them is kept: a large recording has many."""
        self._state: State = "foreign"
        self._began = 0
        """The line of the last ``recording`` event."""
        self.good = 0
        """Messages without findings that were only counted."""
        self.failed = 0
        """How many of them report the server's own error."""
        self.is_incomplete = False
        """Whether messages are missing at the end of the recording."""
        self.unjudged: Counter[str] = Counter()
        """Messages that were not judged, by reason, in the order of the first message of each."""
        self.recorded: Counter[str] = Counter()
        """Messages with the verdict of the guard, likewise."""
        self.notes: list[str] = []
        """Other notes about the recording."""
        self._unlisted = 0
        """The number of notes beyond the limit."""
        self.revision: str | None = None
        """The revision of the first conversation with a handshake; without one, of the first that has a revision."""

    def follow(self, rows: Iterable[TranscriptRow]) -> Iterator[Judged | Meeting]:
        """
        Yield a verdict on each message, before the first one of a conversation that it is met, and at the end a verdict
        on each request without a response. Raises `TranscriptError`.
        """
        for row in rows:
            if "event" in row.members:
                yield from self._event(row)
            elif row.members:
                yield from self._message(row)
            else:
                self.is_incomplete = True
                # It may be a response.
                self._blind |= {_UNANSWERED}
                self._note(f"line {row.line} is cut off and not judged; later messages may be missing")
        yield from self._finish()

    def _note(self, text: str) -> None:
        """Add a note, or count it if there are too many."""
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(text)
            return
        self._unlisted += 1
        more = "1 more remark" if self._unlisted == 1 else f"{self._unlisted:,} more remarks"
        self.notes[_MOST_NOTES:] = [f"{more} about places in it"]

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _message(self, row: TranscriptRow) -> Iterator[Judged | Meeting]:
        """Count the verdict on a message, and yield it if it is to be shown."""
        party, number = party_of(row), conversation_of(row.members)
        if number in self._dropped or number in self._ended:
            reason = "too many conversations" if number in self._dropped else "its conversation had ended"
            self.unjudged[reason] += 1
            return
        conversation = self._conversations.get(number)
        if conversation is None:
            conversation = self._add(number, RecordingOpening(), row.line)
        else:
            conversation.touched = row.line
            self._conversations.move_to_end(number)
        if self._listed is not None:
            self._listed.here = ListPlace(self._listed.here.path, number, row.line)
        lacks = row.lacks or next((why for name, why in _LEFT_OUT.items() if row.members.get(name) is True), "")
        if lacks:
            judged = self._skip(conversation, party, row)
        else:
            judged, lacks = self._hear(conversation, party, row)
        self.revision = preferred(self.revision, conversation.judge.revision)
        if judged is None:
            self.unjudged[lacks] += 1
            return
        if lacks:
            self.recorded[lacks] += 1
        yield from self._met(conversation)
        shown = self._provable(conversation, row, judged)
        if shown is None:
            return
        if shown.findings is None and not self._every:
            self.good += 1
            self.failed += shown.kind != "request" and outcome_of(shown).word == "failed"
        else:
            yield self._judged(conversation, row, shown, lacks)

    def _met(self, conversation: JudgedConversation) -> Iterator[Meeting]:
        if not conversation.is_met:
            conversation.is_met = True
            yield Meeting(conversation.number, conversation.opening.server)

    def _judged(self, conversation: JudgedConversation, row: TranscriptRow, found: Verdict, lacks: str = "") -> Judged:
        place = (conversation.number, conversation.opening.server)
        return Judged(row.line, found, *place, lacks, row.time, self._began, row.record)

    def _provable(self, conversation: JudgedConversation, row: TranscriptRow, judged: Verdict) -> Verdict | None:
        """Return *judged* without findings that the recording cannot prove; None if then nothing is known of it."""
        if judged.findings is None and "findings" not in row.members:
            return judged
        blind = self._blind | conversation.blind | frozenset(row.blind)
        # An export that leaves messages out carries what the guard found by them.
        recalled = with_findings(judged, row.members, self._policy) if blind and "findings" in row.members else None
        extra = [each for each in recalled.violations if each.rule in blind] if recalled is not None else []
        if judged.findings is None and not extra:
            return judged
        shown = [*(each for each in judged.violations if each.rule not in blind), *extra]
        if row.mask is not None:
            proved = [each for each in shown if not is_masked(judged.value, each.at, row.mask)]
            if len(proved) < len(shown):
                # The message may be valid, or not: only its sender knows.
                self.unjudged["values were redacted by the recorder"] += 1
                if not proved:
                    return None
            shown = proved
        if shown == list(judged.violations):
            return judged
        found = judged.findings or Findings((), onward=judged.frame)
        kept = found._replace(violations=tuple(shown)) if shown or judged.quarantined else None
        return verdict(judged.party, judged.frame, judged.kind, judged.value, judged.exchange, judged.revision, kept)

    def _hear(self, conversation: JudgedConversation, party: Party, row: TranscriptRow) -> tuple[Verdict | None, str]:
        """
        Return the verdict on a message, and the reason if the message is incomplete.

        Without the message the verdict is the recorded one; None without a record.
        """
        members, frame = row.members, frame_of(row)
        redacted = members.get("redacted") is True
        if conversation.opening.effect is not None:
            done = members.get("actions") or list(findings_of(members))
            conversation.opening.effect.recall(done, whole=redacted and "findings" in members)
        if "failed" in members:
            conversation.judge.unjudged(party, frame, str(members["failed"]))
            return None, "internal error of the guard"
        if redacted and _is_mended(frame, members):
            frame = _UNREADABLE
        heard = conversation.judge.hear(party, frame, read_facts(members))
        lacks = next((why for name, why in _RECALLED.items() if members.get(name) is True), "")
        if conversation.unheard and conversation.answers(party, heard):
            lacks = "the request is not in the recording"
        if not lacks:
            return heard, ""
        # Judged, because later messages depend on it. Schema findings are dropped: a mask is not the original value.
        found = with_findings(heard, members, self._policy)
        if lacks == _RECALLED["redacted"] and found is not None:
            conversation.settle(heard, found)
        return found, lacks

    def _skip(self, conversation: JudgedConversation, party: Party, row: TranscriptRow) -> Verdict | None:
        """
        Skip a message that is missing or incomplete in the recording, with its request or response.

        Return the recorded verdict; None without one.
        """
        members, ident = row.members, row.members.get("id")
        kind, exchange = kind_of(members), None
        if row.lacks or members.get("unrecorded") is True:
            # A recorder that cuts messages does not keep the verdict on them, as the guard does.
            conversation.blind |= AFTER_CUT if isinstance(ident, str | int) else AFTER_GAP
        value: dict[str, Any] = {}
        if isinstance(ident, str | int):
            value["id"] = ident
            if kind == "request" and members.get("blocked") is not True:
                conversation.unheard.add((party, ident))
            elif kind in {"result", "error"}:
                exchange = conversation.let_go(party, ident)
        heard = verdict(party, b"", kind, value, exchange, conversation.judge.revision)
        return with_findings(heard, members, self._policy)

    # ── everything else ──────────────────────────────────────────────────────────────────────────────────────────────

    def _event(self, row: TranscriptRow) -> Iterator[Judged | Meeting]:
        members, event = row.members, row.members["event"]
        number = conversation_of(members)
        if event == "recording":
            # A file may contain several recordings.
            yield from self._finish()
            self._conversations.clear()
            self._tools.clear()
            self._dropped.clear()
            self._ended.clear()
            self._state = "open"
            self._began = row.line
        elif event == "open":
            self._open(number, members, row.line)
        elif event == "tools":
            self._hand_down(number, members)
        elif event == "close":
            self._state = "closed"
        elif event == "stopped":
            self._state = "stopped"
            self.is_incomplete = True
            why = str(members.get("why"))[:_LONGEST_REASON]
            self._note(f"the recording stops at line {row.line}: {why}; later messages are missing")
        elif event == "unread":
            self.unjudged[str(members.get("why"))[:_LONGEST_REASON]] += 1
        elif event == "release" and number in self._conversations:
            del self._conversations[number]
            self._ended.add(number)
        elif number in self._conversations:
            conversation = self._conversations[number]
            for left in self._happened(conversation, row):
                yield from self._met(conversation)
                if left.findings is not None or self._every:
                    yield self._judged(conversation, row, left)

    def _happened(self, conversation: JudgedConversation, row: TranscriptRow) -> Sequence[Verdict]:
        """Apply an event that is not a message; return verdicts on requests that get no response because of it."""
        members, event = row.members, row.members["event"]
        if event == "unanswered":
            missing = conversation.give_up(row)
            return () if missing is None else (missing,)
        if event == "end":
            why, unstarted = str(members.get("why") or ""), members.get("unstarted") is True
            left = conversation.judge.end(party_of(row), why, unstarted=unstarted)
            # The other party left, or the guard was stopped: no answer can be expected.
            return () if members.get("excused") is True else left
        if event == "restart":
            conversation.judge.renew()
        elif event == "gap":
            conversation.blind |= AFTER_GAP
        elif event == "forget":
            conversation.judge.forget_settled()
        return ()

    def _finish(self) -> Iterator[Judged | Meeting]:
        """Yield a verdict on each open request, unless its response may be among the missing messages."""
        if self._state == "open":
            self.is_incomplete = True
            self._note("the recording has no end: later messages are missing")
        if self._state != "foreign":
            return
        for conversation in sorted(self._conversations.values(), key=lambda each: each.touched):
            if _UNANSWERED in self._blind | conversation.blind:
                continue
            for party in (Party.SERVER, Party.CLIENT):
                for left in conversation.judge.end(party):
                    yield from self._met(conversation)
                    yield self._judged(conversation, TranscriptRow(0, {}), left)

    def _open(self, number: int, members: dict[str, Any], line: int) -> None:
        revision, size, shared = members.get("revision"), members.get("frameBytes"), members.get("tools")
        self._add(
            number,
            RecordingOpening(
                str(members.get("server") or ""),
                "enforce" if members.get("mode") == "enforce" else "audit",
                revision if is_known(revision) else None,
                members.get("lines") is True,
                size if type(size) is int and size > 0 else None,
                self._shared(shared) if isinstance(shared, int) else None,
                Effect(),
                members.get("assets") is True,
                str(members.get("place") or members.get("server") or ""),
            ),
            line,
        )

    def _add(self, number: int, opening: RecordingOpening, line: int) -> JudgedConversation:
        if len(self._conversations) >= MOST_CONVERSATIONS:
            self._dropped.add(self._conversations.popitem(last=False)[0])
        before = self._conversations.get(number)
        if before is not None:
            line = before.touched
        # What is opened again is another conversation, and nothing of it is missing.
        self._ended.discard(number)
        self._dropped.discard(number)
        conversation = self._conversations[number] = JudgedConversation(number, self._begin(opening), opening, line)
        self._keep(number, conversation.judge.tools)
        return conversation

    def _hand_down(self, number: int, members: dict[str, Any]) -> None:
        before = members.get("from")
        tools = self._shared(before) if isinstance(before, int) else None
        if tools is not None:
            self._keep(number, tools.handed_down())

    def _keep(self, number: int, tools: Tools) -> None:
        self._tools[number] = tools
        if len(self._tools) > MOST_CONVERSATIONS:
            self._tools.popitem(last=False)

    def _shared(self, number: int) -> Tools | None:
        if number in self._tools:
            self._tools.move_to_end(number)
        return self._tools.get(number)


def _is_mended(frame: bytes, members: dict[str, Any]) -> bool:
    """Whether a masked *frame* is readable although the original was not: masking rewrites the JSON."""
    rules = [str(each.get("rule")) for each in findings_of(members)]
    unreadable = any(each.startswith(("framing/", "syntax/")) for each in rules)
    return unreadable and not isinstance(syntax.read(frame, _DEPTH), Violation)

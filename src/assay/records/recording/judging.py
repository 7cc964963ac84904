"""
Judge a recording: repeat the calls that it lists, for each conversation. No I/O, no clock.

The verdicts are those of the guard that wrote it, as far as a recording carries what they depend on.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from assay.base.limits import DEFAULT, Limits
from assay.base.verdict import Exchange, Party, Verdict, Violation, verdict
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import Conversation
from assay.core.lifecycle import preferred
from assay.core.policy import Policy
from assay.ladder import syntax
from assay.records.recording.provable import AFTER_CUT, AFTER_GAP, is_masked, without_findings
from assay.records.recording.rows import Effect, findings_of, kind_of, read_facts, with_findings
from assay.records.transcript import Judged, TranscriptRow, frame_of, party_of, read
from assay.spec.revisions import is_known

_MOST: Final = 10_000
"""Maximal conversations in memory. A guard has at most some thousand sessions; the longest idle ones are dropped."""

_UNKNOWN: Final = 0
"""The conversation number of rows without one."""

_LEFT_OUT: Final = {"omitted": "too large to record", "cut": "too large to record in full"}
"""Members that mark a message that cannot be judged, with the reason."""

_UNREADABLE: Final = b"(masked)"
"""Replacement for an unreadable message whose masked form is readable."""

_DEPTH: Final = 200
"""Maximal levels of a masked message to search."""

_UNANSWERED: Final = "protocol/unanswered"

Ident = str | int

State = Literal["foreign", "open", "closed", "stopped"]
"""State of a recording: not from a guard, so without a last row; from a guard, last row not seen yet; or complete."""


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
    preview: bool = False
    """Whether the guard judged drafts, too."""

    def limited(self, limits: Limits) -> Limits:
        """Return *limits* with the recorder's limit for a message, unless the settings have another one."""
        if self.frame_bytes is None or limits.frame_bytes != DEFAULT.frame_bytes:
            return limits
        return replace(limits, frame_bytes=self.frame_bytes)


class _JudgedTalk:
    """One conversation of a recording."""

    __slots__ = ("blind", "conversation", "opening", "unheard")

    def __init__(self, conversation: Conversation, opening: RecordingOpening) -> None:
        self.conversation = conversation
        self.opening = opening
        self.unheard: set[tuple[Party, Ident]] = set()
        """Requests that are not in the recording: their responses cannot be judged."""
        self.blind: frozenset[str] = frozenset()
        """Rules that cannot be judged any more, because messages are missing."""


class Judging:
    """The verdicts on one recording, and notes about it."""

    def __init__(
        self,
        begin: Callable[[RecordingOpening], Conversation],
        policy: Policy | None = None,
        blind: Collection[str] = (),
    ) -> None:
        """
        *begin* creates the conversations; *policy* applies to them, None for the recorded actions.

        *blind* are the rules that the recording cannot prove; their findings are dropped.
        """
        self._policy = policy
        self._blind = frozenset(blind)
        self._begin = begin
        self._talks: OrderedDict[int, _JudgedTalk] = OrderedDict()
        self._tools: OrderedDict[int, Tools] = OrderedDict()
        self._dropped: set[int] = set()
        self._state: State = "foreign"
        self.is_incomplete = False
        """Whether messages are missing at the end of the recording."""
        self.unjudged: Counter[str] = Counter()
        """Number of messages that were not judged, by reason."""
        self.recorded: Counter[str] = Counter()
        """Number of messages with the verdict of the guard, by reason."""
        self.notes: list[str] = []
        """Other notes about the recording."""
        self.revision: str | None = None
        """The revision of the first conversation with a handshake; without one, of the first that has a revision."""

    def judge(self, lines: Iterable[bytes]) -> Iterator[Judged]:
        """Yield a verdict on each message, then on each request without a response. Raises `TranscriptError`."""
        return self.judge_rows(read(lines))

    def judge_rows(self, rows: Iterable[TranscriptRow]) -> Iterator[Judged]:
        """Yield the same for rows that are already read."""
        for row in rows:
            if not row.members:
                self.is_incomplete = True
                self.notes.append(f"line {row.line} is cut off and not judged; the recorder was killed")
            elif "event" in row.members:
                yield from self._event(row)
            else:
                yield from self._message(row)
        yield from self._finish()

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _message(self, row: TranscriptRow) -> Iterator[Judged]:
        party = party_of(row)
        number = _number(row.members)
        if number in self._dropped:
            self.unjudged["too many conversations"] += 1
            return
        talk = self._talk(number)
        left_out = row.lacks or next((why for name, why in _LEFT_OUT.items() if row.members.get(name) is True), "")
        judged, lacks = self._skip(talk, party, row, left_out) if left_out else self._hear(talk, party, row)
        self.revision = preferred(self.revision, talk.conversation.revision)
        if judged is None:
            self.unjudged[lacks] += 1
            return
        if lacks:
            self.recorded[lacks] += 1
        yield Judged(row.line, self._provable(talk, row, judged), number, talk.opening.server, lacks, row.time)

    def _provable(self, talk: _JudgedTalk, row: TranscriptRow, judged: Verdict) -> Verdict:
        """Return *judged* without findings that the recording cannot prove."""
        if judged.findings is None:
            return judged
        blind = self._blind | talk.blind | frozenset(row.blind)
        shown = [each for each in judged.violations if each.rule not in blind]
        if row.mask is not None:
            proved = [each for each in shown if not is_masked(judged.value, each.at, row.mask)]
            # The message may be valid, or not: only its sender knows.
            self.unjudged["values were redacted by the recorder"] += len(proved) < len(shown)
            shown = proved
        return judged if len(shown) == len(judged.violations) else without_findings(judged, shown)

    def _hear(self, talk: _JudgedTalk, party: Party, row: TranscriptRow) -> tuple[Verdict | None, str]:
        """
        Return the verdict on a message, and the reason if the message is incomplete.

        Without the message the verdict is the recorded one; None without a record.
        """
        members, frame = row.members, frame_of(row)
        redacted = members.get("redacted") is True
        if talk.opening.effect is not None:
            done = members.get("actions") or list(findings_of(members))
            talk.opening.effect.recall(done, whole=redacted and "findings" in members)
        if "failed" in members:
            talk.conversation.unjudged(party, frame, str(members["failed"]))
            return None, "internal error of the guard"
        if redacted and _is_mended(frame, members):
            frame = _UNREADABLE
        heard = talk.conversation.hear(party, frame, read_facts(members))
        if talk.unheard and _answers(talk, party, heard):
            return with_findings(heard, members, self._policy), "the request is not in the recording"
        if not redacted:
            return heard, ""
        # Judged, because later messages depend on it. Schema findings are dropped: a mask is not the original value.
        found = with_findings(heard, members, self._policy)
        if found is not None:
            _settle(talk, heard, found)
        return found, "secrets were redacted"

    def _skip(self, talk: _JudgedTalk, party: Party, row: TranscriptRow, lacks: str) -> tuple[Verdict | None, str]:
        """Skip a message that is missing or incomplete in the recording, with its request or response; as `_hear`."""
        members, ident = row.members, row.members.get("id")
        kind, exchange = kind_of(members), None
        if row.lacks:
            # A recorder that cuts messages does not keep the verdict on them, as the guard does.
            talk.blind |= AFTER_CUT if isinstance(ident, str | int) else AFTER_GAP
        value: dict[str, Any] = {}
        if isinstance(ident, str | int):
            value["id"] = ident
            if kind == "request":
                talk.unheard.add((party, ident))
            elif kind in {"result", "error"}:
                exchange = _let_go(talk, party, ident)
        heard = verdict(party, b"", kind, value, exchange, talk.conversation.revision)
        return with_findings(heard, members, self._policy), lacks

    # ── everything else ──────────────────────────────────────────────────────────────────────────────────────────────

    def _event(self, row: TranscriptRow) -> Iterator[Judged]:
        members, event = row.members, row.members["event"]
        number = _number(members)
        if event == "recording":
            # A file may contain several recordings.
            yield from self._finish()
            self._talks.clear()
            self._tools.clear()
            self._dropped.clear()
            self._state = "open"
        elif event == "open":
            self._open(number, members)
        elif event == "tools":
            self._hand_down(number, members)
        elif event == "close":
            self._state = "closed"
        elif event == "stopped":
            self._state = "stopped"
            self.is_incomplete = True
            self.notes.append(
                f"the recording stops at line {row.line}: {members.get('why')}; later messages are missing"
            )
        elif number in self._talks:
            yield from self._happened(self._talks[number], number, row)

    def _happened(self, talk: _JudgedTalk, number: int, row: TranscriptRow) -> Iterator[Judged]:
        """Apply an event that is not a message."""
        members, event = row.members, row.members["event"]
        if event == "unanswered":
            missing = _given_up(talk, row)
            if missing is not None:
                yield Judged(row.line, missing, number, talk.opening.server, time=row.time)
        elif event == "end":
            why, unstarted = str(members.get("why") or ""), members.get("unstarted") is True
            for left in talk.conversation.end(party_of(row), why, unstarted=unstarted):
                yield Judged(row.line, left, number, talk.opening.server, time=row.time)
        elif event == "restart":
            talk.conversation.renew()
        elif event == "gap":
            talk.blind |= AFTER_GAP
        elif event == "forget":
            talk.conversation.forget_settled()
        elif event == "release":
            talk.conversation.release()

    def _finish(self) -> Iterator[Judged]:
        """Yield a verdict on each open request, unless its response may be among the missing messages."""
        if self._state == "open":
            self.is_incomplete = True
            self.notes.append("the recording has no end: later messages are missing")
        if self._state == "foreign":
            yield from self._left()

    def _left(self) -> Iterator[Judged]:
        """Yield a verdict on each open request."""
        for number, talk in self._talks.items():
            if _UNANSWERED in self._blind | talk.blind:
                continue
            for party in (Party.SERVER, Party.CLIENT):
                for left in talk.conversation.end(party):
                    yield Judged(0, left, number, talk.opening.server)

    def _talk(self, number: int) -> _JudgedTalk:
        if number not in self._talks:
            return self._add(number, RecordingOpening())
        self._talks.move_to_end(number)
        return self._talks[number]

    def _open(self, number: int, members: dict[str, Any]) -> None:
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
                members.get("preview") is True,
            ),
        )

    def _add(self, number: int, opening: RecordingOpening) -> _JudgedTalk:
        if len(self._talks) >= _MOST:
            oldest, _ = self._talks.popitem(last=False)
            self._dropped.add(oldest)
        talk = self._talks[number] = _JudgedTalk(self._begin(opening), opening)
        self._keep(number, talk.conversation.tools)
        return talk

    def _hand_down(self, number: int, members: dict[str, Any]) -> None:
        before = members.get("from")
        tools = self._shared(before) if isinstance(before, int) else None
        if tools is not None:
            self._keep(number, tools.handed_down())

    def _keep(self, number: int, tools: Tools) -> None:
        self._tools[number] = tools
        if len(self._tools) > _MOST:
            self._tools.popitem(last=False)

    def _shared(self, number: int) -> Tools | None:
        if number in self._tools:
            self._tools.move_to_end(number)
        return self._tools.get(number)


def _given_up(talk: _JudgedTalk, row: TranscriptRow) -> Verdict | None:
    """Return the verdict on a missing response; None if the request was no longer open."""
    ident, code, why = row.members.get("id"), str(row.members.get("code") or "TIMEOUT"), row.members.get("why")
    if not isinstance(ident, str | int):
        return None
    unstarted = row.members.get("unstarted") is True
    missing = talk.conversation.give_up(party_of(row).other, ident, code, str(why or ""), unstarted=unstarted)
    # A guard records a reason for each one, except for a timeout.
    return missing if why or code == "TIMEOUT" else None


def _number(members: dict[str, Any]) -> int:
    number = members.get("conversation")
    return number if type(number) is int else _UNKNOWN


def _answers(talk: _JudgedTalk, party: Party, verdict: Verdict) -> bool:
    """Whether a message is the response to a request that is not in the recording."""
    ident = verdict.value.get("id") if isinstance(verdict.value, dict) else None
    known = (party.other, ident)
    if verdict.kind not in {"result", "error"} or not isinstance(ident, str | int) or known not in talk.unheard:
        return False
    talk.unheard.discard(known)
    return True


def _let_go(talk: _JudgedTalk, party: Party, ident: Ident) -> Exchange | None:
    """Close and return the request of a response of *party* that is left out."""
    talk.unheard.discard((party.other, ident))
    missing = talk.conversation.give_up(party.other, ident)
    return None if missing is None else missing.exchange


def _is_mended(frame: bytes, members: dict[str, Any]) -> bool:
    """Whether a masked *frame* is readable although the original was not: masking rewrites the JSON."""
    rules = [str(each.get("rule")) for each in findings_of(members)]
    unreadable = any(each.startswith(("framing/", "syntax/")) for each in rules)
    return unreadable and not isinstance(syntax.read(frame, _DEPTH), Violation)


def _settle(talk: _JudgedTalk, heard: Verdict, found: Verdict) -> None:
    """Forget a request that the guard refused but that is accepted with a mask in place of a secret."""
    enforced = talk.opening.mode == "enforce" and heard.kind == "request"
    if enforced and heard.accepted and not found.accepted and heard.exchange is not None:
        talk.conversation.give_up(heard.party, heard.exchange.id)

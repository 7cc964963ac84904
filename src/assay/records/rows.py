r"""
The rows of a recording: one JSON object a line, with the sender and the raw frame. No I/O, no clock.

    {"dir": "c2s", "msg": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"}

`dir` is c2s or s2c (or `party`: client or server). `msg` is the line as it was seen, without its newline: not
necessarily JSON. An object instead of a string stands for its compact JSON. Bytes that are not UTF-8 are recorded as
`base64` in place of `msg`. `time` is the time of the message, in microseconds since 1970. A recording of `assay guard`
has events beside messages, and the findings of messages that are not recorded in full.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast, get_args

from assay.judge import syntax
from assay.judge.conversation import NO_FACTS, Facts
from assay.model.verdict import Action, Findings, Kind, Party, Verdict, Violation, verdict
from assay.records.lines import numbered_lines
from assay.records.record import Record
from assay.rules import RULES, violation
from assay.rules.policy import ACTIONS, Policy, fitting
from assay.rules.table import is_removed_rule

PARTIES = {"c2s": Party.CLIENT, "s2c": Party.SERVER, "client": Party.CLIENT, "server": Party.SERVER}

ROW_DEPTH = 200
"""Maximal levels of a row. It contains a message one level down, whose own depth is judged later."""

_TIMES = range(10**15, 10**16)
"""Times in microseconds since 1970: those of 16 digits, from 2001 to 2286."""


class TranscriptError(ValueError):
    """A file is not a recorded conversation."""


class TranscriptRow(NamedTuple):
    """One message or event of a recording."""

    line: int
    members: dict[str, Any]
    """The members, not yet checked. Empty for a last line that was cut off. `msg` may also be the bytes of a frame."""
    lacks: str = ""
    """Why the message is not there in full and cannot be judged; "" if it can."""
    blind: Collection[str] = ()
    """The rules that this row cannot prove, because of how it was recorded; their findings are dropped."""
    mask: re.Pattern[str] | None = None
    """The text that the recorder put in place of secrets; findings about such values are dropped."""
    time: float | None = None
    """The time in seconds since 1970; None if the recording does not have it."""
    record: Record | None = None
    """The record of the guard's own verdict, if the row comes from a journal."""


class Judged(NamedTuple):
    """A verdict and its place in a recording."""

    line: int
    """The line of the recording; 0 for a request that was still open at the end."""
    verdict: Verdict
    conversation: int = 0
    """The number of the conversation; 0 if the recording has only one."""
    server: str = ""
    """The name of the guarded server, if the recording has it."""
    lacks: str = ""
    """Why the verdict is the one that the guard recorded, and not a new one; "" for a message that was judged."""
    time: float | None = None
    """The time of the message in seconds since 1970; None if the recording does not have it."""
    recording: int = 0
    """The line with which its recording begins, as a file may have several, with the same numbers; 0 without one."""
    record: Record | None = None
    """The record of the guard's own verdict, if the message comes from a journal."""


class Meeting(NamedTuple):
    """The first message of a conversation that is judged. It comes before the verdict on that message."""

    conversation: int
    server: str


def read(lines: Iterable[bytes]) -> Iterator[TranscriptRow]:
    """Yield the rows of a recording, in order. Raises `TranscriptError` for a line that is not a JSON object."""
    for number, line in numbered_lines(lines):
        # As strictly as a message: a duplicate key would be dropped silently, and with it the message to judge.
        members = syntax.read(line, ROW_DEPTH)
        if not members or not isinstance(members, dict):
            # The first line must be complete: otherwise any file would be a recording.
            if number == 1 or line.endswith(b"\n"):
                raise _not_a_row(number, members)
            # The recorder was killed.
            members = {}
        time = members.get("time")
        yield TranscriptRow(number, members, time=time / 1e6 if type(time) is int and time in _TIMES else None)


def _not_a_row(number: int, found: Any) -> TranscriptError:
    if isinstance(found, Violation):
        return TranscriptError(f"line {number}: expected {found.expected}, found {found.found} [{found.rule}]")
    return TranscriptError(f"line {number}: expected an object with dir and msg")


def party_of(row: TranscriptRow) -> Party:
    """Return the sender. Raises `TranscriptError`."""
    members = row.members
    party = PARTIES.get(str(members.get("dir", members.get("party"))))
    if party is None:
        raise TranscriptError(f'line {row.line}: expected "dir": "c2s" or "s2c"')
    return party


def conversation_of(members: dict[str, Any]) -> int:
    """Return the number of the conversation that a row belongs to; 0 for a row without one."""
    number = members.get("conversation")
    return number if type(number) is int else 0


def frame_of(row: TranscriptRow) -> bytes:
    """Return the frame. Raises `TranscriptError`."""
    members = row.members
    if "base64" in members:
        try:
            return b64decode(members["base64"], validate=True)
        except (TypeError, ValueError):
            raise TranscriptError(f"line {row.line}: expected base64 of the frame") from None
    if "msg" not in members:
        raise TranscriptError(f'line {row.line}: expected "msg", the frame')
    message = members["msg"]
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else syntax.write(message)


class Effect(Policy):
    """Applies to each violation the action that was recorded with the message."""

    __slots__ = ("_done", "_whole")

    def __init__(self) -> None:
        super().__init__()
        self._done: dict[tuple[str, str], str] = {}
        self._whole = False

    def recall(self, listed: Any, *, whole: bool = False) -> None:
        """
        Use the recorded actions for the next message: a list of objects with rule, at and action.

        A *whole* list has every violation: another one, such as a mask in place of a number, then stops nothing.
        """
        self._whole = whole
        recorded = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        self._done = {(str(each.get("rule")), str(each.get("at"))): str(each.get("action")) for each in recorded}
        self.repairs = frozenset(rule for (rule, _), action in self._done.items() if action == "repair")

    def decide(self, violation: Violation, _: str | None) -> Violation:
        """Return *violation* with the recorded action, if that fits the rule."""
        # Consequences of other findings, such as a quarantined entry, are computed again.
        done = self._done.get((violation.rule, violation.at), "report" if self._whole else None)
        fits = any(ACTIONS[word] == done for word in fitting(violation.rule))
        return replace(violation, action=cast("Action", done)) if fits and done != violation.action else violation


_ACTIONS: Final = frozenset(get_args(Action))
_KINDS: Final = frozenset(get_args(Kind))


def spelt_findings(judged: Verdict, hide: Callable[[str], str]) -> dict[str, Any]:
    """Return the findings of *judged* for a row. *hide* masks the places, which contain names of the peer."""
    findings = [{"rule": each.rule, "at": hide(each.at), "action": each.action} for each in judged.violations]
    return {"findings": findings, "more": judged.more} if judged.more else {"findings": findings}


def with_findings(heard: Verdict, row: Mapping[str, Any], policy: Policy | None) -> Verdict | None:
    """
    Return *heard* with the findings of *row* in place of its own; None if the row has none.

    *policy* chooses the actions; None keeps the recorded ones.
    """
    listed = row.get("findings")
    if not isinstance(listed, list):
        return None
    listed = [each for each in listed if not (isinstance(each, dict) and is_removed_rule(each.get("rule")))]
    if not all(
        isinstance(each, dict)
        and each.get("rule") in RULES
        and isinstance(each.get("at"), str)
        and each.get("action") in _ACTIONS
        for each in listed
    ):
        # A later version may have written it.
        return None
    known = {(each.rule, each.at): each for each in heard.violations}
    found = tuple(_read(each, known, heard, policy) for each in listed)
    more = row.get("more")
    findings = Findings(found, more if type(more) is int else 0, heard.frame) if found else None
    return verdict(heard.party, heard.frame, heard.kind, heard.value, heard.exchange, heard.revision, findings)


def kind_of(row: Mapping[str, Any]) -> Kind:
    """Return the kind that *row* gives for a message that is left out."""
    kind = row.get("kind")
    return cast("Kind", kind) if kind in _KINDS else "unreadable"


def findings_of(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in the findings of *row*, which is untrusted."""
    listed = row.get("findings")
    yield from (each for each in listed if isinstance(each, dict)) if isinstance(listed, list) else ()


def _read(
    listed: Mapping[str, Any], known: Mapping[tuple[str, str], Violation], heard: Verdict, policy: Policy | None
) -> Violation:
    """Return the violation in *listed*, with more detail if *heard* has the same one."""
    rule, at = listed["rule"], listed["at"]
    same = known.get((rule, at))
    expected, seen = listed.get("expected"), listed.get("found")
    found = same or violation(
        rule,
        at,
        expected=expected if isinstance(expected, str) else "what the rule requires",
        found=seen if isinstance(seen, str) else "a different value in the original",
        revision=heard.revision,
    )
    if policy is not None:
        return policy.decide(replace(found, action=RULES[rule].action, reason=None), heard.tool)
    return found if found.action == listed["action"] else replace(found, action=listed["action"])


VERSION: Final = 1
"""Version of the format. It changes when a member changes its meaning, not when one is added."""

DIRECTIONS: Final = {Party.CLIENT: "c2s", Party.SERVER: "s2c"}

_SESSION: Final = b"mcp-session-id"
"""The one header of MCP that is never recorded: with it another client could take over the session."""


def spelt_facts(facts: Facts) -> dict[str, Any]:
    """Return the members of a row about the HTTP request of a message; empty for a message over STDIO."""
    if facts is NO_FACTS or facts.transport != "http":
        return {}
    http: dict[str, Any] = {}
    if facts.revision is not None:
        http["revision"] = facts.revision
    if facts.headers is not None:
        # Only those of MCP are judged. Others, such as Authorization, are not recorded.
        http["headers"] = {
            name.decode("latin-1"): value.decode("latin-1")
            if isinstance(value, bytes)
            else [each.decode("latin-1") for each in value]
            for name, value in facts.headers.items()
            if name.startswith(b"mcp-") and name != _SESSION
        }
    if facts.served:
        http["served"] = True
    if facts.spoken is not None:
        http["spoken"] = sorted(facts.spoken)
    return {"http": http}


def read_facts(row: Mapping[str, Any]) -> Facts:
    """Return the facts that `spelt_facts` has written into *row*."""
    http = row.get("http")
    if not isinstance(http, dict):
        return NO_FACTS
    revision, headers, spoken = http.get("revision"), http.get("headers"), http.get("spoken")
    return Facts(
        "http",
        revision if isinstance(revision, str) else None,
        {name.encode("latin-1", "replace"): _read_header(value) for name, value in headers.items()}
        if isinstance(headers, dict)
        else None,
        http.get("served") is True,
        frozenset(map(str, spoken)) if isinstance(spoken, list) else None,
    )


def _read_header(value: Any) -> bytes | tuple[bytes, ...]:
    if isinstance(value, list):
        return tuple(str(each).encode("latin-1", "replace") for each in value)
    return str(value).encode("latin-1", "replace")

"""
Replays a journal that has payloads: the same frames, in the same order, get the same verdicts. No I/O.

Each connection is a conversation of its own. What was redacted is heard too, because what follows depends on it, but
its verdict is not compared.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, Protocol

from assay.base.limits import DEFAULT, REQUESTS, Limits
from assay.base.verdict import Party, Verdict
from assay.core.conversation import Conversation, Facts
from assay.records.journal.reading import JournalEntry, Record, violations
from assay.records.journal.record import ID_LENGTH, status_of
from assay.records.recording.effect import Effect
from assay.rules import RULES
from assay.spec.revisions import REVISIONS

Mode = Literal["enforce", "audit"]

Outcome = Literal["same", "different", "broken", "no payload", "redacted", "by its headers", "by a lock", "not judged"]

_MOST_CONVERSATIONS: Final = 1000
"""Requests over HTTP without a session that are remembered: an answer stands close to what it answers."""

_MOST_UNHEARD: Final = 10_000
"""Requests without a frame that are remembered in one conversation: as many as may be open at once."""

_ANSWERS: Final = frozenset({"result", "error"})

Key = tuple[str, str]
"""What tells conversations apart: the transport; the session, or over HTTP without one the request."""


class ReplayJudge(Protocol):
    """Who gives the verdicts of one conversation."""

    def hear(self, party: Party, frame: bytes, facts: Facts) -> Verdict | None:
        """The verdict on *frame*; None if nobody judges it."""

    def give_up(self, asker: Party, ident: str | int, code: str = "TIMEOUT", why: str = "") -> Verdict | None:
        """The verdict on an answer that did not come; None if nobody waits for it."""

    def renew(self) -> None:
        """The server has ended, and another takes its place."""


class ReplayOpening(NamedTuple):
    """How a conversation begins."""

    mode: Mode
    revision: str | None
    """Set if it was opened elsewhere, in this revision."""
    server: str
    """``assets`` for a journal of the asset server itself; "" for one of a guard, whatever its server is called."""
    limits: Limits
    effect: Effect
    """What was done about broken rules, line by line."""
    route: str = ""
    """The path of the server over HTTP, where a journal may have several."""


class Replayed(NamedTuple):
    """What became of one line."""

    entry: JournalEntry
    outcome: Outcome
    verdict: Verdict | None = None


def plain_judge(opening: ReplayOpening) -> ReplayJudge:
    """A conversation between any client and any server."""
    return Conversation(mode=opening.mode, revision=opening.revision, limits=opening.limits, policy=opening.effect)


class _ReplayedTalk(NamedTuple):
    """One conversation of a journal."""

    judge: ReplayJudge
    effect: Effect
    unheard: set[tuple[str, str | int]]
    """Requests whose frames are not in the journal, with who asked: their answers cannot be judged."""


class Survey(NamedTuple):
    """What has to be known of conversations before their first line is heard."""

    audits: frozenset[Key] = frozenset()
    """Those in which something passed although a rule refuses it."""
    opened: frozenset[Key] = frozenset()
    """Those that have an `initialize` of their own."""


def survey(journal: Iterable[JournalEntry]) -> Survey:
    """A first look at *journal*."""
    audits, opened = set(), set()
    for entry in journal:
        record = entry.record
        if record is not None and record["metadata"].get("passed") is True:
            audits.add(_key(record))
        if record is not None and record["method"] == "initialize":
            opened.add(_key(record))
    return Survey(frozenset(audits), frozenset(opened))


def replay(
    journal: Iterable[JournalEntry],
    seen: Survey,
    *,
    limits: Limits,
    judge: Callable[[ReplayOpening], ReplayJudge] = plain_judge,
) -> Iterator[Replayed]:
    """What becomes of each line of *journal*, which was *seen* before."""
    talks: dict[Key, _ReplayedTalk] = {}
    restarts = 0
    for entry in journal:
        record = entry.record
        if record is None or record["metadata"].get("party") not in {"client", "server"}:
            yield Replayed(entry, "broken")
            continue
        key = _key(record)
        if key not in talks:
            if len(talks) >= _MOST_CONVERSATIONS:
                _forget_one(talks)
            opening = _opening(record, seen, limits)
            talks[key] = _ReplayedTalk(judge(opening), opening.effect, set())
        before, restarts = restarts, record["metadata"].get("restarts", 0)
        if restarts != before:
            # Only a guard that has one conversation starts its server again.
            for each in talks.values():
                each.judge.renew()
        talk = talks[key]
        talk.effect.recall(_told(record))
        yield _again(entry, record, talk)


def _key(record: Record) -> Key:
    session = record["metadata"].get("session")
    if not session and record["transport"] == "http":
        session = record["requestId"]
    return record["transport"], str(session or "")


def _told(record: Record) -> list[Any]:
    """Return the violations of *record* as they were recorded."""
    error = record["error"]
    listed = error.get("violations") if isinstance(error, dict) else None
    told = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    if record["metadata"].get("kind") == "batch":
        # A policy decides about each message of a batch, and places in that do not begin with its number.
        told += [{**each, "at": _below(str(each.get("at")))} for each in told]
    return told


def _below(at: str) -> str:
    """Return the place *at* without its first step."""
    _, _, rest = at.removeprefix("/").partition("/")
    return f"/{rest}" if rest else ""


def _forget_one(talks: dict[Key, _ReplayedTalk]) -> None:
    oldest = next((key for key in talks if key[0] == "http"), None)
    if oldest is not None:
        del talks[oldest]


def _opening(record: Record, seen: Survey, limits: Limits) -> ReplayOpening:
    """How the conversation begins that *record* is the first of. Over HTTP it may have been opened elsewhere."""
    key, metadata = _key(record), record["metadata"]
    revision = metadata.get("revision")
    elsewhere = record["transport"] == "http" and key not in seen.opened and revision in REVISIONS
    mode, most = metadata.get("mode"), metadata.get("frameBytes")
    # Only a guard writes a mode, and the server behind it may have any name.
    server = "" if mode else str(metadata.get("server") or "")
    if most is None and server == "assets":
        most = REQUESTS.frame_bytes
    if type(most) is int and most > 0 and limits.frame_bytes == DEFAULT.frame_bytes:
        # Who asks for another limit wants to see what that would do.
        limits = replace(limits, frame_bytes=most)
    return ReplayOpening(
        mode if mode in ("audit", "enforce") else "audit" if key in seen.audits else "enforce",
        revision if elsewhere else None,
        server,
        limits,
        Effect(),
        record["route"],
    )


def _again(entry: JournalEntry, record: Record, talk: _ReplayedTalk) -> Replayed:
    frame = _frame(record["metadata"])
    if frame is None:
        _pass_over(record["metadata"], talk)
        return Replayed(entry, "no payload")
    if talk.unheard and _answers_unheard(record["metadata"], talk):
        return Replayed(entry, "not judged")
    if any(rule in RULES and RULES[rule].code == "HEADER_MISMATCH" for rule, _ in violations(record)):
        # What the headers said is not on record. The message was refused for it, and changed nothing.
        return Replayed(entry, "by its headers")
    if any(rule == "guard/failure" for rule, _ in violations(record)):
        return Replayed(entry, "not judged")
    verdict = _heard(record, frame, talk.judge)
    if record["metadata"].get("redacted"):
        return Replayed(entry, "redacted")
    if any(rule.startswith("lock/") for rule, _ in violations(record)):
        # What was locked is not on record.
        return Replayed(entry, "by a lock", verdict)
    if verdict is None:
        return Replayed(entry, "not judged")
    return Replayed(entry, "same" if _same(record, verdict) else "different", verdict)


def _pass_over(metadata: dict[str, Any], talk: _ReplayedTalk) -> None:
    """Note a message whose frame is not in the journal, so that what belongs to it is not taken for wrong."""
    ident, kind = metadata.get("id"), metadata.get("kind")
    if not isinstance(ident, str | int):
        return
    if kind == "request" and len(talk.unheard) < _MOST_UNHEARD:
        talk.unheard.add((metadata["party"], ident))
    elif kind in _ANSWERS and not _answers_unheard(metadata, talk):
        talk.judge.give_up(Party(metadata["party"]).other, ident)


def _answers_unheard(metadata: dict[str, Any], talk: _ReplayedTalk) -> bool:
    """Whether a message answers a request whose frame is not in the journal."""
    asked = Party(metadata["party"]).other.value, metadata.get("id")
    if metadata.get("kind") not in _ANSWERS or asked not in talk.unheard:
        return False
    talk.unheard.discard((asked[0], asked[1]))
    return True


def _frame(metadata: dict[str, Any]) -> bytes | None:
    text, encoded = metadata.get("frame"), metadata.get("frameBase64")
    if isinstance(text, str):
        return text.encode()
    try:
        return b64decode(encoded, validate=True) if isinstance(encoded, str) else None
    except ValueError:
        return None


def _heard(record: Record, frame: bytes, judge: ReplayJudge) -> Verdict | None:
    metadata = record["metadata"]
    party = Party(metadata["party"])
    if metadata.get("kind") == "missing":
        ident = metadata.get("id")
        whole = type(ident) is int or (isinstance(ident, str) and len(ident) < ID_LENGTH)
        return judge.give_up(party.other, ident, *_reason(record)) if whole else None
    if record["transport"] != "http":
        return judge.hear(party, frame, Facts())
    return judge.hear(party, frame, Facts("http", metadata.get("revision") if party is Party.CLIENT else None))


def _reason(record: Record) -> tuple[str, str]:
    """Return why an answer did not come: the code that the request failed with, and the recorded words."""
    error = record["error"] if isinstance(record["error"], dict) else {}
    found = next((str(each.get("found")) for each in _told(record)), "")
    return "TIMEOUT" if error.get("code") == "TIMEOUT" else "UPSTREAM_FAILURE", found.partition(": ")[2]


def _same(record: Record, verdict: Verdict) -> bool:
    # That a tool has failed is not the judge's to say: who recorded it knew.
    status = status_of(verdict, failed=record["status"] == "failed")
    found = [(each.rule, each.at) for each in verdict.violations]
    return status == record["status"] and found == violations(record)

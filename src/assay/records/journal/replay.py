"""
Replay a journal with payloads: the same frames in the same order get the same verdicts. No I/O.

Each connection is a separate conversation. Redacted messages are judged, because later ones depend on them, but their
verdicts are not compared.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any, Final, Literal, NamedTuple, Protocol

from assay.base.limits import DEFAULT, REQUESTS, Limits
from assay.base.removed import is_removed_rule
from assay.base.verdict import Party, Verdict
from assay.core.conversation import Conversation, Facts
from assay.records.journal.reading import JournalEntry, Record, recorded_frame, server_of, violations
from assay.records.journal.record import ID_LENGTH, status_of
from assay.records.recording.rows import Effect
from assay.rules import RULES
from assay.spec.revisions import is_known

Mode = Literal["enforce", "audit"]

Outcome = Literal["same", "different", "broken", "no payload", "redacted", "by its headers", "by a lock", "not judged"]

MOST_CONVERSATIONS: Final = 1000
"""Maximal HTTP requests without a session in memory: a response is close to its request."""

_MOST_UNHEARD: Final = 10_000
"""Maximal requests without a frame in memory for one conversation: as many as may be open."""

_ANSWERS: Final = frozenset({"result", "error"})

Key = tuple[str, str]
"""The key of a conversation: the transport; the session, or for HTTP without one, the request."""


class ReplayJudge(Protocol):
    """The judge of one conversation."""

    def hear(self, party: Party, frame: bytes, facts: Facts) -> Verdict | None:
        """Return the verdict on *frame*; None if it is not judged."""

    def give_up(
        self, asker: Party, ident: str | int, code: str = "TIMEOUT", why: str = "", *, excused: bool = False
    ) -> Verdict | None:
        """Return the verdict on a missing response, which is no finding if it is *excused*; None if it is not open."""

    def renew(self) -> None:
        """Continue with a restarted server."""


class ReplayOpening(NamedTuple):
    """The start of a conversation."""

    mode: Mode
    revision: str | None
    """The revision of a conversation that was opened elsewhere; None otherwise."""
    server: str
    """``assets`` for a journal of the asset server; "" for one of a guard, whatever the name of its server."""
    limits: Limits
    effect: Effect
    """The recorded actions, line by line."""
    route: str = ""
    """The path of the server over HTTP, as a journal may have several servers."""
    name: str = ""
    """The name of the guarded server."""


class Replayed(NamedTuple):
    """The result of one line."""

    entry: JournalEntry
    outcome: Outcome
    verdict: Verdict | None = None
    conversation: int = 0
    """The number of the conversation; 0 if the journal has only one."""


def plain_judge(opening: ReplayOpening) -> ReplayJudge:
    """Return a judge for any client and any server."""
    return Conversation(
        mode=opening.mode,
        revision=opening.revision,
        limits=opening.limits,
        policy=opening.effect,
    )


class _ReplayedTalk(NamedTuple):
    """One conversation of a journal."""

    judge: ReplayJudge
    effect: Effect
    unheard: set[tuple[str, str | int]]
    """Requests without a frame, with their sender: their responses cannot be judged."""
    number: int
    """As in `Replayed`."""


class Survey(NamedTuple):
    """Facts about conversations that are needed before their first line is judged."""

    audits: frozenset[Key] = frozenset()
    """Conversations in which a refused message was forwarded."""
    opened: frozenset[Key] = frozenset()
    """Conversations with an `initialize`."""
    has_several: bool = False
    """Whether there is more than one conversation."""


def survey(journal: Iterable[JournalEntry]) -> Survey:
    """Collect the facts in a first pass over *journal*."""
    audits, opened = set(), set()
    first, has_several = None, False
    for entry in journal:
        record = entry.record
        if record is None:
            continue
        key = conversation_key(record)
        first = first or key
        has_several = has_several or key != first
        if record["metadata"].get("passed") is True:
            audits.add(key)
        if record["method"] == "initialize":
            opened.add(key)
    return Survey(frozenset(audits), frozenset(opened), has_several)


def replay(
    journal: Iterable[JournalEntry],
    seen: Survey,
    *,
    limits: Limits,
    judge: Callable[[ReplayOpening], ReplayJudge] = plain_judge,
) -> Iterator[Replayed]:
    """Yield the result of each line of *journal*; *seen* comes from `survey`."""
    talks: dict[Key, _ReplayedTalk] = {}
    numbers = count(1)
    restarts = 0
    for entry in journal:
        record = entry.record
        if record is None or record["metadata"].get("party") not in {"client", "server"}:
            yield Replayed(entry, "broken")
            continue
        key = conversation_key(record)
        if key not in talks:
            if len(talks) >= MOST_CONVERSATIONS:
                _forget_one(talks)
            opening = _opening(record, seen, limits)
            talks[key] = _ReplayedTalk(judge(opening), opening.effect, set(), next(numbers) if seen.has_several else 0)
        before, restarts = restarts, record["metadata"].get("restarts", 0)
        if restarts != before:
            # Only a guard with one conversation restarts its server.
            for each in talks.values():
                each.judge.renew()
        talk = talks[key]
        talk.effect.recall(_told(record))
        yield _again(entry, record, talk)._replace(conversation=talk.number)


def conversation_key(record: Record) -> Key:
    """Return the key of the conversation of *record*."""
    session = record["metadata"].get("session")
    if not session and record["transport"] == "http":
        session = record["requestId"]
    return record["transport"], str(session or "")


def _told(record: Record) -> list[Any]:
    """Return the violations of *record* as they were recorded."""
    error = record["error"]
    listed = error.get("violations") if isinstance(error, dict) else None
    recorded = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    if record["metadata"].get("kind") == "batch":
        # A policy judges each message of a batch, and places in it do not start with its index.
        recorded += [{**each, "at": _below(str(each.get("at")))} for each in recorded]
    return recorded


def _below(at: str) -> str:
    """Return the place *at* without its first part."""
    _, _, rest = at.removeprefix("/").partition("/")
    return f"/{rest}" if rest else ""


def _forget_one(talks: dict[Key, _ReplayedTalk]) -> None:
    oldest = next((key for key in talks if key[0] == "http"), None)
    if oldest is not None:
        del talks[oldest]


def _opening(record: Record, seen: Survey, limits: Limits) -> ReplayOpening:
    """Return the start of the conversation that begins with *record*. Over HTTP it may have been opened elsewhere."""
    key, metadata = conversation_key(record), record["metadata"]
    revision = metadata.get("revision")
    elsewhere = record["transport"] == "http" and key not in seen.opened and is_known(revision)
    mode, most = metadata.get("mode"), metadata.get("frameBytes")
    # Only a guard writes a mode; its server may have any name.
    server = "" if mode else str(metadata.get("server") or "")
    if most is None and server == "assets":
        most = REQUESTS.frame_bytes
    if type(most) is int and most > 0 and limits.frame_bytes == DEFAULT.frame_bytes:
        # With a different limit in the settings, the replay shows its effect.
        limits = replace(limits, frame_bytes=most)
    return ReplayOpening(
        mode if mode in ("audit", "enforce") else "audit" if key in seen.audits else "enforce",
        revision if elsewhere else None,
        server,
        limits,
        Effect(),
        record["route"],
        server_of(record),
    )


def _again(entry: JournalEntry, record: Record, talk: _ReplayedTalk) -> Replayed:
    frame = recorded_frame(record["metadata"])
    if frame is None:
        _pass_over(record["metadata"], talk)
        return Replayed(entry, "no payload")
    if talk.unheard and _answers_unheard(record["metadata"], talk):
        return Replayed(entry, "not judged")
    if any(rule in RULES and RULES[rule].code == "HEADER_MISMATCH" for rule, _ in violations(record)):
        # The headers are not in the journal. The message was refused because of them, and had no effect.
        return Replayed(entry, "by its headers")
    if any(rule == "guard/failure" for rule, _ in violations(record)):
        return Replayed(entry, "not judged")
    verdict = _heard(record, frame, talk.judge)
    if record["metadata"].get("redacted"):
        return Replayed(entry, "redacted")
    if any(rule.startswith("lock/") for rule, _ in violations(record)):
        # The lock is not in the journal.
        return Replayed(entry, "by a lock", verdict)
    if verdict is None:
        return Replayed(entry, "not judged")
    return Replayed(entry, "same" if _same(record, verdict) else "different", verdict)


def _pass_over(metadata: dict[str, Any], talk: _ReplayedTalk) -> None:
    """Remember a message without a frame, so that its request or response does not count as wrong."""
    ident, kind = metadata.get("id"), metadata.get("kind")
    if not isinstance(ident, str | int):
        return
    if kind == "request" and len(talk.unheard) < _MOST_UNHEARD:
        talk.unheard.add((metadata["party"], ident))
    elif kind in _ANSWERS and not _answers_unheard(metadata, talk):
        talk.judge.give_up(Party(metadata["party"]).other, ident)


def _answers_unheard(metadata: dict[str, Any], talk: _ReplayedTalk) -> bool:
    """Whether a message is the response to a request without a frame."""
    asked = Party(metadata["party"]).other.value, metadata.get("id")
    if metadata.get("kind") not in _ANSWERS or asked not in talk.unheard:
        return False
    talk.unheard.discard((asked[0], asked[1]))
    return True


def _heard(record: Record, frame: bytes, judge: ReplayJudge) -> Verdict | None:
    metadata = record["metadata"]
    party = Party(metadata["party"])
    if metadata.get("kind") == "missing":
        ident = metadata.get("id")
        whole = type(ident) is int or (isinstance(ident, str) and len(ident) < ID_LENGTH)
        excused = not violations(record)
        return judge.give_up(party.other, ident, *_reason(record), excused=excused) if whole else None
    if record["transport"] != "http":
        return judge.hear(party, frame, Facts())
    return judge.hear(party, frame, Facts("http", metadata.get("revision") if party is Party.CLIENT else None))


def _reason(record: Record) -> tuple[str, str]:
    """Return why a response is missing: the error code of the request, and the recorded message."""
    error = record["error"] if isinstance(record["error"], dict) else {}
    found = next((str(each.get("found")) for each in _told(record)), "")
    return "TIMEOUT" if error.get("code") == "TIMEOUT" else "UPSTREAM_FAILURE", found.partition(": ")[2]


def _same(record: Record, verdict: Verdict) -> bool:
    # A failed tool is not a verdict, so the recorded status is used.
    status = status_of(verdict, failed=record["status"] == "failed")
    found = [(each.rule, each.at) for each in verdict.violations]
    recorded = violations(record)
    known = [each for each in recorded if not is_removed_rule(each[0])]
    was = "ok" if record["status"] == "reported" and recorded and not known else record["status"]
    return status == was and found == known

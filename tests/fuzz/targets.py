"""
What is fuzzed: plain functions from bytes, each of which raises if something does not hold. No process, no socket.

Whatever calls them may be atheris, our own loop or a test; see `fuzzing.py`.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Final, NoReturn

import jiter
import orjson

from assay.edges.http.forwarding import Forwarding, read_upstream_head
from assay.edges.http.heads import RequestHead, read_head, visible
from assay.edges.judged_exchange import JudgedExchange
from assay.edges.url_sessions import UrlSession, Who
from assay.guard.deliveries import ClientTraits, Outcome, ServerTraits
from assay.guard.factory import SessionFactory
from assay.guard.session import GuardedSession, Timing
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.judge import syntax
from assay.judge.conversation import Conversation, Facts
from assay.judge.events import Reader, event, unbroken
from assay.judge.headers import check_headers, keeps_headers
from assay.model.limits import DEFAULT
from assay.model.verdict import Party, Violation
from assay.records.importers.importer import ImportOptions
from assay.records.importers.importer_table import BY_NAME, recognised, unknown
from assay.records.judging import Judging
from assay.records.rows import TranscriptError
from assay.spec.revisions import LATEST, REVISIONS

Target = Callable[[bytes], None]


def fuzz_syntax(data: bytes) -> None:
    """What is accepted reads the same to three parsers, and is the same when it is written and read again."""
    value = syntax.read(data)
    if isinstance(value, Violation):
        return
    assert _same(orjson.loads(data), value)
    assert _same(jiter.from_json(data, catch_duplicate_keys=True, allow_inf_nan=False), value)
    assert _same(json.loads(data, object_pairs_hook=_unique), value)
    assert _same(syntax.read(syntax.write(value)), value)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers as doubles, since that is how some parsers read long ones."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float) and not isinstance(one, bool):
        return not isinstance(other, bool) and float(one) == float(other)
    return type(one) is type(other) and bool(one == other)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), "a repeated key was accepted"
    return found


def fuzz_events(data: bytes) -> None:
    """
    Events are the same however the stream is cut, nothing of it is lost, and what is written is one event again.

    The first two bytes say how long the pieces are, and how long an event may be.
    """
    if len(data) < 2:
        return
    size, limit, stream = 1 + data[0], 16 + data[1], data[2:]
    pieces, rest = _events([stream[at : at + size] for at in range(0, len(stream), size)], limit)
    whole, whole_rest = _events([stream], 1 << 20)
    large, large_rest = _events([stream[at : at + size] for at in range(0, len(stream), size)], 1 << 20)
    assert b"".join(each.raw for each in pieces) + rest == stream
    assert b"".join(each.raw for each in whole) + whole_rest == stream
    assert large_rest == whole_rest
    assert [_told(each) for each in large if _told(each)] == [_told(each) for each in whole if _told(each)]
    for each in whole:
        if each.data is not None and b"\n" not in each.data and b"\r" not in each.data and each.whole:
            [again], none = _events([event(each.data)], 1 << 20)
            # Some readers split lines at more characters, which are written as escapes.
            expected = unbroken(each.data)
            assert (again.data, none) == (expected, b"")


def _events(chunks: list[bytes], limit: int) -> tuple[list[Any], bytes]:
    reader = Reader(limit)
    found = [each for chunk in chunks for each in reader.feed(chunk)]
    return found, reader.rest()


def _told(each: Any) -> tuple[Any, ...] | None:
    """What an event says; None for blank lines, which may be one or two by the place where the stream is cut."""
    said = each.data, each.ident, each.name, each.retry
    return said if any(part is not None and part != b"" for part in said) else None


def fuzz_headers(data: bytes) -> None:
    """
    No head raises; what a server is sent for one says what was read of it, once; the quick look at headers accepts
    nothing that the thorough one refuses.
    """
    lines, _, body = data.partition(b"\n\n")
    pairs = [(name.strip().lower(), value) for name, _, value in (line.partition(b":") for line in lines.split(b"\n"))]
    head = read_head("POST", pairs)
    if not isinstance(head, RequestHead):
        return
    _check_sent(head)
    headers = head.headers
    message = syntax.read(body)
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return
    for revision in REVISIONS:
        found = list(check_headers(message, headers, revision, ()))
        assert not keeps_headers(message, headers, revision, ()) or not found
        Conversation(revision=revision).hear(Party.CLIENT, body, Facts("http", revision, headers))


def _check_sent(head: RequestHead) -> None:
    for enforcing in (True, False):
        sent = Forwarding(enforcing).headers(head)
        names = [name for name, _ in sent]
        for name in (b"mcp-session-id", b"mcp-protocol-version", b"authorization", b"content-type", b"mcp-method"):
            assert names.count(name) <= 1
        given = dict(sent)
        assert given.get(b"mcp-session-id") == head.session
        assert given[b"content-type"] == b"application/json"
        assert not {b"connection", b"content-encoding", b"host", b"transfer-encoding"} & set(names)
        assert not enforcing or all(b"\n" not in value and b"\r" not in value for _, value in sent)


CALL: Final = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{"words":"sea"}}}'


def fuzz_answers(data: bytes) -> None:
    """
    Whatever a server answers, under enforce every line that a client gets is one that the guard writes.

    The first line is the head of the answer: its status, and one header. The rest is its body.
    """
    first, _, body = data.partition(b"\n")
    status, _, header = first.partition(b" ")
    name, _, value = header.partition(b":")
    pairs = [(b"content-type", b"text/event-stream"), (name.strip().lower(), value)]
    head = read_upstream_head(int(status) if status.isdigit() and len(status) == 3 else 200, pairs)
    for _, each in Forwarding(enforcing=True).answer(head, pairs, head.challenges):
        assert not set(each) & set(b"\r\n\0")
    _check_stream(body)
    turn = _turn()
    told = turn.refused(body, 400) if head.status >= 400 else turn.body(body, 200)
    assert not told.content or not isinstance(syntax.read(told.content), Violation)
    assert not turn.due


def _check_stream(body: bytes) -> None:
    turn = _turn()
    sent = b"".join(map(turn.event, Reader(1 << 16).feed(body)))
    for line in sent.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        field, _, value = line.partition(b": ")
        if field == b"data" and value:
            found = syntax.read(value)
            assert isinstance(found, dict | list), line
            assert isinstance(found, list) or found.get("jsonrpc") == "2.0", line
        elif field == b"id":
            assert visible(value), line
        elif field == b"retry":
            assert value.isdigit(), line
        else:
            assert line in {b"", b":", b"event: message", b"data: "}, line


def _turn() -> JudgedExchange:
    """One call of a client in a session, under enforce."""
    factory = SessionFactory(Terms("enforce", DEFAULT, 60.0), Sinks(), _watch())
    session = factory.open(ClientTraits("http", carries_raw=True), ServerTraits("url"), revision="2025-11-25")
    for party, message in OPENED:
        (session.from_client if party is Party.CLIENT else session.from_server)(orjson.dumps(message))
    turn = JudgedExchange(UrlSession(session, Who("a", b""), b"s", 0.0, lambda _: None), patient=True, enforcing=True)
    turn.hear(CALL, Facts("http"))
    assert turn.to_server == CALL
    return turn


def _watch() -> GuardSummary:
    return GuardSummary(lambda _: None, lambda _: None, enforcing=True)


TOOL: Final = {
    "name": "search",
    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}},
    "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}},
}
OPENED: Final = [
    (Party.CLIENT, {"jsonrpc": "2.0", "id": "l", "method": "tools/list", "params": {}}),
    (Party.SERVER, {"jsonrpc": "2.0", "id": "l", "result": {"tools": [TOOL]}}),
]


def fuzz_conversation(data: bytes) -> None:
    """
    Lines are said by the one side and the other. Audit changes no byte, and enforce answers every refused request once.

    A line that begins with `<` is the server's, any other the client's. The length of all decides the revision.
    """
    revision = ("2025-03-26", "2025-11-25", LATEST)[len(data) % 3]
    audit, enforce = (_session(mode, revision) for mode in ("audit", "enforce"))
    for line in data.split(b"\n"):
        party = Party.SERVER if line.startswith(b"<") else Party.CLIENT
        frame = line.removeprefix(b"<")
        _audited(audit, party, frame)
        _enforced(enforce, party, frame)


class _Seen(GuardedSession):
    """A session in which a fault of ours is seen: usually it is a verdict like any other."""

    __slots__ = ()

    def _unjudged(self, _: Party, __: bytes, error: Exception, ___: object) -> NoReturn:
        raise error


def _session(mode: Any, revision: str) -> GuardedSession:
    judge = Conversation(mode=mode, limits=DEFAULT, revision=revision)
    client = ClientTraits("stdio", sees_loss=True, carries_raw=True)
    session = _Seen(judge, Sinks(), client, ServerTraits("child"), timing=Timing(60.0, clock=lambda: 0.0))
    for party, message in OPENED:
        session.judge(party, orjson.dumps(message))
    return session


def _sides(outcome: Outcome, party: Party) -> tuple[list[bytes], list[bytes]]:
    """What goes to the other party, and what goes back."""
    answers = {each.answer for each in outcome.failed}
    to_client = [each.frame for each in outcome.to_client if each.frame not in answers]
    to_server = [each.frame for each in outcome.to_server]
    return (to_server, to_client) if party is Party.CLIENT else (to_client, to_server)


def _audited(session: GuardedSession, party: Party, frame: bytes) -> None:
    verdict = session.judge(party, frame)
    if verdict.findings is not None:
        assert _sides(session.outcome(verdict), party) == ([frame], [])


def _enforced(session: GuardedSession, party: Party, frame: bytes) -> None:
    verdict = session.judge(party, frame)
    if verdict.findings is None:
        return
    _, sent = _sides(session.outcome(verdict), party)
    back = sent[0] if sent else None
    for part in verdict.parts or (verdict,):
        if part.kind == "request" and part.onward is None and _is_clear(part.value):
            assert back is not None, "a refused request has no answer"
            found = json.loads(back)
            ids = [each.get("id") for each in (found if isinstance(found, list) else [found])]
            assert part.value["id"] in ids, "the answer to a refused request has another id"
    if back is not None:
        assert not isinstance(syntax.read(back), Violation)


def _is_clear(message: Any) -> bool:
    """Whether *message* is a request beyond doubt, however wrong it is."""
    ident, method = message.get("id"), message.get("method")
    return isinstance(ident, str) and isinstance(method, str) and not {"result", "error"} & message.keys()


FIELDS: Final = {"dir": "log.way", "msg": "log.body", "c2s": "fromClient", "ts": "when"}
"""The names of members in the seeds of the format `map`."""


def fuzz_importers(data: bytes) -> None:
    """
    A file of any format is read, or refused with a reason; as a whole, and a document in small pieces as well.

    The first line is the name of the format, as for ``--from``. The rest is the file.
    """
    name, _, file = data.partition(b"\n")
    importer = BY_NAME.get(name.decode(errors="replace"))
    if recognised(file, "") is None:
        unknown(file, "")
    if importer is None:
        return
    pieces = [file[at : at + 100] for at in range(0, len(file), 100)]
    for read in ([file], pieces) if importer.is_document else (file.splitlines(keepends=True),):
        judging = Judging(lambda _: Conversation(mode="audit"), None, importer.blind)
        with suppress(TranscriptError):
            list(judging.follow(importer.read(read, ImportOptions(fields=FIELDS))))


@cache
def targets() -> dict[str, Target]:
    """Every target by its name."""
    return {
        "syntax": fuzz_syntax,
        "events": fuzz_events,
        "headers": fuzz_headers,
        "answers": fuzz_answers,
        "conversation": fuzz_conversation,
        "importers": fuzz_importers,
    }

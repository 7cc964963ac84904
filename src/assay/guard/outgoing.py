"""Turns what goes where for a message into deliveries, each with the requests it ends. No I/O."""

from collections.abc import Iterable, Iterator

from assay.guard.deliveries import Author, Delivery, Failed, Outcome
from assay.guard.routing import Move
from assay.judge import render, syntax
from assay.judge.conversation import Conversation
from assay.judge.partial_frame import outline
from assay.model.verdict import Exchange, Party, Verdict, verdict
from assay.rules import violation


class Unread:
    """The frame for a client whose transport carries messages only, in place of server output that cannot be read."""

    __slots__ = ("answers", "frame")

    def __init__(self, frame: bytes | None = None, answers: tuple[Exchange, ...] = ()) -> None:
        self.frame = frame
        self.answers = answers


def deliveries(heard: Verdict, move: Move, raw: Unread | None = None) -> Outcome:
    """Return the frames of *move* as deliveries; *raw* takes the place of what the client's transport cannot carry."""
    if heard.party is Party.CLIENT:
        return _from_client(heard, move)
    to_server = _to_server(heard, move.to_server, replies=True)
    if move.to_client is None:
        return Outcome((), to_server, verdict=heard)
    if raw is not None:
        stray = () if raw.frame is not None or heard.kind == "blank" else (heard.frame,)
        made = (
            () if raw.frame is None else (Delivery(raw.frame, _author(heard, raw.frame), raw.answers, verdict=heard),)
        )
        return Outcome(made, to_server, stray, verdict=heard)
    ends = tuple(each.exchange for each in heard.parts or (heard,) if each.exchange is not None and is_answer(each))
    about = None if ends else heard.exchange
    made = (Delivery(move.to_client, _author(heard, move.to_client), ends, about, heard),)
    return Outcome(made, to_server, verdict=heard)


def _from_client(heard: Verdict, move: Move) -> Outcome:
    to_server = _to_server(heard, move.to_server)
    opened = tuple(each for each in requests(heard) if each is not None) if to_server else ()
    if move.to_client is None:
        code = render.code_of(heard) if move.to_server is None and heard.findings is not None else None
        return Outcome((), to_server, opened=opened, refusal=code, verdict=heard)
    parts = heard.parts or (heard,)
    ends = tuple(each.exchange for each in parts if each.exchange is not None and each.back is not None)
    made = (Delivery(move.to_client, "guard", ends, None, heard, replies=True),)
    return Outcome(made, to_server, opened=opened, refusal=render.code_of(heard), verdict=heard)


def _to_server(heard: Verdict, frame: bytes | None, *, replies: bool = False) -> tuple[Delivery, ...]:
    if frame is None:
        return ()
    author: Author = _author(heard, frame) if heard.party is Party.CLIENT else "guard"
    return (Delivery(frame, author, (), heard.exchange, heard, replies),)


def _author(heard: Verdict, frame: bytes) -> Author:
    return "peer" if frame is heard.frame else "guard"


def at_the_end(party: Party, move: Move) -> Outcome:
    """Return the refusals of an over-long message of *party*, which are known at its end."""
    client = () if move.to_client is None else (Delivery(move.to_client, "guard", replies=party is Party.CLIENT),)
    server = () if move.to_server is None else (Delivery(move.to_server, "guard", replies=party is Party.SERVER),)
    return Outcome(client, server)


def sent_bytes(move: Move) -> int:
    """Return how many bytes go out for a message."""
    return len(move.to_client or b"") + len(move.to_server or b"")


def answered(left: Iterable[Failed]) -> tuple[Delivery, ...]:
    """Return the answers to requests that the guard answers itself."""
    return tuple(
        Delivery(each.answer, "guard", () if each.exchange is None else (each.exchange,), None, each.verdict, True)
        for each in left
        if each.answer
    )


def requests(heard: Verdict) -> Iterator[Exchange | None]:
    """Yield the requests of a client's message that go on to the server; None for one that is not tracked."""
    for each in heard.parts or (heard,):
        if each.kind == "request" and each.onward is not None:
            yield each.exchange


def is_answer(heard: Verdict) -> bool:
    """
    Return whether a message of the server ends a request of the client.

    One with neither result nor error, or with a method beside them, does by its id: nothing else will come for it.
    """
    exchange = heard.exchange
    if heard.kind in {"result", "error"} or exchange is None:
        return heard.kind in {"result", "error"}
    return heard.kind in {"request", "unreadable"} and exchange.asker is Party.CLIENT


def is_message(heard: Verdict) -> bool:
    """Return whether output of the server is a message, or ends a request, so that any transport can carry it."""
    return heard.value is not None and (heard.kind not in {"blank", "unreadable"} or is_answer(heard))


def unread(heard: Verdict, rest: bytes, conversation: Conversation) -> Unread:
    """
    Return what a client gets under audit for server output that cannot be read, if it cannot carry the raw bytes.

    To be called before the request is given up.
    """
    found = outline(heard.frame, rest or heard.frame)
    if not found.answers or found.id is None:
        return Unread()
    waiting = tuple(each for each in conversation.open_requests(Party.CLIENT) if each.id == found.id)
    if not waiting:
        return Unread()
    if len(heard.frame) <= conversation.limits.frame_bytes:
        return Unread(heard.frame, waiting)
    # The guard does not keep all of it.
    wrong = violation("framing/size", expected="a shorter answer", found="one that is too long")
    return Unread(render.failure(found.token, "UPSTREAM_INVALID", (wrong,), 0, None), waiting)


def guard_notification(party: Party, frame: bytes, exchange: Exchange, revision: str | None) -> Verdict:
    """Return the verdict for the records on a notification that the guard wrote in the place of *party*."""
    return verdict(party, frame, "notification", syntax.read(frame), exchange, revision)

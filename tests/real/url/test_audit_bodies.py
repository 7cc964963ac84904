"""Under audit a JSON body goes on as it comes, and is judged all the same."""

from collections.abc import Iterator
from threading import Event

import pytest

from assay.edges.upstream_errors import NoAnswerError
from assay.edges.url_exchange import AuditedBody
from assay.spec.revisions import LATEST
from kit.http_client import SECONDS, Service, Wire, call, frame_of, modern, until
from kit.scripted_http import Liar, Peer, Received, guarding, lying, result

CALL = call(7, "search", {"words": "sea"}, LATEST)
GOOD = {"content": [], "structuredContent": {"found": 1}, "resultType": "complete"}
LIMIT = 65536

Where = tuple[Service, Liar]


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    """A guard that stops nothing, for messages of 64 KiB."""
    options = ("--mode", "audit", "--set", f"guard.frame_bytes={LIMIT}")
    with lying() as liar, guarding(tmp_path_factory.mktemp("guard"), liar.url, *options) as guard:
        yield guard, liar


def in_two_parts(liar: Liar, whole: bytes) -> Event:
    """The server says half of *whole*, and the rest once the event is set."""
    half_is_there = Event()

    def script(_: Received, peer: Peer) -> None:
        peer.head(200, content_type="application/json", content_length=str(len(whole)))
        peer.send(whole[: len(whole) // 2])
        assert half_is_there.wait(SECONDS)
        peer.send(whole[len(whole) // 2 :])

    liar.script = script
    return half_is_there


def told(guard: Service, before: int) -> str:
    """What the log says after so many characters, but for the list of tools that is missing."""
    lines = guard.log.so_far()[before:].splitlines()
    return "\n".join(line for line in lines if "[contract/not-judged]" not in line).strip()


def half(wire: Wire, count: int) -> bytes:
    """The first *count* bytes of the body."""
    found = b""
    while len(found) < count:
        found += wire.chunk()
    return found


@pytest.mark.parametrize(
    ("message", "findings"),
    [
        pytest.param(result(CALL, GOOD), (), id="good"),
        pytest.param(result(CALL, {**GOOD, "content": 5}), ("/result/content",), id="bad"),
        pytest.param(
            {**result(CALL, GOOD), "id": 8}, ("[protocol/unsolicited]", "[protocol/unanswered]"), id="another-answer"
        ),
        pytest.param(result(CALL, {**GOOD, "more": "x" * LIMIT}), (f"at most {LIMIT:,} bytes",), id="too-long"),
    ],
)
def test_a_body_goes_on_before_it_is_whole_and_is_judged_at_its_end(
    where: Where, message: object, findings: tuple[str, ...]
) -> None:
    guard, liar = where
    whole = frame_of(message)
    half_is_there = in_two_parts(liar, whole)
    before = len(guard.log.so_far())
    with guard.open() as wire:
        wire.say("POST", "/mcp", frame_of(CALL), modern(CALL))
        assert wire.head().status == 200
        found = half(wire, len(whole) // 2)
        assert told(guard, before) == ""
        half_is_there.set()
        assert found + b"".join(iter(wire.chunk, b"")) == whole
    if findings:
        # All of them, or the next test would find the last one in its log.
        until(lambda: all(each in guard.log.so_far()[before:] for each in findings))
    else:
        assert told(guard, before) == ""


def test_a_body_that_never_ends_is_passed_on_piece_by_piece(where: Where) -> None:
    """A server that answers `subscriptions/listen` with JSON values one after the other is wrong, and still heard."""
    guard, liar = where
    gone = Event()

    def endless(_: Received, peer: Peer) -> None:
        peer.head(200, content_type="application/json")
        peer.send(b'{"one":1}\n')
        if peer.gone():
            gone.set()

    liar.script = endless
    with guard.open() as wire:
        wire.say("POST", "/mcp", frame_of(CALL), modern(CALL))
        wire.head()
        assert wire.chunk() == b'{"one":1}\n'
    assert gone.wait(SECONDS), "the server is told that nobody listens any more"


def test_what_is_too_much_to_keep_goes_on_unjudged_and_is_told() -> None:
    kept: list[int] = []
    told: list[str] = []

    def hold(count: int) -> None:
        kept.append(count)
        if count > 5:
            raise NoAnswerError("too much at once")

    hearing = AuditedBody(
        100, hold=hold, judge=lambda _: pytest.fail("there is nothing to judge"), unjudged=told.append
    )
    for chunk in (b"12345", b"6", b"7" * 1000):
        hearing.more(chunk)
    hearing.end()
    assert (kept, told) == ([5, 6, 0], ["too much at once"])

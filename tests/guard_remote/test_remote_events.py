"""Events of others: whole, however they arrive, and never more of them in memory than may be."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.edges.http.events import PING, Event, Reader, event, primer

law = settings(max_examples=200, deadline=None, derandomize=True)

LIMIT = 100

frames = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1, max_size=LIMIT // 4)
endings = st.sampled_from([b"\n", b"\r", b"\r\n"])
lines = st.sampled_from(
    [b"data: x", b"data:y", b"data", b": ping", b"id: 7", b"id:", b"event: e", b"retry: 5", b"zz: 1", b""]
)


def read(stream: bytes, size: int = 0) -> list[Event]:
    """The events of a stream that arrives in pieces of *size*, or at once."""
    reader = Reader(LIMIT)
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)] if size else [stream]
    return [each for piece in pieces for each in reader.feed(piece)]


def meaning(events: list[Event]) -> list[Event]:
    """Without the bytes: of a line end that came in two pieces, the second may be missing there."""
    return [each._replace(raw=b"") for each in events]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param(b"data: a\n\n", [Event(b"", b"a")], id="plain"),
        pytest.param(b"data:a\r\n\r\n", [Event(b"", b"a")], id="crlf"),
        pytest.param(b"data: a\r\rdata: b\r\r", [Event(b"", b"a"), Event(b"", b"b")], id="cr"),
        pytest.param(b"data: a\ndata:  b\ndata\n\n", [Event(b"", b"a\n b\n")], id="several-lines"),
        pytest.param(b"id: 1\nretry: 250\ndata:\n\n", [Event(b"", b"", b"1", b"message", 250)], id="primer"),
        pytest.param(b"event: ping\ndata: {}\n\n", [Event(b"", b"{}", None, b"ping")], id="typed"),
        pytest.param(b": hello\n\n:\n\n", [], id="comments"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [Event(b"", b"a")], id="byte-order-mark"),
        pytest.param(b"data: a\n", [], id="unfinished"),
        pytest.param(b"id: a\0b\nretry: soon\ndata: c\n\n", [Event(b"", b"c")], id="no-id-no-retry"),
        pytest.param(
            b"data: " + b"x" * 200 + b"\n\ndata: y\n\n", [Event(b"", b"x" * 101), Event(b"", b"y")], id="long"
        ),
    ],
)
def test_a_stream_is_read_as_its_format_says(stream: bytes, expected: list[Event]) -> None:
    """WHATWG HTML, server-sent events, interpreting an event stream."""
    assert meaning(read(stream)) == expected


@law
@given(st.lists(frames, max_size=5), st.booleans())
def test_what_is_written_is_read(messages: list[str], numbered: bool) -> None:
    """The mirror image of our own writer."""
    stream = primer(b"0") + PING
    stream += b"".join(event(each.encode(), b"%d" % at if numbered else None) for at, each in enumerate(messages))
    first, *others = read(stream)
    assert (first.id, first.data, first.retry) == (b"0", b"", 1000)
    assert [each.data.decode() for each in others] == messages
    assert [each.id for each in others] == [b"%d" % at if numbered else None for at in range(len(messages))]


@law
@given(st.lists(st.tuples(lines, endings), max_size=30), st.integers(1, 7))
def test_how_bytes_arrive_makes_no_difference(parts: list[tuple[bytes, bytes]], size: int) -> None:
    """A law of every reader here."""
    stream = b"".join(line + ending for line, ending in parts)
    assert meaning(read(stream, size)) == meaning(read(stream))


@pytest.mark.parametrize(
    "endless", [b"x", b"data: x\n", b"zz: x\n", b": x\n"], ids=["line", "data", "fields", "comments"]
)
def test_an_event_without_end_stays_within_bounds(endless: bytes) -> None:
    """Ours."""
    reader = Reader(LIMIT)
    tracemalloc.start()
    for _ in range(10):
        assert list(reader.feed(endless * 10_000)) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20
    assert list(reader.feed(b"\n\ndata: y\n\n"))[-1].data == b"y"

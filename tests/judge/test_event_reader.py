"""A stream of events, read: the mirror image of how they are written, and the same however its bytes come."""

from typing import Any

import pytest

from assay.judge.events import OVERHEAD, Event, Reader, event, primer
from kit.rows import rows


def read(*chunks: bytes, limit: int = 1 << 20) -> list[Event]:
    """All events of a stream that comes in these *chunks*."""
    reader = Reader(limit)
    found = [each for chunk in chunks for each in reader.feed(chunk)]
    assert b"".join(each.raw for each in found) + reader.rest() == b"".join(chunks)
    return found


def meant(found: list[Event]) -> list[tuple[bytes | None, bytes | None, bytes, bytes | None]]:
    """What they mean, where they mean anything."""
    every = [(each.data, each.ident, each.name, each.retry) for each in found]
    return [each for each in every if each != (None, None, b"", None)]


STREAMS = [
    pytest.param(b"data: a\n\n", [(b"a", None, b"", None)], id="lf"),
    pytest.param(b"data: a\r\n\r\n", [(b"a", None, b"", None)], id="crlf"),
    pytest.param(b"data: a\r\rdata: b\r\r", [(b"a", None, b"", None), (b"b", None, b"", None)], id="cr"),
    pytest.param(b"data: a\r\n\rdata: b\n\r\n", [(b"a", None, b"", None), (b"b", None, b"", None)], id="mixed"),
    pytest.param(b"\xef\xbb\xbfdata: a\n\n", [(b"a", None, b"", None)], id="byte-order-mark"),
    pytest.param(b"\n\xef\xbb\xbfdata: a\n\n", [], id="byte-order-mark-in-the-middle"),
    pytest.param(b"data:a\ndata:  b\ndata\ndata:\n\n", [(b"a\n b\n\n", None, b"", None)], id="several-lines"),
    pytest.param(b": hello\n\n:\n\ndata: a\n\n", [(b"a", None, b"", None)], id="comments"),
    pytest.param(b": hello\ndata: a\n: bye\n\n", [(b"a", None, b"", None)], id="comments-within"),
    pytest.param(b"id: 7\nevent: ping\nretry: 10\n\n", [(None, b"7", b"ping", b"10")], id="no-data"),
    pytest.param(b"id\ndata: a\n\n", [(b"a", b"", b"", None)], id="empty-id"),
    pytest.param(b"id: a\0b\nretry: soon\ndata: a\n\n", [(b"a", None, b"", None)], id="no-id-no-retry"),
    pytest.param(b"else: a\ndata : b\n\n", [], id="unknown-fields"),
    pytest.param(b"\n\n\ndata: a\n\n\n", [(b"a", None, b"", None)], id="blank-lines"),
    pytest.param(b"data: a\n\ndata: b\n", [(b"a", None, b"", None)], id="unfinished"),
    pytest.param("data: grün\n\n".encode(), [("grün".encode(), None, b"", None)], id="utf-8"),
]


@rows(("stream", "expected"), STREAMS)
def test_it_does_not_matter_how_the_bytes_come(
    stream: bytes, expected: list[tuple[bytes | None, bytes | None, bytes, bytes | None]]
) -> None:
    assert meant(read(*(stream[at : at + 1] for at in range(len(stream))))) == expected
    for cut in range(len(stream) + 1):
        assert meant(read(stream[:cut], stream[cut:])) == expected


def test_an_event_is_the_same_for_readers_that_split_at_more_characters() -> None:
    for code in range(0x110000):
        if len(f"a{chr(code)}b".splitlines()) > 1 and chr(code) not in "\r\n":
            written = event(f'"{chr(code)}"'.encode()).decode()
            assert written.splitlines() == ["event: message", f'data: "\\u{code:04x}"', ""]
    assert event('"— “ä” \u2027\u202a\x84"'.encode()).decode().splitlines()[1] == 'data: "— “ä” \u2027\u202a\x84"'


@rows("ident", [None, b"3-1"])
@rows("data", [b'{"jsonrpc":"2.0"}', b"x" * 100_000, "ü".encode()])
def test_what_is_written_is_read_again(data: bytes, ident: bytes | None) -> None:
    written = event(data, ident)
    assert read(written) == [Event(written, data, ident, b"message")]


def test_a_primer_has_an_id_and_no_message() -> None:
    [found] = read(primer(b"1-0"))
    assert (found.data, found.ident, found.retry, found.is_message) == (b"", b"1-0", b"1000", False)


@rows(("line", "blank"), [(b"\n", b"\n"), (b"\r", b"\r"), (b"\r\n", b"\r")])
def test_an_event_comes_out_with_the_first_byte_that_ends_it(line: bytes, blank: bytes) -> None:
    reader = Reader(100)
    assert list(reader.feed(b"data: a" + line)) == []
    assert [each.data for each in reader.feed(blank)] == [b"a"]


@rows("step", [1, 1000, 1 << 20])
@rows("end", [b"\n\n", b"\r\r", b"\r\n\r\n"])
def test_an_event_that_is_too_long_comes_in_pieces_and_the_next_one_whole(end: bytes, step: int) -> None:
    stream = b"id: 1\ndata: " + b"x" * (OVERHEAD + 5000) + end + b"data: next" + end
    pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
    found = read(*pieces, limit=100)
    assert not found[0].whole
    assert found[0].ident == b"1"
    assert (found[0].data or b"")[:101] == b"x" * 101
    assert all(
        each.data is None and not each.whole for each in found[1:] if each.raw.strip(b"\r\n") and each.data != b"next"
    )
    assert meant([found[-1] if found[-1].data else found[-2]]) == [(b"next", None, b"", None)]


def test_no_more_is_held_than_an_event_may_have() -> None:
    reader = Reader(100)
    held = 0
    for _ in range(300):
        chunk = b"data: x\n" * 1000
        held += len(chunk) - sum(len(each.raw) for each in reader.feed(chunk))
        assert reader.held == held
        assert held <= 100 + OVERHEAD + len(chunk)


def test_an_event_that_is_a_little_too_long_is_not_whole() -> None:
    [found] = read(b"data: 12345\n\n", limit=4)
    assert (found.data, found.whole) == (b"12345", False)


@rows("line", [b"\n", b"\r", b"\r\n", b"\n\r"])
def test_blank_lines_come_out_together(line: bytes) -> None:
    """Ours: one by one a megabyte of them took 1.2 s, and 8 s where no line feed is among them."""
    blank = line * 10_000
    assert [each.raw for each in read(blank)] == [blank]
    found = read(b"data: a\n\n" + blank + b"data: b\n\n", blank)
    assert len(found) <= 4
    assert [each[0] for each in meant(found)] == [b"a", b"b"]


def test_an_end_that_does_not_come_is_looked_for_once() -> None:
    """Ours: a stream without line feeds was gone through to its end for each event."""
    looked: list[bytes] = []

    class Noting(bytearray):
        def find(self, *asked: Any) -> int:
            looked.append(asked[0])
            return super().find(*asked)

    reader = Reader(1 << 20)
    reader._held = Noting()
    assert len(list(reader.feed(b"data:x\r\r" * 1_000))) == 1_000
    assert looked.count(b"\n\n") == looked.count(b"\n\r") == 1

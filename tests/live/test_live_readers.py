"""Readers of feeds: typed items, all sources together, and sockets that are broken or hostile."""

import asyncio
import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
from guarded import SECONDS, call, liar, tool
from listening import HttpTalk, guard, live, only_socket, short_state, sockets
from test_live_kinds import host

from assay.records.live import feed_reader, live_sockets
from assay.records.live.feed_items import FeedItem, item_of
from assay.records.live.feed_reader import FeedReader, feed, feed_async
from assay.records.live.live_sources import LiveNews, LiveSources

SERVER = liar(tools=[tool("search")])
HELLO = b'{"event":"hello","feed":1,"servers":[]}\n'


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory of its own."""
    yield from short_state()


@contextmanager
def fake(state: Path) -> Iterator[tuple[socket.socket, str]]:
    """A listening socket like that of a guard."""
    made, path = live_sockets.listening(str(live(state)))
    with made:
        made.setblocking(True)
        made.settimeout(SECONDS)
        yield made, path


@contextmanager
def talking(state: Path, said: bytes) -> Iterator[FeedReader]:
    """A reader of a socket at which *said* is sent, and the connection then stays open."""
    with fake(state) as (made, path):
        reader = FeedReader(path)
        connection, _ = made.accept()
        with connection:
            connection.sendall(said)
            try:
                yield reader
            finally:
                reader.close()


def items(reader: FeedReader, count: int) -> list[FeedItem]:
    """The next items, until there are so many or the connection has ended."""
    found: list[FeedItem] = []
    while len(found) < count and not reader.ended:
        assert select.select([reader], [], [], SECONDS)[0], "nothing came"
        found += reader.arrived()
    return found


def news(sources: LiveSources, count: int, event: str = "record") -> list[LiveNews]:
    """The next news of this kind."""
    found: list[LiveNews] = []
    while len(found) < count:
        if sources.filenos():
            select.select(sources.filenos(), [], [], 0.05)
        sources.look_around()
        found += (each for each in sources.arrived() if each.item.event == event)
    return found


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"\xff", b'{"event":"other"}', b'{"event":7}', b'{"event":["a"]}'])
def test_a_line_that_is_nothing_known_is_no_item(line: bytes) -> None:
    assert item_of(line) is None


def test_the_iterators_end_with_the_guard(state: Path) -> None:
    with guard("--", *SERVER, state=state) as one:
        one.open()
        path = str(only_socket(state))
        reading = feed(path)
        assert next(reading).event == "hello"
        one.ask(call(1))
        first, second = islice(reading, 2)
        assert first.record is not None
        assert second.record is not None
        assert (first.record["method"], second.record["metadata"]["kind"]) == ("tools/call", "result")
        one.close()
        assert [each.event for each in reading][-1] == "bye"


def test_the_iterator_for_event_loops_yields_the_same(state: Path) -> None:
    async def events(path: str) -> list[str]:
        found = []
        async for item in feed_async(path):
            found.append(item.event)
            if item.event == "hello":
                one.ask(call(1))
                one.close()
        return found

    with guard("--", *SERVER, state=state) as one:
        one.open()
        found = asyncio.run(events(str(only_socket(state))))
    assert found[:3] == ["hello", "record", "record"]
    assert found[-1] == "bye"


@pytest.mark.parametrize("said", [b'{"event":"bye"}\n', HELLO.replace(b"hello", b"state")])
def test_a_guard_that_does_not_say_hello_first_is_given_up(state: Path, said: bytes) -> None:
    with talking(state, said) as reader:
        assert items(reader, 1) == []
        assert reader.why == "it does not say hello first"


def test_garbage_is_skipped(state: Path) -> None:
    said = b"\xff\xfe\n\n[1]\n" + HELLO + b"{}\nnull\n" + b'{"event":"dropped","count":3}\n'
    with talking(state, said) as reader:
        assert [each.event for each in items(reader, 2)] == ["hello", "dropped"]


def test_an_endless_line_ends_the_connection(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_reader, "LONGEST_LINE", 1000)
    with talking(state, HELLO + b"x" * 2000) as reader:
        assert [each.event for each in items(reader, 2)] == ["hello"]
        assert "more than 1,000 bytes" in reader.why


def test_a_silent_socket_is_given_up(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_reader, "HELLO_SECONDS", -1.0)
    with talking(state, b"") as reader:
        assert list(reader.arrived()) == []
        assert reader.why == "it does not say hello"


def test_a_refused_reader_has_the_reason(state: Path) -> None:
    with talking(state, b'{"event":"refused","why":"at most 8 listeners at once"}\n') as reader:
        items(reader, 1)
        assert reader.why == "at most 8 listeners at once"


def test_a_guard_without_room_is_no_source(state: Path) -> None:
    with fake(state) as (made, _):
        sources = LiveSources(str(live(state)), past=True)
        connection, _ = made.accept()
        with connection:
            connection.sendall(b'{"event":"refused","why":"at most 8 listeners at once"}\n')
            try:
                assert select.select(sources.filenos(), [], [], SECONDS)[0]
                assert list(sources.arrived()) == []
                assert not sources.filenos()
            finally:
                sources.close()


def test_a_socket_without_a_process_is_removed_by_a_reader(state: Path) -> None:
    with fake(state) as (_, path):
        pass
    other = live(state) / "name.sock"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(other))
    with pytest.raises(ConnectionRefusedError):
        FeedReader(path)
    with pytest.raises(ConnectionRefusedError):
        FeedReader(str(other))
    assert not os.path.lexists(path)
    assert other.exists()


def test_a_process_of_another_user_is_refused_both_ways(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_sockets, "_peer_uid", lambda _: os.geteuid() + 1)
    with fake(state) as (made, path):
        with pytest.raises(PermissionError):
            FeedReader(path)
        connection, _ = made.accept()
        with connection:
            assert not live_sockets.is_own_peer(connection)


def test_the_system_says_who_the_peer_is() -> None:
    left, right = socket.socketpair()
    with left, right:
        assert live_sockets._peer_uid(left) == os.geteuid()


def test_sources_have_the_past_and_the_present_once(state: Path) -> None:
    with guard("--name", "books", "--", *SERVER, state=state) as one:
        one.open()
        for number in range(3):
            one.ask(call(number))
        folder = str(state / "assay" / "servers" / "books")
        sources = LiveSources(str(live(state)), lambda: [folder], past=True)
        try:
            past = news(sources, 11)
            assert [each.past for each in past] == [True] * 11
            one.ask(call(9))
            present = news(sources, 2)
            assert [each.past for each in present] == [False] * 2
            assert {each.source.name for each in present} == {"books"}
            one.close()
            [end] = news(sources, 1, "bye")
            assert end.source.is_live
            assert list(sources.arrived()) == []
        finally:
            sources.close()


def test_a_journal_without_a_feed_is_followed(state: Path) -> None:
    folder = str(state / "assay" / "servers" / "books")
    sources = LiveSources(str(live(state)), lambda: [folder])
    try:
        with guard("--set", "guard.feed=false", "--name", "books", "--", *SERVER, state=state) as one:
            one.open()
            one.ask(call(1))
            found = news(sources, 7)
            assert not found[0].source.is_live
            assert found[0].item.data["method"] == "initialize"
    finally:
        sources.close()


def test_a_server_that_a_host_announces_late_is_counted_once(state: Path) -> None:
    servers = state / "assay" / "servers"
    sources = LiveSources(str(live(state)), lambda: [str(each) for each in servers.glob("*")])
    try:
        with host(state) as ask:
            del ask
            hello = news(sources, 1, "hello")[0].item.data
            other = HttpTalk(hello["address"].rstrip("/") + "/one/mcp")
            # Look for journals all the time: that of the new server may be found before the feed announces it.
            other.open()
            found = news(sources, 3)
            # Three messages of the handshake, and nothing more.
            sources.look_around()
            found += (each for each in sources.arrived() if each.item.event == "record")
            other.close()
            assert [each.item.data["method"] for each in found].count("notifications/initialized") == 1
    finally:
        sources.close()


def test_a_broken_socket_does_not_keep_others_from_being_read(state: Path) -> None:
    with fake(state), guard("--name", "books", "--", *SERVER, state=state) as one:
        one.open()
        assert len(sockets(state)) == 2
        sources = LiveSources(str(live(state)))
        try:
            [hello] = news(sources, 1, "hello")
            assert hello.source.name == "books"
        finally:
            sources.close()

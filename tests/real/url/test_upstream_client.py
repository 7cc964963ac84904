"""The client that reaches servers at a URL: which connections it uses again."""

import asyncio
from collections.abc import Awaitable, Callable

from assay.edges.upstream_client import UpstreamClient, url_of

SECONDS = 60

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


def response(text: bytes) -> bytes:
    """Return a whole response with *text* as its body."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)


async def asked_twice(afterwards: Behaviour) -> list[bytes]:
    """Return two bodies of a server that numbers its connections, and does *afterwards* behind the first response."""
    connections = 0
    read, done = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        number = connections
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(response(b"connection %d" % number))
            await writer.drain()
            if number == 1 and not done.is_set():
                await read.wait()
                await afterwards(writer)
                done.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    client = UpstreamClient(url)
    bodies = []
    for _ in range(2):
        async with client.ask("GET", url_of(url), []) as answer:
            bodies.append(b"".join([each async for each in answer.chunks()]))
        read.set()
        await done.wait()
    await client.close()
    server.close()
    return bodies


def run(afterwards: Behaviour) -> list[bytes]:
    """Return the bodies of two requests, within a time limit."""
    return asyncio.run(asyncio.wait_for(asked_twice(afterwards), SECONDS))


def test_a_quiet_connection_is_used_again() -> None:
    async def nothing(_: asyncio.StreamWriter) -> None:
        """Leave the connection alone."""

    assert run(nothing) == [b"connection 1", b"connection 1"]


def test_a_response_too_many_never_answers_the_next_request() -> None:
    """The next request may be that of another client, with other credentials."""

    async def say_more(writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"a secret of the first client"))
        await writer.drain()

    assert run(say_more) == [b"connection 1", b"connection 2"]


def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    async def close(writer: asyncio.StreamWriter) -> None:
        writer.close()
        await writer.wait_closed()

    assert run(close) == [b"connection 1", b"connection 2"]

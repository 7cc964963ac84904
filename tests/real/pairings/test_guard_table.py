"""
A table of exchanges through real guards, over every pair of transports and in both modes; at least one for each rung.

It pins what the client gets, what reaches the server and what is in the journal. All rows share one guard, or one for
each revision where a guard has one client: each row waits for what is expected of it, and whatever else comes is
counted for a later row, or at the end. The last request is open when one side ends.
"""

import os
from pathlib import Path
from typing import NamedTuple

import pytest
from exchange_rows import HANDSHAKE, HANDSHAKE_ROWS, STATELESS, STATELESS_ROWS, Item, M, req
from pairings import PAIRINGS, Child, HttpToChild, Pairing, StdioToChild, StdioToHttp
from table_run import HANG, TableRun, bare, filled, shown

from kit.guard_process import Lines
from kit.rows import rows


class End(NamedTuple):
    """How a conversation ends, and what comes of that."""

    how: str
    client: tuple[Item, ...] = (-31011,)
    """What comes to the open request."""
    found: tuple[str, ...] = ("server protocol/unanswered",)
    status: int = 0
    """The exit status of the guard."""


def end_of(kind: type[Pairing], mode: str) -> End:
    """The end of the conversations of one guard."""
    if mode == "audit":
        # Where the client sees for itself that its stream ended, it gets no answer.
        client = (-31011,) if kind in (StdioToHttp, HttpToChild) else ()
        return End("kill", client, status=3 if kind is StdioToChild else 0)
    if kind is StdioToChild:
        # A child whose input has ended exits, with a request open.
        return End("leave", status=3)
    # A client that ends its session lets the guard end the child, which is not to blame.
    return End("leave", found=()) if kind is HttpToChild else End("kill")


@pytest.mark.parametrize("kind", PAIRINGS, ids=lambda kind: str(kind.name))
@rows("mode", ["enforce", "audit"])
def test_every_exchange_comes_to_what_the_table_says(tmp_path: Path, kind: type[Pairing], mode: str) -> None:
    place = tmp_path / mode
    place.mkdir()
    every = {STATELESS: STATELESS_ROWS, HANDSHAKE: [*HANDSHAKE_ROWS, HANG]}
    tables = {name: [row for row in each if mode == "enforce" or row.audit is not None] for name, each in every.items()}
    run = TableRun(kind, place, mode, tables)
    end = end_of(kind, mode)
    with run.pairing:
        for revision in tables:
            run.converse(revision)
        assert tuple(run.end(end.how)) == end.client
        assert run.pairing.stop() == end.status
    expected = {row.name: row.expected(kind.name, mode) for each in tables.values() for row in each}
    order = list if run.pairing.in_order else lambda items: sorted(items, key=str)
    assert {name: order(got) for name, got in run.gets.items()} == {
        name: order(each.gets) for name, each in expected.items()
    }
    assert run.reached() == {name: each.reaches for name, each in expected.items()}
    assert run.own() == sorted(line for each in expected.values() for line in each.back)
    assert run.found() == sorted([*end.found, *(line for each in expected.values() for line in each.found)])
    assert "Traceback" not in (place / "log").read_text()


@rows("kind", PAIRINGS, ids=lambda kind: kind.name)
def test_a_request_that_is_not_answered_in_time_fails_and_is_cancelled(
    tmp_path_factory: pytest.TempPathFactory, kind: type[Pairing]
) -> None:
    """Without a handshake, which would have to be answered in that time. At a URL the closed response cancels it."""
    place = tmp_path_factory.mktemp(kind.name)
    (place / "script").write_text("{}")
    os.mkfifo(place / "received")
    received = Lines(os.open(place / "received", os.O_RDWR))
    line = filled(req("prompts/list", f"{{{M}}}"), "late")
    with kind(place, STATELESS, "enforce", ["--journal", "off", "--timeout", "0.05"]) as pairing:
        pairing.send([line + b"\n"])
        [answer] = pairing.receive()
        assert shown(bare(answer), "late", []) == -31012
        if issubclass(kind, Child):
            assert b'"prompts/list"' in received.next()
            assert b'"notifications/cancelled"' in received.next()
        pairing.leave()
        assert pairing.receive() == []
        assert pairing.stop() == 0
    os.close(received.descriptor)

"""The guard between two streams of lines, without any process: what each side gets, and that all else goes on."""

import random
import re
from itertools import pairwise

import pytest

from assay.model.verdict import Party
from assay.spec.revisions import REVISIONS
from kit.guard_process import call, frame_of, notification, request, result, tool
from kit.guarded_session import GuardedLines
from kit.rows import rows
from kit.valid_traffic import exchanges, opening

CLIENT, SERVER = Party.CLIENT, Party.SERVER
SEARCH = tool(
    "search", inputSchema={"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
)


@pytest.fixture
def guard() -> GuardedLines:
    """A guard under enforce, after the handshake."""
    made = GuardedLines()
    made.open(SEARCH)
    return made


@rows("said", [b"", b" \t", b"\r", b'{"jsonrpc":"2.0","method":"notifications/nope"}'])
def test_blank_lines_and_bad_notifications_stop_without_an_answer(guard: GuardedLines, said: bytes) -> None:
    assert guard.client(said, request("next", "ping")) == []
    assert guard.messages(SERVER) == [request("next", "ping")]
    guard.server(result("next", {}))


def test_a_server_asks_and_the_client_answers(guard: GuardedLines) -> None:
    """Ids of either side count for themselves. For a bad answer the server gets an error."""
    good = {"roots": [{"uri": "file:///a"}]}
    guard.client(call("1"), call("2"))
    guard.got(SERVER)
    assert guard.server(request("1", "roots/list")) == [request("1", "roots/list")]
    guard.client(result("1", good))
    assert guard.messages(SERVER) == [result("1", good)]
    guard.server(request("2", "roots/list"))
    guard.client(result("2", {"roots": [{"uri": 5}]}))
    [got] = guard.messages(SERVER)
    assert (got["id"], got["error"]["code"]) == ("2", -31010)
    assert got["error"]["data"]["violations"][0]["rule"] == "protocol/result"


# ── size ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

LIMIT = 20_000
NESTED = b'"items":[{"id":2,"x":"'
ANSWER_FIRST = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],' + NESTED
ANSWER_LAST = b'{"result":{"content":[],' + NESTED


def cut(data: bytes, chance: random.Random, longest: int = 5000) -> list[bytes]:
    """*data* in pieces, as a pipe may give it."""
    ends = [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + chance.randint(1, longest))
    return [data[start:end] for start, end in pairwise(ends)]


@rows(
    ("before", "size", "after"),
    [
        (ANSWER_FIRST, 30_000, b'"}]}}\n'),
        (ANSWER_LAST, 30_000, b'"}]},"jsonrpc":"2.0","id":1}\n'),
        (ANSWER_LAST, 300_000, b'"}]},"id":1,"jsonrpc":"2.0"}\r\n'),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"', 30_000, b'"}}\n'),
    ],
)
def test_an_answer_that_is_too_long_fails_its_request_and_no_other(before: bytes, size: int, after: bytes) -> None:
    """Whichever end its id is at; ids in what it carries mean nothing."""
    guard = GuardedLines(frame_bytes=LIMIT)
    guard.open(SEARCH)
    guard.client(request(2, "ping"), call(1))
    for each in cut(before + b"x" * size + after, random.Random(1)):  # noqa: S311 - no secret
        guard.write(SERVER, each)
    [failed] = guard.messages(CLIENT)
    assert (failed["id"], failed["error"]["code"]) == (1, -31010)
    assert failed["error"]["data"]["violations"][0]["rule"] == "framing/size"
    assert guard.server(result(2, {})) == [result(2, {})]


def test_an_answer_that_is_too_long_and_never_ends_fails_with_the_server() -> None:
    guard = GuardedLines(frame_bytes=LIMIT)
    guard.open(SEARCH)
    guard.client(call(1))
    guard.write(SERVER, ANSWER_LAST + b"x" * 30_000)
    guard.lost()
    assert [(each["id"], each["error"]["code"]) for each in guard.messages(CLIENT)] == [(1, -31011)]


@rows("party", Party)
@rows(("head", "tail"), [(b"", b',"jsonrpc":"2.0","id":9}'), (b'"jsonrpc":"2.0","id":9,', b"}")])
def test_a_request_that_is_too_long_is_answered_by_its_id(party: Party, head: bytes, tail: bytes) -> None:
    """From either side: also that of a server, which the client never sees."""
    guard = GuardedLines(frame_bytes=LIMIT)
    guard.open(SEARCH)
    guard.write(party, b"{" + head + b'"method":"roots/list","params":{"_meta":{"x":"' + b"x" * 30_000)
    guard.write(party, b'"}}' + tail + b"\n")
    [refused] = guard.messages(party)
    assert (refused["id"], refused["error"]["code"]) == (9, -32600)
    assert guard.got(party.other) == b""


def test_notifications_that_are_too_long_stop_without_an_answer() -> None:
    guard = GuardedLines(frame_bytes=LIMIT)
    guard.open(SEARCH)
    guard.say(SERVER, notification("notifications/message", {"level": "info", "data": "x" * 30_000}), b"x" * 30_000)
    assert (guard.got(CLIENT), guard.got(SERVER)) == (b"", b"")


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

LONG = b"y" * 30_000
NOISE = [
    *(b"\n", b"\r\n", b" \t \n", b"hello?\n", b"caf\xe9\xff\xfe\x00\n", b"[]\n", b"null\r\n", LONG + b"\n"),
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n',
    b' {"jsonrpc" : "2.0", "id":1, "method":"ping"}  \n',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":2,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":9,"result":{"x":NaN}}\n',
    b'{"jsonrpc":"2.0","method":"nope"}\n',
    frame_of(call(7, words=5)) + b"\n",
    frame_of(call(8)) + b"\n",
    b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"' + LONG + b'"}}\r\n',
    b'{"result":{"x":"' + LONG + b'"},"jsonrpc":"2.0","id":9}\n',
]


@rows("seed", range(6))
def test_under_audit_any_noise_passes_as_it_came(seed: int) -> None:
    """Whatever either side says, in whatever order, and however the bytes come."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    guard = GuardedLines("audit", frame_bytes=LIMIT)
    guard.open(SEARCH)
    said = {
        party: b"".join(chance.choice([*NOISE, chance.randbytes(40) + b"\n"]) for _ in range(300))
        + chance.choice([b"", b"x", b"{", b"\r", LONG, b'{"jsonrpc":"2.0","method":"nope"}'])
        for party in Party
    }
    pieces = [(party, each) for party in Party for each in cut(said[party], chance)]
    order = [party for party, _ in pieces]
    chance.shuffle(order)
    left = {party: iter([each for whose, each in pieces if whose is party]) for party in Party}
    for party in order:
        guard.write(party, next(left[party]))
    for party in Party:
        guard.end(party)
        assert guard.got(party.other) == said[party]


@rows("revision", REVISIONS)
def test_under_enforce_good_traffic_passes_byte_for_byte_and_in_order(revision: str) -> None:
    """However it is spelt."""
    chance = random.Random(revision)  # noqa: S311 - no secret
    guard = GuardedLines()
    for each in [*opening(revision), *exchanges(revision, 300, seed=f"{revision} 1")]:
        for party, said in ((CLIENT, each.asked), (SERVER, b"".join(each.answered)), (CLIENT, b"".join(each.replies))):
            for piece in cut(said, chance, 200):
                guard.write(party, piece)
            assert guard.got(party.other) == said
            assert guard.got(party) == b""
    # Arguments that the schema does not name are reported, and pass.
    assert {rule for line in guard.log for rule in re.findall(r"\[([a-z]+/[a-z-]+)\]", line)} <= {
        "contract/unknown-argument"
    }
    assert any(line.endswith(", 0 blocked") for line in guard.watch.summary())

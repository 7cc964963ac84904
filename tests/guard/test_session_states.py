"""Every event in every state of a guarded session: what is sent, and the state after it. No I/O, no process."""

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import assay.guard
from assay.base.verdict import Party
from assay.core.conversation import Conversation
from assay.guard.backoff import Backoff
from assay.guard.deliveries import ClientTraits, Loss, Outcome, ServerTraits, State
from assay.guard.session import GuardedSession, Timing
from assay.guard.sinks import Sinks
from kit.guard_process import INITIALIZED, frame_of, initialize, request, result
from kit.rows import rows

TIMEOUT, DRAIN, HANDSHAKE = 10.0, 20.0, 5.0
ANSWER = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "a", "version": "1"},
}
LOST = Loss("exited", "it exited with status 1")


class Talk:
    """A session, its clock, and what was last returned."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.session = GuardedSession(
            Conversation(),
            Sinks(),
            ClientTraits("stdio", sees_loss=True, carries_raw=True),
            ServerTraits("child", restorable=True),
            timing=Timing(TIMEOUT, DRAIN, HANDSHAKE, lambda: self.now),
            backoff=Backoff("always", 2),
        )

    def client(self, message: Any) -> Outcome:
        """The client sends a message."""
        return self.session.from_client(frame_of(message))

    def server(self, message: Any) -> Outcome:
        """The server sends a message."""
        return self.session.from_server(frame_of(message))

    def later(self, seconds: float) -> Outcome:
        """The time goes on, and the session looks at it."""
        self.now += seconds
        return self.session.tick()


# ── into a state ─────────────────────────────────────────────────────────────────────────────────────────────────────


def opening(talk: Talk) -> None:
    talk.client(initialize())


def opened(talk: Talk) -> None:
    opening(talk)
    talk.server(result("open", ANSWER))
    talk.client(INITIALIZED)
    talk.client(request(1, "ping"))
    talk.server(request(1, "ping"))


def away(talk: Talk) -> None:
    opened(talk)
    talk.session.server_lost(LOST)
    talk.client(request(2, "ping"))


def restoring(talk: Talk) -> None:
    away(talk)
    talk.session.server_ready()


def draining(talk: Talk) -> None:
    opened(talk)
    talk.session.client_done()


def closed(talk: Talk) -> None:
    opened(talk)
    talk.session.close(LOST)


STATES: dict[State, Callable[[Talk], None]] = {
    State.NEW: lambda _: None,
    State.OPENING: opening,
    State.OPEN: opened,
    State.AWAY: away,
    State.RESTORING: restoring,
    State.DRAINING: draining,
    State.CLOSED: closed,
}

# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def suspended(talk: Talk) -> Outcome:
    """The server takes nothing more."""
    talk.session.suspend()
    return Outcome()


def forgotten(talk: Talk) -> Outcome:
    """The client's requests get no message for an answer."""
    for each in talk.session.conversation.open_requests(Party.CLIENT):
        talk.session.forget(each)
    return Outcome()


def blocked(talk: Talk) -> Outcome:
    """The client reads nothing for longer than any limit."""
    talk.session.client_blocked(True)
    return talk.later(100.0)


def unclaimed(talk: Talk) -> Outcome:
    """No client takes what the server asks."""
    asked = talk.session.conversation.open_requests(Party.SERVER)
    return talk.session.unclaimed(asked[0]) if asked else Outcome()


EVENTS: dict[str, Callable[[Talk], Outcome]] = {
    "client: initialize": lambda talk: talk.client(initialize()),
    "client: accepted": lambda talk: talk.client(request(7, "ping")),
    "client: refused": lambda talk: talk.client(request(8, "tools/call", {})),
    "server: answers initialize": lambda talk: talk.server(result("open", ANSWER)),
    "server: refuses initialize": lambda talk: talk.server(
        {"jsonrpc": "2.0", "id": "open", "error": {"code": 1, "message": "no"}}
    ),
    "server: answers badly": lambda talk: talk.server(result("open", {"protocolVersion": "2025-11-25"})),
    "server: last answer": lambda talk: talk.server(result(1, {})),
    "server: accepted": lambda talk: talk.server(request(9, "ping")),
    "server: refused": lambda talk: talk.server(request(9, "none")),
    "server: no message": lambda talk: talk.session.from_server(b"a banner"),
    "server_ready": lambda talk: talk.session.server_ready(),
    "server_lost": lambda talk: talk.session.server_lost(LOST),
    "server_lost: for good": lambda talk: [talk.session.server_lost(LOST) for _ in range(3)][-1],
    "server_lost: session gone": lambda talk: talk.session.server_lost(Loss("session_gone", "its session is gone")),
    "suspend": suspended,
    "more": lambda talk: talk.session.more(Party.SERVER, b"rest of a line\n"),
    "client_blocked": blocked,
    "exchange_lost": lambda talk: talk.session.exchange_lost(
        talk.session.conversation.open_requests(Party.CLIENT), LOST
    ),
    "withdraw": lambda talk: talk.session.withdraw(
        talk.session.conversation.open_requests(Party.CLIENT), Loss("slow_client", "the client reads too slowly")
    ),
    "forget": forgotten,
    "unclaimed": unclaimed,
    "client_done": lambda talk: talk.session.client_done(),
    "client_gone": lambda talk: talk.session.client_gone(),
    "tick: nothing due": lambda talk: talk.later(0.0),
    "tick: request overdue": lambda talk: talk.later(TIMEOUT),
    "tick: phase over": lambda talk: talk.later(DRAIN),
    "fail": lambda talk: talk.session.fail("a test", ZeroDivisionError()),
    "close": lambda talk: talk.session.close(LOST),
}


def shown(talk: Talk, outcome: Outcome) -> str:
    """What comes of an event, in a few words: c and s for what the client and the server get, then the state."""
    parts = [f"c {label(each.frame)}" for each in outcome.to_client]
    parts += [f"s {label(each.frame)}" for each in outcome.to_server]
    parts += ["stray"] * len(outcome.stray)
    parts += [f"restart {outcome.restart_in:g}"] if outcome.restart_in is not None else []
    parts += ["close"] if outcome.closed is not None else []
    return ", ".join([*parts, f"{talk.session.state.value}"])


def label(frame: bytes) -> str:
    """A frame in a word: its method, or the id that it answers and how."""
    message = json.loads(frame)
    if "method" in message:
        ident = f" {message['id']}" if "id" in message else ""
        return f"{message['method'].removeprefix('notifications/')}{ident}"
    return f"{'error' if 'error' in message else 'result'} {message.get('id')}"


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────

# One row for each event; its cells are in the order of STATES. After CLOSED nothing happens any more.
TABLE: dict[str, tuple[str, ...]] = {
    "client: initialize": (
        "s initialize open, opening",
        "c error open, opening",
        "c error open, open",
        "c error open, away",
        "c error open, restoring",
        "draining",
        "closed",
    ),
    "client: accepted": (
        "s ping 7, new",
        "s ping 7, opening",
        "s ping 7, open",
        "away",
        "restoring",
        "draining",
        "closed",
    ),
    "client: refused": (
        "c error 8, new",
        "c error 8, opening",
        "c error 8, open",
        "c error 8, away",
        "c error 8, restoring",
        "draining",
        "closed",
    ),
    "server: answers initialize": (
        "new",
        "c result open, open",
        "open",
        "away",
        "c tools/list_changed, s initialized, s ping 2, open",
        "draining",
        "closed",
    ),
    "server: refuses initialize": (
        "new",
        "c error open, new",
        "open",
        "away",
        "c error 2, close, closed",
        "draining",
        "closed",
    ),
    "server: answers badly": (
        "new",
        "c error open, new",
        "open",
        "away",
        "c error 2, close, closed",
        "draining",
        "closed",
    ),
    "server: last answer": (
        "new",
        "opening",
        "c result 1, open",
        "away",
        "restoring",
        "c result 1, close, draining",
        "closed",
    ),
    "server: accepted": (
        "c ping 9, new",
        "c ping 9, opening",
        "c ping 9, open",
        "away",
        "c ping 9, restoring",
        "c ping 9, draining",
        "closed",
    ),
    "server: refused": (
        "s error 9, new",
        "s error 9, opening",
        "s error 9, open",
        "away",
        "s error 9, restoring",
        "s error 9, draining",
        "closed",
    ),
    "server: no message": (
        "stray, new",
        "stray, opening",
        "stray, open",
        "away",
        "stray, restoring",
        "stray, draining",
        "closed",
    ),
    "server_ready": (
        "new",
        "opening",
        "open",
        "s initialize open, restoring",
        "restoring",
        "draining",
        "closed",
    ),
    "server_lost": (
        "restart 0.1, away",
        "c error open, restart 0.1, away",
        "c cancelled, c error 1, restart 0.1, away",
        "c error 2, restart 0.2, away",
        "c error 2, restart 0.2, away",
        "c error 1, close, closed",
        "closed",
    ),
    "server_lost: for good": (
        "close, closed",
        "close, closed",
        "close, closed",
        "closed",
        "closed",
        "closed",
        "closed",
    ),
    "server_lost: session gone": (
        "close, closed",
        "c error open, close, closed",
        "c cancelled, c error 1, restart 0, away",
        "c error 2, close, closed",
        "c error 2, close, closed",
        "c error 1, close, closed",
        "closed",
    ),
    "suspend": (
        "away",
        "away",
        "away",
        "away",
        "restoring",
        "draining",
        "closed",
    ),
    "more": (
        "new",
        "opening",
        "open",
        "away",
        "restoring",
        "draining",
        "closed",
    ),
    "client_blocked": (
        "new",
        "opening",
        "open",
        "away",
        "restoring",
        "draining",
        "closed",
    ),
    "exchange_lost": (
        "new",
        "c error open, new",
        "c error 1, open",
        "c error 2, away",
        "c error 2, restoring",
        "c error 1, close, draining",
        "closed",
    ),
    "withdraw": (
        "new",
        "c error open, new",
        "c error 1, s cancelled, open",
        "c error 2, away",
        "c error 2, restoring",
        "c error 1, s cancelled, close, draining",
        "closed",
    ),
    "forget": ("new", "new", "open", "away", "restoring", "draining", "closed"),
    "unclaimed": (
        "new",
        "opening",
        "s error 1, open",
        "away",
        "restoring",
        "s error 1, draining",
        "closed",
    ),
    "client_done": (
        "close, draining",
        "draining",
        "draining",
        "c error 2, close, closed",
        "c error 2, close, closed",
        "draining",
        "closed",
    ),
    "client_gone": (
        "close, closed",
        "close, closed",
        "s cancelled, close, closed",
        "close, closed",
        "close, closed",
        "s cancelled, close, closed",
        "closed",
    ),
    "tick: nothing due": (
        "new",
        "opening",
        "open",
        "away",
        "restoring",
        "draining",
        "closed",
    ),
    "tick: request overdue": (
        "new",
        "c error open, new",
        "c error 1, s cancelled, open",
        "c error 2, away",
        "c error 2, close, closed",
        "c error 1, s cancelled, close, draining",
        "closed",
    ),
    "tick: phase over": (
        "new",
        "c error open, new",
        "c error 1, s cancelled, open",
        "c error 2, away",
        "c error 2, close, closed",
        "c error 1, s cancelled, close, closed",
        "closed",
    ),
    "fail": (
        "close, closed",
        "c error open, close, closed",
        "c error 1, close, closed",
        "c error 2, close, closed",
        "c error 2, close, closed",
        "c error 1, close, closed",
        "closed",
    ),
    "close": (
        "close, closed",
        "c error open, close, closed",
        "c error 1, close, closed",
        "c error 2, close, closed",
        "c error 2, close, closed",
        "c error 1, close, closed",
        "closed",
    ),
}


@rows("event", EVENTS)
@rows("state", State)
def test_every_event_has_its_outcome_in_every_state(state: State, event: str) -> None:
    talk = Talk()
    STATES[state](talk)
    assert talk.session.state is state
    cells = dict(zip(STATES, TABLE[event], strict=True))
    assert shown(talk, EVENTS[event](talk)) == cells[state]


def test_every_public_method_that_is_an_event_is_in_the_table() -> None:
    asked = {"judge", "outcome", "due_of", "save_recent", "from_client", "from_server", "tick"}
    # The list of tools has tests of its own: test_unlisted_tools.py.
    asked |= {"lists_first", "late_contracts", "listing", "listed", "listing_over", "abandon", "release"}
    methods = {
        name for name in vars(GuardedSession) if not name.startswith("_") and callable(vars(GuardedSession)[name])
    }
    assert methods - asked <= {event.partition(":")[0] for event in EVENTS}


def test_a_closed_session_answers_nothing() -> None:
    assert {cells[-1] for cells in TABLE.values()} == {"closed"}


def test_the_session_does_no_input_or_output() -> None:
    """Its modules can be tested, and driven by any loop, because they import nothing that waits."""
    pure = {"judged_session", "session", "factory", "deliveries", "deadlines", "restore", "backoff"}
    pure |= {"routing", "outgoing", "own_frames", "sinks", "line_feed", "internal_errors", "terms"}
    for name in pure:
        path = Path(assay.guard.__file__).with_name(f"{name}.py")
        found = {
            module.partition(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for module in (
                [each.name for each in node.names]
                if isinstance(node, ast.Import)
                else [str(node.module)]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert not found & {"asyncio", "os", "socket", "select", "subprocess", "threading", "aiohttp", "httpx"}, name

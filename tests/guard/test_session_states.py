"""Every event in every state of a guarded session: what is sent, and the state after it. No I/O, no process."""

import json
from collections.abc import Callable

from assay.guard.deliveries import Loss, Outcome, State
from assay.model.verdict import Party
from kit.guard_process import INITIALIZED, initialize, request, result
from kit.guarded_session import DRAIN, LOST, TIMEOUT, Guard, opened_in
from kit.rows import rows
from kit.talk import error

ANSWER = opened_in(capabilities={"tools": {"listChanged": True}})


# ── into a state ─────────────────────────────────────────────────────────────────────────────────────────────────────


def opening(guard: Guard) -> None:
    guard.client(initialize())


def opened(guard: Guard) -> None:
    opening(guard)
    guard.server(result("open", ANSWER))
    guard.client(INITIALIZED)
    guard.client(request(1, "ping"))
    guard.server(request(1, "ping"))


def away(guard: Guard) -> None:
    opened(guard)
    guard.session.server_lost(LOST)
    guard.client(request(2, "ping"))


def restoring(guard: Guard) -> None:
    away(guard)
    guard.session.server_ready()


def draining(guard: Guard) -> None:
    opened(guard)
    guard.session.client_done()


def closed(guard: Guard) -> None:
    opened(guard)
    guard.session.close(LOST)


STATES: dict[State, Callable[[Guard], None]] = {
    State.NEW: lambda _: None,
    State.OPENING: opening,
    State.OPEN: opened,
    State.AWAY: away,
    State.RESTORING: restoring,
    State.DRAINING: draining,
    State.CLOSED: closed,
}

# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def suspended(guard: Guard) -> Outcome:
    """The server takes nothing more."""
    guard.session.suspend()
    return Outcome()


def forgotten(guard: Guard) -> Outcome:
    """The client's requests get no message for an answer."""
    for each in guard.session.conversation.open_requests(Party.CLIENT):
        guard.session.forget(each)
    return Outcome()


def blocked(guard: Guard) -> Outcome:
    """The client reads nothing for longer than any limit."""
    guard.session.client_blocked(True)
    return guard.later(100.0)


def withdrawn(guard: Guard) -> Outcome:
    """The client takes no answer to what it has asked."""
    asked = guard.session.conversation.open_requests(Party.CLIENT)
    return guard.session.withdraw(asked, Loss("slow_client", "the client reads too slowly"))


def unclaimed(guard: Guard) -> Outcome:
    """No client takes what the server asks."""
    asked = guard.session.conversation.open_requests(Party.SERVER)
    return guard.session.unclaimed(asked[0]) if asked else Outcome()


def exchange_lost(guard: Guard) -> Outcome:
    """What the client has asked gets no answer."""
    return guard.session.exchange_lost(guard.session.conversation.open_requests(Party.CLIENT), LOST)


def session_gone(guard: Guard) -> Outcome:
    return guard.session.server_lost(Loss("session_gone", "its session is gone"))


IN_THE_END = "end | c !open, end | c !1, end | c !2, end | c !2, end | c !1, end"
NOTHING = "- | - | - | - | - | -"

TABLE: dict[str, tuple[Callable[[Guard], Outcome], str]] = {
    "client: initialize": (
        lambda guard: guard.client(initialize()),
        "s initialize open > opening | c !open | c !open | c !open | c !open | -",
    ),
    "client: accepted": (
        lambda guard: guard.client(request(7, "ping")),
        "s ping 7 | s ping 7 | s ping 7 | - | - | -",
    ),
    "client: refused": (
        lambda guard: guard.client(request(8, "tools/call", {})),
        "c !8 | c !8 | c !8 | c !8 | c !8 | -",
    ),
    "server: answers initialize": (
        lambda guard: guard.server(result("open", ANSWER)),
        "- | c result open > open | - | - | c tools/list_changed, s initialized, s ping 2 > open | -",
    ),
    "server: refuses initialize": (
        lambda guard: guard.server(error("open", 1)),
        "- | c !open > new | - | - | c !2, end | -",
    ),
    "server: answers badly": (
        lambda guard: guard.server(result("open", {"protocolVersion": "2025-11-25"})),
        "- | c !open > new | - | - | c !2, end | -",
    ),
    "server: last answer": (
        lambda guard: guard.server(result(1, {})),
        "- | - | c result 1 | - | - | c result 1, close",
    ),
    "server: accepted": (
        lambda guard: guard.server(request(9, "ping")),
        "c ping 9 | c ping 9 | c ping 9 | - | c ping 9 | c ping 9",
    ),
    "server: refused": (lambda guard: guard.server(request(9, "none")), "s !9 | s !9 | s !9 | - | s !9 | s !9"),
    "server: no message": (lambda guard: guard.server(b"a banner"), "stray | stray | stray | - | stray | stray"),
    "server_ready": (
        lambda guard: guard.session.server_ready(),
        "- | - | - | s initialize open > restoring | - | -",
    ),
    "server_lost": (
        lambda guard: guard.session.server_lost(LOST),
        (
            "restart 0.1 > away | c !open, restart 0.1 > away | c cancelled, c !1, restart 0.1 > away"
            " | c !2, restart 0.2 | c !2, restart 0.2 > away | c !1, end"
        ),
    ),
    "server_lost: for good": (
        lambda guard: [guard.session.server_lost(LOST) for _ in range(3)][-1],
        "end | end | end | > closed | > closed | > closed",
    ),
    "server_lost: session gone": (
        session_gone,
        "end | c !open, end | c cancelled, c !1, restart 0 > away | c !2, end | c !2, end | c !1, end",
    ),
    "suspend": (suspended, "> away | > away | > away | - | - | -"),
    "more": (lambda guard: guard.session.more(Party.SERVER, b"rest of a line\n"), NOTHING),
    "client_blocked": (blocked, NOTHING),
    "exchange_lost": (exchange_lost, "- | c !open > new | c !1 | c !2 | c !2 | c !1, close"),
    "withdraw": (withdrawn, "- | c !open > new | c !1, s cancelled | c !2 | c !2 | c !1, s cancelled, close"),
    "forget": (forgotten, "- | > new | - | - | - | -"),
    "unclaimed": (unclaimed, "- | - | s !1 | - | - | s !1"),
    "client_done": (
        lambda guard: guard.session.client_done(),
        "close > draining | > draining | > draining | c !2, end | c !2, end | -",
    ),
    "client_gone": (
        lambda guard: guard.session.client_gone(),
        "end | end | s cancelled, end | end | end | s cancelled, end",
    ),
    "tick: nothing due": (lambda guard: guard.later(0.0), NOTHING),
    "tick: request overdue": (
        lambda guard: guard.later(TIMEOUT),
        "- | c !open > new | c !1, s cancelled | c !2 | c !2, end | c !1, s cancelled, close",
    ),
    "tick: phase over": (
        lambda guard: guard.later(DRAIN),
        "- | c !open > new | c !1, s cancelled | c !2 | c !2, end | c !1, s cancelled, end",
    ),
    "fail": (lambda guard: guard.session.fail("a test", ZeroDivisionError()), IN_THE_END),
    "close": (lambda guard: guard.session.close(LOST), IN_THE_END),
}
"""
Each event, and what comes of it in each of STATES but the last: there nothing happens any more.

`c` and `s` are what the client and the server get, with the id; `!` is an error. What follows `>` is the state after
it, if that is another one. `end` is a close after which the session is closed.
"""


def shown(outcome: Outcome, before: State, after: State) -> str:
    """What comes of an event, as the table has it."""
    parts = [f"{who} {label(each.frame)}" for who, to in zip("cs", outcome[:2], strict=True) for each in to]
    parts += ["stray"] * len(outcome.stray)
    parts += [f"restart {outcome.restart_in:g}"] if outcome.restart_in is not None else []
    ends = outcome.closed is not None and after is State.CLOSED
    parts += ["end" if ends else "close"] if outcome.closed is not None else []
    changes = f"> {after.value}" if after is not before and not ends else ""
    return " ".join(filter(None, [", ".join(parts), changes])) or "-"


def label(frame: bytes) -> str:
    """A frame in a word: its method, or the id that it answers and how."""
    message = json.loads(frame)
    if "method" in message:
        ident = f" {message['id']}" if "id" in message else ""
        return f"{message['method'].removeprefix('notifications/')}{ident}"
    return f"{'!' if 'error' in message else 'result '}{message.get('id')}"


@rows("event", TABLE)
@rows("state", State)
def test_every_event_has_its_outcome_in_every_state(state: State, event: str) -> None:
    guard = Guard(restorable=True)
    STATES[state](guard)
    assert guard.session.state is state
    happens, cells = TABLE[event]
    expected = dict(zip(STATES, [*cells.split(" | "), "-"], strict=True))
    assert shown(happens(guard), state, guard.session.state) == expected[state]

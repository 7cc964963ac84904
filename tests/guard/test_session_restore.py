"""What a client has said for good, and what the next server gets of it. No process."""

import json
from typing import Any

from assay.guard.deliveries import Outcome
from assay.guard.restore import MOST_SUBSCRIPTIONS, SessionRestore, SessionState
from assay.judge.conversation import Conversation
from assay.model.limits import Limits
from assay.model.verdict import Party
from kit.guard_process import INITIALIZED, frame_of, initialize, notification, request, result, tool
from kit.guarded_session import LOST, Guard, opened_in
from kit.rows import rows
from kit.talk import error

CLIENT, SERVER = Party.CLIENT, Party.SERVER
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True},
    "logging": {},
}
ANSWER = opened_in(capabilities=CAPABILITIES)


class Said:
    """A conversation, of which is kept what stands."""

    def __init__(self, *said: tuple[Party, Any]) -> None:
        self.conversation = Conversation()
        self.state = SessionState()
        for party, message in said:
            self.hear(party, frame_of(message))

    def hear(self, party: Party, frame: bytes) -> None:
        """One frame, of which is kept what lasts."""
        self.state.note(self.conversation.hear(party, frame))

    def ask(self, ident: Any, method: str, **params: Any) -> None:
        """A request, and its answer."""
        self.hear(CLIENT, frame_of(request(ident, method, params)))
        self.hear(SERVER, frame_of(result(ident, {})))

    def restore(self) -> SessionRestore:
        """What the next server gets."""
        found = self.state.restore(Limits())
        assert found is not None
        return found


def opened() -> Said:
    """After the handshake."""
    return Said((CLIENT, initialize()), (SERVER, result("open", ANSWER)), (CLIENT, INITIALIZED))


def repeated(restore: SessionRestore) -> list[Any]:
    """What the server gets once it has agreed."""
    assert restore.hear(frame_of(result("open", ANSWER))) is not None
    assert (restore.opened, restore.refusal) == (True, "")
    return [json.loads(verdict.frame) for verdict in restore.second_half()]


NOT_OPENED: dict[str, list[tuple[Party, Any]]] = {
    "nothing": [],
    "not-answered": [(CLIENT, initialize())],
    "refused": [(CLIENT, initialize()), (SERVER, error("open", 1))],
    "badly-answered": [(CLIENT, initialize()), (SERVER, result("open", {"protocolVersion": "2025-11-25"}))],
    "bad": [(CLIENT, request("open", "initialize", {})), (SERVER, result("open", ANSWER))],
    "another": [(CLIENT, request(1, "ping")), (SERVER, result(1, {})), (CLIENT, INITIALIZED)],
}


@rows("how", NOT_OPENED)
def test_without_a_handshake_nothing_stands(how: str) -> None:
    assert Said(*NOT_OPENED[how]).state.restore(Limits()) is None


def test_the_last_handshake_stands() -> None:
    answer = opened_in("2025-06-18")
    said = Said(*NOT_OPENED["refused"], (CLIENT, initialize("2025-06-18")), (SERVER, result("open", answer)))
    assert (said.state.initialize, said.state.answer) == (frame_of(initialize("2025-06-18")), answer)


def test_the_handshake_is_said_byte_for_byte() -> None:
    odd = frame_of(initialize()).replace(b'"id":"open"', b'"id" : 1e2')
    said = Said((CLIENT, odd), (SERVER, b'{"jsonrpc":"2.0","id":100,"result":%b}' % frame_of(ANSWER)))
    said.hear(CLIENT, b' {"jsonrpc" :"2.0","method":"notifications/initialized"}\r')
    restore = said.restore()
    assert restore.initialize.frame == odd
    assert restore.hear(b'{"jsonrpc":"2.0","id":100,"result":%b}' % frame_of(ANSWER)) is not None
    assert [each.frame for each in restore.second_half()] == [
        b' {"jsonrpc" :"2.0","method":"notifications/initialized"}\r'
    ]


def test_what_is_said_after_the_end_is_not_said_twice() -> None:
    """It waits for the next server, which gets it anyway."""
    said = Said((CLIENT, initialize()), (SERVER, result("open", ANSWER)))
    restore = said.restore()
    said.hear(CLIENT, frame_of(INITIALIZED))
    assert repeated(restore) == []
    assert restore.lists_changed == []
    assert repeated(said.restore()) == [INITIALIZED]


def test_subscriptions_and_the_log_level_are_said_again_as_they_were_last() -> None:
    said = opened()
    said.ask(1, "logging/setLevel", level="debug")
    said.ask(2, "logging/setLevel", level="error")
    for number, uri in enumerate(("a:1", "a:2", "a:1", "a:3")):
        said.ask(10 + number, "resources/subscribe", uri=uri)
    said.ask(20, "resources/unsubscribe", uri="a:2")
    # Not answered, refused, given up: these do not stand.
    said.hear(CLIENT, frame_of(request(21, "resources/subscribe", {"uri": "a:4"})))
    said.hear(CLIENT, frame_of(request(22, "resources/subscribe", {"uri": "a:5"})))
    said.hear(SERVER, frame_of(error(22, 1)))
    found = repeated(said.restore())
    assert [each.get("params") for each in found] == [None, {"level": "error"}, {"uri": "a:1"}, {"uri": "a:3"}]
    assert len({each["id"] for each in found[1:]}) == 3


def test_of_a_batch_each_message_counts_for_itself() -> None:
    """2025-03-26 has them; what does not stand, and what is bad, is none of our business."""
    answer = {**ANSWER, "protocolVersion": "2025-03-26"}
    said = Said((CLIENT, initialize("2025-03-26")), (SERVER, result("open", answer)), (CLIENT, INITIALIZED))
    batch = [
        request(1, "resources/subscribe", {"uri": "a:1"}),
        request(2, "ping"),
        request(3, "resources/subscribe", {}),
        request(4, "tools/call", {"name": "x", "arguments": {"uri": "a:2"}}),
        INITIALIZED,
    ]
    said.hear(CLIENT, frame_of(batch))
    said.hear(SERVER, frame_of([result(1, {}), result(2, {}), result(4, {"content": []})]))
    restore = said.restore()
    assert restore.hear(frame_of(result("open", answer))) is not None
    assert [json.loads(each.frame).get("params") for each in restore.second_half()] == [None, {"uri": "a:1"}]


def test_of_too_many_subscriptions_the_rest_are_counted() -> None:
    said = opened()
    for number in range(MOST_SUBSCRIPTIONS + 5):
        said.ask(number, "resources/subscribe", uri=f"a:{number}")
    said.ask("long", "resources/subscribe", uri="a:" + "x" * 5000)
    restore = said.restore()
    assert len(repeated(restore)) == 1 + MOST_SUBSCRIPTIONS
    assert restore.forgotten == 6


def test_requests_that_are_never_answered_are_not_kept_for_ever() -> None:
    said = opened()
    for number in range(3 * MOST_SUBSCRIPTIONS):
        said.hear(CLIENT, frame_of(request(number, "resources/subscribe", {"uri": f"a:{number}"})))
        said.conversation.give_up(CLIENT, number)
    said.ask("last", "resources/subscribe", uri="a:last")
    assert [each["params"] for each in repeated(said.restore())[1:]] == [{"uri": "a:last"}]


def test_our_own_requests_are_answered_here_and_all_else_is_not_ours() -> None:
    said = opened()
    said.ask(1, "resources/subscribe", uri="a:1")
    said.ask(2, "logging/setLevel", level="debug")
    restore = said.restore()
    assert restore.hear(frame_of(notification("notifications/message", {"level": "info", "data": 1}))) is None
    assert restore.hear(frame_of(request(1, "ping"))) is None
    assert restore.hear(b"a banner") is None
    assert restore.hear(frame_of(result("other", {}))) is None
    first, second = (each["id"] for each in repeated(restore)[1:])
    states = [restore.over]
    mentioned = frame_of(result(7, {"content": [{"type": "text", "text": f'"{first}"'}]}))
    assert restore.hear(mentioned) is None
    assert restore.hear(frame_of(result(second, {}))) is not None
    refused = restore.hear(frame_of(error(first, 1)))
    assert refused is not None
    assert refused.kind == "error"
    assert [*states, restore.over] == [False, True]
    assert restore.hear(frame_of(result(second, {}))) is None
    assert restore.refusal == ""


def answered(**changes: Any) -> bytes:
    """An answer to initialize that differs from that of the server before."""
    return frame_of(result("open", {**ANSWER, **changes}))


MORE = {**CAPABILITIES, "tasks": {}}


@rows(
    ("frame", "reason"),
    [
        (answered(serverInfo={"name": "other", "version": "2"}), ""),
        (answered(protocolVersion="2025-06-18"), "it answered initialize with another revision than before"),
        (answered(capabilities={"tools": {}}), "it answered initialize with other capabilities than before"),
        (answered(capabilities=MORE), "it answered initialize with other capabilities than before"),
        (b'{"jsonrpc":"2.0","id":"open","error":{"code":-5,"message":"busy"}}', "it refused initialize: error -5"),
        (frame_of(result("open", {"protocolVersion": "2025-11-25"})), "its answer to initialize broke the contract"),
        (frame_of(result("open", "fine")), "its answer to initialize broke the contract"),
        (b'{"jsonrpc":"2.0","id":"open","result":{"x":NaN}}', "its answer to initialize could not be read"),
        (b'[{"jsonrpc":"2.0","id":"open","result":{}}]', "its answer to initialize could not be read"),
    ],
)
def test_a_next_server_that_is_not_as_the_one_before_is_refused_with_the_reason(frame: bytes, reason: str) -> None:
    restore = opened().restore()
    assert restore.hear(frame) is not None
    assert restore.refusal.partition(": /")[0].startswith(reason)
    assert bool(restore.refusal) == bool(reason)
    assert restore.opened is not bool(reason)


# ── what waits for the next server ───────────────────────────────────────────────────────────────────────────────────


def away(revision: str) -> Guard:
    """A session whose server has ended, and another one follows."""
    guard = Guard(restorable=True).opened(revision).listed(tool("x"))
    guard.session.server_lost(LOST)
    return guard


def errors(outcome: Outcome) -> list[Any]:
    """The ids that are answered, each with an error."""
    found = [json.loads(each.frame) for each in outcome.to_client]
    assert outcome.to_server == ()
    assert all("error" in each for each in found if isinstance(each, dict))
    return [each["id"] for each in found if isinstance(each, dict)]


LARGE = {"name": "x", "arguments": {"words": "x" * 10_000}}


def test_what_is_too_much_to_wait_for_the_next_server_fails_at_once() -> None:
    guard = away("2025-11-25")
    outcomes = [guard.client(request(number, "tools/call", LARGE)) for number in range(200)]
    turned_away = [number for number, each in enumerate(outcomes) if errors(each) == [number]]
    assert turned_away == list(range(200 - len(turned_away), 200))
    assert 100 < len(turned_away) < 160
    last = json.loads(outcomes[-1].to_client[0].frame)["error"]
    found = last["data"]["violations"][0]["found"]
    assert (last["code"], found) == (-31011, "none: too much waits for the next server already")
    assert errors(guard.session.client_done()) == list(range(turned_away[0])), "each is answered once"


def test_of_a_batch_that_is_too_much_every_request_is_answered_once() -> None:
    """Also one that is refused for itself; one whose id another has that waits is refused, and the other waits on."""
    guard = away("2025-03-26")
    assert errors(guard.client([request(each, "tools/call", LARGE) for each in range(60)])) == []
    late = [request("late", "ping"), request("bad", "tools/nope"), request(0, "ping"), request("later", "ping")]
    refused, *turned_away = guard.client(late).to_client
    assert [each["id"] for each in json.loads(refused.frame)] == ["bad", 0]
    assert [json.loads(each.frame)["id"] for each in turned_away] == ["late", "later"]
    assert sorted(errors(guard.session.client_done())) == list(range(60))

"""A server that does not answer `server/discover` does not keep its client from going on with `initialize`."""

import json
from typing import Any

from assay.core.conversation import Conversation
from assay.guard.deliveries import ClientTraits, Outcome, ServerTraits
from assay.guard.session import GuardedSession, Timing
from assay.guard.sinks import Sinks
from assay.spec.revisions import LATEST
from kit.http_client import call, frame_of, initialize, request
from kit.rows import rows
from kit.scripted_http import OPENED, REVISION

DISCOVER = request("d", "server/discover", {}, LATEST)
LATE = -31012


class Talk:
    """A session of `assay guard` over standard input and output, with a clock."""

    def __init__(self, timeout: float) -> None:
        self.now = 1000.0
        timing = Timing(timeout, clock=lambda: self.now)
        self.session = GuardedSession(
            Conversation(), Sinks(), ClientTraits("stdio"), ServerTraits("child"), timing=timing
        )

    def client(self, message: Any) -> Outcome:
        """The client sends a message."""
        return self.session.from_client(frame_of(message))

    def at_the_deadline(self) -> Outcome:
        """The time of the next deadline comes."""
        self.now = self.session.deadline
        return self.session.tick()


def errors(made: Outcome) -> list[tuple[Any, int, str]]:
    """Return id, code and text of each error for the client."""
    every = [json.loads(each.frame) for each in made.to_client]
    return [(each["id"], each["error"]["code"], each["error"]["message"]) for each in every]


@rows(("timeout", "limit"), [(600.0, 10.0), (4.0, 4.0)])
def test_discovery_times_out_early_and_the_client_falls_back(timeout: float, limit: float) -> None:
    talk = Talk(timeout)
    talk.client(call(1, "search", {"words": "sea"}, LATEST))
    talk.now += 1
    talk.client(DISCOVER)
    made = talk.at_the_deadline()
    if limit < timeout:
        # The guard waits for the list of tools, and forwards the call without it.
        assert (talk.now, made.to_server != ()) == (1005.0, True)
        made = talk.at_the_deadline()
        assert talk.now == 1001.0 + limit
        assert errors(made) == [("d", LATE, f"No answer came within {limit:g} s")]
    talk.client(initialize(REVISION))
    answer = frame_of({"jsonrpc": "2.0", "id": "open", "result": OPENED})
    assert talk.session.from_server(answer).to_client
    if limit < timeout:
        assert errors(talk.at_the_deadline()) == [(1, LATE, f"No answer came within {timeout:g} s")]


def test_without_a_limit_discovery_has_none() -> None:
    talk = Talk(0.0)
    talk.client(DISCOVER)
    assert talk.session.deadline == float("inf")

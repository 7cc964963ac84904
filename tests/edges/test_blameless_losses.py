"""Whom a request without an answer is held against: the server, unless its client left or the guard was stopped."""

import json

from assay.core.conversation import Conversation
from assay.guard.deliveries import ClientTraits, Loss, LossReason, ServerTraits
from assay.guard.session import GuardedSession
from assay.guard.sinks import Sinks
from kit.http_client import frame_of, request
from kit.rows import rows


@rows(
    ("reason", "excused"),
    [
        ("closed", True),
        ("stopped", True),
        ("slow_client", True),
        ("internal", True),
        ("exited", False),
        ("broken", False),
        ("timeout", False),
        ("unstartable", False),
        ("session_gone", False),
    ],
)
def test_only_the_server_is_blamed_for_its_own_end(reason: LossReason, excused: bool) -> None:
    judge = Conversation(revision="2025-11-25")
    session = GuardedSession(judge, Sinks(), ClientTraits("stdio"), ServerTraits("child"))
    session.from_client(frame_of(request(1, "ping")))
    [failed] = session.close(Loss(reason, "something happened")).failed
    error = json.loads(failed.answer)["error"]
    assert "something happened" in error["message"]
    assert ("violations" not in error["data"]) is excused
    assert (failed.verdict.violations == ()) is excused

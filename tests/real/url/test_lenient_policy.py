"""What a policy lets pass although it is wrong does no harm to the guard itself."""

from pathlib import Path

from assay.spec.revisions import LATEST
from kit.guard_process import liar
from kit.http_client import modern, request
from kit.scripted_http import listening


def test_a_bad_list_of_revisions_that_may_pass_does(tmp_path: Path) -> None:
    server = liar(on={"server/discover": [["result", {"resultType": "complete", "supportedVersions": 5}]]})
    options = ("--mode", "enforce", "--set", "guard.policy.protocol/result=pass")
    with listening(tmp_path, *options, "--", *server) as guard:
        message = request(1, "server/discover", {}, LATEST)
        assert guard.post(message, modern(message)).json()["result"]["supportedVersions"] == 5


def test_the_revisions_of_a_server_are_learned_from_an_answer_that_is_only_reported(tmp_path: Path) -> None:
    """Without its resultType the answer is a complete one, and says which revisions the server speaks."""
    spoken = {"supportedVersions": [LATEST], "capabilities": {}, "ttlMs": 0, "cacheScope": "public"}
    server = liar(on={"server/discover": [["result", spoken]]})
    with listening(tmp_path, "--mode", "enforce", "--", *server) as guard:
        discover = request(1, "server/discover", {}, LATEST)
        assert guard.post(discover, modern(discover)).json()["result"] == spoken
        unknown = request(2, "tools/list", {}, "2030-01-01")
        assert guard.post(unknown, modern(unknown)).json()["error"]["data"]["supported"] == [LATEST]

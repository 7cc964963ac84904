"""What a policy lets pass although it is wrong does no harm to the guard itself."""

from pathlib import Path

from guarded import liar
from http_client import modern, request
from lying_http import listening

from assay.spec.revisions import LATEST


def test_a_bad_list_of_revisions_that_may_pass_does(tmp_path: Path) -> None:
    server = liar(on={"server/discover": [["result", {"resultType": "complete", "supportedVersions": 5}]]})
    options = ("--mode", "enforce", "--set", "guard.policy.protocol/result=pass")
    with listening(tmp_path, *options, "--", *server) as guard:
        message = request(1, "server/discover", {}, LATEST)
        assert guard.post(message, modern(message)).json()["result"]["supportedVersions"] == 5

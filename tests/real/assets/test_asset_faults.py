"""An internal error in the asset server, wherever it happens: one answer for the request, and the process goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST
from kit.asset_requests import opening
from kit.catalogues import BUNDLED, variables
from kit.faulting import (
    ANSWERED,
    ASKED,
    EXCHANGED,
    HEARD,
    INTERNAL_ERROR,
    JUDGED,
    SETTLED,
    assert_logged_once,
    fault_at,
)
from kit.http_client import BOTH, SECONDS, frame_of, modern, notification, of, request, serving
from kit.rows import rows


def said(tmp_path: Path, *messages: Any) -> tuple[list[Any], str]:
    """What a server answers to *messages*, and its log. It ends well."""
    ended = subprocess.run(
        [sys.executable, "-m", "assay", "serve", "--journal", str(tmp_path / "journal")],
        input=b"".join(frame_of(each) + b"\n" for each in messages),
        env={**os.environ, **variables(BUNDLED), "MCP_READY_FILE": str(tmp_path / "ready")},
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()], ended.stderr.decode()


PLACES = [HEARD, JUDGED, ASKED, ANSWERED, SETTLED, EXCHANGED]
CANCELLED = notification("notifications/cancelled", {"requestId": "fault"})


@rows("place", PLACES)
def test_an_internal_error_is_an_answer_and_the_next_request_gets_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The same id can be used again: what failed has not stayed open. A notification has no answer."""
    fault_at(monkeypatch, place)
    fault, good = (request(7, "resources/list", {"_meta": {word: 1}}) for word in ("fault", "good"))
    # A name of any type beside the params of a method is no fault.
    named = request(8, "resources/list", {"name": ["x"]})
    alone = request("fault", "tools/list", {}, LATEST)
    heard = [CANCELLED] if place not in {ANSWERED, SETTLED} else []
    answers, log = said(tmp_path, *opening("2025-11-25"), fault, good, fault, good, *heard, named)
    assert [each["id"] for each in answers[1:]] == [7, 7, 7, 7, 8]
    codes = [each.get("error", {}).get("code") for each in answers[1:]]
    assert codes == [INTERNAL_ERROR, None, INTERNAL_ERROR, None, None]
    assert "secret" not in json.dumps(answers)
    assert_logged_once(log)
    if place == SETTLED:
        batch = [request(1, "ping"), request("fault", "ping"), request(3, "ping")]
        answers, log = said(tmp_path, *opening("2025-03-26"), batch, request(1, "ping"))
        assert sorted(str(each["id"]) for each in answers[-2]) == ["1", "3", "fault"]
        assert answers[-1] == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert_logged_once(log)
    if place == EXCHANGED:
        answers, log = said(tmp_path, alone, {**alone, "id": 2})
        assert [(each["id"], each.get("error", {}).get("code")) for each in answers] == [
            *(("fault", INTERNAL_ERROR), (2, None)),
        ]
        assert_logged_once(log)


@rows("place", [HEARD, EXCHANGED])
def test_an_internal_error_over_http_is_an_answer_and_the_next_request_gets_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Clients with a handshake read no body whose status is not 200; for the others the status says it, too."""
    fault_at(monkeypatch, place)
    with serving(tmp_path, env={"ASSAY_JOURNAL": str(tmp_path / "journal")}) as service:
        for word, code in (("fault", INTERNAL_ERROR), ("good", None), ("fault", INTERNAL_ERROR), ("good", None)):
            old, new = request(word, "resources/list"), request(word, "resources/list", None, LATEST)
            for said, headers in ((old, of("2025-11-25")), (new, modern(new))):
                answer = service.post(said, headers)
                assert answer.status == (500 if code and said is new else 200)
                assert answer.json()["id"] == word
                assert answer.json().get("error", {}).get("code") == code
                assert b"secret" not in answer.body
        if place == HEARD:
            failed = service.post(CANCELLED, of("2025-11-25"))
            assert (failed.status, failed.error()["code"]) == (500, INTERNAL_ERROR)
        # A tool that waits for a backend runs in a thread of its own: what is raised there must come back.
        waited = service.post(request("fault", "populate_backend", {"asset": {}}), BOTH)
        assert (waited.json()["id"], waited.error()["code"]) == ("fault", INTERNAL_ERROR)
    assert_logged_once("\n".join(service.log.whole()))

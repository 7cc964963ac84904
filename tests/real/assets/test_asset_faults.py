"""An internal error in the asset server, wherever it happens: one answer for the request, and the process goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST
from kit.asset_requests import frame_of, opening, request
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

SECONDS = 30


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


@pytest.mark.parametrize("name", [["x"], {"x": 1}, None, 5])
def test_a_request_may_carry_a_name_of_any_type_beside_its_own_params(tmp_path: Path, name: Any) -> None:
    asked = request(1, "tools/list", {"name": name})
    answers, log = said(tmp_path, *opening("2025-11-25"), asked, request(2, "ping"))
    assert [each["id"] for each in answers[-2:]] == [1, 2]
    assert "tools" in answers[-2]["result"]
    assert "Traceback" not in log


@pytest.mark.parametrize("place", [HEARD, JUDGED, ASKED, ANSWERED, SETTLED, EXCHANGED])
def test_an_internal_error_is_an_answer_and_the_next_request_gets_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The same id can be used again: what failed has not stayed open."""
    fault_at(monkeypatch, place)
    fault = request(7, "resources/list", {"_meta": {"fault": 1}})
    good = request(7, "resources/list", {"_meta": {"good": 1}})
    answers, log = said(tmp_path, *opening("2025-11-25"), fault, good, fault, good)
    told = answers[-4:]
    assert [each["id"] for each in told] == [7] * 4
    assert [each.get("error", {}).get("code") for each in told] == [INTERNAL_ERROR, None, INTERNAL_ERROR, None]
    assert "secret" not in json.dumps(answers)
    assert_logged_once(log)


@pytest.mark.parametrize("place", [HEARD, JUDGED, ASKED, EXCHANGED])
def test_a_notification_that_fails_has_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    fault_at(monkeypatch, place)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "fault"}}
    answers, log = said(tmp_path, *opening("2025-11-25"), cancelled, request(1, "ping"))
    assert [each["id"] for each in answers][-1] == 1
    assert len(answers) == 2
    assert_logged_once(log)


def test_each_request_of_a_batch_has_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault_at(monkeypatch, SETTLED)
    batch = [request(1, "ping"), request("fault", "ping"), request(3, "ping")]
    answers, log = said(tmp_path, *opening("2025-03-26"), batch, request(1, "ping"))
    assert sorted(str(each["id"]) for each in answers[-2]) == ["1", "3", "fault"]
    assert answers[-1] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert_logged_once(log)


def test_a_request_without_a_handshake_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault_at(monkeypatch, EXCHANGED)
    meta = {
        "io.modelcontextprotocol/protocolVersion": LATEST,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    fault = request("fault", "tools/list", {"_meta": meta})
    answers, log = said(tmp_path, fault, request(2, "tools/list", {"_meta": meta}))
    assert answers[0]["error"]["code"] == INTERNAL_ERROR
    assert answers[0]["id"] == "fault"
    assert "tools" in answers[1]["result"]
    assert_logged_once(log)

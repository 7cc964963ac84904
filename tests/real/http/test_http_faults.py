"""An internal error in the asset server over HTTP: one answer with the id of the request, and the server goes on."""

from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST
from kit.faulting import ANSWERED, EXCHANGED, HEARD, INTERNAL_ERROR, JUDGED, SETTLED, assert_logged_once, fault_at
from kit.http_client import BOTH, JSON, modern, notification, of, request, serving

PLACES = [HEARD, JUDGED, ANSWERED, SETTLED, EXCHANGED]


def journal(directory: Path) -> dict[str, str]:
    return {"ASSAY_JOURNAL": str(directory / "journal")}


@pytest.mark.parametrize("name", [["x"], {"x": 1}])
def test_a_request_may_carry_a_name_of_any_type_beside_its_own_params(tmp_path: Path, name: Any) -> None:
    with serving(tmp_path) as service:
        assert "tools" in service.post(request(1, "tools/list", {"name": name}), of("2025-11-25")).json()["result"]
        asked = request(2, "tools/list", {"name": name}, LATEST)
        assert "tools" in service.post(asked, modern(asked)).json()["result"]


@pytest.mark.parametrize("place", PLACES)
def test_in_a_handshake_revision_the_answer_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Its clients read no body whose status is not 200."""
    fault_at(monkeypatch, place)
    with serving(tmp_path, env=journal(tmp_path)) as service:
        for word in ("fault", "good", "fault", "good"):
            answer = service.post(request(7, "resources/list", {"_meta": {word: 1}}), of("2025-11-25"))
            assert (answer.status, answer.json()["id"]) == (200, 7)
            assert answer.json().get("error", {}).get("code") == (INTERNAL_ERROR if word == "fault" else None)
            assert b"secret" not in answer.body
    assert_logged_once("\n".join(service.log.whole()))


@pytest.mark.parametrize("place", PLACES)
def test_without_a_handshake_the_status_tells_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    fault_at(monkeypatch, place)
    with serving(tmp_path, env=journal(tmp_path)) as service:
        for word in ("fault", "good", "fault", "good"):
            asked = request(word, "resources/list", None, LATEST)
            answer = service.post(asked, modern(asked))
            assert answer.status == (500 if word == "fault" else 200)
            assert answer.json()["id"] == word
            assert answer.json().get("error", {}).get("code") == (INTERNAL_ERROR if word == "fault" else None)
    assert_logged_once("\n".join(service.log.whole()))


def test_a_notification_that_fails_is_told_by_its_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault_at(monkeypatch, HEARD)
    with serving(tmp_path) as service:
        cancelled = notification("notifications/cancelled", {"requestId": "fault"})
        answer = service.post(cancelled, of("2025-11-25"))
        assert answer.status == 500
        assert answer.error()["code"] == INTERNAL_ERROR
        assert service.post(request(1, "ping"), of("2025-11-25")).status == 200


def test_a_tool_that_waits_for_a_backend_and_fails_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in a thread of its own: what is raised there must come back."""
    fault_at(monkeypatch, ANSWERED)
    with serving(tmp_path) as service:
        asked = {"jsonrpc": "2.0", "id": "fault", "method": "populate_backend", "params": {"asset": {}}}
        answer = service.post(asked, {**BOTH, **JSON})
        assert answer.json()["id"] == "fault"
        assert answer.error()["code"] in {INTERNAL_ERROR, -32602}

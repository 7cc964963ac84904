"""An internal error in the asset server over HTTP: one answer with the id of the request, and the server goes on."""

from pathlib import Path

import pytest

from assay.spec.revisions import LATEST
from kit.faulting import EXCHANGED, HEARD, INTERNAL_ERROR, SETTLED, assert_logged_once, fault_at
from kit.http_client import BOTH, modern, notification, of, request, serving
from kit.rows import rows


@rows("place", [HEARD, SETTLED, EXCHANGED])
def test_an_internal_error_is_an_answer_and_the_next_request_gets_its_own(
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
            failed = service.post(notification("notifications/cancelled", {"requestId": "fault"}), of("2025-11-25"))
            assert (failed.status, failed.error()["code"]) == (500, INTERNAL_ERROR)
        # A tool that waits for a backend runs in a thread of its own: what is raised there must come back.
        waited = service.post(request("fault", "populate_backend", {"asset": {}}), BOTH)
        assert (waited.json()["id"], waited.error()["code"]) == ("fault", INTERNAL_ERROR)
    assert_logged_once("\n".join(service.log.whole()))

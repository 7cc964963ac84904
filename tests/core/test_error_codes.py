"""Error codes that 2026-07-28 reserves or has withdrawn (basic, Error Codes)."""

from typing import Any

from assay.base.errors import CanonicalError
from kit.rows import rows
from kit.stateless_talk import REVISION, asks, calls
from kit.talk import Talk, error, good

DATA = {-32021: {"requiredCapabilities": {}}, -32022: {"supported": [REVISION], "requested": "2030-01-01"}}


def failed(code: int) -> dict[str, Any]:
    """An error of *code*, with the data that the specification wants with it."""
    message = error(1, code)
    return message if code not in DATA else {**message, "error": {**message["error"], "data": DATA[code]}}


@rows("name", [each for each in CanonicalError.codes() if each != "RESOURCE_NOT_FOUND"])
def test_a_guard_does_not_blame_the_codes_of_another_guard(name: str) -> None:
    """The code for a resource that is not there is sent in older revisions only."""
    talk = Talk()
    good(talk.client(calls(1)))
    good(talk.server(failed(int(CanonicalError.to_jsonrpc_error(name)["code"]))))


def test_a_server_of_an_older_revision_may_answer_discover_with_any_code() -> None:
    talk = Talk()
    good(talk.client(asks(1, "server/discover")))
    good(talk.server(error(1, -32002, "not initialized")))

"""The HTTP status of a response: by error, and by the era of the client. No I/O."""

from typing import Final

import orjson

from assay.base.errors import CanonicalError
from assay.base.verdict import Verdict
from assay.core import render
from assay.edges.http.replies import error_body
from assay.spec.revisions import REVISIONS, features_of, handshake

_BY_STATUS: Final = frozenset({"HEADER_MISMATCH", "UNSUPPORTED_REVISION"})
"""Errors for which the specification sets the status, in revisions without a handshake."""

_IGNORED: Final = frozenset(
    {
        *("protocol/method", "protocol/direction", "protocol/extension", "protocol/capability"),
        *("protocol/cancel", "protocol/cancel-other", "protocol/progress"),
        *("protocol/unsolicited", "protocol/answered-twice"),
    }
)
"""Rules about unknown notifications and late responses, which a receiver ignores (JSON-RPC)."""

_BY_NUMBER: Final = {
    CanonicalError.to_jsonrpc_error(each)["code"]: each
    for each in (
        *("PARSE_ERROR", "INVALID_ENVELOPE", "INVALID_PARAMS", "METHOD_NOT_FOUND"),
        *("HEADER_MISMATCH", "MISSING_CAPABILITY", "UNSUPPORTED_REVISION"),
        *("UPSTREAM_INVALID", "UPSTREAM_FAILURE", "TIMEOUT"),
    )
}
"""The status by error code, in a response of the guard or the server. Any other code has 200."""


def is_ignored(verdict: Verdict) -> bool:
    """
    Whether a stopped message is a notification or a response that its receiver would only ignore.

    The sender gets 202: there is no response, and the official TypeScript client treats any other status as a failure
    of the transport. A malformed message gets 400.
    """
    if verdict.parts:
        return all(each.onward is not None or is_ignored(each) for each in verdict.parts)
    stopping = [each.rule for each in verdict.violations if each.stops]
    readable = verdict.kind in {"notification", "result", "error"}
    return readable and bool(stopping) and verdict.more == 0 and _IGNORED.issuperset(stopping)


def is_patient(version: str | None, *, in_session: bool) -> bool:
    """
    Whether this is a client of the handshake era; *version* is the revision in its header.

    Its libraries treat any status but 200 as a failure of the transport, and do not read the error in the body: so
    every readable request gets 200.
    """
    return in_session or (version in REVISIONS and version is not None and handshake(version))


def status_of(code: str | None, verdict: Verdict | None = None, *, patient: bool = False, answered: bool = True) -> int:
    """
    Return the HTTP status of a response with the canonical error *code*; None stands for a result.

    *verdict* is about the client's message; without it *patient* counts for the whole response. A response that is not
    *answered* has no body.
    """
    if verdict is not None:
        if verdict.parts or (code == "INVALID_TOOL_INPUT" and features_of(verdict.revision).failed_results):
            code = None
        patient = patient and answered and verdict.kind == "request"
    if code is None or (patient and code not in _BY_STATUS):
        return 200 if answered else 202
    return CanonicalError.to_http_status(code)


def status_in(answer: bytes) -> int:
    """Return the HTTP status of *answer*, a response of a server in a revision without a handshake."""
    if b'"error"' not in answer:
        return 200
    error = orjson.loads(answer).get("error")
    number = error.get("code") if isinstance(error, dict) else None
    return status_of(_BY_NUMBER.get(number) if isinstance(number, int) else None)


def refusal(verdict: Verdict, answer: bytes | None, code: str | None, *, patient: bool) -> tuple[int, bytes]:
    """
    Return the status and the body for a client's message that is not forwarded.

    *answer* is the frame that its sender gets, and *code* the canonical error in it.
    """
    if verdict.kind == "blank":
        return 400, error_body("PARSE_ERROR", "there is no message in the body")
    if answer is not None:
        return status_of(code, verdict, patient=patient), answer
    if is_ignored(verdict):
        return 202, b""
    # A notification or a response. Never 404, which in a session means that the session is gone.
    status = status_of(code, verdict) if verdict.value is None else 400
    return status, render.refusal(None, verdict.violations, verdict.more, verdict.revision)

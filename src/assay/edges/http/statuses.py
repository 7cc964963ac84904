"""The HTTP status of an answer. One table gives it by error; who asked decides whether it counts. No I/O."""

from typing import Final

import orjson

from assay.base.errors import CanonicalError
from assay.base.verdict import Verdict
from assay.core import render
from assay.edges.http.replies import error_body
from assay.spec.revisions import REVISIONS, features_of, handshake

_BY_STATUS: Final = frozenset({"HEADER_MISMATCH", "UNSUPPORTED_REVISION"})
"""Errors of requests that only a client of a later era sends: there the specification sets the status."""

_IGNORED: Final = frozenset(
    {
        *("protocol/method", "protocol/direction", "protocol/extension", "protocol/capability"),
        *("protocol/cancel", "protocol/cancel-other", "protocol/progress"),
        *("protocol/unsolicited", "protocol/answered-twice"),
    }
)
"""Rules about what a receiver does not know, or knows no more. JSON-RPC has it ignore such messages."""

_BY_NUMBER: Final = {
    CanonicalError.to_jsonrpc_error(each)["code"]: each
    for each in (
        *("PARSE_ERROR", "INVALID_ENVELOPE", "INVALID_PARAMS", "METHOD_NOT_FOUND"),
        *("HEADER_MISMATCH", "MISSING_CAPABILITY", "UNSUPPORTED_REVISION"),
        *("UPSTREAM_INVALID", "UPSTREAM_FAILURE", "TIMEOUT"),
    )
}
"""The error numbers that have a status, in a response of the guard or of the server. Any other one has 200."""


def is_ignored(verdict: Verdict) -> bool:
    """
    Whether a message that stops is a notification or an answer which its receiver would only ignore.

    The sender gets 202 for it: nobody answers it, and the official TypeScript client takes any other status for a
    failure of the transport. What breaks the format of a message gets 400.
    """
    if verdict.parts:
        return all(each.onward is not None or is_ignored(each) for each in verdict.parts)
    stopping = [each.rule for each in verdict.violations if each.stops]
    readable = verdict.kind in {"notification", "result", "error"}
    return readable and bool(stopping) and verdict.more == 0 and _IGNORED.issuperset(stopping)


def is_patient(version: str | None, *, in_session: bool) -> bool:
    """
    Whether this is a client of the handshake era; *version* is what its header names.

    Its libraries take any status but 200 for a failure of the transport, and never look at the error in the body: a
    request that was read is answered with 200, whatever the answer.
    """
    return in_session or (version in REVISIONS and version is not None and handshake(version))


def status_of(code: str | None, verdict: Verdict | None = None, *, patient: bool = False, answered: bool = True) -> int:
    """
    Return the HTTP status of a response that carries the canonical error *code*; None stands for a result.

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

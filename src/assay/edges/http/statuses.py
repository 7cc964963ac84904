"""The HTTP status of an answer. One table gives it by error; who asked decides whether it counts. No I/O."""

from typing import Final

from assay.base.errors import CanonicalError
from assay.base.verdict import Verdict
from assay.spec.revisions import REVISIONS, handshake

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


def status_of(verdict: Verdict, code: str | None, *, patient: bool, answered: bool) -> int:
    """The status of an answer to what *verdict* is about, that is, or is not, the canonical error *code*."""
    result = code == "INVALID_TOOL_INPUT" and (verdict.revision or "") >= "2025-11-25"
    read = answered and verdict.kind == "request"
    if code is None or result or verdict.parts or (patient and read and code not in _BY_STATUS):
        return 200 if answered else 202
    return CanonicalError.to_http_status(code)

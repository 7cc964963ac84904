"""The HTTP status of an answer. One table gives it by error; who asked decides whether it counts. No I/O."""

from typing import Final

from assay.errors import CanonicalError
from assay.spec.revisions import REVISIONS, handshake
from assay.verdict import Verdict

_BY_STATUS: Final = frozenset({"HEADER_MISMATCH", "UNSUPPORTED_REVISION"})
"""Errors of requests that only a client of a later era sends: there the specification sets the status."""


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

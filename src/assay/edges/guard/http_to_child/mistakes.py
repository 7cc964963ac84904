"""
Mistakes of ours, whatever they are: the log has them, whoever waits gets an error, and the guard goes on.

What either side says cannot be the reason for one; should it be one day, nobody hangs for it.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from assay import render
from assay.errors import CanonicalError
from assay.ladder import syntax

FAILED: Final = "the guard failed; its log says why"

_log: Final = logging.getLogger("assay")


def tell(what: str, error: Exception) -> None:
    """Puts *error* into the log, with *what* could not be done for it."""
    _log.error("%s", what, exc_info=error)


@contextmanager
def contained(what: str) -> Iterator[None]:
    """A mistake in here is in the log, with *what* could not be done for it, and keeps nothing else from being done."""
    try:
        yield
    except Exception as error:  # ours, and all that can be done about it is to say so
        tell(what, error)


def lost(ident: Any, why: str) -> bytes:
    """The answer to the request *ident*, of which its conversation knows nothing, or nothing any more."""
    error = CanonicalError.to_jsonrpc_error("UPSTREAM_FAILURE")
    return render.error_frame(syntax.write(ident), error, {"detail": why}, None)

"""
Mistakes of ours, whatever they are: the log has them, whoever waits gets an error, and the guard goes on.

What either side says cannot be the reason for one; should it be one day, nobody hangs for it.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple

from assay import render
from assay.guard.outline import outline
from assay.ladder import syntax
from assay.message import answers

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
    code = "INTERNAL_ERROR" if why == FAILED else "UPSTREAM_FAILURE"
    return render.plain_error(syntax.write(ident), code, why, why=why)


class Subject(NamedTuple):
    """One message of a server that the guard failed to handle: who must not be left waiting because of it."""

    kind: Literal["answer", "request", "notification", "none"]
    id: Any = None


def subjects(frame: bytes, rest: bytes = b"") -> list[Subject]:
    """Return what each message in *frame* is, as far as the frame shows it; *rest* is the end of an over-long frame."""
    value = None if rest else syntax.read(frame)
    if isinstance(value, list):
        return [_subject(each) for each in value]
    if isinstance(value, dict):
        return [_subject(value)]
    found = outline(frame, rest or frame)
    kind: Literal["answer", "request", "none"] = "answer" if found.answers else "request" if found.asks else "none"
    return [Subject(kind if found.id is not None else "none", found.id)]


def _subject(value: Any) -> Subject:
    if not isinstance(value, dict):
        return Subject("none")
    if answers(value):
        return Subject("answer", value.get("id"))
    return Subject("request", value["id"]) if "id" in value else Subject("notification")

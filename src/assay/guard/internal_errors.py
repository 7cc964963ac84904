"""
Handle a bug of ours while a message is judged: it becomes a verdict, and is logged once with its traceback.

Peers get only the type of the fault.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from assay.model.verdict import Findings, Party, Verdict, verdict

if TYPE_CHECKING:
    from assay.judge.conversation import Conversation

_MOST_LOGGED: Final = 100
_logged: set[tuple[str, int]] = set()
"""Places in the code with logged faults: the same fault may occur for every message."""


def failed(
    conversation: "Conversation", party: Party, frame: bytes, error: Exception, heard: Verdict | None = None
) -> Verdict:
    """
    Return the verdict on *frame* after *error*, an internal error that kept it from being judged or dealt with.

    *heard* is the verdict that was reached before the error, if there was one.
    """
    log_once(error)
    try:
        return conversation.unjudged(party, frame, type(error).__name__, heard)
    except Exception as another:
        # The same fault again, most likely.
        log_once(another)
        wrong = conversation.failure(type(error).__name__)
        onward = None if conversation.mode == "enforce" and wrong.stops else frame
        return verdict(party, frame, "unreadable", None, None, None, Findings((wrong,), 0, onward))


def log_once(error: Exception, what: str = "a message could not be judged") -> None:
    """Log *error* with its traceback; an error from the same line of code is logged only the first time."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace is not None else ("", 0)
    if place not in _logged and len(_logged) < _MOST_LOGGED:
        import logging  # noqa: PLC0415 - 2 ms at the start of a guard that has no fault

        _logged.add(place)
        logging.getLogger("assay.guard").error("assay: %s", what, exc_info=error)


@contextmanager
def contained(what: str) -> Iterator[None]:
    """Log an internal error inside the block, with *what* could not be done, and go on after it."""
    try:
        yield
    except Exception as error:
        log_once(error, what)

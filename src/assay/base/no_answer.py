"""
The error that a client shows in place of an answer that never came, with the cause in its message. No I/O.

Most clients show the message of an error and nothing of its data.
"""

import re
from collections.abc import Sequence
from typing import Final

from assay.base.errors import CanonicalError
from assay.base.verdict import Party

WITHIN: Final = "within "
"""How the reason begins where the time was over."""

SHOWN: Final = 300
"""Characters of a cause that are in a message: a client shows it on a line or two."""

_ANSWERED: Final = ("it answered", "its answer", "the server answered")
"""How a reason begins where something came that is not an answer to the request."""

_USELESS: Final = re.compile(r"\s|Node\.js v\d|note: run with |\^+$")
"""How lines of stderr begin that a runtime writes around the reason: frames of a stack, versions, hints."""


def within(seconds: float) -> str:
    """Return the reason where no answer came in so many *seconds*."""
    return f"{WITHIN}{seconds:g} s"


def error(
    code: str, why: str = "", last_words: Sequence[str] = (), owed_by: Party = Party.SERVER
) -> dict[str, int | str]:
    """
    Return the JSON-RPC error for *code*, whose message says *why* no answer came.

    In *why* ``it`` is *owed_by*. The most telling of *last_words*, lines that it wrote to stderr, follows.
    """
    made = CanonicalError.to_jsonrpc_error(code)
    if not why or code == "INTERNAL_ERROR":
        return made
    if why.startswith(WITHIN):
        return {**made, "message": f"No answer came {why}"}
    head = "No usable answer came" if code == "UPSTREAM_FAILURE" and why.startswith(_ANSWERED) else made["message"]
    line = reason_in(last_words)
    return {**made, "message": f"{head}: {_named(why, owed_by)}{f': {line}' if line else ''}"}


def reason_in(last_words: Sequence[str]) -> str:
    """Return the line of stderr that says most about an end: the last one that is not part of a stack."""
    lines = [each for each in last_words if each.strip()]
    told = next((each for each in reversed(lines) if not _USELESS.match(each)), lines[-1] if lines else "")
    return _cut(" ".join(told.split()))


def _named(why: str, owed_by: Party) -> str:
    """Return *why* with the party named in place of ``it`` and ``its``: a message stands alone."""
    if why.startswith("it "):
        return _cut(f"the {owed_by} {why.removeprefix('it ')}")
    return _cut(f"the {owed_by}'s {why.removeprefix('its ')}" if why.startswith("its ") else why)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"

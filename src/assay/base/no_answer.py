"""
The error that a client shows in place of a missing answer, with the cause in its message. No I/O.

Most clients show the message of an error, and not its data.
"""

import re
from collections.abc import Sequence
from typing import Final

from assay.base.errors import CanonicalError
from assay.base.verdict import Party

SHOWN: Final = 300
"""The length of a cause in a message, in characters: a client shows it on a line or two."""

_ANSWERED: Final = ("it answered", "its answer", "the server answered")
"""The start of a reason if something came that does not answer the request."""

_USELESS: Final = re.compile(r"\s|Node\.js v\d|note: run with |\^+$")
"""The start of stderr lines that a runtime writes around the reason: stack frames, versions, hints."""


def within(seconds: float) -> str:
    """Return the reason after a time-out of *seconds*."""
    return f"within {seconds:g} s"


def error(
    code: str, why: str = "", last_words: Sequence[str] = (), owed_by: Party = Party.SERVER
) -> dict[str, int | str]:
    """
    Return the JSON-RPC error for *code*, with the reason *why* in its message.

    In *why* ``it`` is *owed_by*. The most useful line of *last_words*, its stderr, follows.
    """
    made = CanonicalError.to_jsonrpc_error(code)
    if not why or code == "INTERNAL_ERROR":
        return made
    if code == "TIMEOUT":
        return {**made, "message": f"No answer came {why}"}
    head = "No usable answer came" if code == "UPSTREAM_FAILURE" and why.startswith(_ANSWERED) else made["message"]
    line = reason_in(last_words)
    return {**made, "message": f"{head}: {named(why, owed_by)}{f': {line}' if line else ''}"}


def reason_in(last_words: Sequence[str]) -> str:
    """Return the line of stderr that explains an end best: the last one that is not part of a stack."""
    lines = [each for each in last_words if each.strip()]
    line = next((each for each in reversed(lines) if not _USELESS.match(each)), lines[-1] if lines else "")
    return _cut(" ".join(line.split()))


def named(why: str, owed_by: Party) -> str:
    """Return *why* with the party in place of ``it`` and ``its``, so that the text stands alone."""
    if why.startswith("it "):
        return _cut(f"the {owed_by} {why.removeprefix('it ')}")
    return _cut(f"the {owed_by}'s {why.removeprefix('its ')}" if why.startswith("its ") else why)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"

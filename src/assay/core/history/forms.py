"""
Forms that a server asks the user to fill in, and whether the content fits them. No I/O, no clock.

A form is kept as text until it is answered, up to a limit. Content is not judged if its form was forgotten or cannot be
compiled: the server has to check it in any case.
"""

from typing import Any, Final

import orjson

from assay.base.verdict import Exchange, Violation
from assay.contracts.store import patterns
from assay.engine.admission import SchemaRefusal, compile_untrusted
from assay.engine.budget import Budget
from assay.rules import broken, violation

LARGEST: Final = 64 << 10
"""The most bytes of one form that is kept. A form is flat, and a person fills it in: real ones have under 4 KB."""

_PATTERN: Final = 350_000
"""The steps that compiling a pattern of a form counts for: up to 4 ms. No form of the schema has patterns."""

_MOST_BYTES: Final = 1 << 20
_MOST: Final = 1000
"""The most bytes, and the most forms, that wait for an answer in one conversation."""


class Forms:
    """The forms of one conversation whose answer is awaited, oldest first."""

    __slots__ = ("_bytes", "_open")

    def __init__(self) -> None:
        self._open: dict[Exchange, bytes] = {}
        self._bytes = 0

    def asked(self, exchange: Exchange, params: dict[str, Any]) -> None:
        """Keep the form of an `elicitation/create` request."""
        text = form_of(params)
        if text is None:
            return
        self._open[exchange] = text
        self._bytes += len(text)
        while self._bytes > _MOST_BYTES or len(self._open) > _MOST:
            self._forget(next(iter(self._open)))

    def check(self, exchange: Exchange | None, result: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """
        Judge a *result* by the form of the request that it answers, if that is known.

        Return at least how many violations there are beyond those in *found*.
        """
        text = None if exchange is None else self._open.get(exchange)
        if exchange is None or text is None:
            return 0
        self._forget(exchange)
        return check_content(text, result, "/result", exchange.revision, found, budget)

    def _forget(self, exchange: Exchange) -> None:
        self._bytes -= len(self._open.pop(exchange))


def form_of(params: Any) -> bytes | None:
    """Return the text of the form in the params of an `elicitation/create`; None if it is not kept."""
    schema = params.get("requestedSchema") if isinstance(params, dict) else None
    if not isinstance(schema, dict):
        return None
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        # An integer beyond 64 bits.
        return None
    return text if len(text) <= LARGEST else None


def check_content(form: bytes, result: Any, at: str, revision: str, found: list[Violation], budget: Budget) -> int:
    """
    Judge the content that the user accepted by the *form*; content of another action is not judged.

    Return at least how many violations there are beyond those in *found*.
    """
    content = result.get("content", {}) if isinstance(result, dict) and result.get("action") == "accept" else None
    if not isinstance(content, dict):
        return 0
    budget.steps -= _PATTERN * patterns(form)
    if budget.steps < 0:
        return 0
    # Formats are not asserted, as with the schemas of tools: the official servers accept an email without an @.
    compiled = compile_untrusted(orjson.loads(form))
    if isinstance(compiled, SchemaRefusal) or not budget.affords(compiled, content):
        return 0
    # Without the patterns that would take too long for this text.
    judging, _ = compiled.judging(content, budget)
    if judging is None or judging.fits(content):
        return 0
    if "content" not in result:
        found.append(_no_content(at, revision))
        return 0
    faults = judging.explained(content, budget, at=f"{at}/content")
    found += [
        broken("contract/elicitation", each, revision=revision, detail="requestedSchema") for each in faults.distinct()
    ]
    return faults.more


def _no_content(at: str, revision: str) -> Violation:
    return violation(
        "contract/elicitation",
        at,
        expected="content, because the form has required members",
        found="nothing",
        revision=revision,
        detail="requestedSchema",
    )

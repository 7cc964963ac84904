"""
Forms that a server asks the user to fill in, and whether the content fits them. No I/O, no clock.

A form is kept as text until it is answered, up to a limit. Content is not judged if its form was forgotten or cannot be
compiled: the server has to check it in any case.
"""

from typing import Any, Final

import orjson

from assay.base.verdict import Exchange, Violation
from assay.contracts.store import patterns
from assay.core import state_rules
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

    __slots__ = ("_bytes", "_is_cut", "_open")

    def __init__(self) -> None:
        self._open: dict[Exchange, bytes] = {}
        """The text of each form; empty for one that is too large to keep."""
        self._bytes = 0
        self._is_cut = False
        """Whether a form was forgotten before its answer came."""

    def asked(self, exchange: Exchange, params: dict[str, Any]) -> None:
        """Keep the form of an `elicitation/create` request."""
        if not has_form(params):
            return
        text = form_of(params) or b""
        self._open[exchange] = text
        self._bytes += len(text)
        while self._bytes > _MOST_BYTES or len(self._open) > _MOST:
            self._is_cut = True
            self._forget(next(iter(self._open)))

    def check(self, exchange: Exchange | None, result: dict[str, Any], found: list[Violation], budget: Budget) -> int:
        """
        Judge a *result* by the form of the request that it answers, if that is known.

        Return at least how many violations there are beyond those in *found*.
        """
        if exchange is None:
            return 0
        text = self._open.get(exchange)
        if not text and (text is not None or self._is_cut) and has_content(result):
            found.append(state_rules.forgotten("a form", "/result/content", exchange.revision))
        if text is not None:
            self._forget(exchange)
        if not text:
            return 0
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
    # Formats are not asserted, as with the schemas of tools: the official servers accept an email without an @.
    compiled = compile_untrusted(orjson.loads(form)) if budget.steps >= 0 else None
    if compiled is None or isinstance(compiled, SchemaRefusal) or not budget.affords(compiled, content):
        found.append(_unjudged(f"{at}/content", compiled, revision))
        return 0
    # Without the patterns that would take too long for this text.
    judging, pattern = compiled.judging(content, budget)
    if pattern is not None:
        found.append(_unjudged(f"{at}/content", None, revision))
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


def has_form(params: Any) -> bool:
    """Whether the params of an elicitation have a form to fill in."""
    return isinstance(params, dict) and isinstance(params.get("requestedSchema"), dict)


def has_content(result: Any) -> bool:
    """Whether a user has filled in a form."""
    return isinstance(result, dict) and result.get("action") == "accept" and bool(result.get("content"))


def _unjudged(at: str, refused: object, revision: str) -> Violation:
    """Return the violation of content that cannot be judged by its form."""
    return violation(
        "contract/unjudged",
        at,
        expected="a form that can be checked in bounded time",
        found=refused.found if isinstance(refused, SchemaRefusal) else "one that takes too long",
        revision=revision,
        detail="requestedSchema",
    )


def _no_content(at: str, revision: str) -> Violation:
    return violation(
        "contract/elicitation",
        at,
        expected="content, which the form requires",
        found="nothing",
        revision=revision,
        detail="requestedSchema",
    )

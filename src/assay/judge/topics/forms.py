"""
Forms that a server asks the user to fill in, and whether the content fits them.

A form is kept as text until it is answered, up to a limit. Content is not judged if its form was forgotten or cannot be
compiled: the server has to check it in any case.
"""

from typing import TYPE_CHECKING, Any, Final

import orjson

from assay.judge.topics.table import on
from assay.model.bounded import BoundedSizes
from assay.model.json_values import obj
from assay.model.verdict import Exchange
from assay.rules import broken
from assay.rules.report import Report
from assay.schema.admission import SchemaRefusal, compile_untrusted
from assay.schema.store import patterns

if TYPE_CHECKING:
    from assay.judge.state import State

LARGEST: Final = 64 << 10
"""The most bytes of one form that is kept. A form is flat, and a person fills it in: real ones have under 4 KB."""

_PATTERN: Final = 350_000
"""The steps that compiling a pattern of a form counts for: up to 4 ms. No form of the schema has patterns."""

_MOST_BYTES: Final = 1 << 20
_MOST: Final = 1000
"""The most bytes, and the most forms, that wait for an answer in one conversation."""


class Forms(BoundedSizes[Exchange, bytes]):
    """The forms of one conversation whose answer is awaited, as text; empty for one that is too large to keep."""

    def __init__(self, _: "State") -> None:
        super().__init__(_MOST, _MOST_BYTES)


@on("request", "elicitation/create")
def take_form(state: "State", exchange: Exchange, params: dict[str, Any], _: Report) -> None:
    """Keep the form that a request asks the user to fill in."""
    if has_form(params):
        text = form_of(params) or b""
        state.own(Forms).put(exchange, text, len(text))


@on("result", "elicitation/create")
def check_filled(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report content that does not fit its form."""
    if not exchange.as_task:
        check_answer(state, exchange, result, report)


def check_answer(state: "State", exchange: Exchange | None, result: dict[str, Any], report: Report) -> None:
    """Report the violations of a *result* by the form of the request that it answers, if that is known."""
    if exchange is None:
        return
    forms = state.own(Forms)
    text = forms.take(exchange)
    if not text and (text is not None or forms.is_cut) and has_content(result):
        report.add_forgotten("a form", "/result/content")
    if text:
        check_content(text, result, "/result", report)


def form_of(params: Any) -> bytes | None:
    """Return the text of the form in the params of an `elicitation/create`; None if it is not kept."""
    schema = obj(params).get("requestedSchema")
    if not isinstance(schema, dict):
        return None
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        # An integer beyond 64 bits.
        return None
    return text if len(text) <= LARGEST else None


def check_content(form: bytes, result: Any, at: str, report: Report) -> None:
    """Report content that the user accepted and that breaks the *form*; that of another action is not judged."""
    content = result.get("content", {}) if isinstance(result, dict) and result.get("action") == "accept" else None
    if not isinstance(content, dict):
        return
    budget = report.budget
    budget.steps -= _PATTERN * patterns(form)
    # Formats are not asserted, as with the schemas of tools: the official servers accept an email without an @.
    compiled = compile_untrusted(orjson.loads(form)) if budget.steps >= 0 else None
    if compiled is None or isinstance(compiled, SchemaRefusal) or not budget.affords(compiled, content):
        _unjudged(f"{at}/content", compiled, report)
        return
    # Without the patterns that would take too long for this text.
    judging, pattern = compiled.judging(content, budget)
    if pattern is not None:
        _unjudged(f"{at}/content", None, report)
    if judging is None or judging.fits(content):
        return
    if "content" not in result:
        expected = "content, which the form requires"
        report.add("contract/elicitation", at, expected=expected, found="nothing", detail="requestedSchema")
        return
    faults = judging.explained(content, budget, at=f"{at}/content")
    revision, detail = report.revision, "requestedSchema"
    wrong = (broken("contract/elicitation", each, revision=revision, detail=detail) for each in faults.distinct())
    report.take(wrong, faults.more)


def has_form(params: Any) -> bool:
    """Whether the params of an elicitation have a form to fill in."""
    return isinstance(obj(params).get("requestedSchema"), dict)


def has_content(result: Any) -> bool:
    """Whether a user has filled in a form."""
    return obj(result).get("action") == "accept" and bool(obj(result).get("content"))


def _unjudged(at: str, refused: object, report: Report) -> None:
    """Report content that cannot be judged by its form."""
    report.add(
        "contract/unjudged",
        at,
        expected="a form that can be checked in bounded time",
        found=refused.found if isinstance(refused, SchemaRefusal) else "one that takes too long",
        detail="requestedSchema",
    )

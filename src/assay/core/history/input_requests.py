"""
Input that a server asks a client for inside a result, and whether the answers fit (2026-07-28). No I/O, no clock.

Of each request only its method and its form are kept. Which request an answer belongs to, and whether answers are
missing, depends on where they are sent: the caller decides that.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from assay.base.verdict import Violation
from assay.core import state_rules
from assay.core.history.answer_rules import check_roots
from assay.core.history.forms import LARGEST, check_content, form_of, has_content, has_form
from assay.engine.budget import Budget
from assay.engine.pointers import escaped
from assay.engine.wording import found as found_words
from assay.ladder.protocol import Judge
from assay.rules import violation

_ANSWERS: Final = {
    "elicitation/create": "ElicitResult",
    "sampling/createMessage": "CreateMessageResult",
    "roots/list": "ListRootsResult",
}
"""The definition of the answer to each request that a server may make inside a result."""

_MOST: Final = 64
"""The most requests of one result that are kept. A user answers each of them, and real servers ask for up to three."""

_MOST_BYTES: Final = LARGEST
"""The most bytes of their keys and forms together: as much as the largest form that is kept has."""


class AskedInput(NamedTuple):
    """What is kept of one request for input."""

    method: str
    """The method that the server asks for, such as `elicitation/create`."""
    form: bytes | None = None
    """The text of the form to fill in; None without one, empty if it is too large to keep."""


def kept(requests: Any) -> Mapping[str, AskedInput]:
    """
    Return what is kept of the *requests* of a result, by their keys.

    A request that is invalid or beyond the limits is left out: the mapping then has fewer keys than *requests*. A form
    beyond the limits is left out alone.
    """
    found: dict[str, AskedInput] = {}
    left = _MOST_BYTES
    for key, request in requests.items() if isinstance(requests, dict) else ():
        method = request.get("method") if isinstance(request, dict) else None
        # A character of a key takes up to four bytes.
        left -= 4 * len(key)
        if len(found) >= _MOST or left < 0:
            break
        if not isinstance(method, str) or method not in _ANSWERS:
            continue
        form = None
        if method == "elicitation/create" and has_form(request.get("params")):
            form = form_of(request["params"]) or b""
            form = form if len(form) <= left else b""
        left -= len(form or b"")
        found[key] = AskedInput(method, form)
    return found


def check_responses(
    asked: Mapping[str, AskedInput],
    responses: Any,
    at: str,
    revision: str,
    judge: Judge,
    found: list[Violation],
    budget: Budget,
    *,
    whole: bool = True,
) -> int:
    """
    Judge the *responses* at the place *at* whose keys are in *asked*: their kind, their form and their roots.

    Without *whole*, requests for input are missing in *asked*, and it is reported that a response is not judged.

    Return at least how many violations there are beyond those in *found*.
    """
    more = 0
    for key, response in responses.items() if isinstance(responses, dict) else ():
        request, place = asked.get(key), f"{at}/{escaped(key)}"
        if request is None:
            if not whole:
                found.append(state_rules.forgotten("a request for input", place, revision))
                return more
            continue
        if not _is_answer(request.method, response, judge, budget):
            found.append(_other_kind(request.method, response, place, judge, budget))
        elif request.method == "roots/list":
            found += check_roots(response, place, revision, budget.violations)
        elif request.form:
            more += check_content(request.form, response, place, revision, found, budget)
        elif request.form is not None and has_content(response):
            found.append(state_rules.forgotten("a form", f"{place}/content", revision))
    return more


def _is_answer(method: str, response: Any, judge: Judge, budget: Budget) -> bool:
    definition = judge.definition(_ANSWERS[method])
    if definition.is_valid(response):
        return True
    # A wrong format, such as that of a URI, has a rule of its own, and is reported with the params.
    faults, _ = definition.check("protocol/input-kind", response, "", judge.revision, budget)
    return all(each.rule != "protocol/input-kind" for each in faults)


def _other_kind(method: str, response: Any, at: str, judge: Judge, budget: Budget) -> Violation:
    fitting = [
        name for other, name in _ANSWERS.items() if other != method and _is_answer(other, response, judge, budget)
    ]
    return violation(
        "protocol/input-kind",
        at,
        expected=f"the {_ANSWERS[method]} that {method} asks for",
        found=_with_article(fitting[0]) if fitting else found_words(response),
        revision=judge.revision,
        detail=_ANSWERS[method],
    )


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"

"""
Input that a server asks a client for inside a result, and whether the answers fit (2026-07-28).

Of each request only its method and its form are kept. Which request an answer belongs to, and whether answers are
missing, depends on where they are sent: the caller decides that.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from assay.judge.revision_rules import RevisionRules
from assay.judge.topics.forms import LARGEST, check_content, form_of, has_content, has_form
from assay.judge.topics.roots import report_roots
from assay.model.json_values import obj
from assay.rules.report import Report
from assay.schema.pointers import escaped
from assay.schema.wording import found as found_words

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
    for key, request in obj(requests).items():
        method = obj(request).get("method")
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
    rules: RevisionRules,
    report: Report,
    *,
    whole: bool = True,
) -> None:
    """
    Report the *responses* at the place *at* whose keys are in *asked* and that do not fit in kind, form or roots.

    Without *whole*, requests for input are missing in *asked*, and it is reported that a response is not judged.
    """
    for key, response in obj(responses).items():
        request, place = asked.get(key), f"{at}/{escaped(key)}"
        if request is None:
            if not whole:
                report.add_forgotten("a request for input", place)
                return
        elif not _is_answer(request.method, response, rules, report):
            _report_other_kind(request.method, response, place, rules, report)
        elif request.method == "roots/list":
            report_roots(response, place, report)
        elif request.form:
            check_content(request.form, response, place, report)
        elif request.form is not None and has_content(response):
            report.add_forgotten("a form", f"{place}/content")


def _is_answer(method: str, response: Any, rules: RevisionRules, report: Report) -> bool:
    definition = rules.definition(_ANSWERS[method])
    if definition.is_valid(response):
        return True
    # A wrong format, such as that of a URI, has a rule of its own, and is reported with the params.
    faults = report.apart()
    definition.check("protocol/input-kind", response, "", faults)
    return all(each.rule != "protocol/input-kind" for each in faults.found)


def _report_other_kind(method: str, response: Any, at: str, rules: RevisionRules, report: Report) -> None:
    others = (
        name for other, name in _ANSWERS.items() if other != method and _is_answer(other, response, rules, report)
    )
    fitting = next(others, None)
    report.add(
        "protocol/input-kind",
        at,
        expected=f"the {_ANSWERS[method]} that {method} asks for",
        found=_with_article(fitting) if fitting is not None else found_words(response),
        detail=_ANSWERS[method],
    )


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"

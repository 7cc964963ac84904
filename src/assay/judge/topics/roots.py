"""Roots, and other members of results that a schema cannot express: the number of completion values."""

from typing import TYPE_CHECKING, Any, Final

from assay.judge.topics.table import on
from assay.model.json_values import items, obj
from assay.model.verdict import Exchange
from assay.rules.report import Report

if TYPE_CHECKING:
    from assay.judge.state import State

_MOST_VALUES: Final = 100
"""The most completion values of one answer, by the specification of every revision."""


@on("result", "roots/list")
def check_roots(_: "State", __: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report each root whose URI does not begin with `file://`."""
    report_roots(result, "/result", report)


def report_roots(result: Any, at: str, report: Report) -> None:
    """Report each root of a *result* at the place *at* whose URI does not begin with `file://`."""
    uris = [obj(each).get("uri") for each in items(obj(result).get("roots"))]
    wrong = [(number, uri) for number, uri in enumerate(uris) if isinstance(uri, str) and not uri.startswith("file://")]
    for number, uri in wrong[: report.most]:
        expected, found = "a URI that begins with file://", f'"{uri[:60]}"'
        report.add("protocol/root", f"{at}/roots/{number}/uri", expected=expected, found=found)


@on("result", "completion/complete")
def check_completion(_: "State", __: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a completion with too many values."""
    values = items(obj(result.get("completion")).get("values"))
    if len(values) > _MOST_VALUES:
        expected, found = f"at most {_MOST_VALUES} values", f"{len(values):,}"
        report.add("protocol/completion-values", "/result/completion/values", expected=expected, found=found)

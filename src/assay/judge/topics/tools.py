"""Tools: the list of them, the contracts of their calls, and what their results promise."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from assay.judge import contract
from assay.judge.topics.table import Note, on
from assay.model.json_values import named_revision, obj
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.schema.tool_contract import Contract
from assay.schema.tool_contracts import cursor_key
from assay.spec.revisions import handshake, is_known
from assay.spec.schema import closest

if TYPE_CHECKING:
    from assay.judge.state import State

NOT_JUDGED: Final = "contract/not-judged"
"""The rule of a call that is not judged by the schemas of its tool."""

_MOST_LIKENED: Final = 500
"""The number of listed names that an unknown one is compared with."""

_LIKENED: Final = 16_000
"""The steps of the budget that this costs for each: 0.2 ms for the longest names, if they are very alike."""

_LIKENED_TO: Final = 64
"""The characters of a name that are compared: names have up to 128, and in practice some 20."""

_MOST_LISTED: Final = 3
"""The number of tools to list for a client that names an unknown one."""


@on("request")
def take_tool(state: "State", exchange: Exchange, params: dict[str, Any], _: Report) -> None:
    """Keep the tool that a request calls, and its contract."""
    name = params.get("name")
    if exchange.method == "tools/call" and isinstance(name, str):
        exchange.detail = name[:100]
        exchange.contract = state.tools.known.get(name)


@on("request", "tools/call")
def check_call(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Report a call that breaks the contract of its tool, or of a tool that cannot be called."""
    name = params.get("name")
    if not isinstance(name, str):
        return
    known: Contract | None = exchange.contract
    if known is not None:
        _check_arguments(state, exchange, known, params, report)
    elif state.tools.is_quarantined(name):
        report_quarantined(name, report)
    elif state.tools.complete:
        _report_unknown(name, state.tools.known, report)
    else:
        _report_not_judged(name, report)


def _check_arguments(
    state: "State", exchange: Exchange, known: Contract, params: dict[str, Any], report: Report
) -> None:
    budget = report.budget
    if exchange.over_http and not known.ready:
        budget.compiles -= 1
    if not known.has_room or budget.compiles < 0:
        _report_not_judged(str(params["name"]), report)
    if budget.compiles < 0:
        exchange.contract = None
        return
    contract.check_usable(state.tools, known, report, over_http=exchange.over_http)
    contract.check_input(known, params, report)


def _report_unknown(name: str, known: Iterable[str], report: Report) -> None:
    if report.is_full:
        return
    listed = list(known)
    # All calls of one message draw from its budget.
    most = max(0, min(_MOST_LIKENED, report.budget.steps // _LIKENED))
    report.budget.steps -= _LIKENED * min(most, len(listed))
    near = closest(name[:_LIKENED_TO], {each[:_LIKENED_TO]: each for each in listed[:most]})
    expected = f"a listed tool, such as {near[0]}" if near else _one_of(listed)
    report.add("contract/unknown-tool", "/params/name", expected=expected, found=f'"{name[:60]}"')


def _one_of(tools: Sequence[str]) -> str:
    """Return the listed tools, if a few words can name them."""
    if not tools:
        return "a listed tool, but the list is empty"
    if len(tools) > _MOST_LISTED:
        return f"one of {len(tools):,} listed tools"
    *before, last = (each[:60] for each in tools)
    names = f"{', '.join(before)} or {last}" if before else last
    return f"a listed tool: {names}"


def _report_not_judged(tool: str, report: Report) -> None:
    """Report a call of a tool whose contract is not known."""
    found = f'"{tool[:60]}", whose schemas are unknown'
    report.add(NOT_JUDGED, "/params/name", expected="a tool that was listed before", found=found)


def report_quarantined(tool: str, report: Report) -> None:
    """Report a call of a quarantined tool."""
    expected, found = "a tool in the forwarded list", f'"{tool[:60]}", which is quarantined'
    report.add("contract/set-aside", "/params/name", expected=expected, found=found)


@on("result", "tools/call")
def check_result(_: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a result that breaks the contract of its tool; a result type of an extension comes before it."""
    is_final = exchange.features.handshake or result.get("resultType", "complete") == "complete"
    if exchange.contract is not None and is_final and not exchange.as_task:
        contract.check_output(exchange.contract, result, report)


@on("answered", "tools/list")
def learn_tools(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Keep the tools of a list, and report what is wrong with them."""
    page, cursor = result.get("tools"), result.get("nextCursor", "")
    if exchange.asker is not Party.CLIENT or not isinstance(page, list):
        return
    state.tools.learn(
        page,
        report,
        cursor=exchange.detail,
        # Under audit a cursor may be anything; such a page is not the last one, and has no next one.
        following=cursor_key(str(cursor)) if "nextCursor" in result else None,
        over_http=exchange.over_http,
    )


@on("noted", "notifications/tools/list_changed")
def forget_tools(state: "State", _: Note) -> None:
    """Note that the list of tools has changed."""
    state.tools.changed()


_IDS: Final = (int, str, float)
"""The types that an id may have in a frame that was read."""


def unlisted(state: "State", message: Any) -> str | None:
    """
    Return the revision in which to request the tools before *message* is judged; None if that is not needed.

    It is needed for the call of a tool that may exist, and whose contract is not known.
    """
    if type(message) is not dict or message.get("method") != "tools/call":
        return None
    name = obj(message.get("params")).get("name")
    # A call without a valid id, or of a server without tools, is refused. The id may be spelt as 1.0.
    if type(name) is not str or type(message.get("id")) not in _IDS or not state.tools.is_missing(name):
        return None
    revision = named_revision(message)
    if revision is None or handshake(revision) or not is_known(revision):
        revision = state.lifecycle.revision if state.lifecycle.phase == "operating" else None
    return None if "tools/call" in state.parties[Party.CLIENT].undeclared else revision

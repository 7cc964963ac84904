"""
What a party declares that it supports, and requests that need more.

Sampling with tools and the modes of elicitation are declared one by one. An `elicitation` without a mode has forms, as
before there were modes. If the declarations of a party are unknown, nothing is a violation.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from assay.judge.party_state import PartyState
from assay.judge.topics.table import on
from assay.model.json_values import CAPABILITIES_KEY, obj
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.schema.pointers import escaped
from assay.spec.extensions import BY_IDENTIFIER
from assay.spec.methods import methods
from assay.spec.revisions import handshake

if TYPE_CHECKING:
    from assay.judge.state import State

_CAPABILITIES: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The capability of the client for each request of the server."""

TASK_CAPABILITIES: Final = {
    "tools/call": "tasks.requests.tools.call",
    "sampling/createMessage": "tasks.requests.sampling.createMessage",
    "elicitation/create": "tasks.requests.elicitation.create",
}
"""The capability of the receiver for each request that may run as a task (2025-11-25)."""

_NOTHING: Final[frozenset[str]] = frozenset()
_TOOLS: Final = frozenset({"sampling.tools"})
_MODES: Final = {
    (form, url): frozenset(["elicitation.form"] * form + ["elicitation.url"] * url)
    for form in (False, True)
    for url in (False, True)
}
"""The features that are declared one by one; a mode also by the other modes."""

ASKED_FOR: Final = frozenset(_CAPABILITIES.values())
"""All capabilities that are needed besides features, and so all that are kept."""

_EXTENSIONS: Final = frozenset(BY_IDENTIFIER)
"""The extensions that are kept: a server may use these in its answer."""

_URL: Final = "elicitation.url"
_URL_REQUIRED: Final = -32042
"""The error that asks the user to open a URL first."""


# ── what a method needs ──────────────────────────────────────────────────────────────────────────────────────────────


def undeclared(party: Party, revision: str, declared: Mapping[Party, Mapping[str, Any] | None]) -> frozenset[str]:
    """Return the methods that *party* may not send because of missing capabilities; none while those are unknown."""
    if all(each is None for each in declared.values()):
        # True at the start of every conversation, and without sessions each request starts one.
        return frozenset()
    lacking = [names for owner, path, names in _needs(party, revision) if not _is_declared(declared[owner], path)]
    return frozenset().union(*lacking)


@cache
def _needs(party: Party, revision: str) -> tuple[tuple[Party, tuple[str, ...], frozenset[str]], ...]:
    """Return each capability that methods of *party* need, with its owner, and the names of those methods."""
    found: dict[tuple[Party, str], set[str]] = {}
    for name, known in methods(revision).items():
        needed = known.needs(party.value) if party in known.senders else None
        if needed is not None:
            found.setdefault((Party(needed[0]), needed[1]), set()).add(name)
    return tuple((owner, tuple(path.split(".")), frozenset(names)) for (owner, path), names in found.items())


def _is_declared(capabilities: Mapping[str, Any] | None, path: tuple[str, ...]) -> bool:
    """Return whether a party has declared the capability at *path*, or its capabilities are not known."""
    here: Any = capabilities
    if here is None:
        return True
    for step in path:
        here = here.get(step) if type(here) is dict or isinstance(here, Mapping) else None
        if here is None or here is False:
            return False
    return True


def missing_capability(
    method: str, party: Party, revision: str, declared: Mapping[Party, Mapping[str, Any] | None]
) -> tuple[Party, str] | None:
    """Return the party and the capability that are missing for *method* of *party*; None if it may send the method."""
    known = methods(revision)[method]
    needed = known.needs(party.value) if party in known.senders else None
    if needed is None:
        return None
    owner, path = Party(needed[0]), needed[1]
    capabilities = declared[owner]
    return None if capabilities is None or has_capability(capabilities, path) else (owner, path)


def has_capability(capabilities: Mapping[str, Any], path: str) -> bool:
    """Return whether *path* was declared: as an object of that name, or as a flag that is true."""
    return _is_declared(capabilities, tuple(path.split(".")))


# ── what a request declares, and needs ───────────────────────────────────────────────────────────────────────────────


def declared_in(capabilities: Mapping[str, Any]) -> frozenset[str]:
    """Return the client's capabilities that a server may need: `sampling`, `sampling.tools`, known extensions."""
    # This runs for every call: no loop, and no set unless there is something to put into it.
    if not capabilities:
        return _NOTHING
    declared = ASKED_FOR.intersection(capabilities)
    sampling, elicitation = capabilities.get("sampling"), capabilities.get("elicitation")
    if sampling and type(sampling) is dict and "tools" in sampling:
        declared |= _TOOLS
    if elicitation and type(elicitation) is dict:
        declared |= _MODES["form" in elicitation, "url" in elicitation]
    extensions = capabilities.get("extensions")
    if extensions and type(extensions) is dict:
        declared |= _EXTENSIONS.intersection(extensions)
    return declared


def lacking(method: str, params: Mapping[str, Any], declared: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the place and the path of each capability that a request needs and that *declared* lacks."""
    path = _CAPABILITIES.get(method)
    if path is None:
        return
    if path not in declared:
        yield "", path
    elif path == "elicitation":
        url = params.get("mode") == "url"
        forms = "elicitation.form" in declared or _URL not in declared
        if url and _URL not in declared:
            yield "/params/mode", _URL
        elif not url and not forms:
            yield "/params/mode" if "mode" in params else "/params", "elicitation.form"
    elif path == "sampling" and "sampling.tools" not in declared:
        yield from ((f"/params/{name}", "sampling.tools") for name in ("tools", "toolChoice") if name in params)


def check_input_requests(requests: Any, at: str, declared: Collection[str], report: Report) -> None:
    """Report *requests* for input, by their keys, that the client does not support."""
    # A result may have a hundred thousand requests.
    lacks = (
        (f"{at}/{escaped(key)}{place}", path)
        for key, request in obj(requests).items()
        if isinstance(request, dict)
        for place, path in lacking(str(request.get("method")), obj(request.get("params")), declared)
    )
    for place, path in islice(lacks, report.most):
        report_lack(place, Party.CLIENT, path, report)


def report_lack(at: str, party: Party, path: str, report: Report, found: str = "not declared") -> None:
    """Report that something needs the capability *path*, which *party* did not declare."""
    if handshake(str(report.revision)):
        where = f"the capabilities of its initialize {'request' if party is Party.CLIENT else 'result'}"
    elif party is Party.CLIENT:
        where = f"{CAPABILITIES_KEY} in params._meta"
    else:
        where = "the capabilities of its server/discover result"
    hint = f'The {party} must declare "{path}" in {where}.'
    report.add("protocol/capability", at, expected=f"the {party}'s capability {path}", found=found, hint=hint)


def check_method(parties: Mapping[Party, PartyState], sender: PartyState, method: str, report: Report) -> None:
    """Report a method that needs a capability which was not declared."""
    if method in sender.undeclared:
        declared = {each: one.capabilities for each, one in parties.items()}
        owner, path = missing_capability(method, sender.party, str(report.revision), declared) or (sender.party, method)
        report_lack("/method", owner, path, report, f"{method}, although it was not declared")


@on("request", *{*_CAPABILITIES, *TASK_CAPABILITIES})
def check_features(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Report a request that its receiver did not declare, or the tool does not allow."""
    receiver = state.parties[exchange.asker.other]
    declared = receiver.capabilities
    if declared is None or not _declares_modes(exchange):
        return
    # Whether the method itself may be used is judged for every method.
    lacks = [each for each in lacking(exchange.method, params, declared_in(declared)) if "." in each[1]]
    task = TASK_CAPABILITIES.get(exchange.method)
    if "task" in params and task is not None and not has_capability(declared, task):
        lacks.append(("/params/task", task))
    for at, path in lacks:
        report_lack(at, receiver.party, path, report)
    if not lacks:
        _check_task_support(exchange, params, declared, report)


@on("error")
def check_error(state: "State", exchange: Exchange, error: dict[str, Any], report: Report) -> None:
    """Report an error that asks its receiver for something it did not declare."""
    declared = state.parties[exchange.asker].capabilities
    if error["code"] != _URL_REQUIRED or declared is None or not _declares_modes(exchange):
        return
    if not has_capability(declared, _URL):
        report_lack("/error/code", exchange.asker, _URL, report)


def _declares_modes(exchange: Exchange) -> bool:
    """Return whether both parties declared these parts before the request; later each request declares them."""
    return exchange.features.handshake and exchange.features.capability_modes


def _check_task_support(
    exchange: Exchange, params: Mapping[str, Any], declared: Mapping[str, Any], report: Report
) -> None:
    """Report a task that the tool forbids, or a call without the task that it requires."""
    as_task = "task" in params
    contract = exchange.contract
    if contract is None or contract.runs(as_task=as_task):
        return
    if has_capability(declared, TASK_CAPABILITIES["tools/call"]):
        report.add(
            "contract/task-support",
            "/params/task" if as_task else "/params",
            expected="no task" if as_task else "a task",
            found=f'{"a task" if as_task else "none"}; execution.taskSupport is "{contract.task_support}"',
            hint="Leave params.task out." if as_task else "Add params.task, and fetch the result with tasks/result.",
            detail=f"execution of {contract.name}",
        )

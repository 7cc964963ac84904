"""
What a server may ask of a client, by the client's capabilities; and results that ask back (2026-07-28). No I/O.

Sampling with tools and the modes of elicitation are declared one by one. An `elicitation` without a mode has forms, as
before there were modes.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from assay.base.verdict import Exchange, Party, Violation
from assay.core import state_rules
from assay.core.history.reuse import object_of
from assay.engine.pointers import escaped
from assay.ladder.protocol import MAY_ASK_BACK
from assay.rules import violation
from assay.spec.extensions.official import OFFICIAL

_CAPABILITIES: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The capability of the client for each request of the server."""

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

_EXTENSIONS: Final = frozenset(OFFICIAL.identifiers)
"""The extensions that are kept: a server may use these in its answer."""


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
        forms = "elicitation.form" in declared or "elicitation.url" not in declared
        if url and "elicitation.url" not in declared:
            yield "/params/mode", "elicitation.url"
        elif not url and not forms:
            yield "/params/mode" if "mode" in params else "/params", "elicitation.form"
    elif path == "sampling" and "sampling.tools" not in declared:
        yield from ((f"/params/{name}", "sampling.tools") for name in ("tools", "toolChoice") if name in params)


def check(exchange: Exchange, result: Mapping[str, Any], most: int) -> list[Violation]:
    """
    Return the violations of a result that asks back: for nothing, or for what the client does not support.

    At most *most*: a result may have a hundred thousand requests.
    """
    if exchange.method in MAY_ASK_BACK and "inputRequests" not in result and "requestState" not in result:
        return [_asks_nothing(exchange)]
    asked = result.get("inputRequests")
    if exchange.declared is None or not isinstance(asked, dict):
        return []
    found = (
        state_rules.lacks(f"/result/inputRequests/{escaped(key)}{at}", Party.CLIENT, path, exchange.revision)
        for key, request in asked.items()
        if isinstance(request, dict)
        for at, path in lacking(str(request.get("method")), object_of(request.get("params")), exchange.declared)
    )
    return list(islice(found, most))


def _asks_nothing(exchange: Exchange) -> Violation:
    return violation(
        "protocol/input-required",
        "/result",
        expected="inputRequests, requestState or both",
        found="neither",
        revision=exchange.revision,
    )

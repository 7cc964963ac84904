"""
The opening of a conversation: `initialize`, or `server/discover` and requests that need no handshake.

Clients of 2026-07-28 send `server/discover` first to find out which era a server speaks. Some older servers answer
every request with a result, in place of the error -32601. Such a result is one mistake: findings about each member
that it lacks would ask an older server for members that its revision does not have.
"""

from typing import TYPE_CHECKING, Any, Final

from assay.judge.topics import extensions
from assay.judge.topics.table import Note, on
from assay.model.json_values import obj
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.schema.wording import found as found_words

if TYPE_CHECKING:
    from assay.judge.state import State

DISCOVER: Final = "server/discover"

_UNSUPPORTED: Final = -32022
"""The error of a server that does not support the revision of a request; its data list those that it supports."""

_TELLING: Final = ("supportedVersions", "resultType")
"""Members that only a server of 2026-07-28 sends: a result with one of them answers the method that was asked."""


def is_discovery(result: dict[str, Any]) -> bool:
    """Return whether *result* comes from a server that knows `server/discover`, however malformed it is."""
    return any(name in result for name in _TELLING)


def report_no_discovery(result: dict[str, Any], report: Report) -> None:
    """Report a *result* of a server that does not know `server/discover`."""
    report.add(
        "protocol/result",
        "/result",
        expected="the property `supportedVersions`, or error -32601",
        found=found_words(result),
        detail="DiscoverResult",
        hint="Answer an unknown method with error -32601; server/discover exists from 2026-07-28 on.",
    )


@on("request", "initialize")
def check_client(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Report wrong declarations of extensions in a handshake."""
    declared = obj(params.get("capabilities"))
    extensions.take(state, exchange.asker, declared, "/params/capabilities", exchange.entry.rules, report)


@on("forwarded")
def begin(state: "State", exchange: Exchange, params: dict[str, Any]) -> None:
    """Note the request that decides the era."""
    lifecycle = state.lifecycle
    if exchange.method == "initialize" and exchange.asker is Party.CLIENT:
        if lifecycle.phase not in {"new", "stateless"}:
            return
        lifecycle.initialize(params)
        client = state.parties[Party.CLIENT]
        for each in client.settled.values():
            # The ids of another session do not count.
            each.reusable = True
        client.capabilities = obj(params.get("capabilities"))
        state.settle()
    elif lifecycle.phase != "stateless" and not exchange.features.handshake and exchange.method != DISCOVER:
        # A client that sends server/discover may still be refused, and fall back to initialize.
        lifecycle.stateless(exchange.entry.rules)
        state.settle()


@on("answered", "initialize")
def negotiate(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Note the revision and the capabilities that the server answers with."""
    if exchange.asker is Party.CLIENT and state.lifecycle.phase == "initializing":
        state.lifecycle.negotiated(state.lifecycle.place_initialize_result(result)[0])
        _take_server(state, result, report)


@on("answered", DISCOVER)
def discover(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Note the revisions and the capabilities of a server without a handshake."""
    if exchange.asker is not Party.CLIENT or not is_discovery(result):
        return
    if state.lifecycle.phase in {"new", "stateless"}:
        state.lifecycle.stateless(exchange.entry.rules)
        _take_versions(state, exchange, result.get("supportedVersions"))
        _take_server(state, result, report)
        state.tools.declared = state.parties[Party.SERVER].capabilities


def _take_server(state: "State", result: dict[str, Any], report: Report) -> None:
    declared = obj(result.get("capabilities"))
    state.parties[Party.SERVER].capabilities = declared
    state.settle()
    extensions.take(state, Party.SERVER, declared, "/result/capabilities", state.lifecycle.rules, report)


def fail(state: "State", exchange: Exchange, error: dict[str, Any]) -> None:
    """Note an error that answers the opening."""
    if exchange.method == "initialize" and state.lifecycle.phase == "initializing":
        state.refuse_handshake()
    elif error["code"] == _UNSUPPORTED and exchange.entry.stateless:
        _take_versions(state, exchange, obj(error.get("data")).get("supported"))


def _take_versions(state: "State", exchange: Exchange, versions: Any) -> None:
    """
    Note the revisions that the server lists.

    A client that cancelled the request has not waited for the list, and over HTTP the next request may be that of
    another client.
    """
    if not exchange.cancelled and not exchange.over_http:
        state.lifecycle.server_supports(versions)


@on("noted", "notifications/initialized")
def complete(state: "State", note: Note) -> None:
    """Note that the client has completed the handshake."""
    if note.sender.party is Party.CLIENT:
        state.lifecycle.initialized()
        state.settle()

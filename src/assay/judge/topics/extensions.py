"""
The extensions that a party declares: their identifiers and settings, and what they allow.

An unknown extension may do anything: its methods and results are forwarded, and only reported. A known one does not
open the door to methods that it does not have, unless it is declared in a revision that is unknown here.
"""

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from assay.judge.revision_rules import RevisionRules
from assay.judge.topics.capabilities import declared_in, report_lack
from assay.judge.topics.table import on
from assay.model.json_values import CAPABILITIES_KEY, obj
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Party, Violation
from assay.rules.report import Report
from assay.schema.pointers import escaped
from assay.schema.wording import found as found_words
from assay.spec.extensions import BY_IDENTIFIER, LONGEST, OFFICIAL, SKILLS, TASKS, Extension, is_identifier
from assay.spec.revisions import position

if TYPE_CHECKING:
    from assay.judge.state import State

EXTENSIONS: Final = "extensions"
EXPERIMENTAL: Final = "experimental"

_RESERVED: Final = frozenset({"modelcontextprotocol", "mcp"})
"""The second labels of prefixes that belong to the protocol: ``io.modelcontextprotocol/``, ``dev.mcp/``."""

_REVISION: Final = "revision"

_SETTINGS: Final = {"resources/directory/read": "directoryRead"}
"""The setting of its extension that a method needs."""

_CAPABILITIES_AT: Final = f"/params/_meta/{escaped(CAPABILITIES_KEY)}"

_MOST: Final = 64
"""Extensions of one declaration that are judged. Real clients declare fewer than ten."""

_ONCE: Final = frozenset(
    {
        "protocol/extension", "protocol/unheard-extension", "extension/identifier", "extension/reserved",
        "extension/settings", "extension/revision",
    }
)  # fmt: skip
"""Rules that are reported once: a party that uses an extension does so with every message."""

_MOST_REPORTED: Final = 1000
"""Reports that are remembered. A peer that makes up more names than that gets a report for each of them."""


_ANYTHING: Final = ""
"""Stands for an unknown extension, or an experimental capability, among those that are beyond what is known here."""


class RequestExtensions:
    """The extensions that requests without a handshake declared in one conversation."""

    __slots__ = ("beyond", "plain")

    def __init__(self, _: "State") -> None:
        self.plain: Any = None
        """The last extensions that a request declared and that have no violation: the quick look compares them."""
        self.forget_client()

    def forget_client(self) -> None:
        """Forget what the requests of a client declared: the next ones come from another."""
        self.beyond: frozenset[str] = frozenset()
        """What requests declared beyond what is known here, which the server may then use."""


class ServerExtensions:
    """What one server declared to any client, and what was reported of it."""

    __slots__ = ("beyond", "reported")

    def __init__(self, _: Limits) -> None:
        self.reported: set[tuple[str, str, str]] = set()
        """The reports that are not repeated: rule, place, and what was found."""
        self.beyond: frozenset[str] = frozenset()
        """What it declared beyond what is known here: it may declare less to another client."""


# ── what was declared ────────────────────────────────────────────────────────────────────────────────────────────────


def _beyond(capabilities: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the known extensions that a party declares in an unknown revision, and `_ANYTHING` for all the others."""
    if not capabilities:
        return frozenset()
    declared = obj(capabilities.get(EXTENSIONS))
    found = {name for name, each in BY_IDENTIFIER.items() if name in declared and has_revision(capabilities, each)}
    if not BY_IDENTIFIER.keys() >= declared.keys() or capabilities.get(EXPERIMENTAL):
        found.add(_ANYTHING)
    return frozenset(found)


def has_revision(capabilities: Mapping[str, Any] | None, extension: Extension) -> bool:
    """
    Return whether a party declares *extension* in a revision that is unknown here.

    SEP-3392: an extension that makes a breaking change adds a `revision` to its settings, and without one it is the
    first revision. That is the one which our definitions have.
    """
    return _REVISION in settings_of(capabilities, extension.identifier)


def settings_of(capabilities: Mapping[str, Any] | None, identifier: str) -> Mapping[str, Any]:
    """Return the settings that a party declares the extension *identifier* with; empty without any."""
    return obj(obj((capabilities or {}).get(EXTENSIONS)).get(identifier))


def declared_by(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that a request declares in its `_meta`; empty without any."""
    return obj(obj(obj(message.get("params")).get("_meta")).get(CAPABILITIES_KEY))


def goes_beyond(state: "State", capabilities: Mapping[str, Any] | None = None) -> bool:
    """Return whether either party, or the *capabilities* of a request, declared something unknown."""
    declared = (*(each.capabilities for each in state.parties.values()), capabilities)
    return bool(_kept(state)) or any(_beyond(each) for each in declared)


def leaves_out(state: "State", extension: Extension, capabilities: Mapping[str, Any] | None = None) -> bool:
    """
    Return whether *extension* is not judged, because its revision is unknown.

    Either party may have declared that, or the *capabilities* of a request.
    """
    declared = (*(each.capabilities for each in state.parties.values()), capabilities)
    return extension.identifier in _kept(state) or any(has_revision(each, extension) for each in declared)


def _kept(state: "State") -> frozenset[str]:
    """Return what requests of this client, or the server to any client, declared beyond what is known here."""
    server = state.known(ServerExtensions)
    requests = state.own(RequestExtensions).beyond
    return requests if server is None else requests | server.beyond


def missing(state: "State", exchange: Exchange) -> str | None:
    """Return the capability for a request of an extension that the server certainly lacks; None without one."""
    server, identifier = state.parties[Party.SERVER].capabilities, exchange.entry.extension.identifier
    if server is None:
        return None
    if identifier not in obj(server.get(EXTENSIONS)):
        return f"extensions.{identifier}"
    needed = _SETTINGS.get(exchange.method)
    if needed is None or settings_of(server, identifier).get(needed) is True:
        return None
    return f"extensions.{identifier}.{needed}"


def rule_beyond(state: "State", rules: RevisionRules, party: Party, message: dict[str, Any]) -> str | None:
    """
    Return the rule for a method that may belong to an extension; None if it cannot.

    It may if an unknown extension was declared, or if the declarations are unknown: over HTTP the handshake may have
    been elsewhere, and `server/discover` is optional.
    """
    if goes_beyond(state, declared_by(message)):
        return "protocol/extension"
    heard = state.parties[Party.SERVER].capabilities is not None or state.tools.declared is not None
    if rules.features.handshake:
        return None if heard or state.lifecycle.phase != "operating" else "protocol/unheard-extension"
    # A server without a handshake sends no requests, with or without extensions.
    return None if heard or (party is Party.SERVER and "id" in message) else "protocol/unheard-extension"


def once(state: "State", found: list[Violation]) -> list[Violation]:
    """Return *found* without reports that were made before. A violation that stops its message is always kept."""
    if not any(each.rule in _ONCE for each in found):
        return found
    reported = state.shared(ServerExtensions).reported
    kept = []
    for each in found:
        key = (each.rule, each.at, each.found)
        if each.rule not in _ONCE or each.stops or key not in reported:
            kept.append(each)
        if each.rule in _ONCE and len(reported) < _MOST_REPORTED:
            reported.add(key)
    return kept


# ── declarations ─────────────────────────────────────────────────────────────────────────────────────────────────────


@on("request")
def take_declared(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Keep the capabilities that a request without a handshake declares."""
    declared = obj(params.get("_meta")).get(CAPABILITIES_KEY)
    if isinstance(declared, dict) and not exchange.features.handshake:
        exchange.declared = declared_in(declared)
        if EXTENSIONS in declared or EXPERIMENTAL in declared:
            take(state, exchange.asker, declared, _CAPABILITIES_AT, exchange.entry.rules, report)


@on("request", *{each.name for extension in OFFICIAL for each in extension.methods})
def check_server(state: "State", exchange: Exchange, _: dict[str, Any], report: Report) -> None:
    """Report a request of an extension that the server certainly does not have."""
    path = missing(state, exchange) if exchange.entry.extension is not None else None
    if path is not None:
        report_lack("/method", Party.SERVER, path, report)


def take(
    state: "State", party: Party, capabilities: Mapping[str, Any], at: str, rules: RevisionRules, report: Report
) -> None:
    """Keep what *party* declares, and report what is wrong with it; *at* is the pointer to its *capabilities*."""
    before = len(report.found)
    _check(party, capabilities, at, rules, report)
    beyond = _beyond(capabilities)
    if party is Party.SERVER and beyond:
        server = state.shared(ServerExtensions)
        server.beyond |= beyond
    if party is Party.CLIENT and not rules.features.handshake:
        requests = state.own(RequestExtensions)
        requests.beyond |= beyond
        if len(report.found) == before:
            requests.plain = capabilities.get(EXTENSIONS)


def _check(party: Party, capabilities: Mapping[str, Any], at: str, rules: RevisionRules, report: Report) -> None:
    for identifier, settings in islice(obj(capabilities.get(EXTENSIONS)).items(), _MOST):
        _check_one(party, identifier, settings, f"{at}/{EXTENSIONS}/{escaped(identifier[:LONGEST])}", rules, report)
    if party is not Party.SERVER:
        return
    if not rules.features.handshake and TASKS.name in capabilities:
        # A server that declares tasks as the revision before had them.
        expected = f'"{TASKS.identifier}" in {EXTENSIONS}'
        report.add("tasks/legacy", f"{at}/{TASKS.name}", expected=expected, found="the capability tasks")
    skills = SKILLS.identifier in obj(capabilities.get(EXTENSIONS)) and not has_revision(capabilities, SKILLS)
    if skills and "resources" not in capabilities:
        # The files of skills are resources.
        report.add("skills/resources", at, expected="the capability resources", found="skills alone")


def _check_one(party: Party, identifier: str, settings: Any, at: str, rules: RevisionRules, report: Report) -> None:
    if not is_identifier(identifier):
        expected = "a dotted prefix, a slash and a name"
        report.add("extension/identifier", at, expected=expected, found=f'"{identifier[:60]}"')
        return
    extension = BY_IDENTIFIER.get(identifier)
    labels = identifier.partition("/")[0].split(".")
    if extension is None and len(labels) > 1 and labels[1].lower() in _RESERVED:
        # An identifier that only the protocol may use: it may be newer than Assay.
        known = ", ".join(sorted(BY_IDENTIFIER))
        report.add("extension/reserved", at, expected=f"one of {known}", found=f'"{identifier[:60]}"')
    if not isinstance(settings, dict):
        expected = "an object ({} for no settings)"
        report.add("extension/settings", at, expected=expected, found=found_words(settings))
        return
    if extension is not None and _REVISION in settings:
        expected, found = "no revision, which means the first one", found_words(settings[_REVISION])
        report.add("extension/revision", f"{at}/{_REVISION}", expected=expected, found=found)
        return
    # Before its first revision an extension means nothing, and may be declared in any way.
    defined = extension is not None and position(rules.revision) >= extension.first
    definition = dict(extension.settings).get(party.value) if extension is not None and defined else None
    if extension is not None and definition is not None:
        rules.extension_definition(extension, definition).check("extension/settings", settings, at, report)

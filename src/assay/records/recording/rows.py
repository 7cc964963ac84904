"""The rows of a recording beside messages, and findings in messages not recorded in full. No I/O."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast, get_args

from assay.base.removed import is_removed_rule
from assay.base.verdict import Action, Findings, Kind, Party, Verdict, Violation, verdict
from assay.core.conversation import NO_FACTS, Facts
from assay.core.policy import ACTIONS, Policy, fitting
from assay.ladder.headers import Headers
from assay.rules import RULES, violation


class Effect(Policy):
    """Applies to each violation the action that was recorded with the message."""

    __slots__ = ("_done", "_whole")

    def __init__(self) -> None:
        super().__init__()
        self._done: dict[tuple[str, str], str] = {}
        self._whole = False

    def recall(self, listed: Any, *, whole: bool = False) -> None:
        """
        Use the recorded actions for the next message: a list of objects with rule, at and action.

        A *whole* list has every violation: another one, such as a mask in place of a number, then stops nothing.
        """
        self._whole = whole
        recorded = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        self._done = {(str(each.get("rule")), str(each.get("at"))): str(each.get("action")) for each in recorded}
        self.repairs = frozenset(rule for (rule, _), action in self._done.items() if action == "repair")

    def decide(self, violation: Violation, _: str | None) -> Violation:
        """Return *violation* with the recorded action, if that fits the rule."""
        # Consequences of other findings, such as a quarantined entry, are computed again.
        done = self._done.get((violation.rule, violation.at), "report" if self._whole else None)
        fits = any(ACTIONS[word] == done for word in fitting(violation.rule))
        return replace(violation, action=cast("Action", done)) if fits and done != violation.action else violation


_ACTIONS: Final = frozenset(get_args(Action))
_KINDS: Final = frozenset(get_args(Kind))


def spelt_findings(judged: Verdict, hide: Callable[[str], str]) -> dict[str, Any]:
    """Return the findings of *judged* for a row. *hide* masks the places, which contain names of the peer."""
    findings = [{"rule": each.rule, "at": hide(each.at), "action": each.action} for each in judged.violations]
    return {"findings": findings, "more": judged.more} if judged.more else {"findings": findings}


def with_findings(heard: Verdict, row: Mapping[str, Any], policy: Policy | None) -> Verdict | None:
    """
    Return *heard* with the findings of *row* in place of its own; None if the row has none.

    *policy* chooses the actions; None keeps the recorded ones.
    """
    listed = row.get("findings")
    if not isinstance(listed, list):
        return None
    listed = [each for each in listed if not (isinstance(each, dict) and is_removed_rule(each.get("rule")))]
    if not all(map(_is_finding, listed)):
        return None
    known = {(each.rule, each.at): each for each in heard.violations}
    found = tuple(_read(each, known, heard, policy) for each in listed)
    more = row.get("more")
    findings = Findings(found, more if type(more) is int else 0, heard.frame) if found else None
    return verdict(heard.party, heard.frame, heard.kind, heard.value, heard.exchange, heard.revision, findings)


def kind_of(row: Mapping[str, Any]) -> Kind:
    """Return the kind that *row* gives for a message that is left out."""
    kind = row.get("kind")
    return cast("Kind", kind) if kind in _KINDS else "unreadable"


def redecided(found: Violation, policy: Policy, tool: str | None) -> Violation:
    """Return *found* with the action of *policy* in place of the recorded one."""
    return policy.decide(replace(found, action=RULES[found.rule].action, reason=None), tool)


def findings_of(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in the findings of *row*, which is untrusted."""
    listed = row.get("findings")
    yield from (each for each in listed if isinstance(each, dict)) if isinstance(listed, list) else ()


def _is_finding(listed: Any) -> bool:
    """Whether *listed* is a finding that this version knows."""
    return (
        isinstance(listed, dict)
        and listed.get("rule") in RULES
        and isinstance(listed.get("at"), str)
        and listed.get("action") in _ACTIONS
    )


def _read(
    listed: Mapping[str, Any], known: Mapping[tuple[str, str], Violation], heard: Verdict, policy: Policy | None
) -> Violation:
    """Return the violation in *listed*, with more detail if *heard* has the same one."""
    rule, at = listed["rule"], listed["at"]
    same = known.get((rule, at))
    expected, seen = listed.get("expected"), listed.get("found")
    found = same or violation(
        rule,
        at,
        expected=expected if isinstance(expected, str) else "what the rule requires",
        found=seen if isinstance(seen, str) else "a different value in the original",
        revision=heard.revision,
    )
    if policy is not None:
        return redecided(found, policy, heard.tool)
    return found if found.action == listed["action"] else replace(found, action=listed["action"])


VERSION: Final = 1
"""Version of the format. It changes when a member changes its meaning, not when one is added."""

DIRECTIONS: Final = {Party.CLIENT: "c2s", Party.SERVER: "s2c"}

_SESSION: Final = b"mcp-session-id"
"""The one header of MCP that is never recorded: with it another client could take over the session."""


def spelt_facts(facts: Facts) -> dict[str, Any]:
    """Return the members of a row about the HTTP request of a message; empty for a message over STDIO."""
    if facts is NO_FACTS or facts.transport != "http":
        return {}
    http: dict[str, Any] = {}
    if facts.revision is not None:
        http["revision"] = facts.revision
    if facts.headers is not None:
        http["headers"] = _spelt_headers(facts.headers)
    if facts.served:
        http["served"] = True
    if facts.spoken is not None:
        http["spoken"] = sorted(facts.spoken)
    return {"http": http}


def read_facts(row: Mapping[str, Any]) -> Facts:
    """Return the facts that `spelt_facts` has written into *row*."""
    http = row.get("http")
    if not isinstance(http, dict):
        return NO_FACTS
    revision, headers, spoken = http.get("revision"), http.get("headers"), http.get("spoken")
    return Facts(
        "http",
        revision if isinstance(revision, str) else None,
        _read_headers(headers) if isinstance(headers, dict) else None,
        http.get("served") is True,
        frozenset(map(str, spoken)) if isinstance(spoken, list) else None,
    )


def _spelt_headers(headers: Headers) -> dict[str, str | list[str]]:
    """Return the headers of MCP, which are judged, as text. Others, such as Authorization, are not recorded."""
    kept = {name: value for name, value in headers.items() if name.startswith(b"mcp-") and name != _SESSION}
    return {name.decode("latin-1"): _spelt_header(value) for name, value in kept.items()}


def _spelt_header(value: bytes | Sequence[bytes]) -> str | list[str]:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [each.decode("latin-1") for each in value]


def _read_headers(headers: Mapping[str, Any]) -> dict[bytes, bytes | tuple[bytes, ...]]:
    return {name.encode("latin-1", "replace"): _read_header(value) for name, value in headers.items()}


def _read_header(value: Any) -> bytes | tuple[bytes, ...]:
    if isinstance(value, list):
        return tuple(str(each).encode("latin-1", "replace") for each in value)
    return str(value).encode("latin-1", "replace")

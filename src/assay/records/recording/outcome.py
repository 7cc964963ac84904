"""
The guard's findings for a message that is incomplete in the recording. No I/O.

A redacted or omitted message cannot be judged again, so the guard records its findings: `findings`, a list of `rule`,
`at` and `action` that is empty for a good message, and `more` as in a verdict.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast, get_args

from assay.base.verdict import Action, Findings, Kind, Verdict, Violation, verdict
from assay.core.policy import Policy
from assay.rules import RULES, violation

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
    if not isinstance(listed, list) or not all(map(_is_finding, listed)):
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
    found = same or violation(
        rule, at, expected="what the rule requires", found="a different value in the original", revision=heard.revision
    )
    if policy is not None:
        return redecided(found, policy, heard.tool)
    return found if found.action == listed["action"] else replace(found, action=listed["action"])

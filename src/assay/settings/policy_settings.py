"""Make the policy of today from the settings. No I/O; the date is a parameter."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Final

from assay.rules import RULES
from assay.rules.policy import ACTIONS, REPAIRABLE, REPAIRED, Excepted, Policy, fitting, meant, precision
from assay.rules.table import REMOVED
from assay.settings.guard_section import GuardSettings, RuleException, Ruling
from assay.spec.schema import closest

SOON: Final = 14
"""Days before the end of an exception from which on it is reported: two weeks are enough for a fix."""


def policy(settings: GuardSettings, today: str) -> Policy | None:
    """Return the policy of *settings* on a day such as ``2026-12-31``; None if every rule has its default."""
    exceptions = [each for each in settings.exceptions if (each.until or "") >= today]
    if not (settings.policy or exceptions or settings.fail_open or settings.strict or settings.repairs):
        return None
    return Policy(
        {rule: ruling.action for rule, ruling in settings.policy.items() if ruling.action is not None},
        exceptions=[Excepted(each.rule, each.tool, each.action, each.reason) for each in exceptions],
        repairs=_repaired(settings),
        fail_open=settings.fail_open,
        strict=settings.strict,
    )


def _repaired(settings: GuardSettings) -> set[str]:
    """
    Return the rules whose violations are repaired; the more specific of two patterns wins.

    `guard.repair` is about arguments. The rules of results are repaired only if a pattern says so.
    """
    found = set(REPAIRED) if settings.repairs else set()
    for pattern in sorted(settings.policy, key=precision):
        wanted = settings.policy[pattern].repair
        if wanted is not None:
            rules = {rule for rule in meant(pattern) if rule in REPAIRABLE}
            found = found | rules if wanted else found - rules
    return found


def warnings(settings: GuardSettings, today: str) -> Iterator[str]:
    """Yield warnings *today* about exceptions that have ended, or end soon."""
    for each in settings.exceptions:
        until = each.until or ""
        about = f"{each.rule}{f' of {each.tool}' if each.tool is not None else ''}"
        if until < today:
            yield f"the exception for {about} ended on {until} and no longer holds: {each.reason}"
        elif (date.fromisoformat(until) - date.fromisoformat(today)).days <= SOON:
            yield f"the exception for {about} ends on {until}: {each.reason}"


# ── what cannot be ───────────────────────────────────────────────────────────────────────────────────────────────────


def check(table: Mapping[str, Ruling], exceptions: Sequence[RuleException]) -> None:
    """Raise `ValueError` for a policy that cannot be applied. Messages about the table do not repeat its key."""
    for pattern, ruling in table.items():
        rules = _rules(pattern, ruling.action)
        if ruling.repair and not set(rules) & set(REPAIRABLE):
            *some, last = REPAIRABLE
            raise ValueError(f"only {', '.join(some)} and {last} can be repaired")
    for each in exceptions:
        if not each.rule:
            raise ValueError("an exception needs a rule")
        try:
            _rules(each.rule, each.action)
        except ValueError as error:
            raise ValueError(f"{_shown(each.rule)}: {error}") from None
        if not each.reason.strip():
            raise ValueError(f"the exception for {each.rule} needs a reason")
        if each.until is None:
            raise ValueError(f"the exception for {each.rule} needs until, its last day")


def _rules(pattern: str, action: str | None) -> list[str]:
    """Return the rules that *pattern* stands for. Raises `ValueError` if there are none, or *action* fits none."""
    rules = meant(pattern)
    if pattern in REMOVED:
        raise ValueError("removed: leave it out")
    if not rules:
        same = [rule for rule in RULES if rule.partition("/")[2] == pattern.rpartition("/")[2]]
        near = closest(pattern[:80], RULES) or same
        remedy = f"did you mean {near[0]}?" if near else "assay rules lists them all"
        raise ValueError(f"no such rule; {remedy}")
    if action is not None and action not in ACTIONS:
        raise ValueError(f"expected one of {', '.join(ACTIONS)}, found {_shown(action)}")
    fits = [word for word in ACTIONS if any(word in fitting(rule) for rule in rules)]
    if action is not None and action not in fits:
        *some, last = fits
        either = f"{', '.join(some)} or {last}" if some else last
        raise ValueError(f"cannot be {action}; use {either}")
    return rules


def _shown(text: str) -> str:
    short = text if len(text) <= 60 else text[:59] + "…"
    return short if short.isprintable() else ascii(short)

"""
Find the settings of a file that can make the guard weaker. Each field says so itself. No I/O, no clock.

The law: a message that is refused, reported, recorded or authenticated without the file is so with what is left of it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from assay.base.verdict import Violation
from assay.core.policy import Policy
from assay.rules import RULES
from assay.settings.fields import Key, Path, by_effect
from assay.settings.guard_section import GuardSettings, Ruling
from assay.settings.loading import Given, keys, made
from assay.settings.policy_settings import policy
from assay.settings.sections import Settings

_SHOWN: Final = 60
"""Maximal characters of a value to show."""


class Weakening(NamedTuple):
    """A setting, or a table that counts as a whole, that can make the guard weaker."""

    path: Path
    value: str
    """The value in the file, for display; empty for a table."""
    without: str
    """The value without the file, for display."""

    @property
    def name(self) -> str:
        """The key as written in a file."""
        return ".".join(part if part.replace("_", "").isalnum() else json.dumps(part) for part in self.path)

    def __str__(self) -> str:
        return f"{self.name} = {self.value}" if self.value else f"[{self.name}]"


def weakenings(file: Sequence[Given], rest: Sequence[Given], whole: Settings, today: str) -> Iterator[Weakening]:
    """
    Yield the settings of *file* that can weaken what *rest*, the variables and options, say without it.

    *whole* are the settings of both. *today* is the date for checking exceptions; "" for any day. Raises
    `SettingsError` if *rest* is invalid without the file.
    """
    base = made(rest)
    parts: dict[Path, list[Given]] = {}
    for each in file:
        parts.setdefault(_part(each.path)[0], []).append(each)
    for path, given in parts.items():
        key = _part(path)[1]
        # The table of a section, or of names, has no value: its keys are compared one by one.
        if all(each.value is None for each in given):
            continue
        if key.weaker is by_effect:
            # The policy of one line alone: beside a stricter one it could look harmless, or be blamed for another.
            is_weaker = _passes_more(made([*given, *rest]).guard, base.guard, today)
        else:
            is_weaker = key.weaker(_at(whole, path), _at(base, path))
        if is_weaker:
            yield Weakening(path, _shown(path, key, given, whole), _without(path, key, base))


def _part(path: Path) -> tuple[Path, Key]:
    """Return the beginning of *path* that counts as a whole, and its key."""
    key = keys()
    for length, name in enumerate(path):
        if key.whole:
            return path[:length], key
        key = key.at(name) or key
    return path, key


def _at(settings: Any, path: Path) -> Any:
    for part in path:
        settings = settings.get(part) if isinstance(settings, Mapping) else getattr(settings, part, None)
    return settings


# ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────────

_STRICTNESS: Final = {"report": 0, "quarantine": 1, "refuse": 2, "drop": 2}
"""Actions by strictness. Drop stops a message as refuse does; only the error response is missing."""


def _passes_more(guard: GuardSettings, base: GuardSettings, today: str) -> bool:
    """Whether *guard* lets a message pass that *base* stops."""
    mine, before = policy(guard, today) or Policy(), policy(base, today) or Policy()
    if mine.repairs - before.repairs:
        return True
    tools = {None, *(each.tool for each in (*guard.exceptions, *base.exceptions))}
    return any(
        _STRICTNESS[_action(mine, rule, tool)] < _STRICTNESS[_action(before, rule, tool)]
        for rule in RULES
        for tool in tools
    )


def _action(policy: Policy, rule: str, tool: str | None) -> str:
    return policy.decide(Violation(rule, "", "", "", "", "", RULES[rule].action), tool).action


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(path: Path, key: Key, given: Sequence[Given], whole: Settings) -> str:
    """Return the value of the file; empty for a table, which may have secrets."""
    if path[:2] == ("guard", "exceptions"):
        of = {each.path[-1]: each.value for each in given}
        return _text(f"{of.get('action', 'pass')} {of.get('rule', '')}")
    if key.whole:
        return ""
    if key.secret:
        return "hidden"
    value = _at(whole, path)
    return _text(value.action if isinstance(value, Ruling) else value)


def _without(path: Path, key: Key, base: Settings) -> str:
    if path[:2] in (("guard", "policy"), ("guard", "exceptions")):
        return "the default of each rule"
    value = _at(base, path)
    return _text(value) if not key.whole or value is None else "a table"


def _text(value: Any) -> str:
    if value is None:
        return "none"
    text = json.dumps(value, default=list)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

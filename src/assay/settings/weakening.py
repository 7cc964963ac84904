"""
Find the settings of a file that can make the guard weaker. Each field says so itself. No I/O, no clock.

The law: a message that is refused, reported, recorded or authenticated without the file is so with what is left of it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from assay.model.verdict import Violation
from assay.rules import RULES
from assay.rules.policy import Policy
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
    parts: dict[Path, tuple[Key, list[Given]]] = {}
    for each in file:
        path, key = _part(each.path)
        parts.setdefault(path, (key, []))[1].append(each)
    for path, (key, given) in parts.items():
        # The table of a section, or of names, has no value: its keys are compared one by one.
        if all(each.value is None for each in given):
            continue
        value, before = _at(whole, path), _at(base, path)
        if key.weaker is by_effect:
            # The policy of one line alone: beside a stricter one it could look harmless, or be blamed for another.
            is_weaker = _passes_more(made([*given, *rest]).guard, base.guard, today)
        else:
            is_weaker = key.weaker(value, before)
        if is_weaker:
            yield _worded(path, key, given, value, before)


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


def _worded(path: Path, key: Key, given: Sequence[Given], value: Any, before: Any) -> Weakening:
    """Return the weakening for people. The value of a table is left out: it may have secrets."""
    if path[:2] == ("guard", "exceptions"):
        of = {each.path[-1]: each.value for each in given}
        shown = _text(f"{of.get('action', 'pass')} {of.get('rule', '')}")
    elif key.whole:
        shown = ""
    else:
        shown = "hidden" if key.secret else _text(value.action if isinstance(value, Ruling) else value)
    if path[:2] in (("guard", "policy"), ("guard", "exceptions")):
        return Weakening(path, shown, "the default of each rule")
    return Weakening(path, shown, "a table" if key.whole and before is not None else _text(before))


def _text(value: Any) -> str:
    text = "none" if value is None else json.dumps(value, default=list)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


# ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────────

_STRICTNESS: Final = {"report": 0, "quarantine": 1, "refuse": 2, "drop": 2}
"""Actions by strictness. Drop stops a message as refuse does; only the error response is missing."""


def _passes_more(guard: GuardSettings, base: GuardSettings, today: str) -> bool:
    """Whether *guard* lets a message pass that *base* stops."""
    mine, before = policy(guard, today) or Policy(), policy(base, today) or Policy()
    if mine.repairs - before.repairs:
        return True
    tools = {None, *(each.tool for each in (*guard.exceptions, *base.exceptions))}

    def strictness(decides: Policy, rule: str, tool: str | None) -> int:
        return _STRICTNESS[decides.decide(Violation(rule, "", "", "", "", "", RULES[rule].action), tool).action]

    return any(strictness(mine, rule, tool) < strictness(before, rule, tool) for rule in RULES for tool in tools)

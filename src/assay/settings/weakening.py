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
from assay.settings.field_rules import by_effect
from assay.settings.guard_section import GuardSettings, Ruling
from assay.settings.merging import made
from assay.settings.policy_settings import policy
from assay.settings.schema import Path, Rows, Setting, fits
from assay.settings.sections import Settings
from assay.settings.setting_sources import Given

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


class _Part(NamedTuple):
    """What counts as a whole: a setting, or a table whose keys need each other."""

    path: Path
    setting: Setting
    given: list[Given]


def part_of(rows: Rows, path: Path) -> Path:
    """Return the beginning of *path* that counts as a whole."""
    row = _row(rows, path)
    return path[: len(row) - rows[row].within]


def _row(rows: Rows, path: Path) -> Path:
    return next(each for each in rows if fits(each, path))


def weakenings(rows: Rows, file: Sequence[Given], rest: Sequence[Given], today: str) -> Iterator[Weakening]:
    """
    Return the settings of *file* that can weaken what *rest*, the variables and options, say without it.

    *today* is the date for checking exceptions; "" for any day. Raises `SettingsError` if *rest* is invalid without
    the file.
    """
    parts: dict[Path, _Part] = {}
    for each in file:
        path = part_of(rows, each.path)
        parts.setdefault(path, _Part(path, rows[_row(rows, each.path)], [])).given.append(each)
    base, whole = made(Settings, rest), made(Settings, [*file, *rest])
    for part in parts.values():
        # The table of a section, or of names, has no value: its keys are compared one by one.
        if any(each.value is not None for each in part.given):
            # The policy of one line alone: beside a stricter one it could look harmless, or be blamed for another.
            alone = made(Settings, [*part.given, *rest]) if part.setting.weaker is by_effect else whole
            if _is_weaker(part, alone, base, today):
                yield Weakening(part.path, _shown(part, whole), _without(part, base))


def _is_weaker(part: _Part, settings: Settings, base: Settings, today: str) -> bool:
    if part.setting.weaker is by_effect:
        return _passes_more(settings.guard, base.guard, today)
    return part.setting.weaker(_at(settings, part.path), _at(base, part.path))


def _at(settings: Any, path: Path) -> Any:
    for part in path:
        settings = settings.get(part) if isinstance(settings, Mapping) else getattr(settings, part, None)
    return settings


# ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────────

_STRICTNESS: Final = {"report": 0, "quarantine": 1, "refuse": 2, "drop": 2}
"""Actions by strictness. Drop stops a message as refuse does; only the error response is missing."""


def _passes_more(guard: GuardSettings, base: GuardSettings, today: str) -> bool:
    """Whether *guard* lets a message pass that *base* stops."""
    mine, before = _policy(guard, today), _policy(base, today)
    if mine.repairs - before.repairs:
        return True
    tools = {None, *(each.tool for each in (*guard.exceptions, *base.exceptions))}
    return any(
        _STRICTNESS[_action(mine, rule, tool)] < _STRICTNESS[_action(before, rule, tool)]
        for rule in RULES
        for tool in tools
    )


def _policy(guard: GuardSettings, today: str) -> "Policy":
    return policy(guard, today) or Policy()


def _action(policy: "Policy", rule: str, tool: str | None) -> str:
    return policy.decide(Violation(rule, "", "", "", "", "", RULES[rule].action), tool).action


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(part: _Part, settings: Settings) -> str:
    """Return the value of the file; empty for a table, which may have secrets."""
    if part.path[:2] == ("guard", "exceptions"):
        of = {each.path[-1]: each.value for each in part.given}
        return _text(f"{of.get('action', 'pass')} {of.get('rule', '')}")
    if part.setting.within:
        return ""
    if part.setting.secret:
        return "hidden"
    value = _at(settings, part.path)
    return _text(value.action if isinstance(value, Ruling) else value)


def _without(part: _Part, base: Settings) -> str:
    if part.path[:2] in (("guard", "policy"), ("guard", "exceptions")):
        return "the default of each rule"
    value = _at(base, part.path)
    return _text(value) if not part.setting.within or value is None else "a table"


def _text(value: Any) -> str:
    if value is None:
        return "none"
    text = json.dumps(value, default=list)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

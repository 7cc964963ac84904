"""
Find settings that make the guard weaker than it would be without them. No I/O, no clock.

Every setting has a row in `WEAKER`. A setting without a row counts as weaker whenever it changes anything, so that a
new setting is safe before it has one.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from assay.base.limits import Limits
from assay.base.tiers import TIERS
from assay.settings.merging import made
from assay.settings.schema import ANY, EACH, Path, fits
from assay.settings.sections import Settings
from assay.settings.setting_sources import Given

if TYPE_CHECKING:
    from assay.core.policy import Policy
    from assay.settings.guard_section import GuardSettings

Weaker = Callable[[Any, Any], bool]
"""Function that checks whether the first value is weaker than the second, which applies without it."""

_SHOWN: Final = 60
"""Maximal characters of a value to show."""


# ── ways to be weaker ────────────────────────────────────────────────────────────────────────────────────────────────


def other(value: Any, base: Any) -> bool:
    """Any different value is weaker, because neither is known to be stricter."""
    return bool(value != base)


def more(value: Any, base: Any) -> bool:
    """A higher number is weaker: it limits what a peer may consume. False is less than true."""
    return bool(value > base)


def less(value: Any, base: Any) -> bool:
    """A lower number is weaker."""
    return bool(value < base)


def longer(value: Any, base: Any) -> bool:
    """A longer wait is weaker, and 0 means no limit."""
    return (value or inf) > (base or inf)


def added(value: Any, base: Any) -> bool:
    """A new entry is weaker: the list allows something."""
    return not set(value) <= set(base)


def removed(value: Any, base: Any) -> bool:
    """A missing entry is weaker: the list hides something."""
    return not set(base) <= set(value)


def _higher_tier(value: Any, base: Any) -> bool:
    return TIERS.index(value) > TIERS.index(base)


def _lower_tier(value: Any, base: Any) -> bool:
    # A feature that is not listed is in all tiers, like one of the lowest tier.
    return TIERS.index(value) < TIERS.index(base or TIERS[0])


def _audit(value: Any, base: Any) -> bool:
    return (value, base) == ("audit", "enforce")


def by_effect(value: Any, base: Any) -> bool:
    """A row of the policy: the effect on each rule is compared (`_passes_more`), not the text."""
    raise NotImplementedError


_OTHERWISE: Final[Mapping[Path, Weaker]] = {
    # Both only keep details for error messages, and cost memory: neither direction is stricter.
    ("limits", "settled"): other,
    ("limits", "violations"): other,
}

WEAKER: Final[Mapping[Path, Weaker]] = {
    **{("limits", each.name): more for each in fields(Limits)},
    **_OTHERWISE,
    ("tiers", "tier"): _higher_tier,
    ("tiers", "features", ANY): _lower_tier,
    # In another directory, or off, the operator finds no journal; fewer runs mean that older ones are removed.
    ("journal", "directory"): other,
    ("journal", "keep"): less,
    # A higher number fills the disk, a lower one removes records.
    ("journal", "bytes"): other,
    ("journal", "total_bytes"): other,
    ("journal", "payloads"): more,
    ("journal", "redact"): removed,
    ("http", "hosts"): added,
    ("http", "origins"): added,
    ("http", "open"): more,
    ("http", "forward_headers"): added,
    ("http", "forward_response_headers"): added,
    ("http", "requests"): more,
    ("http", "requests_each"): more,
    ("http", "requests_per_server"): more,
    ("http", "sessions"): more,
    ("http", "sessions_each"): more,
    ("http", "streams"): more,
    ("http", "streams_each"): more,
    ("http", "streams_per_server"): more,
    ("http", "session_seconds"): more,
    ("http", "header_seconds"): more,
    ("http", "body_seconds"): more,
    ("http", "send_seconds"): more,
    ("http", "idle_seconds"): more,
    ("http", "ping_seconds"): other,
    ("http", "grace_seconds"): more,
    # Other certificates let another server in, or show who we are to one that should not know.
    ("upstream", "ca"): other,
    ("upstream", "certificate"): other,
    ("upstream", "key"): other,
    # A proxy reads every message to a server without TLS.
    ("upstream", "proxies"): more,
    ("guard", "mode"): _audit,
    ("guard", "timeout"): longer,
    ("guard", "frame_bytes"): more,
    ("guard", "restart"): other,
    ("guard", "restarts"): more,
    ("guard", "flights"): other,
    # Without it the operator does not see the guard; with it, records are offered that the operator may want offline.
    ("guard", "feed"): other,
    # A higher number fills the disk, a lower one leaves messages out.
    ("guard", "record_bytes"): other,
    ("guard", "record_secrets"): more,
    ("guard", "shared"): more,
    ("guard", "children"): more,
    ("guard", "children_each"): more,
    ("guard", "environment"): added,
    ("guard", "stderr_in_errors"): more,
    ("guard", "lock"): other,
    ("guard", "strict"): less,
    ("guard", "repair"): by_effect,
    # Without it less is reported.
    ("guard", "preview"): less,
    ("guard", "fail_open"): more,
    # Without it a message that names a draft is refused; with it the rules of the draft only report.
    ("guard", "draft_revisions"): added,
    ("guard", "policy", ANY): by_effect,
    ("guard", "policy", ANY, "action"): by_effect,
    ("guard", "policy", ANY, "repair"): by_effect,
    ("guard", "exceptions", EACH): by_effect,
    # A key or an issuer admits clients, and makes an address usable that needs [auth].
    ("auth",): other,
    # The methods of an extension pass if its schema accepts them, and a stranger may have written the schema.
    ("extensions",): other,
    ("telemetry", "endpoint"): other,
    ("telemetry", "service_name"): other,
    ("telemetry", "headers", ANY): other,
}
"""The comparison for each setting. A row for a table covers everything below it, and is compared as a whole."""

_TOGETHER: Final = (frozenset({("journal", "bytes"), ("journal", "total_bytes")}),)
"""Settings that limit each other: each is compared together with the others of the file, as it may be invalid alone."""

_OF_SECTION: Final = {name: [row for row in WEAKER if row[0] == name] for name in {row[0] for row in WEAKER}}


# ── what a file weakens ──────────────────────────────────────────────────────────────────────────────────────────────


class Weakening(NamedTuple):
    """A setting, or a table of them, that makes the guard weaker."""

    path: Path
    value: str
    """The value in the file, for display."""
    without: str
    """The value without the file, for display."""

    @property
    def name(self) -> str:
        """The key as written in a file."""
        return ".".join(part if part.replace("_", "").isalnum() else json.dumps(part) for part in self.path)

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


def row_of(path: Path) -> Path:
    """Return the part of *path* that is compared as a whole: the row that covers it."""
    rows = [row for row in _OF_SECTION.get(path[0], ()) if row[1:2] in (path[1:2], ())]
    if any(len(row) >= len(path) and fits(row, path) for row in rows):
        return path
    return next((path[: len(row)] for row in rows if fits(row, path[: len(row)])), path)


def weakenings(file: Iterable[Given], rest: Sequence[Given], today: str) -> Iterator[Weakening]:
    """
    Return the settings of *file* that are weaker than those of *rest*, the variables and options, without it.

    *today* is the date for checking exceptions; "" for any day. Raises `SettingsError` if *rest* is invalid without
    the file.
    """
    rows: dict[Path, list[Given]] = {}
    for given in file:
        rows.setdefault(row_of(given.path), []).append(given)
    base = made(Settings, rest)
    for path, of_row in rows.items():
        # An empty table sets nothing.
        if path == ("auth",) or any(given.value is not None for given in of_row):
            alone = made(Settings, [*of_row, *_beside(path, rows), *rest])
            if _is_weaker(path, alone, base, today):
                yield Weakening(path, *_shown(path, of_row, alone, base))


def _beside(path: Path, rows: Mapping[Path, list[Given]]) -> Iterator[Given]:
    """Return the other settings of the file that the setting at *path* needs to be valid."""
    for group in _TOGETHER:
        if path in group:
            yield from (given for other_path in group - {path} for given in rows.get(other_path, ()))


def _is_weaker(path: Path, alone: Settings, base: Settings, today: str) -> bool:
    if path == ("guard", "frame_bytes"):
        # Without one, `limits.frame_bytes` applies.
        return alone.guard_limits.frame_bytes > base.guard_limits.frame_bytes
    weaker = next((way for row, way in WEAKER.items() if len(row) == len(path) and fits(row, path)), other)
    if weaker is by_effect:
        return _passes_more(alone.guard, base.guard, today)
    return weaker(_at(alone, path), _at(base, path))


def _at(settings: Any, path: Path) -> Any:
    for part in path:
        settings = settings.get(part) if isinstance(settings, Mapping) else getattr(settings, part, None)
    return settings


# ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────────

_STRICTNESS: Final = {"report": 0, "quarantine": 1, "refuse": 2, "drop": 2}
"""Actions by strictness. Drop stops a message as refuse does; only the error response is missing."""


def _passes_more(guard: "GuardSettings", base: "GuardSettings", today: str) -> bool:
    """Whether *guard* lets a message pass that *base* stops."""
    from assay.rules import RULES  # noqa: PLC0415 - only a policy needs the rules

    mine, before = _policy(guard, today), _policy(base, today)
    if mine.repairs - before.repairs:
        return True
    tools = {None, *(each.tool for each in (*guard.exceptions, *base.exceptions))}
    return any(
        _STRICTNESS[_action(mine, rule, tool)] < _STRICTNESS[_action(before, rule, tool)]
        for rule in RULES
        for tool in tools
    )


def _policy(guard: "GuardSettings", today: str) -> "Policy":
    from assay.core.policy import Policy  # noqa: PLC0415
    from assay.settings.policy_settings import policy  # noqa: PLC0415 - only a policy needs the rules

    return policy(guard, today) or Policy()


def _action(policy: "Policy", rule: str, tool: str | None) -> str:
    from assay.base.verdict import Violation  # noqa: PLC0415
    from assay.rules import RULES  # noqa: PLC0415 - only a policy needs the rules

    return policy.decide(Violation(rule, "", "", "", "", "", RULES[rule].action), tool).action


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(path: Path, given: Iterable[Given], alone: Settings, base: Settings) -> tuple[str, str]:
    """Return the value at *path* and the one without the file; neither if it may be a secret."""
    if path == ("auth",):
        return "a table", "a table" if base.auth else "none"
    if path[:2] == ("telemetry", "headers"):
        return "hidden", "none"
    if path[:2] == ("guard", "exceptions"):
        of = {each.path[-1]: each.value for each in given}
        return _text(f"{of.get('action', 'pass')} {of.get('rule', '')}"), "no exception"
    if path[:2] == ("guard", "policy"):
        ruling = alone.guard.policy[path[2]]
        return _text(ruling.repair if path[3:] == ("repair",) else ruling.action), "the default of each rule"
    return _text(_at(alone, path)), _text(_at(base, path))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    text = json.dumps(value, default=list)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

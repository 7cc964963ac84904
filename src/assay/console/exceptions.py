"""The text of an exception that a page asks for: the lines to add to the settings of a guard."""

import re
import tomllib
from datetime import date, timedelta
from typing import Any, Final

from assay.model.errors import SettingsError
from assay.settings import Settings
from assay.settings.loading import in_file, made
from assay.settings.settings_files import FoundSettings

_DAYS: Final = 30
"""Days for which an exception holds, unless the request has another end."""

_LONGEST: Final = 500
"""Maximal characters of a text."""

_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f]*")
"""A text without control characters."""

_WHERE: Final = (
    "the guard reads `assay.toml` in its working directory, once you have run `assay trust assay.toml` there; "
    "or the file that `--config` names"
)


def exception_text(wanted: dict[str, Any], server: str, today: date) -> tuple[str, list[str]]:
    """Return the TOML of the exception that *wanted* describes, and notes. Raises `ValueError`."""
    rule, reason = _text(wanted, "rule").strip(), _text(wanted, "reason").strip() or "accepted in the console"
    # A name is used as it is: with its white space removed, it would be that of another tool, or of all.
    tool = _text(wanted, "tool")
    until = _until(wanted.get("until"), today)
    rows = [("rule", _quoted(rule))]
    if tool:
        rows.append(("tool", _quoted(tool)))
    action = _text(wanted, "action").strip()
    if action:
        rows.append(("action", _quoted(action)))
    rows += [("reason", _quoted(reason)), ("until", until.isoformat())]
    text = "[[guard.exceptions]]\n" + "".join(f"{name} = {value}\n" for name, value in rows)
    check(text)
    notes = [_WHERE]
    if server:
        notes.append(f"it holds for every server that this file is used for, not only for {server}")
    return text, notes


def check(text: str) -> Settings:
    """Return the settings of a file with this *text*. Raises `ValueError`, as the guard would for such a file."""
    found = FoundSettings(tomllib.loads(text), "", "assay.toml", text.encode(), named=True)
    try:
        return made(in_file(found))
    except SettingsError as error:
        raise ValueError(str(error)) from None


def _text(wanted: dict[str, Any], name: str) -> str:
    value = wanted.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _LONGEST or _PLAIN.fullmatch(value) is None:
        raise ValueError(f"{name}: expected at most {_LONGEST} characters, none of them a control character")
    return value


def _until(given: Any, today: date) -> date:
    if given is None:
        return today + timedelta(days=_DAYS)
    try:
        until = date.fromisoformat(given)
    except (TypeError, ValueError):
        raise ValueError("until: expected a day such as 2026-12-31") from None
    if until < today:
        raise ValueError(f"until: {until} is over")
    return until


def _quoted(text: str) -> str:
    """Return *text* as a string of TOML. What cannot be seen, or turns the text around it, is escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else f"\\U{ord(each):08X}" for each in escaped) + '"'

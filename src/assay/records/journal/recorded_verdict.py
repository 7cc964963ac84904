"""Rebuild the verdict in a journal record, for messages that cannot be judged again. No I/O."""

from typing import Any, Final, NamedTuple, cast, get_args

from assay.base.removed import is_removed_rule
from assay.base.verdict import Action, Exchange, Findings, Kind, ListEntry, Party, Verdict, Violation, verdict
from assay.core.policy import Policy
from assay.records.journal.reading import Record
from assay.records.recording.rows import redecided
from assay.rules import RULES

_ACTIONS: Final = frozenset(get_args(Action))
_KINDS: Final = frozenset(get_args(Kind))
_ANSWERS: Final = frozenset({"result", "error", "missing"})
_TEXTS: Final = ("at", "expected", "found", "source", "hint")


class _Asked(NamedTuple):
    """The method of a request, if the record has it."""

    name: str
    party: Party
    revision: str | None


def recorded_verdict(record: Record, policy: Policy | None = None) -> Verdict | None:
    """
    Return the verdict in *record*, whose violations are redacted; None if this version cannot read it.

    *policy* chooses the actions; None keeps the recorded ones.
    """
    metadata = record["metadata"]
    party, kind, revision = metadata.get("party"), metadata.get("kind"), metadata.get("revision")
    listed = [each for each in _listed(record, "violations") if not is_removed_rule(each.get("rule"))]
    if not all(isinstance(each, str) for each in (party, kind, *(one.get("rule") for one in listed))):
        return None
    if party not in {"client", "server"} or kind not in _KINDS or any(each.get("rule") not in RULES for each in listed):
        return None
    if record["status"] == "refused" and not listed:
        return None
    found = tuple(map(_violation, listed))
    if policy is not None:
        found = tuple(redecided(each, policy, metadata.get("tool")) for each in found)
    speaker = Party(party)
    exchange = _exchange(record, speaker.other) if kind in _ANSWERS else None
    findings = Findings(found, _more(record), b"", quarantined=_quarantined(record)) if found else None
    return verdict(
        speaker, b"", kind, _value(record), exchange, revision if isinstance(revision, str) else None, findings
    )


def _listed(record: Record, name: str) -> list[dict[str, Any]]:
    listed = (record["error"] or {}).get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _violation(listed: dict[str, Any]) -> Violation:
    rule = str(listed["rule"])
    at, expected, found, source, hint = (str(listed.get(name) or "") for name in _TEXTS)
    action, entry, reason = listed.get("action"), listed.get("entry"), listed.get("reason")
    return Violation(
        rule,
        at,
        expected,
        found,
        source,
        hint,
        action=cast("Action", action) if isinstance(action, str) and action in _ACTIONS else RULES[rule].action,
        reason=reason if isinstance(reason, str) else None,
        entry=_entry(entry) if isinstance(entry, dict) else None,
    )


def _entry(listed: dict[str, Any]) -> ListEntry:
    return ListEntry(str(listed.get("kind")), str(listed.get("name")))


def _more(record: Record) -> int:
    more = (record["error"] or {}).get("more")
    return more if type(more) is int else 0


def _quarantined(record: Record) -> tuple[ListEntry, ...]:
    return tuple(map(_entry, _listed(record, "quarantined")))


def _value(record: Record) -> dict[str, Any]:
    """Return the parts of the message that its record has."""
    ident, tool = record["metadata"].get("id"), record["metadata"].get("tool")
    value: dict[str, Any] = {"method": record["method"]} if record["method"] is not None else {}
    if isinstance(ident, str | int):
        value["id"] = ident
    return {**value, "params": {"name": tool}} if isinstance(tool, str) else value


def _exchange(record: Record, asker: Party) -> Exchange | None:
    if record["method"] is None:
        return None
    metadata = record["metadata"]
    made = Exchange.of(_Asked(record["method"], asker, metadata.get("revision")), metadata.get("id"))
    made.detail = metadata.get("tool")
    return made

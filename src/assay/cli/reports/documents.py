"""The findings of a run as one document for programs: JSON, SARIF 2.1.0, GitLab's code quality, and JUnit XML."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from assay import __version__
from assay.cli.reports.result import (
    RunResult,
    counts_by,
    further_places,
    is_inside,
    members_of,
    messages_of,
    others_of,
    sentence_of,
    title_of,
)
from assay.model.json_values import dumped
from assay.model.printable import plain, plain_lines
from assay.records.digest import FindingGroup, FindingPlace, Level
from assay.records.outcomes import WORDS
from assay.rules import RULES, Rule

# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

VERSION: Final = 2
"""Version of the document. It changes when a member is removed or changes its meaning, not when one is added."""

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer", "minimum": 0}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_REVISION: Final = {"type": ["string", "null"], "description": "the revision of MCP; null if it is unknown"}

_KEY: Final[dict[str, Any]] = {
    "rule": {"type": "string", "description": "the rule, as of `assay rules`"},
    "party": {"enum": ["client", "server"], "description": "the sender of the message"},
    "method": {"type": "string", "description": "the method of the message, or of the request that it answers"},
    "tool": {"type": "string", "description": "the tool that is called, or whose result it is"},
    "entry": {"type": "string", "description": "the entry of a list, such as `tool search`"},
    "place": {"type": "string", "description": "a JSON Pointer with * in place of every index"},
    "server": {"type": "string", "description": "the server, if the recording has it"},
}

_FILE: Final[dict[str, Any]] = {
    "file": {"type": "string", "description": "the path, relative if it is below the working directory"},
    "revision": _REVISION,
    "messages": _NUMBER,
    "ok": {**_NUMBER, "description": "messages without findings"},
    "reported": {**_NUMBER, "description": "messages with findings, forwarded, perhaps without quarantined tools"},
    "repaired": {**_NUMBER, "description": "messages that the guard changed and forwarded"},
    "blocked": {**_NUMBER, "description": "messages that enforce mode blocks"},
    "failed": {**_NUMBER, "description": "errors of the server itself, and results with isError"},
    "unanswered": {**_NUMBER, "description": "requests that were never answered"},
    "notJudged": {**_NUMBER, "description": "further messages, which were not judged: remarks has the reasons"},
    "complete": {"type": "boolean", "description": "whether every message was judged"},
    "remarks": _TEXTS,
    "error": {"type": "string", "description": "why the file could not be judged to its end"},
}

_PLACE: Final[dict[str, Any]] = {
    "line": {**_NUMBER, "description": "the line of the recording; 0 for a request that was never answered"},
    "at": {"type": "string", "description": "a JSON Pointer from the root of the message"},
}

_FINDING: Final[dict[str, Any]] = {
    "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "the same in every run"},
    "level": {"enum": ["error", "warning"]},
    "action": {"enum": ["refuse", "quarantine", "report", "drop", "repair"]},
    "known": {"type": "boolean", "description": "whether the baseline has it"},
    "count": {"type": "integer", "minimum": 1, "description": "how many equal findings the file has"},
    "file": _TEXT,
    **_PLACE,
    "title": {"type": "string", "description": "the message, for people"},
    "revision": _REVISION,
    **_KEY,
    "expected": _TEXT,
    "found": _TEXT,
    "source": _TEXT,
    "hint": _TEXT,
    "places": {
        "type": "array",
        "description": "the first places of these findings",
        "items": {"type": "object", "properties": _PLACE, "required": list(_PLACE), "additionalProperties": False},
    },
    "schemaAt": {"type": "string", "description": "the place in the schema of the tool"},
    "reason": {"type": "string", "description": "why the policy chose another action"},
    "help": {"type": "string", "description": "the address of the page about the rule"},
}

_OPTIONAL: Final = frozenset({"method", "tool", "entry", "place", "server", "schemaAt", "reason", "help", "error"})


def _object(members: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object. Later versions may add members, so others are allowed."""
    return {"type": "object", "properties": members, "required": [each for each in members if each not in _OPTIONAL]}


SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": f"urn:assay:check:{VERSION}",
    "title": "The findings of `assay check`",
    **_object(
        {
            "$schema": _TEXT,
            "version": {"const": VERSION},
            "assay": {"type": "string", "description": "the version of Assay"},
            "status": {"enum": [0, 1, 2], "description": "the exit status"},
            "files": {"type": "array", "items": _object(_FILE)},
            "findings": {"type": "array", "items": _object(_FINDING)},
            "leftOut": {**_NUMBER, "description": "findings that are counted only: there were too many different ones"},
            "known": {**_NUMBER, "description": "findings that the baseline has"},
            "rules": {"type": "object", "additionalProperties": _NUMBER, "description": "findings by rule"},
            "remarks": _TEXTS,
            "stale": {
                "type": "array",
                "description": "entries of the baseline that were not found",
                "items": _object({**_KEY, "count": _NUMBER}),
            },
        }
    ),
}


def json_text(result: RunResult) -> str:
    """Return all findings as one document. Equal findings of a file are one entry with a count."""
    files = [
        {
            "file": each.name,
            "revision": each.revision,
            "messages": messages_of(each),
            **{word: each.counts[word] for word in WORDS},
            "unanswered": each.counts["missing"],
            "notJudged": each.counts["unjudged"],
            "complete": each.error is None and not each.is_partial,
            "remarks": each.remarks,
            **({} if each.error is None else {"error": each.error}),
        }
        for each in result.files
    ]
    document = {
        "$schema": SCHEMA["$id"],
        "version": VERSION,
        "assay": __version__,
        "status": result.status,
        "files": files,
        "findings": [_json_finding(result, each) for each in result.groups],
        "leftOut": result.groups.left_out,
        "known": result.groups.known,
        "rules": dict(sorted(result.rules.items())),
        "remarks": list(result.remarks),
        "stale": [{**members_of(key), "count": count} for key, count in result.stale],
    }
    return dumped(document, indent=True) + "\n"


def _json_finding(result: RunResult, group: FindingGroup) -> dict[str, Any]:
    finding, message = group.finding, group.message
    shown: dict[str, Any] = {
        "fingerprint": group.key.fingerprint,
        "level": group.level,
        "action": finding.done,
        "known": group.is_known,
        "count": group.count,
        "file": group.file,
        "line": message.line,
        "at": finding.at,
        "title": title_of(group),
        "revision": message.record.metadata.revision,
        **members_of(group.key),
        "expected": finding.expected,
        "found": finding.found,
        "source": finding.source,
        "hint": finding.hint,
        "places": [each._asdict() for each in group.places],
    }
    more = {
        "schemaAt": finding.schema_at,
        "reason": finding.reason,
        "help": result.options.page_of(finding.rule),
    }
    return shown | {name: each for name, each in more.items() if each is not None}


# ── SARIF ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_SARIF: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_DEFAULT_LEVELS: Final[dict[str, Level]] = {"refuse": "error", "quarantine": "error", "report": "warning"}


def sarif_text(result: RunResult) -> str:
    """Return one run with one result for each group of equal findings."""
    rules = {rule: index for index, rule in enumerate(dict.fromkeys(each.key.rule for each in result.groups))}
    run = {
        "tool": {"driver": {
            "name": "Assay",
            "version": __version__,
            "semanticVersion": __version__,
            "rules": [_sarif_rule(RULES[each], result.options.page_of(each)) for each in rules],
        }},
        "invocations": [{
            "executionSuccessful": result.status != 2,
            "exitCode": result.status,
            "toolExecutionNotifications": list(_notices(result)),
        }],
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(each, rules[each.key.rule]) for each in result.groups],
    }  # fmt: skip
    return dumped({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=True) + "\n"


def _sarif_rule(rule: Rule, page: str | None) -> dict[str, Any]:
    source = rule.source.replace("{revision}", "(the revision in use)")
    parts = (rule.asks, rule.why, f"Source: {source}.", f"What to do: {rule.fix}")
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.asks},
        "fullDescription": {"text": f"{rule.asks} {rule.why}"},
        "help": {"text": "\n".join(parts), "markdown": "\n\n".join(parts)},
        **({} if page is None else {"helpUri": page}),
        "defaultConfiguration": {"level": _DEFAULT_LEVELS[rule.action]},
        "properties": {"tags": ["mcp", rule.rung]},
    }


def _notices(result: RunResult) -> Iterator[dict[str, Any]]:
    """Yield what is to be said about the files and the command line."""
    for file in result.files:
        yield from (_notice(each, file=file.name) for each in file.remarks)
        if file.error is not None:
            yield _notice(file.error, "error", file=file.name)
    yield from (_notice(each, "error") for each in result.remarks)
    yield from (_notice(f"no longer found: {key}") for key, _ in result.stale)
    if result.groups.left_out:
        yield _notice(result.groups.rest)


def _notice(text: str, level: Level = "warning", file: str = "") -> dict[str, Any]:
    if file and not is_inside(file):
        text = f"{file}: {text}"
    found: dict[str, Any] = {"level": level, "message": {"text": plain(text)}}
    if file and is_inside(file):
        found["locations"] = [{"physicalLocation": {"artifactLocation": {"uri": _uri(file)}}}]
    return found


def _sarif_result(group: FindingGroup, index: int) -> dict[str, Any]:
    fingerprint = group.key.fingerprint
    locations = [_location(group.file, each) for each in group.places]
    result = {
        "ruleId": group.key.rule,
        "ruleIndex": index,
        "level": group.level,
        "message": {"text": f"{sentence_of(group)}. {plain(group.finding.hint)}"},
        "locations": locations[:1],
        "relatedLocations": [{"id": number, **each} for number, each in enumerate(locations[1:], 1)],
        "occurrenceCount": group.count,
        # GitHub compares the second one. It would compute it from the line, which differs in every recording.
        "partialFingerprints": {"assayFinding/v1": fingerprint, "primaryLocationLineHash": f"{fingerprint}:1"},
        "properties": {
            "party": group.key.party,
            "action": group.finding.done,
            "server": group.key.server,
            "subject": group.subject,
            "recording": group.file,
        },
    }
    if group.is_known:
        result["suppressions"] = [{"kind": "external", "justification": "The baseline has it."}]
    return result


def _location(file: str, place: FindingPlace) -> dict[str, Any]:
    named = (
        {"fullyQualifiedName": place.at, "kind": "member"} if place.at else {"name": "the message", "kind": "object"}
    )
    location: dict[str, Any] = {"logicalLocations": [named]}
    if not is_inside(file):
        return location
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if place.line:
        physical["region"] = {"startLine": place.line}
    return {"physicalLocation": physical, **location}


def _uri(path: str) -> str:
    """Return the path of a file below the working directory as a relative URI reference."""
    # A colon in the first segment would be read as the end of a scheme.
    return quote(path.replace("\\", "/")).replace(":", "%3A")


# ── GitLab ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_SEVERITIES: Final[dict[Level, str]] = {"error": "major", "warning": "minor"}

_PROBLEM: Final = "assay/recording"
"""The name of the check for a file that could not be judged, and for findings that are not listed."""


def gitlab_text(result: RunResult) -> str:
    """Return one entry for each group of equal findings that the baseline does not have: a JSON array."""
    counted: Counter[str] = Counter()
    entries = []
    for group in result.groups.new():
        fingerprint = group.key.fingerprint
        entries.append(_gitlab_entry(group, fingerprint, counted[fingerprint]))
        counted[fingerprint] += 1
    entries += [_problem(each.name, each.error, "blocker") for each in result.files if each.error is not None]
    entries += [_problem("-", each, "blocker") for each in result.remarks]
    if result.groups.left_out:
        entries.append(_problem("-", result.groups.rest, "info"))
    return dumped(entries, indent=True) + "\n"


def _gitlab_entry(group: FindingGroup, fingerprint: str, before: int) -> dict[str, Any]:
    """Return the entry of a group; *before* is how many other files have had the same one."""
    places = [f"- line {each.line}: {plain(each.at) or 'the message'}" for each in group.places]
    return {
        "description": f"{sentence_of(group)}{f' ({others})' if (others := others_of(group)) else ''}",
        "check_name": group.key.rule,
        # Unique in the report: GitLab counts entries with the same fingerprint once. Without the name of the recording,
        # which differs in every run.
        "fingerprint": _unique(fingerprint, str(before)) if before else fingerprint,
        "severity": _SEVERITIES[group.level],
        # A line is required; a request that was never answered has none.
        "location": {"path": _path(group.file), "lines": {"begin": group.message.line or 1}},
        "content": {"body": "\n".join([plain(group.finding.hint), "", *places])},
    }


def _problem(file: str, text: str, severity: str) -> dict[str, Any]:
    return {
        "description": plain(text),
        "check_name": _PROBLEM,
        "fingerprint": _unique(_PROBLEM, f"{file}\0{text}"),
        "severity": severity,
        "location": {"path": _path(file), "lines": {"begin": 1}},
    }


def _path(file: str) -> str:
    """Return the path in the repository, which is required; the name alone of a file that is elsewhere."""
    return file if is_inside(file) else os.path.basename(file)


def _unique(*parts: str) -> str:
    return sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]


# ── JUnit ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_NAMELESS: Final = "server"
"""The suite of a recording that does not name its server."""

_RECORDINGS: Final = "recordings"
"""The suite with one test case, about the files themselves."""

_NOT_JUDGED: Final = frozenset({"lock"})
"""Rungs without a passed test case: a lock is not compared here."""

_Cases = dict[tuple[str, str], list[FindingGroup]]
"""The findings of one server, by rule and subject."""


def junit_text(result: RunResult) -> str:
    """
    Return one suite for each server. No name in it depends on the name of a file, so dashboards show its history.

    A rule with findings has a test case for each tool or method; a rule without has one for the server.
    """
    suites: dict[str, _Cases] = {name or _NAMELESS: defaultdict(list) for name in result.servers}
    for group in result.groups:
        suite = suites.setdefault(group.key.server or _NAMELESS, defaultdict(list))
        suite[group.key.rule, group.subject].append(group)
    parts = [_suite_about_files(result)]
    for server, groups in suites.items():
        cases: list[str] = []
        for rule in RULES.values():
            found = {subject: each for (broken, subject), each in groups.items() if broken == rule.id}
            for subject, each in found.items():
                cases.append(_case(f"{server}.{subject}", rule.id, _outcome(each, result.options.fail_on)))
            if not found and rule.rung not in _NOT_JUDGED:
                cases.append(_case(server, rule.id, ""))
        parts.append(_suite(server, cases, errors=0))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="assay check">\n{"".join(parts)}</testsuites>\n'


def _suite_about_files(result: RunResult) -> str:
    """Return the problems of the files and of the command line, as a test case of their own."""
    problems, is_wrong = [*result.remarks], bool(result.remarks)
    for file in result.files:
        problems += [f"{plain(file.name)}: {each}" for each in file.problems]
        is_wrong |= file.error is not None or (file.is_partial and result.options.fail_on != "never")
    problems += [f"no longer found: {key}" for key, _ in result.stale]
    problems += [result.groups.rest] if result.groups.left_out else []
    inside = ""
    if problems:
        text = "\n".join(problems)
        inside = _failure("error", text) if is_wrong else f"<system-out>{_text(text)}</system-out>"
    return _suite(_RECORDINGS, [_case(_RECORDINGS, "judged", inside)], errors=int(is_wrong))


def _outcome(groups: list[FindingGroup], fail_on: str) -> str:
    text = "\n".join(line for group in groups for line in _lines(group))
    if any(counts_by(fail_on, each.finding, is_known=each.is_known) for each in groups):
        return _failure("failure", text)
    if all(each.is_known for each in groups):
        return f"<skipped>ignored (in baseline):\n{_text(text)}</skipped>"
    return f"<system-out>{_text(text)}</system-out>"


def _lines(group: FindingGroup) -> Iterator[str]:
    """Yield the first finding of a group, then the places of others."""
    line, file = group.message.line, plain(group.file)
    yield f"{sentence_of(group)} ({file}, {f'line {line}' if line else 'the end'})"
    yield from further_places(group)
    if group.count > len(group.places):
        yield f"and {group.count - len(group.places):,} more"


def _failure(element: str, text: str) -> str:
    return f"<{element} message={_attribute(text.partition(chr(10))[0])}>{_text(text)}</{element}>"


def _case(suite: str, name: str, inside: str) -> str:
    return f"    <testcase classname={_attribute(suite)} name={_attribute(name)}>{inside}</testcase>\n"


def _suite(name: str, cases: list[str], *, errors: int) -> str:
    failures, skipped = (sum(f"><{word}" in each for each in cases) for word in ("failure ", "skipped>"))
    numbers = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'
    return f"  <testsuite name={_attribute(name)} {numbers}>\n{''.join(cases)}  </testsuite>\n"


def _text(text: str) -> str:
    """Return *text* with its lines as XML. Characters that XML does not allow are never printable."""
    return escape(plain_lines(text))


def _attribute(text: str) -> str:
    return quoteattr(plain(text))

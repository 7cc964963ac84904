"""The data of the page, as JSON: made of one digest, after the last file. No I/O, no clock."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from assay import __version__
from assay.base.errors import CanonicalError
from assay.base.printable import counted
from assay.cli.checking.evidence import FileEnd
from assay.cli.reports.page.page_digest import EXCERPT, MOST_FILES, MOST_LARGEST, WHOLE, PageDigest
from assay.cli.reports.page.page_groups import PageGroup, PageGroupKey, PageSample, group_name
from assay.cli.reports.page.page_talks import MORE_WITH_FINDINGS, MOST_ROWS
from assay.cli.reports.page.page_tools import CHARACTERS_A_TOKEN
from assay.cli.reports.page.shown_message import source_link
from assay.cli.reports.page.smallest import rank
from assay.cli.reports.result import ReportOptions, RunResult, file_counts
from assay.records.digest import SEVERITY, Figures
from assay.records.log_histogram import PRECISION
from assay.records.outcomes import WORDS
from assay.rules import RULES


def page_verdict(result: RunResult, digest: PageDigest) -> dict[str, Any]:
    """Return the verdict: a tone for its colour, one sentence, and further sentences."""
    tone, sentence = _verdict(digest)
    return {"tone": tone, "sentence": sentence, "notes": list(_notes(result.files, digest))}


def messages_of(digest: PageDigest) -> int:
    """Return the number of messages; a request that was never answered is not another one."""
    return digest.outcomes.total() - digest.outcomes["missing"]


def _verdict(digest: PageDigest) -> tuple[str, str]:
    messages = messages_of(digest)
    blocked, quarantined = digest.outcomes["blocked"], _kinds(digest)
    if not messages and not digest.outcomes["missing"]:
        return "warning", "No message could be judged."
    if blocked or quarantined:
        done = [f"blocked {blocked:,} of {counted(messages, 'message')} ({_blocked(digest)})"] if blocked else []
        done += [f"quarantined {quarantined}"] if quarantined else []
        return "error", f"Enforce mode would have {_listed(done)}."
    if digest.levels["warning"] or digest.outcomes["reported"]:
        reported = digest.outcomes["reported"]
        some = f"{reported:,} of {counted(messages, 'message')} {'has' if reported == 1 else 'have'} findings"
        return "warning", f"Enforce mode would have blocked no message. {some}."
    if digest.outcomes["missing"]:
        return "warning", f"All of {counted(messages, 'message')} are valid, but some requests were never answered."
    return "good", "The message is valid." if messages == 1 else f"All {messages:,} messages are valid."


def _blocked(digest: PageDigest) -> str:
    """Return what was blocked: ``2 calls and 1 result``."""
    found = sorted(digest.blocked.items(), key=lambda each: (-each[1], each[0]))
    return _listed([counted(number, what) for what, number in found])


def _kinds(digest: PageDigest) -> str:
    """Return what was quarantined: ``2 tools and 1 prompt``."""
    return _listed([counted(entries.count, kind) for kind, entries in sorted(digest.quarantined.items())])


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _notes(files: list[FileEnd], digest: PageDigest) -> Iterator[str]:
    missing = digest.outcomes["missing"]
    if missing:
        yield f"{counted(missing, 'request')} {'was' if missing == 1 else 'were'} never answered."
    known = digest.known.total()
    if known:
        yield f"{counted(known, 'finding')} {'is' if known == 1 else 'are'} in the baseline."
    failed = sum(each.error is not None for each in files)
    if failed:
        yield f"{counted(failed, 'file')} could not be judged, or not to the end."
    partial = sum(each.is_partial and each.error is None for each in files)
    if partial:
        have = "has" if partial == 1 else "have"
        yield f"{counted(partial, 'file')} {have} messages that are missing or were not judged."


_MOST_TEXT: Final = 8_000_000
"""Characters of all messages on a page; later samples then have no text."""

_UNJUDGEABLE: Final = frozenset({
    "contract/schema", "contract/remote-ref", "contract/unknown-dialect", "contract/schema-size", "contract/unjudged",
    "contract/schema-cost", "contract/schema-cycle",
})  # fmt: skip
"""Rules whose findings mean that calls of the tool, or some of them, are not checked against its schema."""


def page_data(result: RunResult, digest: PageDigest, made: str | None) -> dict[str, Any]:
    """Return everything that the page shows; *made* is the time of making, None to leave it out."""
    options = result.options
    groups = sorted(digest.groups, key=lambda each: _weight(digest, *each))
    messages = _Messages(digest)
    shown = [_group(key, group, messages) | {"known": _is_known(digest, key, group)} for key, group in groups]
    listed = sum(group.count for _, group in groups)
    return {
        "generator": {"version": __version__, "made": made},
        "verdict": page_verdict(result, digest),
        "totals": _totals(digest),
        "period": digest.period,
        "timed": digest.timed,
        "revisions": sorted(digest.revisions.items(), key=lambda each: (-each[1], each[0])),
        "servers": sorted(server for server, _ in digest.servers),
        "files": [_file(each) for each in result.files[:MOST_FILES]],
        "moreFiles": _more(result.files[MOST_FILES:]),
        "remarks": list(result.remarks),
        "stale": [str(key) for key, _ in result.stale],
        "rules": {name: _rule(name, options) | {"count": digest.rules[name]} for name in sorted(digest.rules)},
        "groups": shown,
        "leftOut": digest.rules.total() - listed,
        "messages": messages.shown,
        **_talks(digest),
        "methods": _figures(digest),
        "methodsArePartial": digest.figures.is_partial,
        "largest": [
            {"size": -size, "file": file, "line": line, "party": party, "title": title}
            for size, file, line, party, title in digest.largest[:MOST_LARGEST]
        ],
        "tools": _tools(digest, [(key, group) for key, group in groups]),
        "toolsArePartial": digest.tools.is_partial,
        "lists": {"count": digest.lists.count, "tokens": digest.lists.most or 0},
        "activity": _activity(digest),
        "limits": {
            "precision": round(PRECISION, 3),
            "rows": MOST_ROWS + MORE_WITH_FINDINGS,
            "excerpt": EXCERPT,
            "whole": WHOLE,
            "charactersPerToken": CHARACTERS_A_TOKEN,
        },
    }


def _weight(digest: PageDigest, key: PageGroupKey, group: PageGroup) -> tuple[Any, ...]:
    return _is_known(digest, key, group), SEVERITY.index(key.level), -group.count, group.first, key.key


def _is_known(digest: PageDigest, key: PageGroupKey, group: PageGroup) -> bool:
    """Whether the baseline has all findings of a group."""
    return digest.known[key] >= group.count


def _totals(digest: PageDigest) -> dict[str, Any]:
    outcomes = digest.outcomes
    return {
        "messages": messages_of(digest),
        **{word: outcomes[word] for word in WORDS},
        "unanswered": outcomes["missing"],
        "findings": digest.rules.total(),
        "error": digest.levels["error"],
        "warning": digest.levels["warning"],
        "known": digest.known.total(),
        "bytes": digest.bytes,
        "conversations": digest.conversations.count,
        "conversationsAreExact": digest.conversations.is_exact,
    }


def _file(file: FileEnd) -> dict[str, Any]:
    return file_counts(file) | {
        "name": file.name,
        "revision": file.revision,
        "isComplete": file.error is None and not file.is_partial,
        "remarks": list(file.remarks),
        "error": file.error,
    }


def _more(files: list[FileEnd]) -> dict[str, int]:
    """Return the number of further files, and of those with problems; empty without further files."""
    problems = sum(each.error is not None or each.is_partial for each in files)
    return {"files": len(files), "problems": problems} if files else {}


def _rule(name: str, options: ReportOptions) -> dict[str, Any]:
    rule = RULES[name]
    error = CanonicalError.to_jsonrpc_error(rule.code)
    return {
        "id": name,
        "asks": rule.asks,
        "why": rule.why,
        "source": rule.source.replace("{revision}", "(the revision in use)"),
        "sourceUrl": source_link(rule.source, None),
        "fix": rule.fix,
        "example": rule.example,
        "effect": f"{rule.action}; as an error {error['code']} “{error['message']}”",
        "page": options.page_of(name),
    }


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Messages:
    """The sample messages of all groups, each once."""

    def __init__(self, digest: PageDigest) -> None:
        self.shown: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._whole = dict(digest.whole)
        self._room = _MOST_TEXT

    def number(self, sample: PageSample) -> int:
        """Return the number of a message, which is added if it is new."""
        if sample.ident not in self._numbers:
            self._numbers[sample.ident] = len(self.shown)
            self.shown.append(self._with_text(sample))
        return self._numbers[sample.ident]

    def _with_text(self, sample: PageSample) -> dict[str, Any]:
        whole = self._whole.get(sample.ident)
        shown = sample.message
        if whole is not None and self._room > len(whole["text"]):
            spans = whole["spans"]
            findings = [
                each if spans[number] is None else {**each, "span": spans[number]}
                for number, each in enumerate(shown["findings"])
            ]
            shown = {**shown, "text": whole["text"], "cut": whole["cut"], "findings": findings}
        self._room -= len(shown["text"])
        return shown if self._room >= 0 else {**shown, "text": "", "cut": False, "absent": "budget"}


def _group(key: PageGroupKey, group: PageGroup, messages: _Messages) -> dict[str, Any]:
    ident = group_name(key)
    samples = [[messages.number(each), each.finding] for each in group.shown_samples()]
    facts = {"id": ident, "level": key.level, "samples": samples}
    return facts | key.key._asdict() | group.as_json()


# ── conversations, figures, tools ────────────────────────────────────────────────────────────────────────────────────


def _talks(digest: PageDigest) -> dict[str, Any]:
    chosen = {**dict(digest.faulty_talks), **dict(digest.talks)}
    ordered = sorted(chosen.items(), key=lambda each: (-each[1].findings, each[0]))
    return {
        "talks": [talk.as_json(f"{rank(*key):016x}") for key, talk in ordered],
        "talksArePartial": digest.talks.is_partial,
    }


def _figures(digest: PageDigest) -> list[dict[str, Any]]:
    listed = [key._asdict() | _figure(figures) for key, figures in digest.figures]
    return sorted(listed, key=lambda each: (-(each["requests"] + each["notifications"]), each["method"], each["tool"]))


def _figure(figures: Figures) -> dict[str, Any]:
    counts = ("requests", "notifications", "errors", "failed", "unanswered", "findings")
    spread = ("latency", "sent", "answers")
    return {name: getattr(figures, name) for name in counts} | {
        name: getattr(figures, name).as_json() for name in spread
    }


def _activity(digest: PageDigest) -> dict[str, Any]:
    """Return messages, and those with findings, over time: the start of each part in milliseconds, and its numbers."""
    width, faulty = round(digest.activity.width * 1000), Counter[int]()
    for start, number in digest.faulty.counts:
        # Its parts are not wider, and fit into the others.
        faulty[round(start * 1000) // width] += number
    starts = [(round(start * 1000), number) for start, number in digest.activity.counts]
    return {"width": width, "points": [[start, number, faulty[start // width]] for start, number in starts]}


def _tools(digest: PageDigest, groups: list[tuple[PageGroupKey, PageGroup]]) -> list[dict[str, Any]]:
    figures = {(key.server, key.tool): each for key, each in digest.figures if key.method == "tools/call"}
    shown = []
    for (server, name), tool in digest.tools:
        own = [(key, group) for key, group in groups if _is_about(key, server, name)]
        used = figures.get((server, name))
        shown.append({
            "server": server,
            "name": name,
            **tool.as_json(),
            "calls": 0 if used is None else used.requests,
            "errors": 0 if used is None else used.errors + used.failed,
            "p95": None if used is None or not used.latency.count else round(used.latency.quantile(0.95)),
            "findings": sum(group.count for _, group in own),
            "problems": _problems(own),
        })  # fmt: skip
    return sorted(shown, key=lambda each: (each["server"], -each["calls"], each["name"]))


def _is_about(key: PageGroupKey, server: str, name: str) -> bool:
    return key.key.server == server and (key.key.tool == name or key.key.entry == f"tool {name}")


def _problems(own: list[tuple[PageGroupKey, PageGroup]]) -> list[dict[str, Any]]:
    """Return why a tool is quarantined, or cannot be judged."""
    found: dict[str, list[str]] = {}
    for key, _ in own:
        if key.key.entry and (key.level == "error" or key.key.rule in _UNJUDGEABLE):
            found.setdefault("quarantined" if key.level == "error" else "not judgeable", []).append(key.key.rule)
    return [{"what": what, "rules": sorted(set(rules))} for what, rules in found.items()]

"""Show verdicts: one line for each message, and below it each finding with its place, rule and fix."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from assay.base.printable import plain
from assay.base.verdict import UNNAMED, Verdict, Violation
from assay.cli.terminal.record_text import COLOURS, MARKS, nameless
from assay.cli.terminal.style import Style
from assay.core.quarantined_names import Quarantined, counted
from assay.core.render import shown_id
from assay.records.outcomes import WORDS, outcome_of
from assay.records.transcript import Judged

if TYPE_CHECKING:
    from assay.cli.reports.check_findings import MessageCounts


def lines(judged: Judged, style: Style) -> Iterator[str]:
    """Return the lines for one message and its violations."""
    yield header(judged, style)
    yield from _violations(judged.verdict, style)


def message_lines(verdict: Verdict, style: Style) -> Iterator[str]:
    """Return the lines for one message and its violations, without its line number."""
    yield _headline(verdict, style)
    yield from _violations(verdict, style)


def header(judged: Judged, style: Style, hidden: Callable[[str], str] = str) -> str:
    """Return one message as one line. *hidden* masks secrets in its title and its server."""
    number = f"{judged.line:>5}" if judged.line else "  end"
    place = (hidden(plain(judged.server)), f"conversation {judged.conversation}")
    where = f"  ({', '.join(filter(None, place))})" if judged.conversation else ""
    lacking = f"  (as the guard judged it: {judged.lacks})" if judged.lacks else ""
    return (
        f"{style.paint(number, 'dim')}  {_headline(judged.verdict, style, hidden)}{style.paint(where + lacking, 'dim')}"
    )


def _headline(verdict: Verdict, style: Style, hidden: Callable[[str], str] = str) -> str:
    # A check has no mode: it says what enforce mode does.
    word = outcome_of(verdict).word
    return f"{style.paint(MARKS[word], COLOURS[word])} {verdict.party:<6}  {hidden(title(verdict))}"


def _violations(verdict: Verdict, style: Style) -> Iterator[str]:
    yield from without_repeats([(place_lines(each, style), rule_lines(each, style)) for each in verdict.violations])
    if verdict.more:
        yield f"         and at least {verdict.more} more"


def title(verdict: Verdict) -> str:
    """Return a short title of a message, safe for a terminal."""
    return plain(_title(verdict))


def _title(verdict: Verdict) -> str:
    if verdict.kind == "missing":
        return f"never answered: {_asked(verdict)}"
    if (found := nameless(verdict.kind, [each.rule for each in verdict.violations])) is not None:
        return found
    # Cut, because a peer chose this name: a long one would take seconds to scan and hide everything after it.
    method = "" if verdict.method in {None, UNNAMED} else str(verdict.method)[:100]
    about = f" {verdict.tool[:40]}" if verdict.tool else _asked_for(verdict)
    ident = _ident(verdict)
    if verdict.kind in {"request", "notification"}:
        return f"{method or verdict.kind}{about}{ident}"
    return f"{verdict.kind} of {method}{about}{ident}" if method else f"{verdict.kind}{ident}"


def _ident(verdict: Verdict) -> str:
    if verdict.kind == "error" and verdict.value.get("id") is None:
        # The failed request is unknown: the server could not read it, or never sends an id.
        return " without an id"
    return f" #{shown_id(verdict.value['id'])}" if "id" in verdict.value else ""


_NAMED = {"prompts/get": "name", "resources/read": "uri"}
"""The parameter with the name of a prompt or resource, by method."""


def _asked_for(verdict: Verdict) -> str:
    """Return the prompt or the resource in a request."""
    key = _NAMED.get(verdict.method or "") if verdict.kind == "request" else None
    params = verdict.value.get("params") if key is not None else None
    name = params.get(key) if isinstance(params, dict) else None
    return f" {name[:40]}" if isinstance(name, str) else ""


class Summary:
    """Counts by rule, and the names of quarantined entries."""

    def __init__(self) -> None:
        self._rules: Counter[str] = Counter()
        self._quarantined = Quarantined()

    def add(self, verdict: Verdict) -> None:
        """Count the findings of one verdict."""
        self._rules.update(violation.rule for violation in verdict.violations)
        self._quarantined.add(verdict)

    def lines(
        self, counts: "MessageCounts", revision: str | None, style: Style, hidden: Callable[[str], str] = str
    ) -> Iterator[str]:
        """Return the lines with the *counts* of messages. *hidden* masks secrets in names of quarantined entries."""
        words = [f"{counts[word]:,} {word}" for word in WORDS if counts[word] or word == "ok"]
        total = f"{counted(counts.messages, 'message')}{f' of MCP {revision}' if revision else ''}"
        others = f"; {counted(counts['missing'], 'request')} never answered" if counts["missing"] else ""
        # A message without evidence is not a pass.
        others += f"; {counted(counts['unjudged'], 'message')} not judged" if counts["unjudged"] else ""
        text = f"{total}: {', '.join(words)}{others}"
        yield from (style.paint(line, "bold") for line in style.wrapped(text, 0))
        for rule, count in sorted(self._rules.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {count:>5,} × {rule}"
        for line in self._quarantined.lines(hidden):
            yield from style.wrapped(f"quarantined: {line}", 2)


def _asked(verdict: Verdict) -> str:
    exchange = verdict.exchange
    if exchange is None:
        return "a request"
    tool = f" {exchange.tool[:40]}" if exchange.tool else ""
    return f"{exchange.method[:100]}{tool} #{shown_id(exchange.id)}"


def place_lines(violation: Violation, style: Style) -> list[str]:
    """Return the lines with the place and what was expected."""
    text = plain(f"{violation.place}: expected {violation.expected}, found {violation.found}")
    return [style.paint(line, "bold") for line in style.wrapped(text, 9)]


def rule_lines(violation: Violation, style: Style) -> list[str]:
    """Return the lines with the rule and the fix."""
    rule = style.wrapped(plain(f"{violation.rule} ({violation.source})"), 9)
    lines = [style.paint(line, "dim") for line in rule] + style.wrapped(plain(f"→ {violation.hint}"), 9, 2)
    if violation.reason is not None:
        lines += style.wrapped(plain(f"passed by an exception: {violation.reason}"), 9)
    return lines


def without_repeats(shown: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Iterator[str]:
    """Yield the places and rules of one message. A rule for several places comes once, below the last place."""
    for number, (places, rule) in enumerate(shown, 1):
        yield from places
        if number == len(shown) or shown[number][1] != rule:
            yield from rule

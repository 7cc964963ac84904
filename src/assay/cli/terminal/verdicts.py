"""Show verdicts: one line for each message, and below it each finding with its place, rule and fix."""

from collections.abc import Iterator, Sequence

from assay.base.printable import plain
from assay.base.verdict import UNNAMED, Verdict, Violation
from assay.cli.terminal.record_text import COLOURS, MARKS, nameless
from assay.cli.terminal.style import Style
from assay.core.render import shown_id
from assay.records.outcomes import outcome_of
from assay.records.record import Finding


def message_lines(verdict: Verdict, style: Style) -> Iterator[str]:
    """Return the lines for one message and its violations, without its line number."""
    yield _headline(verdict, style)
    yield from _violations(verdict, style)


def _headline(verdict: Verdict, style: Style) -> str:
    return headline(outcome_of(verdict).word, verdict.party, title(verdict), style)


def headline(word: str, party: str, title: str, style: Style) -> str:
    """Return one message as one line; its *word* is what enforce mode does."""
    return f"{style.paint(MARKS[word], COLOURS[word])} {party:<6}  {title}"


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


def _asked(verdict: Verdict) -> str:
    exchange = verdict.exchange
    if exchange is None:
        return "a request"
    tool = f" {exchange.tool[:40]}" if exchange.tool else ""
    return f"{exchange.method[:100]}{tool} #{shown_id(exchange.id)}"


def place_lines(violation: Violation | Finding, style: Style) -> list[str]:
    """Return the lines with the place and what was expected."""
    text = plain(f"{violation.place}: expected {violation.expected}, found {violation.found}")
    return [style.paint(line, "bold") for line in style.wrapped(text, 9)]


def rule_lines(violation: Violation | Finding, style: Style) -> list[str]:
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

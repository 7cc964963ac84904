"""Show verdicts: one line for each message, and below it each finding with its place, rule and fix."""

from collections.abc import Iterator, Sequence
from typing import Final

from assay.cli.terminal.style import Style
from assay.model.printable import plain
from assay.model.verdict import Verdict, Violation
from assay.records.outcomes import WOULD_BLOCK, outcome_of, title
from assay.records.record import Finding
from assay.rules.sentences import details, sentence

COLOURS: Final = {
    "ok": "green",
    "reported": "yellow",
    "repaired": "cyan",
    "blocked": "red",
    WOULD_BLOCK: "yellow",
    "failed": "magenta",
}
"""The colour of each word; `style.css` has the same ones."""

MARKS: Final = {"ok": "✓", "reported": "!", "repaired": "~", "blocked": "✗", WOULD_BLOCK: "✗", "failed": "E"}
"""The mark of each word, for lists in which the word itself would not fit."""


def message_lines(verdict: Verdict, style: Style) -> Iterator[str]:
    """Return the lines for one message and its violations, without its line number."""
    yield headline(outcome_of(verdict).word, verdict.party, title(verdict), style)
    yield from without_repeats([(place_lines(each, style), rule_lines(each, style)) for each in verdict.violations])
    if verdict.more:
        yield f"         and at least {verdict.more} more"


def headline(word: str, party: str, named: str, style: Style) -> str:
    """Return one message as one line; its *word* is what enforce mode does."""
    return f"{style.paint(MARKS[word], COLOURS[word])} {party:<6}  {named}"


def place_lines(violation: Violation | Finding, style: Style) -> list[str]:
    """Return the lines that say what is wrong, and where."""
    lines = [style.paint(line, "bold") for line in style.wrapped(plain(sentence(violation)), 9)]
    return lines + style.wrapped(plain(details(violation)), 9)


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

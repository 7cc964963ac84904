"""Show verdicts: one line for each message, and below it each finding with its place, rule and fix."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from assay.base.printable import plain
from assay.base.verdict import UNNAMED, Verdict, Violation
from assay.cli.terminal.record_text import nameless
from assay.cli.terminal.style import Style
from assay.core.quarantined_names import Quarantined, counted
from assay.core.render import shown_id
from assay.records.transcript import Judged

_MARKS = {"good": ("✓", "green"), "report": ("!", "yellow"), "aside": ("✗", "yellow"), "refused": ("✗", "red")}


def outcome(verdict: Verdict) -> str:
    """Return the outcome of a verdict: good, report, aside (entries of a list are quarantined) or refused."""
    if not verdict.accepted:
        return "refused"
    if any(violation.action == "quarantine" for violation in verdict.violations):
        return "aside"
    return "report" if verdict.violations else "good"


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
    mark, colour = _MARKS[outcome(verdict)]
    return f"{style.paint(mark, colour)} {verdict.party:<6}  {hidden(title(verdict))}"


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
    """Counts by outcome and by rule."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self.unanswered = 0
        """The number of requests that were never answered."""
        self._rules: Counter[str] = Counter()
        self._aside = Quarantined()

    @property
    def messages(self) -> int:
        """The number of counted messages."""
        return self._outcomes.total()

    def add(self, verdict: Verdict) -> None:
        """Count one verdict."""
        if verdict.kind == "missing":
            # Not a message: this verdict is about a missing response.
            self.unanswered += 1
        else:
            self._outcomes[outcome(verdict)] += 1
        self._rules.update(violation.rule for violation in verdict.violations)
        self._aside.add(verdict)

    def add_good(self, count: int) -> None:
        """Count messages without findings."""
        self._outcomes["good"] += count

    def lines(self, revision: str | None, style: Style, hidden: Callable[[str], str] = str) -> Iterator[str]:
        """Return the lines with the counts. *hidden* masks secrets in the names of quarantined entries."""
        counts = self._outcomes
        words = [f"{counts['good']:,} good"]
        kinds = (("refused", "refused"), ("aside", "with quarantined entries"), ("report", "with reports"))
        words += [f"{counts[key]:,} {word}" for key, word in kinds if counts[key]]
        total = f"{counted(self.messages, 'message')}{f' of MCP {revision}' if revision else ''}"
        open_ones = f"; {counted(self.unanswered, 'request')} never answered" if self.unanswered else ""
        text = f"{total}: {', '.join(words)}{open_ones}"
        yield from (style.paint(line, "bold") for line in style.wrapped(text, 0))
        for rule, count in sorted(self._rules.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {count:>5,} × {rule}"
        for line in self._aside.lines(hidden):
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

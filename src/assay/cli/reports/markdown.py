"""Findings as Markdown: for the summary of a job, a comment or a ticket; and as annotations of GitHub Actions."""

import os
import re
from collections.abc import Iterator
from typing import Final

from assay.cli.checking.evidence import FileEnd
from assay.cli.reports.outputs import ReportFileError
from assay.cli.reports.result import RunResult, further_places, is_inside, messages_of, others_of, sentence_of, title_of
from assay.model.printable import counted, plain, plain_lines
from assay.records.digest import FindingGroup, Level
from assay.records.outcomes import WORDS
from assay.rules.sentences import sentence

_MARKS: Final[dict[Level, str]] = {"error": "✗", "warning": "!"}

_MOST_FILES: Final = 1000
"""Maximal files in the table."""

_MOST_KNOWN: Final = 100
"""Maximal known findings that are listed."""

_BACKTICKS: Final = re.compile("`+")


def code(text: str, *, in_table: bool = False) -> str:
    """
    Return *text* as a code span, in which nothing is markup, a link or a mention.

    A row of a table is split at every vertical bar, even in a code span, unless it is escaped.
    """
    shown = plain(text) or " "
    fence = "`" * (1 + max((len(each) for each in _BACKTICKS.findall(shown)), default=0))
    room = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{room}{shown.replace('|', chr(92) + '|') if in_table else shown}{room}{fence}"


def markdown_text(result: RunResult, most: int | None = None) -> str:
    """Return a table of files and a list of findings, with at most *most* groups of them."""
    return "\n".join(_markdown_lines(result, most)) + "\n"


def _markdown_lines(result: RunResult, most: int | None) -> Iterator[str]:
    yield "# assay check"
    yield ""
    yield from _table(result.files)
    problems = [f"{file.name}: {line}" for file in result.files[:_MOST_FILES] for line in file.problems]
    problems += result.remarks
    yield from [*(f"- {code(each)}" for each in problems), *([""] if problems else [])]
    yield from _findings(result, most)
    known = [each for each in result.groups if each.is_known]
    if known:
        yield f"<details><summary>{counted(result.groups.known, 'finding')} ignored (in baseline)</summary>"
        yield ""
        for each in known[:_MOST_KNOWN]:
            yield from _group(result, each)
        yield from _rest(len(known) - _MOST_KNOWN)
        yield "</details>"
        yield ""
    for key, _ in result.stale:
        yield f"- no longer found, remove it from the baseline: {code(str(key))}"


def _table(files: list[FileEnd]) -> Iterator[str]:
    yield f"| file | messages | {' | '.join(WORDS)} | never answered | revision |"
    yield f"| --- | ---: | {' | '.join('---:' for _ in WORDS)} | ---: | --- |"
    for file in files[:_MOST_FILES]:
        numbers = (messages_of(file), *(file.counts[each] for each in (*WORDS, "missing")))
        cells = [code(file.name, in_table=True), *(f"{each:,}" for each in numbers), file.revision or ""]
        yield f"| {' | '.join(cells)} |"
    if len(files) > _MOST_FILES:
        yield ""
        yield f"and {counted(len(files) - _MOST_FILES, 'more file')}"
    yield ""


def _findings(result: RunResult, most: int | None) -> Iterator[str]:
    new = result.groups.new()
    if not new:
        yield "No new findings." if result.groups.known else "No findings."
        yield ""
        return
    yield "## Findings"
    yield ""
    for each in new[:most]:
        yield from _group(result, each)
    yield from _rest(len(new) - most if most is not None else 0)
    if result.groups.rest:
        yield result.groups.rest
        yield ""


def _group(result: RunResult, group: FindingGroup) -> Iterator[str]:
    finding, page = group.finding, result.options.page_of(group.key.rule)
    rule = code(finding.rule) if page is None else f"[{code(finding.rule)}]({page})"
    line = f"line {group.message.line}" if group.message.line else "the end"
    yield f"- {_MARKS[group.level]} {group.level} {rule} in {code(group.file)}, {line}: {code(title_of(group))}"
    entry = "" if finding.entry is None else f" ({code(str(finding.entry))})"
    place = f", at {code(finding.at)}" if finding.at else ""
    yield f"  - {code(sentence(finding))}{place}{entry}"
    yield f"  - {code(finding.source)}; to do: {code(finding.hint)}"
    if others := others_of(group):
        yield f"  - {others}"
    for each in group.places[1:]:
        yield f"  - line {each.line}: {code(each.at) if each.at else 'the message'}"
    yield ""


def _rest(number: int) -> Iterator[str]:
    if number > 0:
        yield f"and {counted(number, 'other kind')} of findings"
        yield ""


# ── GitHub ───────────────────────────────────────────────────────────────────────────────────────────────────────────

SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable with the path of the summary, which is Markdown."""

_MOST_IN_SUMMARY: Final = 100
"""Maximal groups of findings in the summary, which GitHub drops if it is over 1 MiB. A group has at most some 6 KB."""


def github_text(result: RunResult) -> str:
    """
    Return one annotation for each group of equal findings that the baseline does not have; and append a summary to the
    file that GitHub names. Raises `ReportFileError`.

    GitHub shows ten errors, ten warnings and ten notices of a step, so the worst come first.
    """
    lines = [
        *(
            _command("error", _located(each.name, each.error), **_place(each.name))
            for each in result.files
            if each.error is not None
        ),
        *(_command("error", each) for each in result.remarks),
        *map(_annotation, result.groups.new()),
        *(_command("notice", f"no longer found, remove it from the baseline: {key}") for key, _ in result.stale),
        *([_command("notice", result.groups.rest)] if result.groups.left_out else []),
    ]
    path = os.environ.get(SUMMARY)
    if path:
        try:
            with open(path, "a", encoding="utf-8", errors="replace") as file:
                file.write(markdown_text(result, _MOST_IN_SUMMARY))
        except OSError as error:
            raise ReportFileError(path, error) from None
    return "".join(f"{line}\n" for line in lines)


def _annotation(group: FindingGroup) -> str:
    lines = [sentence_of(group), plain(group.finding.hint), *further_places(group)]
    if others := others_of(group):
        lines.append(others)
    text = _located(group.file, "\n".join(lines))
    return _command(group.level, text, **_place(group.file, group.message.line), title=group.key.rule)


def _place(file: str, line: int = 0) -> dict[str, str]:
    """Return where an annotation is shown: nowhere for a recording outside of the repository."""
    return {"file": file, **({"line": str(line)} if line else {})} if is_inside(file) else {}


def _located(file: str, text: str) -> str:
    """Return *text* with the name of its file, if the place of the annotation does not have it."""
    return text if is_inside(file) else f"{text}\n{plain(file)}"


def _command(name: str, text: str, **properties: str) -> str:
    """Return a workflow command on one line. The runner decodes the escapes."""
    listed = ",".join(
        f"{key}={_escaped(plain(value)).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items()
    )
    return f"::{name}{f' {listed}' if listed else ''}::{_escaped(text)}"


def _escaped(text: str) -> str:
    # The runner decodes the escapes and prints the text, so that a log would act on control characters.
    return plain_lines(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

"""``assay replay``: judge the frames of a journal again, and compare the verdicts."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from assay.cli.guard_terms import add_drafts, extensions_of, use_drafts
from assay.cli.serve import add_preview, add_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.base.verdict import Party, Verdict
    from assay.core.conversation import Facts
    from assay.records.journal.replay import Replayed, ReplayJudge, ReplayOpening
    from assay.spec.extensions.official import ExtensionSet

_EPILOG = """\
The journal needs payloads: assay guard --set journal.payloads=true -- COMMAND. Redacted messages are judged,
but their verdicts are not compared. For a recording without verdicts use assay check.

Exit status: 0 all verdicts are the same, 1 a verdict differs, 2 the file could not be read or has nothing to replay.
"""

_RECORDING = re.compile(rb'\s*\{\s*"(?:dir|party|msg|event)":')
"""How the rows of a recording begin."""

_SAID = {
    "no payload": "without payloads",
    "redacted": "redacted",
    "by its headers": "refused for its headers",
    "by a lock": "compared with a lock",
    "not judged": "not judged",
    "broken": "not a record",
}
"""Why a line is not compared, for the report."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``replay``."""
    parser = subparsers.add_parser(
        "replay",
        help="judge the messages of a journal again, and compare the verdicts",
        description="Judge the messages of a journal again, in order, and compare the verdicts.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="a journal with payloads; the id of a run; a directory, for its newest run; - for standard input;"
        " default: as for assay journal show",
    )
    add_preview(parser)
    add_drafts(parser)
    add_settings(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replay one journal; return the exit status."""
    from assay.cli.journal_choice import Directories, chosen, why_not
    from assay.records.journal.reading import Pages, entries
    from assay.records.journal.replay import replay, survey

    directories = Directories(args, _say)
    limits = directories.settings.limits
    use_drafts(args, directories.settings)
    preview, extensions = directories.settings.guard.preview, extensions_of(directories.settings)
    counts: Counter[str] = Counter()
    try:
        name, is_run = chosen(args.file, directories)
        pages = Pages(name, whole=is_run)
    except OSError as error:
        _say(why_not(error))
        return 2
    if args.file is None:
        _say(f"replaying {name}")
    with pages:
        if _RECORDING.match(pages.peek()):
            _say(f"{name}: a recording, not a journal; use assay check")
            return 2
        pages.keep()
        # Two passes: the exceptions of a conversation must be known before its first line is judged.
        seen = survey(entries(pages))
        pages.rewind()
        judge = partial(_judge, preview=preview, extensions=extensions)
        for each in replay(entries(pages), seen, limits=limits, judge=judge):
            counts[each.outcome] += 1
            if each.outcome == "different":
                print("\n".join(_lines(each)))
    if not counts["same"] and not counts["different"]:
        hint = "; a guard or server writes them with --set journal.payloads=true" if counts["no payload"] else ""
        _say(f"{name}: nothing to replay{_why(counts)}{hint}")
        return 2
    print(_total(counts))
    return 1 if counts["different"] else 0


def _judge(opening: ReplayOpening, *, preview: bool, extensions: ExtensionSet) -> ReplayJudge:
    """Return the judge of a conversation; *preview* judges drafts even if the guard did not."""
    from assay.records.journal.replay import plain_judge

    if opening.server == "assets":
        return judge_of_assets(opening)
    return plain_judge(opening._replace(preview=preview or opening.preview), extensions)


def judge_of_assets(opening: ReplayOpening) -> ReplayJudge:
    """Return the judge for a conversation with the asset server."""
    return _Assets(opening)


class _Assets:
    """A conversation with the asset server, whose tools are known from the start."""

    def __init__(self, opening: ReplayOpening) -> None:
        from assay.assets.asset_server import AssetServer
        from assay.assets.asset_sources import Catalogue
        from assay.assets.mcp_methods import Methods

        self._server = AssetServer(Methods(Catalogue()), limits=opening.limits, revision=opening.revision)
        self._asked: dict[str, Verdict] = {}

    def hear(self, party: Party, frame: bytes, facts: Facts) -> Verdict | None:
        """Return the verdict on *frame*; None for a response without a request."""
        from assay.ladder import syntax

        if party == "client":
            turn = self._server.hear(frame, facts)
            self._asked |= {_key(each.value): each for each in turn.asked}
            return turn.verdict
        asked = self._asked.pop(_key(syntax.read(frame)), None)
        return None if asked is None else self._server.settle(asked, (frame, None))

    def give_up(self, _: Party, __: str | int, ___: str = "", ____: str = "") -> Verdict | None:
        """Do nothing: the asset server always answers."""
        return None

    def renew(self) -> None:
        """Do nothing: the asset server is never restarted."""


def _key(message: Any) -> str:
    ident = message.get("id") if isinstance(message, dict) else None
    return f"{type(ident).__name__} {ident}"


def _lines(replayed: Replayed) -> Iterator[str]:
    """Return the lines that report a difference."""
    from assay.base.printable import plain
    from assay.cli.terminal.journal_table import title
    from assay.records.journal.reading import violations
    from assay.records.journal.record import status_of

    record, verdict = replayed.entry.record, replayed.verdict
    if record is None or verdict is None:
        return
    yield f"line {replayed.entry.number}: {record['metadata']['party']} {plain(title(record))}"
    yield f"    recorded: {_words(record['status'], violations(record))}"
    again = [(each.rule, each.at) for each in verdict.violations]
    yield f"    replayed: {_words(status_of(verdict, failed=record['status'] == 'failed'), again)}"


def _words(status: str, found: list[tuple[str, str]]) -> str:
    from assay.base.printable import plain

    return plain(", ".join([status, *(f"{rule} at {at or 'the message'}" for rule, at in found)]))


def _total(counts: Counter[str]) -> str:
    total = counts.total()
    different = f", {counts['different']} different" if counts["different"] else ""
    return f"{total:,} record{'' if total == 1 else 's'}: {counts['same']:,} the same{different}{_why(counts)}"


def _why(counts: Counter[str]) -> str:
    """Return how many records were not compared, with the reasons."""
    reasons = [f"{counts[outcome]:,} {words}" for outcome, words in _SAID.items() if counts[outcome]]
    return f"; not replayable: {', '.join(reasons)}" if reasons else ""


def _say(line: str) -> None:
    from assay.base.printable import plain

    print(f"assay replay: {plain(line)}", file=sys.stderr)

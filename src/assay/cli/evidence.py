"""Evidence that `assay check` judges: journals, and recordings of the guard and of other programs."""

# ruff: noqa: PLC0415  each kind of file imports only what it needs
from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from assay.base.verdict import Verdict
    from assay.cli.evidence_files import Piece
    from assay.contracts.tool_contracts import Tools
    from assay.core.conversation import Conversation
    from assay.core.policy import Policy
    from assay.records.importers.importer import Importer, ImportOptions
    from assay.records.journal import replay
    from assay.records.journal.reading import JournalEntry, Pages
    from assay.records.recording.judging import Judging, RecordingOpening
    from assay.records.transcript import Judged
    from assay.settings import Settings
    from assay.spec.extensions.official import ExtensionSet


_JOURNAL = re.compile(rb'\s*\{\s*"ts":')
"""How every record of a journal begins."""

_NO_PAYLOAD = "no payload in the journal"
_TOO_LARGE = "too large to record"
_NO_REQUEST = "its request is not in the journal, or the guard could not judge it"

_AS_RECORDED = "with the guard's own verdict"
"""How a message is counted whose payload is incomplete: the verdict of the guard is used."""

_UNJUDGED = {
    "no payload": _NO_PAYLOAD,
    "redacted": "secrets were redacted",
    "by its headers": "refused because of HTTP headers",
    "by a lock": "the lock is not in the journal",
    "not judged": "not judged by the guard either",
    "broken": "not a journal record",
}
"""Why a line of a journal is not judged. Each text follows a count, singular or plural."""


class Evidence(Protocol):
    """A file whose messages can be judged."""

    @property
    def revision(self) -> str | None:
        """The revision in use, if it is known by now."""

    def judged(self) -> Iterator[Judged]:
        """Yield every verdict. Raises `OSError` and `TranscriptError`."""

    @property
    def is_partial(self) -> bool:
        """Whether messages are missing or were not judged. Valid after the last verdict."""

    def remarks(self) -> Iterator[str]:
        """Return notes about the file beside its verdicts. Valid after the last verdict."""

    def remedy(self) -> str:
        """Return the hint for a file with nothing to judge."""

    def cannot(self) -> tuple[str, ...]:
        """Return what cannot be found in the file because of how it was recorded. Valid after the last verdict."""


@contextmanager
def opened(
    args: argparse.Namespace, piece: Piece, settings: Settings, policy: Policy | None, extensions: ExtensionSet
) -> Iterator[Evidence]:
    """Open a file, or the run with this id. Raises `OSError`."""
    from assay.records.journal.reading import LONGEST_LINE, Pages

    path, is_run = piece if piece.is_run else _chosen(args, piece.name)
    # A byte of a message may take six in a recording, as a NUL does, and a row has more than the message.
    longest = max(LONGEST_LINE, 8 * settings.guard_limits.frame_bytes)
    with Pages(path, whole=is_run, longest=longest) as pages:
        if is_journal(args, pages.peek()):
            yield _Journal(args, pages, settings, policy, extensions)
        else:
            yield _Recording(args, RecordedLines(pages, path, longest), settings, policy, extensions)


def is_journal(args: argparse.Namespace, head: bytes) -> bool:
    """Return whether a file is a journal. Records of other programs may begin with a time, too."""
    from assay.records.importers.importer import loosely

    if args.fields or args.source not in {None, "assay"} or _JOURNAL.match(head) is None:
        return False
    first = loosely(head.partition(b"\n")[0].strip())
    return not isinstance(first, dict) or "metadata" in first


def _chosen(args: argparse.Namespace, name: str) -> tuple[str, bool]:
    """Return the path of a file, and whether it stands for all files of its run; raises `OSError`."""
    if name == "-" or os.path.isfile(name):
        return name, False
    from assay.cli.journal_choice import Directories, chosen

    # The settings are already loaded and their warnings printed.
    return chosen(name, Directories(args, lambda _: None))


class RecordedLines:
    """The lines of a recording. Its format is found without reading the file twice."""

    def __init__(self, pages: Pages, name: str, longest: int) -> None:
        """*name* is the path of the file, *longest* the maximal bytes of a line."""
        self._pages, self._name, self._longest = pages, name, longest
        self._lines = iter(pages)
        self._held: list[bytes] = []

    @property
    def too_long(self) -> str:
        """A note about lines that are too long; "" without such lines."""
        count = self._pages.too_long
        lines = "1 line is" if count == 1 else f"{count:,} lines are"
        return f"{lines} longer than {self._longest:,} bytes, and not read" if count else ""

    def recognised(self) -> Importer:
        """Return the format. Raises `TranscriptError` if it is not known."""
        from assay.records.importers.importer_table import NATIVE, looked_at, recognised, unknown
        from assay.records.transcript import TranscriptError

        head = b""
        for head in looked_at(self._hold()):
            found = recognised(head, self._name)
            if found is not None:
                return found
        if not head.strip():
            return NATIVE
        raise TranscriptError(self.too_long) if self.too_long else unknown(head, self._name)

    def _hold(self) -> Iterator[bytes]:
        for line in self._lines:
            self._held.append(line)
            yield line

    def __iter__(self) -> Iterator[bytes]:
        """Yield every line."""
        held, self._held = self._held, []
        yield from held
        yield from self._lines

    def readable(self) -> Iterator[bytes]:
        """Yield every line, a blank one in place of one that is too long."""
        for line in self:
            yield b"\n" if self._pages.too_long and line.startswith(b"(a line of ") else line


class _Recording:
    """The rows of a recording, of the guard or of another program."""

    def __init__(
        self,
        args: argparse.Namespace,
        lines: RecordedLines,
        settings: Settings,
        policy: Policy | None,
        extensions: ExtensionSet,
    ) -> None:
        self._args, self._lines, self._policy = args, lines, policy
        self._limits, self._preview = settings.guard_limits, settings.guard.preview
        self._extensions = extensions
        self._judging: Judging | None = None
        self._importer: Importer | None = None

    @property
    def revision(self) -> str | None:
        return self._judging.revision if self._judging is not None else None

    @property
    def is_partial(self) -> bool:
        judging = self._judging
        return judging is not None and bool(judging.is_incomplete or judging.unjudged or self._skipped())

    def judged(self) -> Iterator[Judged]:
        from assay.records.importers.importer_table import NATIVE
        from assay.records.recording.judging import Judging

        importer = self._importer = self._chosen() or self._lines.recognised()
        self._judging = Judging(self._begin, self._policy, importer.blind)
        lines = self._lines if importer is NATIVE else self._lines.readable()
        yield from self._judging.judge_rows(importer.read(lines, self._options()))

    def _chosen(self) -> Importer | None:
        """Return the format that the options name."""
        from assay.records.importers.importer_table import BY_NAME, MAPPED

        if self._args.source is not None:
            return BY_NAME[self._args.source]
        return MAPPED if self._args.fields else None

    def _options(self) -> ImportOptions:
        from assay.base.verdict import Party
        from assay.records.importers.importer import ImportOptions

        party = Party(self._args.party) if self._args.party is not None else None
        return ImportOptions(party, self._args.fields or {})

    def remarks(self) -> Iterator[str]:
        cannot = self.cannot()
        if cannot and self._importer is not None:
            yield f"read as {self._importer.format.title}; not observed: {'; '.join(cannot)}"
        if self._judging is None:
            return
        if self._skipped():
            yield self._skipped()
        yield from self._judging.notes
        yield from _counted(self._judging.unjudged)
        yield from _counted(self._judging.recorded, _AS_RECORDED)

    def cannot(self) -> tuple[str, ...]:
        from assay.records.importers.plain_lines import ONE_SIDED

        cannot = self._importer.format.cannot if self._importer is not None else ()
        return (*cannot, ONE_SIDED) if cannot and self._args.party is not None else cannot

    def _skipped(self) -> str:
        from assay.records.importers.importer_table import NATIVE

        return "" if self._importer is NATIVE else self._lines.too_long

    def remedy(self) -> str:
        return "; assay guard --record FILE writes a recording"

    def _begin(self, opening: RecordingOpening) -> Conversation:
        from assay.core.conversation import Conversation

        return Conversation(
            mode=opening.mode,
            revision=self._args.revision or opening.revision,
            errata=not self._args.literal,
            limits=opening.limited(self._limits),
            policy=self._policy or opening.effect,
            lines=opening.lines,
            tools=opening.tools,
            preview=self._preview or opening.preview,
            extensions=self._extensions,
        )


class _Journal:
    """The records of a journal, judged in the order of `assay replay`."""

    def __init__(
        self,
        args: argparse.Namespace,
        pages: Pages,
        settings: Settings,
        policy: Policy | None,
        extensions: ExtensionSet,
    ) -> None:
        self._args, self._pages, self._policy = args, pages, policy
        self._limits, self._preview = settings.guard_limits, settings.guard.preview
        self._extensions = extensions
        self._unjudged: Counter[str] = Counter()
        self._recorded: Counter[str] = Counter()
        self._tools: dict[str, Tools] = {}
        self.revision: str | None = None

    @property
    def is_partial(self) -> bool:
        return bool(self._unjudged)

    def judged(self) -> Iterator[Judged]:
        from assay.core.lifecycle import preferred, spoken
        from assay.records.importers.importer import seconds
        from assay.records.journal.reading import entries
        from assay.records.journal.replay import replay, survey
        from assay.records.transcript import Judged

        self._pages.keep()
        # Two passes: the exceptions of a conversation must be known before its first line is judged.
        seen = survey(entries(self._pages))
        self._pages.rewind()
        for each in replay(entries(self._pages), seen, limits=self._limits, judge=self._judge):
            verdict, lacks = each.verdict, ""
            if verdict is None or each.outcome == "by a lock":
                lacks = _lack(each)
                verdict = self._as_recorded(each)
            if verdict is None:
                self._unjudged[lacks] += 1
                continue
            if lacks:
                self._recorded[lacks] += 1
            self.revision = preferred(self.revision, spoken(verdict))
            time = seconds(each.entry.record["ts"]) if each.entry.record is not None else None
            yield Judged(each.entry.number, verdict, 0, _server(each.entry), lacks, time)

    def _as_recorded(self, replayed: replay.Replayed) -> Verdict | None:
        """Return the guard's recorded verdict on a message that cannot be judged again; otherwise None."""
        from assay.records.journal.recorded_verdict import recorded_verdict

        record = replayed.entry.record
        if record is None or (replayed.outcome == "no payload" and not record["metadata"].get("omitted")):
            # A journal without payloads has no messages to judge, only the findings of an earlier run.
            return None
        return recorded_verdict(record, self._policy)

    def remarks(self) -> Iterator[str]:
        if self._pages.too_long:
            yield "not a journal record: a line is too long; raise limits.frame_bytes"
        yield from _counted(self._unjudged)
        yield from _counted(self._recorded, _AS_RECORDED)

    def remedy(self) -> str:
        if not self._unjudged[_NO_PAYLOAD]:
            return ""
        return "; the journal has no payloads: run the guard with --set journal.payloads=true, or with --record FILE"

    def cannot(self) -> tuple[str, ...]:
        return ()

    def _judge(self, opening: replay.ReplayOpening) -> replay.ReplayJudge:
        from assay.cli.replay import judge_of_assets
        from assay.core.conversation import Conversation
        from assay.spec.revisions import handshake

        if opening.server == "assets":
            return judge_of_assets(opening)
        alone = opening.revision is not None and not handshake(opening.revision)
        made = Conversation(
            mode=opening.mode,
            revision=self._args.revision or opening.revision,
            errata=not self._args.literal,
            limits=opening.limits,
            policy=self._policy or opening.effect,
            # Without sessions each request is a conversation of its own, and all share the server's tools.
            tools=self._tools.get(opening.route) if alone else None,
            preview=self._preview or opening.preview,
            extensions=self._extensions,
        )
        if alone:
            self._tools.setdefault(opening.route, made.tools)
        return made


def _server(entry: JournalEntry) -> str:
    """Return the server name of a record; "" if it has none."""
    name = entry.record["metadata"].get("server") if entry.record is not None else None
    return name if isinstance(name, str) else ""


def _lack(replayed: replay.Replayed) -> str:
    """Return why a line of a journal is not judged."""
    metadata = replayed.entry.record["metadata"] if replayed.entry.record is not None else {}
    if replayed.outcome == "no payload" and metadata.get("omitted"):
        return _TOO_LARGE
    if replayed.outcome == "not judged" and metadata.get("kind") in {"result", "error"}:
        return _NO_REQUEST
    return _UNJUDGED[replayed.outcome]


def _counted(messages: Counter[str], what: str = "not judged") -> Iterator[str]:
    for why, count in messages.items():
        yield f"{count:,} message{'' if count == 1 else 's'} {what}: {why}"

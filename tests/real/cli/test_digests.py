"""A report that needs something of every message has a digest: other processes fill it, and the main one merges it."""

from collections import Counter
from pathlib import Path

import pytest

from assay.cli.checking import work
from assay.cli.checking.check_terms import MessageDigest
from assay.cli.main import main
from assay.cli.reports import ndjson_report
from assay.cli.reports.check_findings import CheckedMessage
from assay.cli.reports.check_report import RunEnd
from kit.archives import archive


class MethodCounts:
    """The number of messages by file and method."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str | None]] = Counter()
        self.lines: list[int] = []

    def add(self, message: CheckedMessage) -> None:
        """Count one message."""
        self.counts[message.file, message.method] += 1
        self.lines.append(message.judged.line)

    def merge(self, other: "MethodCounts") -> None:
        """Add the counts of *other*."""
        self.counts += other.counts
        self.lines += other.lines


class CountingReport(ndjson_report.NdjsonReport):
    """A report with a digest."""

    digest = MethodCounts
    used: "list[MethodCounts]" = []  # noqa: RUF012 - what the tests look at

    def use(self, digest: MessageDigest) -> None:
        """Keep the digest."""
        assert isinstance(digest, MethodCounts)
        self.used.append(digest)

    def close(self, ended: RunEnd) -> None:
        """Check that the digest came before."""
        super().close(ended)
        assert self.used


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> list[MethodCounts]:
    """Put the report in place of another one, and return the digests that it gets."""
    monkeypatch.setattr(ndjson_report, "REPORT", CountingReport)
    monkeypatch.setattr(CountingReport, "used", [])
    return CountingReport.used


def test_a_digest_has_every_message(
    tmp_path: Path, counting: list[MethodCounts], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(archive(tmp_path / f"{seed}.jsonl", seed, conversations=8)) for seed in (1, 2)]
    monkeypatch.setattr(work, "SMALL_INPUT", 0)
    shown = []
    for jobs in ("1", "2"):
        main(["check", "--format", "ndjson", "--jobs", jobs, *files])
        shown.append(capsys.readouterr())
    one, other = counting
    assert shown[0] == shown[1]
    assert one.counts == other.counts
    assert sorted(one.lines) == sorted(other.lines)
    # Messages without findings are in the digest, and not in the report.
    main(["check", "--format", "ndjson", "--messages", *files])
    assert one.counts.total() == len(capsys.readouterr().out.splitlines()) > len(shown[0].out.splitlines())
    assert one.counts["", "tools/call"] == 0
    assert sum(count for (_, method), count in one.counts.items() if method == "tools/call") > 20

"""Findings, conversations, response times, sizes and tools as one HTML page."""

import os
from datetime import UTC, datetime

from assay import __version__
from assay.base.printable import plain
from assay.cli.reports.check_findings import CheckedMessage
from assay.cli.reports.check_report import CheckReport, FileEnd, ReportOptions, RunEnd
from assay.cli.reports.page.page_data import page_data
from assay.cli.reports.page.page_digest import PageDigest
from assay.cli.reports.page.page_html import html_page
from assay.cli.reports.report_outputs import ReportOutput

EPOCH = "SOURCE_DATE_EPOCH"
"""The variable with the time to write into the page, in seconds since 1970: for builds that can be repeated."""


class HtmlReport(CheckReport):
    """A page that is written at the end, from a digest of all messages."""

    def __init__(self, options: ReportOptions, output: ReportOutput) -> None:
        super().__init__(options, output)
        self.digest = PageDigest(options.masking.redactor)
        self._sentence = ""

    @property
    def summary(self) -> str:
        """The verdict, as it is at the top of the page."""
        return self._sentence

    def begin(self, name: str) -> None:
        """Do nothing: a file is listed when it ends."""

    def add(self, message: CheckedMessage) -> None:
        """Add one message to the digest."""
        self.digest.add(message)

    def end(self, ended: FileEnd) -> None:
        """Add the file to the digest."""
        self.digest.end(ended)

    def close(self, ended: RunEnd) -> None:
        """Write the page."""
        data = page_data(self.digest, self.options, ended, _made())
        self._sentence = data["verdict"]["sentence"]
        names = [each.name for each in self.digest.files]
        title = f"Assay: {', '.join(names[:2])}{f' and {len(names) - 2:,} more' if len(names) > 2 else ''}"
        generator = f"Assay {__version__}"
        for part in html_page("report.js", plain(title), data, generator=generator, fallback=self._sentence):
            self.write(part)


def _made() -> str | None:
    """Return the time of making; None if it is to be left out."""
    given = os.environ.get(EPOCH, "").strip()
    try:
        moment = datetime.fromtimestamp(int(given), UTC) if given else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.strftime("%Y-%m-%d %H:%M UTC")


REPORT = HtmlReport

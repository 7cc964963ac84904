"""The HTML report: findings, conversations, response times, sizes and tools of a run as one page."""

import os
from datetime import UTC, datetime
from typing import Final

from assay import __version__
from assay.base.printable import plain
from assay.cli.reports.page.page_data import page_data, page_verdict
from assay.cli.reports.page.page_digest import PageDigest
from assay.cli.reports.page.page_groups import PageGroupKey
from assay.cli.reports.page.page_html import html_page
from assay.cli.reports.result import RunResult

EPOCH: Final = "SOURCE_DATE_EPOCH"
"""The variable with the time to write into the page, in seconds since 1970: for builds that can be repeated."""


def html_text(result: RunResult) -> str:
    """Return the page of a run with a `PageDigest`."""
    data = page_data(result, _digest(result), _made())
    names = [each.name for each in result.files]
    title = f"Assay: {', '.join(names[:2])}{f' and {len(names) - 2:,} more' if len(names) > 2 else ''}"
    sentence = data["verdict"]["sentence"]
    return "".join(html_page("report.js", plain(title), data, generator=f"Assay {__version__}", fallback=sentence))


def verdict_sentence(result: RunResult) -> str:
    """Return the verdict on a run, as it is at the top of the page."""
    sentence: str = page_verdict(result, _digest(result))["sentence"]
    return sentence


def _digest(result: RunResult) -> PageDigest:
    """Return the digest of all messages, with the findings that the baseline has."""
    digest = next((each for each in result.digests if isinstance(each, PageDigest)), PageDigest())
    digest.known.clear()
    for group in result.groups:
        if group.is_known:
            digest.known[PageGroupKey(group.key, group.level)] += group.count
    return digest


def _made() -> str | None:
    """Return the time of making; None if it is to be left out."""
    given = os.environ.get(EPOCH, "").strip()
    try:
        moment = datetime.fromtimestamp(int(given), UTC) if given else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.strftime("%Y-%m-%d %H:%M UTC")

"""Findings about what cannot be judged."""

from typing import Final

from assay.rules.report import Report

NOT_JUDGED: Final = "contract/not-judged"
"""The rule of a call that is not judged by the schemas of its tool."""


def forgotten(what: str, at: str, report: Report) -> None:
    """Report a message that cannot be judged, because *what* it depends on is not remembered."""
    report.add(
        "contract/unjudged",
        at,
        expected=f"{what} that is remembered",
        found="one that is unknown or forgotten",
        hint="It was forwarded without a check. The guard remembers the most recent ones only.",
    )

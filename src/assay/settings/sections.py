"""Every section that there is, and those that have no module of their own. A new one is a line in `Settings`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from assay.base.limits import Limits
from assay.base.tiers import TIERS
from assay.settings.auth_section import Auth
from assay.settings.field_rules import table, word
from assay.settings.guard_section import GuardSettings
from assay.settings.http_section import Http

AUTO: Final = "auto"
"""In place of a directory: the usual one."""

ASSETS_JOURNAL: Final = "runs/mcp_server/envelope_validation"
"""Where the asset server has its journal, below the working directory (specs/000)."""


def _tools() -> Sequence[str]:
    from assay.contracts.own_tools import TOOLS  # noqa: PLC0415 - not needed where nothing is configured

    return tuple(TOOLS)


@dataclass(frozen=True, slots=True)
class TierSettings:
    """Who may use what."""

    tier: str = word("community", lambda: TIERS)
    """The tier of callers of whom nothing else is known."""

    features: Mapping[str, str] = table(keys=_tools, words=lambda: TIERS)
    """The least tier that has a feature; one that is not listed is in all of them."""


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """Where verdicts are written down, and what of a message is."""

    directory: str = AUTO
    """
    The directory with a file for each run; ``auto`` for `ASSETS_JOURNAL`, or for a guard the folder of its server,
    below the state directory; ``off`` for no journal.
    """

    keep: int = 50
    """Runs that are left when a new one begins; those that are still written are never removed."""

    bytes: int = 64 << 20
    """Bytes of one file, after which a run goes on in a further one."""

    total_bytes: int = 1 << 30
    """Bytes of all files in the directory; the oldest that nobody writes to are removed."""

    payloads: bool = False
    """Whether the frames are written too, without what looks like a secret."""

    redact: tuple[str, ...] = ()
    """Regular expressions of what else is a secret: the name of a member, or something in a string."""

    def __post_init__(self) -> None:
        if not self.directory:
            raise ValueError("directory is empty; off is for no journal")
        if self.keep < 1:
            raise ValueError(f"keep must be at least 1, found {self.keep}")
        if self.bytes < 4096:
            raise ValueError(f"bytes must be at least 4096, found {self.bytes}")
        if self.total_bytes < self.bytes:
            raise ValueError(f"total_bytes must be at least bytes, which is {self.bytes}; found {self.total_bytes}")
        if self.redact:
            from assay.core.redaction import Redactor  # noqa: PLC0415 - most have no patterns of their own

            Redactor(self.redact)


# Not compiled before they are needed: most have no collector, and every command that reads settings is started anew.
_COLLECTOR: Final = r"(?i:https?://[^\s/?#@]+(/[^\s?#]*)?)"
_HEADER_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_VALUE: Final = r"([\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?)?"


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Where spans and durations of requests go. What is not set here is as the ``OTEL_*`` variables say."""

    endpoint: str = ""
    """The collector, such as ``http://localhost:4318``; ``/v1/traces`` and ``/v1/metrics`` are put behind it."""

    service_name: str = ""
    """What this server is called there; ``assay`` if nothing else says."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request to the collector, such as a key that it wants."""

    def __post_init__(self) -> None:
        # Neither says what was found: it may be a secret.
        if self.endpoint and not re.fullmatch(_COLLECTOR, self.endpoint):
            raise ValueError("endpoint must be an http or https URL without user name, password, query and fragment")
        for name, value in self.headers.items():
            if not re.fullmatch(_HEADER_NAME, name) or not re.fullmatch(_HEADER_VALUE, value):
                raise ValueError("a header needs a name without spaces and a value of printable ASCII")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every section. A new one is a line here."""

    limits: Limits = field(default_factory=Limits)
    tiers: TierSettings = field(default_factory=TierSettings)
    journal: JournalSettings = field(default_factory=JournalSettings)
    http: Http = field(default_factory=Http)
    guard: GuardSettings = field(default_factory=GuardSettings)
    auth: Auth | None = None
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)

    @property
    def guard_limits(self) -> Limits:
        """The limits of a guard: ``guard.frame_bytes`` wins over ``limits.frame_bytes``."""
        longest = self.guard.frame_bytes
        return self.limits if longest is None else replace(self.limits, frame_bytes=longest)

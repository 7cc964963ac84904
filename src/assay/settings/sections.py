"""All sections, including those without a separate module. A new section is a line in `Settings`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from assay.model.limits import ASSET_TOOLS, TIERS, Limits
from assay.settings.auth_section import Auth
from assay.settings.fields import changed, setting
from assay.settings.guard_section import GuardSettings
from assay.settings.http_section import Http, UpstreamSettings

AUTO: Final = "auto"
"""The value in place of a directory that stands for the default one."""

OFF: Final = "off"
"""The value in place of a directory that switches the journal off."""

ASSETS_JOURNAL: Final = "runs/mcp_server/envelope_validation"
"""The journal directory of the asset server, below the working directory (specs/000)."""


@dataclass(frozen=True, slots=True)
class TierSettings:
    """The tiers of clients and features."""

    tier: str = setting("community", words=TIERS)
    """The tier of clients without a tier of their own."""

    features: Mapping[str, str] = setting({}, names=ASSET_TOOLS, words=TIERS)
    """The lowest tier that has this tool; by default all tiers have it."""


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """The journal of verdicts."""

    directory: str = AUTO
    """
    Directory with a file per run. ``auto`` is the server's folder in the state directory, or
    ``runs/mcp_server/envelope_validation`` for ``assay serve``; ``off`` turns the journal off.
    """

    keep: int = 50
    """Number of runs to keep; runs in progress are never removed."""

    bytes: int = 64 << 20
    """Maximum bytes of one file, at least 4,096; a longer run continues in another file."""

    total_bytes: int = 1 << 30
    """Maximum bytes of all files in the directory, at least ``journal.bytes``; the oldest finished runs are removed."""

    payloads: bool = False
    """Record the messages themselves, with secrets redacted."""

    redact: tuple[str, ...] = ()
    """Regular expressions for more secrets: the name of a member, or text in a string."""

    def __post_init__(self) -> None:
        if not self.directory:
            raise ValueError("directory is empty; use off for no journal")
        if self.keep < 1:
            raise ValueError(f"keep must be at least 1, found {self.keep}")
        if self.bytes < 4096:
            raise ValueError(f"bytes must be at least 4096, found {self.bytes}")
        if self.total_bytes < self.bytes:
            raise ValueError(f"total_bytes must be at least bytes, which is {self.bytes}; found {self.total_bytes}")
        if self.redact:
            # 15 ms before a guarded server starts; most guards have no patterns of their own.
            from assay.judge.redaction import Redactor  # noqa: PLC0415

            Redactor(self.redact)


# Compiled on first use: most users have no collector, and compiling would slow every command.
_COLLECTOR: Final = r"(?i:https?://[^\s/?#@]+(/[^\s?#]*)?)"
_HEADER_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_VALUE: Final = r"([\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?)?"


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Export of traces and metrics. Values that are not set here come from the ``OTEL_*`` variables."""

    endpoint: str = ""
    """The collector, such as ``http://localhost:4318``; ``/v1/traces`` and ``/v1/metrics`` are appended."""

    service_name: str = ""
    """The name of this service; by default ``assay``."""

    headers: Mapping[str, str] = setting({}, secret=True)
    """A header for every request to the collector, such as an API key."""

    def __post_init__(self) -> None:
        # Neither message contains the value: it may be a secret.
        if self.endpoint and not re.fullmatch(_COLLECTOR, self.endpoint):
            raise ValueError("endpoint must be an http or https URL without user name, password, query and fragment")
        for name, value in self.headers.items():
            if not re.fullmatch(_HEADER_NAME, name) or not re.fullmatch(_HEADER_VALUE, value):
                raise ValueError("a header needs a name without spaces and a value of printable ASCII")


@dataclass(frozen=True, slots=True)
class Settings:
    """All sections. A new one is a line here."""

    limits: Limits = field(default_factory=Limits)
    tiers: TierSettings = field(default_factory=TierSettings)
    journal: JournalSettings = field(default_factory=JournalSettings)
    http: Http = field(default_factory=Http)
    upstream: UpstreamSettings = field(default_factory=UpstreamSettings)
    guard: GuardSettings = field(default_factory=GuardSettings)
    auth: Auth | None = field(default=None, metadata={"weaker": changed})
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)

    @property
    def guard_limits(self) -> Limits:
        """Return the limits of a guard: ``guard.frame_bytes`` wins over ``limits.frame_bytes``."""
        longest = self.guard.frame_bytes
        return self.limits if longest is None else replace(self.limits, frame_bytes=longest)

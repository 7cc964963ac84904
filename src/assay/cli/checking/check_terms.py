"""How `assay check` judges messages. It can be pickled, for processes on this and on other machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from assay.cli.reports.check_findings import CheckedMessage
    from assay.core.policy import Policy
    from assay.settings import Settings


class MessageDigest(Protocol):
    """What a report keeps of all messages, with or without findings. It can be pickled."""

    def add(self, message: CheckedMessage) -> None:
        """Add one message. What the baseline has is not known yet."""

    def merge(self, other: Any) -> None:
        """Add everything that *other*, a digest of the same kind, has of later messages or other conversations."""


DigestFactory = Callable[[], MessageDigest]
"""Returns a new, empty digest. It can be pickled: a class, or a function of a module."""


@dataclass(frozen=True, slots=True)
class CheckTerms:
    """The options and settings that decide about verdicts and findings."""

    settings: Settings
    policy: Policy | None = None
    """The policy that replaces the recorded actions, if any."""
    revision: str | None = None
    """The revision of a recording that begins after the handshake, if any."""
    is_literal: bool = False
    """Whether the official schema is used without corrections."""
    source: str | None = None
    """The format of the files; None if it is recognized."""
    fields: Mapping[str, str] | None = None
    """The members of lines in a format of the user."""
    party: str | None = None
    """The sender of all messages in files with one side."""
    is_compared: bool = False
    """Whether verdicts are compared with those of the journal."""
    with_messages: bool = False
    """Whether messages without findings are listed, too."""
    digests: tuple[DigestFactory, ...] = ()
    """The digests that reports ask for."""
    evidence: tuple[tuple[str, bool], ...] = ()
    """The path of each file of the run, and whether it stands for all files of a journal."""

    @property
    def every(self) -> bool:
        """Whether messages without findings are needed one by one."""
        return self.with_messages or bool(self.digests)

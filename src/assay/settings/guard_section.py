"""The settings of the guard, with checks of their values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from assay.guard.backoff import POLICIES
from assay.settings.fields import DAY, by_effect, setting, unless

MODES: Final = ("audit", "enforce")


@dataclass(frozen=True, slots=True)
class Ruling:
    """The action for one rule, or for all rules of a pattern. A plain string is the action alone."""

    SHORT: ClassVar[str] = "action"

    action: str | None = setting(None, weaker=by_effect)
    """``pass``, ``refuse``, ``quarantine`` or ``drop``; by default the action of the rule."""

    repair: bool | None = setting(None, weaker=by_effect)
    """
    Repair unambiguous mistakes, under ``enforce``. By default ``guard.repair`` decides for arguments, and results are
    not repaired.
    """


@dataclass(frozen=True, slots=True)
class RuleException:
    """Another action for one rule, with a reason and an end date."""

    rule: str = ""
    """Required. The rule, or a pattern of rules."""

    tool: str | None = None
    """Only messages about this tool; by default all messages."""

    action: str = "pass"
    """``pass``, ``refuse``, ``quarantine`` or ``drop``."""

    reason: str = ""
    """Required. The journal shows the reason with every message that the exception lets pass."""

    until: str | None = setting(None, kind=DAY)
    """Required. The last day of the exception, in UTC."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """Settings of a guard."""

    mode: str = setting("audit", words=MODES, weaker=unless("enforce"))
    """``audit`` forwards everything and reports; ``enforce`` blocks invalid messages."""

    timeout: float = 600.0
    """
    Seconds to wait for a response, under ``enforce``; progress notifications restart the wait, 0 means no limit.
    ``server/discover`` has at most 10 seconds.
    """

    frame_bytes: int | None = None
    """Maximum bytes of one message in either direction; by default ``limits.frame_bytes``."""

    restart: str = setting("never", words=POLICIES)
    """
    When to restart a server that exits, under ``enforce``: ``never``, ``on-failure`` or ``always``. The server loses
    its state.
    """

    restarts: int = 5
    """Restarts within a minute after which the guard gives up."""

    flights: str = "auto"
    """
    Directory for the last messages of broken sessions. ``auto`` is ``flights`` beside the journal, or in the server's
    folder if the journal is off; ``off`` writes none.
    """

    record_bytes: int = 256 << 20
    """Maximum bytes of a recording, which then stops."""

    record_secrets: bool = False
    """
    Keep secrets in recordings. By default they are masked, and ``assay check`` cannot judge a message with masked
    secrets again.
    """

    children: int = 64
    """Maximum child processes for HTTP sessions; one more ends the least recently used idle session."""

    children_each: int = 16
    """Maximum child processes of one principal, with ``[auth]``; one more ends its least recently used idle session."""

    environment: tuple[str, ...] = ()
    """
    Variables of the guard that all servers of a host get, in addition to ``PATH``, ``HOME`` and the like; ``MY_*`` is a
    prefix. Others are not passed on: they may be the tokens of other servers.
    """

    stderr_in_errors: bool = False
    """
    Put the last stderr lines of a crashed child, redacted, into errors over HTTP. They may contain secrets. Over STDIO
    the client always gets them.
    """

    lock: str = "auto"
    """
    The lock file. ``auto`` is `assay.lock` in the working directory if it has this server; ``off`` applies no lock.
    """

    strict: bool = setting(False, weaker=unless(True))
    """
    Also block defects that receivers may tolerate, and tools that the guard can judge only in part, under ``enforce``.
    """

    repair: bool | None = setting(None, weaker=by_effect)
    """Repair unambiguous mistakes in arguments, under ``enforce``. By default true, unless ``strict`` is set."""

    fail_open: bool = False
    """Forward messages that the guard cannot judge, under ``enforce``, and only report them."""

    policy: Mapping[str, Ruling] = setting({})
    """The action for this rule or pattern: ``pass``, ``refuse``, ``quarantine`` or ``drop``."""

    exceptions: tuple[RuleException, ...] = setting((), weaker=by_effect)
    """Temporary exceptions from the policy."""

    @property
    def repairs(self) -> bool:
        """Whether mistakes in arguments are repaired, unless the policy of a rule differs."""
        return not self.strict if self.repair is None else self.repair

    def __post_init__(self) -> None:
        if not 1 <= self.restarts <= 1000:
            raise ValueError("restarts must be 1 to 1000")
        longest = 1 if self.frame_bytes is None else self.frame_bytes
        if self.timeout < 0 or min(longest, self.children, self.children_each) < 1:
            raise ValueError("timeout must be at least 0; frame_bytes, children and children_each at least 1")
        if self.record_bytes < 1 << 16:
            raise ValueError("record_bytes must be at least 65536")
        if any("=" in name or not name for name in self.environment):
            raise ValueError("environment must have names of variables, without values")
        if self.policy or self.exceptions:
            from assay.settings.policy_settings import check  # noqa: PLC0415 - imported only if a policy is set

            check(self.policy, self.exceptions)

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
    Whether unambiguous mistakes are repaired, under ``enforce``; if not set, those in arguments as ``guard.repair``
    says, and those in results not at all.
    """


@dataclass(frozen=True, slots=True)
class RuleException:
    """Another action for one rule, with a reason and an end date."""

    rule: str = ""
    """The rule, or a pattern of rules. Required."""

    tool: str | None = None
    """Only messages about this tool; by default every message."""

    action: str = "pass"
    """``pass``, ``refuse``, ``quarantine`` or ``drop``."""

    reason: str = ""
    """The reason. The journal has it with every message that the exception lets pass. Required."""

    until: str | None = setting(None, kind=DAY)
    """The last day of the exception, in UTC. Required."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """Settings of a guard."""

    mode: str = setting("audit", words=MODES, weaker=unless("enforce"))
    """``audit`` forwards everything and reports; ``enforce`` stops invalid messages."""

    timeout: float = 600.0
    """
    Time limit in seconds for a response, under ``enforce``; each progress notification restarts it, 0 means no limit.
    ``server/discover`` has at most 10 seconds. Tools that take longer without progress are rare.
    """

    frame_bytes: int | None = None
    """Maximal bytes of one message in either direction; if not set, ``limits.frame_bytes``."""

    restart: str = setting("never", words=POLICIES)
    """
    Whether a server that ends is restarted, under ``enforce``: ``never``, ``on-failure`` (if its exit status is not 0)
    or ``always``. The server loses its state, so set this only for servers that can do without.
    """

    restarts: int = 5
    """Restarts within a minute after which the guard gives up: by then the problem does not go away by itself."""

    flights: str = "auto"
    """
    The directory for the last messages of broken sessions. ``auto`` is ``flights`` in the directory of the journal, or
    in the folder of the server, below the state directory, if the journal is off; ``off`` switches them off.
    """

    record_bytes: int = 256 << 20
    """Maximal bytes of a recording, which stops there: some 250,000 messages of a kilobyte."""

    record_secrets: bool = False
    """
    Whether a recording keeps secrets. By default they are masked, and a message with masked secrets is not judged
    again.
    """

    children: int = 64
    """
    Maximal child processes for HTTP sessions. A server takes some 50 MB; one more session ends the least recently used
    idle one. Requests without a session have one additional child.
    """

    children_each: int = 16
    """Maximal child processes of one principal, with ``[auth]``; one more ends its least recently used idle one."""

    environment: tuple[str, ...] = ()
    """
    Variables of the guard that every server of a host gets, in addition to ``PATH``, ``HOME`` and similar ones and
    those of its entry; ``MY_*`` is a prefix. Other variables are not passed on, because the guard has the tokens of
    all servers.
    """

    stderr_in_errors: bool = False
    """
    Whether an error over HTTP contains the last stderr lines of a child that ended, redacted. They may hold secrets, so
    by default only the guard's stderr has them. Over STDIO the client always gets them.
    """

    lock: str = "auto"
    """
    The lock file with the reviewed server. ``off`` applies no lock, ``auto`` is `assay.lock` in the working directory
    if it has this server.
    """

    strict: bool = setting(False, weaker=unless(True))
    """
    Whether tolerable defects are blocked too, under ``enforce``: those that a specification lets the receiver accept,
    and tools that the guard can judge only in part. By default these are only reported.
    """

    repair: bool | None = setting(None, weaker=by_effect)
    """Whether unambiguous mistakes in arguments are repaired, under ``enforce``. By default yes, unless strict."""

    fail_open: bool = False
    """Whether messages that the guard cannot judge are forwarded, under ``enforce``, and only reported."""

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
